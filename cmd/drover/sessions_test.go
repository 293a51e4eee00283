package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/drover-dev/drover/internal/config"
	"github.com/drover-dev/drover/internal/session"
)

func TestHarmless(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":                 "plain\ttext\n",
		"windows\r\nlines":              "windows\nlines",
		"back\rover":                    "back\uFFFDover",
		"\x1b[31mred\x1b[0m":            "\uFFFD[31mred\uFFFD[0m",
		"\u009b31mred":                  "\uFFFD31mred",
		"\x7f\x00\x07":                  "\uFFFD\uFFFD\uFFFD",
		"bad \xff utf-8":                "bad \uFFFD utf-8",
		"turned \u202e around":          "turned \uFFFD around",
		"lines \u2028 and \ufeff marks": "lines \uFFFD and \uFFFD marks",
		"👩\u200d💻 and नमस्ते":           "👩\u200d💻 and नमस्ते",
	} {
		if got := harmless(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
	if got := oneLine(" a\nb\t\x1bc "); got != "a b \uFFFDc" {
		t.Errorf("one line: %q", got)
	}
}

// Escaped JSON says the same, and holds nothing that a terminal obeys.
func FuzzEscapeJSON(f *testing.F) {
	for _, s := range []string{"", "a\u009b\u202eb", "\U000e0041\U0010ffff", "\x7f\u200d", "👩", "\\u009b\"\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return
		}
		var b bytes.Buffer
		if err := printSafeJSON(&b, []string{s}); err != nil {
			t.Fatal(err)
		}
		var back []string
		if err := json.Unmarshal(b.Bytes(), &back); err != nil || back[0] != s {
			t.Errorf("%q comes back as %q, %v", s, back, err)
		}
		if bytes.ContainsFunc(b.Bytes(), harmful) {
			t.Errorf("%q: %q", s, b.Bytes())
		}
	})
}

func TestShorten(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"", ""},
		{"one\ntwo\n", "one\ntwo"},
		{strings.Repeat("x\n", 8), strings.TrimSuffix(strings.Repeat("x\n", 8), "\n")},
		{strings.Repeat("x\n", 9), strings.Repeat("x\n", 8) + "[… 17 bytes in 9 lines]"},
		{strings.Repeat("ü", 601), strings.Repeat("ü", 600) + "\n[… 1202 bytes in 1 lines]"},
		{"x" + strings.Repeat("ü", 600), "x" + strings.Repeat("ü", 599) + "\n[… 1201 bytes in 1 lines]"},
	} {
		if got := shorten(test.in); got != test.want {
			t.Errorf("%.40q gives %q, want %q", test.in, got, test.want)
		}
	}
}

func TestSizeText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 100 << 20: "100.0 MiB"} {
		if got := sizeText(n); got != want {
			t.Errorf("%d gives %s, want %s", n, got, want)
		}
	}
}

// TestLastSession: the newest in which something was said, if there is one.
func TestLastSession(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	store := session.NewStore(filepath.Join(t.TempDir(), "sessions"))
	if _, err := resolveSession(store, lastSession); err == nil {
		t.Error("there is a last session of none")
	}
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	create := func(recs ...session.Record) string {
		at = at.Add(time.Hour)
		log, err := store.Create(dir, &session.CreateOptions{Now: func() time.Time { return at }})
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range recs {
			if err := log.Append(rec); err != nil {
				t.Fatal(err)
			}
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		return log.ID()
	}
	var want string
	for _, step := range []struct {
		name string
		recs []session.Record
		said bool
	}{
		{"nothing was said anywhere", nil, true},
		{"a turn", []session.Record{&session.TurnStart{}, &session.TurnEnd{Reason: session.EndCompleted}}, true},
		{"an editor's panel", nil, false},
		{"a turn that runs", []session.Record{&session.TurnStart{}}, true},
	} {
		if id := create(step.recs...); step.said {
			want = id
		}
		if got, err := resolveSession(store, lastSession); err != nil || got != want {
			t.Errorf("%s: last is %s, want %s; %v", step.name, got, want, err)
		}
	}
}

// TestRemovedWithItsOutputs: nothing of what a session has kept survives it, and
// another loses nothing.
func TestRemovedWithItsOutputs(t *testing.T) {
	home := t.TempDir()
	a := &app{stdout: io.Discard, stderr: io.Discard, dirs: config.Dirs{State: filepath.Join(home, "state"), Cache: filepath.Join(home, "cache")}}
	a.loaded.Do(func() {}) // the folders of whoever runs this are left alone
	var files, ids []string
	for range 2 {
		log, err := a.sessions().Create(home, nil)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(a.outputs(), log.ID(), "shell-1.txt")
		files, ids = append(files, file), append(ids, log.ID())
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.removeSessions(ids[:1]); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(files[0])); !os.IsNotExist(err) {
		t.Errorf("the outputs are still there: %v", err)
	}
	if _, err := os.Stat(files[1]); err != nil {
		t.Error(err)
	}
}
