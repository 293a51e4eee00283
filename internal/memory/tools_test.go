package memory

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/tool"
)

func choose(version int) Choose {
	return func(heading string, lines []string, limit int) (string, []int) {
		p, _ := budget.PolicyByVersion(version)
		return budget.SelectNotes(p, heading, lines, limit)
	}
}

func TestDigest(t *testing.T) {
	s, _, global := newStore(t)
	for _, n := range []Note{
		{Title: "zebra", Text: "short"},
		{Title: "apple", Summary: "an apple", Text: "much more of it"},
		{Title: "long", Text: strings.Repeat("ä", 300)},
		{Title: "same", Summary: "same", Text: "same"},
		{Title: "rule", Summary: "for all", Text: "x", Scope: Global},
	} {
		if _, err := s.Put(n); err != nil {
			t.Fatal(err)
		}
	}
	got, omitted := s.Digest().Fit(MaxDigest, choose(2))
	want := heading + `
{"title":"apple","note":"an apple","file":".drover/memory/apple.md"}
{"title":"long","note":"` + strings.Repeat("ä", 200) + ` …","file":".drover/memory/long.md"}
{"title":"same","note":"same"}
{"title":"zebra","note":"short"}
{"title":"rule","note":"for all","file":"` + filepath.ToSlash(global) + `/rule.md"}`
	if got != want || len(omitted) != 0 {
		t.Errorf("got %s %v\nwant %s", got, omitted, want)
	}
	for _, d := range []*Digest{(*Store)(nil).Digest(), Open("").Digest(), new(Digest)} {
		if text, omitted := d.Fit(MaxDigest, choose(2)); text != "" || omitted != nil {
			t.Errorf("without notes: %q %v", text, omitted)
		}
	}
}

func TestDigestLimit(t *testing.T) {
	for window, want := range map[int]int{-1: 0, 0: 0, 4096: 512, 8192: 1024, 12288: 1536, 1 << 20: 1536} {
		if got := DigestLimit(window); got != want {
			t.Errorf("window %d: %d, want %d", window, got, want)
		}
	}
}

// The digest stays within its limit, holds whole lines in order, names all others
// and does not grow within a turn.
func TestDigestFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := new(Digest)
		for i := range rapid.IntRange(0, 30).Draw(t, "notes") {
			n := anyNote().Draw(t, "note")
			if n.clean() != nil {
				continue
			}
			n.Path = "/x"
			d.lines, d.titles = append(d.lines, (*Store).line(new(Store), &n)), append(d.titles, string(rune('a'+i)))
		}
		version := rapid.IntRange(1, 2).Draw(t, "policy")
		limit := rapid.IntRange(0, MaxDigest).Draw(t, "limit")
		text, omitted := d.Fit(limit, choose(version))
		p, _ := budget.PolicyByVersion(version)
		if cost := budget.EstimateText(p, text); cost > limit {
			t.Fatalf("%d tokens of %d", cost, limit)
		}
		lines := strings.Split(text, "\n")[1:]
		if len(lines)+len(omitted) != len(d.lines) && text != "" || text == "" && len(omitted) != len(d.lines) {
			t.Fatalf("%d shown and %d left out of %d", len(lines), len(omitted), len(d.lines))
		}
		for _, l := range lines {
			var object map[string]string
			if json.Unmarshal([]byte(l), &object) != nil {
				t.Fatalf("no JSON: %s", l)
			}
		}
		if again, _ := d.Fit(limit+rapid.IntRange(0, 99).Draw(t, "more"), choose(version)); again != text {
			t.Fatal("it grew within a turn")
		}
		if less, _ := d.Fit(limit/2, choose(version)); budget.EstimateText(p, less) > limit/2 {
			t.Fatal("it did not shrink")
		}
	})
}

// call prepares a call and runs it if that works.
func call(t *testing.T, s *Store, name, arguments string) (*tool.Action, string) {
	t.Helper()
	impl, ok := tool.NewSet(s.Tools()...).Lookup(name)
	if !ok {
		t.Fatalf("no tool %s", name)
	}
	a, err := tool.Prepare(t.Context(), impl, arguments)
	if err != nil {
		return nil, err.Error()
	}
	r := tool.Run(t.Context(), a, nil)
	return a, string(r.Status) + " " + r.Text
}

func TestTools(t *testing.T) {
	s, dir, global := newStore(t)
	path := filepath.Join(dir, ".drover", "memory", "build.md")
	a, text := call(t, s, "remember", `{"title":"Build","text":"make build","summary":"use make"}`)
	if text != "ok Kept .drover/memory/build.md. Later turns are shown it." {
		t.Fatal(text)
	}
	content := "---\ntitle: Build\nsummary: use make\n---\n\nmake build\n"
	if a.Title != ".drover/memory/build.md" || a.Access != tool.AccessWrite || a.ReadOnly || len(a.Scopes) != 1 ||
		*a.Diff != (tool.Diff{Path: path, New: content, Created: true}) {
		t.Errorf("action %+v diff %+v", a, a.Diff)
	}
	a, text = call(t, s, "remember", `{"title":"Build","text":"ninja"}`)
	if text != "ok Replaced .drover/memory/build.md. Later turns are shown it." || a.Diff.Old != content || a.Diff.Created {
		t.Errorf("%s %+v", text, a.Diff)
	}
	a, text = call(t, s, "remember", `{"title":"Me","text":"I speak Danish","global":true}`)
	if text != "ok Kept "+filepath.ToSlash(global)+"/me.md. Later turns are shown it." || a.Access != tool.AccessExecute || a.Scopes != nil {
		t.Errorf("%s %+v", text, a)
	}
	for _, tt := range []struct{ name, arguments, want string }{
		{"remember", `{"title":"x"}`, `argument "text" is missing`},
		{"remember", `{"text":"x"}`, `title must not be empty`},
		{"remember", `{"title":"x","text":"y","file":"z"}`, `with title, text, summary, global: unknown field "file"`},
		{"remember", `{"title":1,"text":"y"}`, `argument "title" must be a string, not a number`},
		{"remember", `{"title":"x","text":"y"} {}`, `something behind them`},
		{"remember", `[]`, `array`},
		{"remember", `{"title":"x","text":"` + strings.Repeat("x", MaxText+1) + `"}`, `more than 16384`},
		{"remember", `"` + strings.Repeat("x", maxArguments) + `"`, `longer than`},
		{"forget", `{}`, `argument "title" is missing`},
		{"forget", `{"title":"Bild"}`, `there is no note "Bild" (there are: "Build", "Me")`},
		{"forget", `{"title":"Me"}`, "ok Removed " + filepath.ToSlash(global) + "/me.md."},
		{"forget", `{"title":"build"}`, "ok Removed .drover/memory/build.md."},
		{"forget", `{"title":"build"}`, `there is no note "build": there are none`},
	} {
		if _, got := call(t, s, tt.name, tt.arguments); !strings.Contains(got, tt.want) {
			t.Errorf("%s %.60s: %s, want %s", tt.name, tt.arguments, got, tt.want)
		}
	}
}

// TestPermission is the table of the tools' permissions.
func TestPermission(t *testing.T) {
	s, _, _ := newStore(t)
	for _, scope := range []Scope{Project, Global} {
		if _, err := s.Put(Note{Title: string(scope), Text: "x", Scope: scope}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		tool, arguments           string
		ask, edit, readOnly, full tool.Verdict
	}{
		{"remember", `{"title":"a","text":"b"}`, tool.Ask, tool.Allow, tool.Deny, tool.Allow},
		{"remember", `{"title":"a","text":"b","global":true}`, tool.Ask, tool.Ask, tool.Deny, tool.Allow},
		{"forget", `{"title":"project"}`, tool.Ask, tool.Allow, tool.Deny, tool.Allow},
		{"forget", `{"title":"global"}`, tool.Ask, tool.Ask, tool.Deny, tool.Allow},
	} {
		impl, _ := tool.NewSet(s.Tools()...).Lookup(tt.tool)
		a, err := impl.Prepare(t.Context(), tt.arguments)
		if err != nil {
			t.Fatal(err)
		}
		for mode, want := range map[tool.Mode]tool.Verdict{
			tool.ModeAsk: tt.ask, tool.ModeEdit: tt.edit, tool.ModeReadOnly: tt.readOnly, tool.ModeFull: tt.full,
		} {
			if got, _ := tool.NewGate(mode).Check(&tool.Question{Tool: tt.tool, Action: a}); got != want {
				t.Errorf("%s %s in %s: %v, want %v", tt.tool, tt.arguments, mode, got, want)
			}
		}
	}
}

// TestNotesAboveTheFolder: a session in a part of a work tree asks each time before
// it changes the notes that lie above it, as no other tool writes there.
func TestNotesAboveTheFolder(t *testing.T) {
	top := t.TempDir()
	for _, c := range []struct {
		repository, dir string
		asks            bool
	}{
		{".git", ".", false}, {".git", "sub", true}, {".git", "sub/deeper", true}, {"sub/deeper/.git", "sub/deeper", false}, {"", "plain", false},
	} {
		base := filepath.Join(top, strings.NewReplacer("/", "-", ".", "-").Replace(c.repository+" "+c.dir))
		dir := filepath.Join(base, c.dir)
		for _, d := range []string{dir, filepath.Join(base, c.repository)} {
			if err := os.MkdirAll(d, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		s := Open("").In(dir)
		for _, name := range []string{"remember", "forget"} {
			a, _ := call(t, s, name, map[string]string{"remember": `{"title":"a","text":"b"}`, "forget": `{"title":"a"}`}[name])
			q := &tool.Question{Tool: name, Action: a}
			g := tool.NewGate(tool.ModeEdit)
			g.Remember(q, tool.AllowAlways)
			v, _ := g.Check(q)
			if inside := strings.HasPrefix(a.Locations[0].Path, dir+string(filepath.Separator)); (v == tool.Ask) != c.asks || inside == c.asks {
				t.Errorf("%+v: %s of %s: %v, %+v", c, name, a.Locations[0].Path, v, a)
			}
		}
	}
}

func TestACancelledCallWritesNothing(t *testing.T) {
	s, _, _ := newStore(t)
	a, err := s.remember(`{"title":"x","text":"y"}`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := tool.Run(ctx, a, nil); r.Status != tool.StatusError || shown(s) != "" {
		t.Errorf("%+v, %s", r, shown(s))
	}
}
