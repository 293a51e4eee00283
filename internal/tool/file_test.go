package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
)

func TestWriteKeepsMode(t *testing.T) {
	w := &Workspace{Dir: resolvedTempDir(t)}
	path := filepath.Join(w.Dir, "run.sh")
	writeFile(t, path, "old\n")
	if err := os.Chmod(path, 0o750); err != nil {
		t.Fatal(err)
	}
	if r := call(t, Write(w), m{"path": "run.sh", "content": "new\n"}); r.Status != StatusOK {
		t.Fatal(r.Text)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if err := os.Chmod(path, 0o440); err != nil {
		t.Fatal(err)
	}
	if r := call(t, Edit(w), m{"path": "run.sh", "old": "new", "new": "x"}); !strings.Contains(r.Text, "run.sh is read-only") {
		t.Errorf("%+v", r)
	}
}

func TestWriteDoesNotOverwriteTheUnseen(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"changed": func(path string) error { return os.WriteFile(path, []byte("theirs\n"), 0o644) },
		"removed": os.Remove,
	} {
		w := &Workspace{Dir: resolvedTempDir(t)}
		path := filepath.Join(w.Dir, "a.txt")
		writeFile(t, path, "old\n")
		a, err := Prepare(t.Context(), Write(w), `{"path":"a.txt","content":"mine\n"}`)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(path); err != nil {
			t.Fatal(err)
		}
		if r := Run(t.Context(), a, nil); r.Status != StatusError || r.Diff != nil || !strings.Contains(r.Text, "changed since") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestWriteStopped(t *testing.T) {
	w := &Workspace{Dir: resolvedTempDir(t)}
	a, err := Prepare(t.Context(), Write(w), `{"path":"a/b.txt","content":"x"}`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := Run(ctx, a, nil); r.Status != StatusError {
		t.Errorf("%+v", r)
	}
	if entries, _ := os.ReadDir(w.Dir); len(entries) > 0 {
		t.Errorf("left: %v", entries)
	}
}

func TestChangedFilesAreBounded(t *testing.T) {
	w := &Workspace{Dir: resolvedTempDir(t)}
	writeFile(t, w.Dir+"/fits", "x"+strings.Repeat("a\n", maxEditBytes/2-1)+"\n")
	writeFile(t, w.Dir+"/long", "x"+strings.Repeat("a\n", maxEditBytes/2))
	if r := call(t, Edit(w), m{"path": "fits", "old": "x", "new": "y"}); r.Status != StatusOK {
		t.Errorf("%+v", r.Text)
	}
	if r := call(t, Edit(w), m{"path": "long", "old": "x", "new": "y"}); !strings.Contains(r.Text, "more than the 10.0 MB") {
		t.Errorf("%+v", r.Text)
	}
}

// editor is an FS whose buffers differ from the disk.
type editor map[string]string

func (e editor) ReadTextFile(_ context.Context, path string) (string, error) {
	if text, ok := e[path]; ok {
		return text, nil
	}
	return "", errors.New("no such buffer")
}

func (e editor) WriteTextFile(_ context.Context, path, text string) error {
	if strings.HasSuffix(path, "full") {
		return errors.New("the editor says no")
	}
	e[path] = text
	return nil
}

func TestEditorBuffers(t *testing.T) {
	w := &Workspace{Dir: resolvedTempDir(t)}
	e := editor{w.Dir + "/a.txt": "unsaved\n", w.Dir + "/only.txt": "never saved\n"}
	w.FS = e
	writeFile(t, w.Dir+"/a.txt", "saved\n")
	writeFile(t, w.Dir+"/other.txt", "saved\n")
	if r := call(t, Read(w), m{"path": "a.txt"}); r.Text != "unsaved\n" {
		t.Errorf("%q", r.Text)
	}
	if r := call(t, Read(w), m{"path": "only.txt"}); r.Text != "never saved\n" {
		t.Errorf("%q", r.Text)
	}
	if r := call(t, Read(w), m{"path": "other.txt"}); r.Status != StatusError || !strings.Contains(r.Text, "no such buffer") {
		t.Errorf("%q", r.Text)
	}
	if r := call(t, Edit(w), m{"path": "a.txt", "old": "unsaved", "new": "edited"}); r.Status != StatusOK ||
		r.Diff.Old != "unsaved\n" || e[w.Dir+"/a.txt"] != "edited\n" {
		t.Errorf("%+v", r)
	}
	if r := call(t, Write(w), m{"path": "new/b.txt", "content": "b"}); r.Status != StatusOK || e[w.Dir+"/new/b.txt"] != "b" {
		t.Errorf("%+v", r)
	}
	if r := call(t, Write(w), m{"path": "full", "content": "b"}); r.Text != "full: the editor says no" {
		t.Errorf("%+v", r)
	}
	if got := readFile(t, w.Dir+"/a.txt"); got != "saved\n" {
		t.Errorf("the disk was changed: %q", got)
	}
	outside := filepath.Join(resolvedTempDir(t), "o.txt")
	writeFile(t, outside, "disk\n")
	if r := call(t, Read(w), m{"path": outside}); r.Text != "disk\n" {
		t.Errorf("an editor is not asked for what is outside: %q", r.Text)
	}
}

func TestReadBounds(t *testing.T) {
	w := &Workspace{Dir: resolvedTempDir(t)}
	lines := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%d\n", i+1)
		}
		return b.String()
	}
	writeFile(t, w.Dir+"/n", lines(maxReadLines))
	writeFile(t, w.Dir+"/n1", lines(maxReadLines+1))
	writeFile(t, w.Dir+"/wide", strings.Repeat(strings.Repeat("é", 300)+"\n", 200))
	writeFile(t, w.Dir+"/line", strings.Repeat("a", maxLineBytes)+"\n"+strings.Repeat("é", maxLineBytes)+"end\nnext")
	writeFile(t, w.Dir+"/noise", strings.Repeat("a\xff", 200_000))

	if r := call(t, Read(w), m{"path": "n"}); r.Text != lines(maxReadLines) {
		t.Errorf("%d lines: %q", maxReadLines, r.Text[len(r.Text)-100:])
	}
	if r := call(t, Read(w), m{"path": "n1"}); r.Text != lines(maxReadLines)+"[lines 1-2000 of 2001; continue with offset=2001]" {
		t.Errorf("%d lines: %q", maxReadLines+1, r.Text[len(r.Text)-100:])
	}
	if r := call(t, Read(w), m{"path": "n1", "limit": 99999}); !strings.HasPrefix(r.Text, lines(maxReadLines)) {
		t.Error("a large limit")
	}
	if r := call(t, Read(w), m{"path": "n1", "offset": 2001}); r.Text != "2001\n[lines 2001-2001 of 2001, the end]" {
		t.Errorf("%q", r.Text)
	}
	r := call(t, Read(w), m{"path": "wide"})
	if len(r.Text) > maxReadBytes || len(r.Text) < maxReadBytes-maxLineBytes-1000 || !strings.Contains(r.Text, "of 200; continue with offset=") {
		t.Errorf("%d bytes, %q", len(r.Text), r.Text[len(r.Text)-100:])
	}
	want := strings.Repeat("a", maxLineBytes) + "\n" + strings.Repeat("é", maxLineBytes/2) +
		fmt.Sprintf("...[+%d bytes]\nnext", maxLineBytes+3)
	if r := call(t, Read(w), m{"path": "line"}); r.Text != want {
		t.Errorf("%q", r.Text[maxLineBytes-10:])
	}
	if r := call(t, Read(w), m{"path": "noise"}); len(r.Text) > maxLineBytes+noteBytes || !strings.Contains(r.Text, "not UTF-8") {
		t.Errorf("%d bytes", len(r.Text))
	}
}

// TestReadHuge reads the end of a file with a hole that is too long to be read
// whole.
func TestReadHuge(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 256 MiB")
	}
	w := &Workspace{Dir: resolvedTempDir(t)}
	f, err := os.Create(w.Dir + "/huge")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, strings.Repeat("line\n", 3000)) // no NUL where text is told from binary
	if err := errors.Join(f.Truncate(maxScanBytes+1), f.Close()); err != nil {
		t.Skip(err)
	}
	if r := call(t, Read(w), m{"path": "huge", "limit": 1}); r.Text != "line\n[lines 1-1 of more than 3001; continue with offset=2]" {
		t.Errorf("%q", r.Text)
	}
}

func TestReadImage(t *testing.T) {
	w := &Workspace{Dir: resolvedTempDir(t)}
	png := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x03\x00\x00\x00\x02\x08\x02\x00\x00\x00\x12\x16\xf1\x4d"
	writeFile(t, w.Dir+"/dir/a.png", png)
	r := call(t, Read(w), m{"path": "dir/a.png"})
	if r.Text != "[image 1: a.png, 3x2]" || len(r.Images) != 1 || r.Images[0].MediaType != "image/png" ||
		string(r.Images[0].Data) != png || r.Images[0].Name != "a.png" {
		t.Errorf("%+v", r)
	}
	writeFile(t, w.Dir+"/big.png", png)
	if err := os.Truncate(w.Dir+"/big.png", llm.MaxImageBytes+1); err != nil {
		t.Fatal(err)
	}
	if r := call(t, Read(w), m{"path": "big.png"}); r.Status != StatusError || !strings.Contains(r.Text, "20.0 MB") {
		t.Errorf("%+v", r)
	}
}

func TestReadStopped(t *testing.T) {
	w := &Workspace{Dir: resolvedTempDir(t)}
	writeFile(t, w.Dir+"/a", "a\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		tool Tool
		args string
	}{{Read(w), `{"path":"a"}`}, {Grep(w), `{"pattern":"a"}`}, {Glob(w), `{"pattern":"*"}`}, {Shell(w), `{"command":"true"}`}} {
		a, err := Prepare(t.Context(), c.tool, c.args)
		if err != nil {
			t.Fatal(err)
		}
		if r := Run(ctx, a, nil); r.Status != StatusError {
			t.Errorf("%s: %+v", a.Title, r)
		}
	}
}
