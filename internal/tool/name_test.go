package tool

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestShownPath: every name has a form that JSON and one line can hold, and that
// stands for it alone.
func TestShownPath(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		piece := rapid.SampledFrom([]string{"a", "é", "\xff", "\xc3", "\\", `\x41`, "\n", "\x7f", "\u0085", "\ufffd", " ", "x"})
		path := strings.Join(rapid.SliceOfN(piece, 1, 8).Draw(rt, "path"), "")
		shown := shownName(path)
		if !utf8.ValidString(shown) || strings.ContainsFunc(shown, isControl) {
			rt.Fatalf("%q is shown as %q", path, shown)
		}
		if shown != path && bytesOf(shown) != path {
			rt.Fatalf("%q is shown as %q, which stands for %q", path, shown, bytesOf(shown))
		}
	})
}

// TestNamesOfBytes: what glob, grep and read show of a file whose name is no text is
// what read, grep, edit, write and glob's folder take.
func TestNamesOfBytes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("names are text here")
	}
	for _, dir := range []string{"", "d\xfe/", "two\nlines/"} {
		for _, name := range []string{"b\xffad.txt", "caf\xe9.txt", "a\nb.txt", "\x1b[31m.txt", `back\slash.txt`, `b\xffad.txt`, "\\x41\xff.txt"} {
			w := &Workspace{Dir: resolvedTempDir(t)}
			writeFile(t, filepath.Join(w.Dir, dir+name), "needle\n")
			shown, _, _ := strings.Cut(call(t, Glob(w), m{"pattern": "**/*.txt"}).Text, "\n")
			if found := call(t, Grep(w), m{"pattern": "needle"}).Text; !strings.HasPrefix(found, shown+":1: needle\n") {
				t.Errorf("glob says %q, grep %q", shown, found)
			}
			if list := call(t, Read(w), m{"path": filepath.Dir(shown)}).Text; list != filepath.Base(shown)+"\n" {
				t.Errorf("glob says %q, read %q", shown, list)
			}
			if r := call(t, Read(w), m{"path": shown}); r.Text != "needle\n" {
				t.Errorf("read %q: %q", shown, r.Text)
			}
			if r := call(t, Grep(w), m{"pattern": "needle", "path": filepath.Join(w.Dir, shown)}); !strings.HasPrefix(r.Text, shown) {
				t.Errorf("grep %q: %q", shown, r.Text)
			}
			if r := call(t, Edit(w), m{"path": shown, "old": "needle", "new": "pin"}); r.Status != StatusOK || !strings.Contains(r.Text, shown) {
				t.Errorf("edit %q: %+v", shown, r)
			}
			if got := readFile(t, filepath.Join(w.Dir, dir+name)); got != "pin\n" {
				t.Errorf("%q holds %q", shown, got)
			}
			if dir != "" {
				call(t, Write(w), m{"path": filepath.Dir(shown) + "/new", "content": "x"})
				if !exists(filepath.Join(w.Dir, dir, "new")) {
					t.Errorf("nothing was written beside %q", shown)
				}
			}
		}
	}
	// What is there under the very name is what is meant.
	w := &Workspace{Dir: resolvedTempDir(t)}
	writeFile(t, w.Dir+"/b\xff", "bytes")
	writeFile(t, w.Dir+`/b\xff`, "letters")
	if r := call(t, Read(w), m{"path": `b\xff`}); r.Text != "letters" {
		t.Errorf("%q", r.Text)
	}
	if r := call(t, Write(w), m{"path": `new\x41`, "content": "x"}); r.Status != StatusOK || !exists(w.Dir+`/new\x41`) {
		t.Errorf("%+v", r)
	}
}
