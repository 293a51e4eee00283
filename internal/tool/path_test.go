package tool

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func resolvedTempDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func testEnviron() []string { return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"} }

func mustJSON(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func symlink(t testing.TB, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Skipf("no symbolic links: %v", err)
	}
}

func TestLocate(t *testing.T) {
	base := resolvedTempDir(t)
	w := &Workspace{Dir: filepath.Join(base, "work"), Roots: []string{filepath.Join(base, "more"), "relative"}}
	for _, dir := range []string{"work/sub", "more", "out", "working"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(base, "work", "file"), "")
	for link, target := range map[string]string{
		"work/out": "../out", "work/abs": filepath.Join(base, "out"), "work/back": "../out/../work/sub",
		"out/in": "../work/sub", "work/nowhere": "../out/not/there", "work/chain": "out", "work/deep": "sub/missing",
	} {
		symlink(t, target, filepath.Join(base, link))
	}
	symlink(t, "loop", filepath.Join(base, "work", "loop"))
	for path, want := range map[string]string{
		".": "work", "sub": "work/sub", "sub/../new/x": "work/new/x", "/": "-", "..": "-", "../out": "-",
		"../more/x": "more/x", "../working": "-", "out": "-", "out/x": "-", "abs/x/y": "-", "back/x": "work/sub/x",
		"../out/in/x": "work/sub/x", "nowhere": "-", "nowhere/x": "-", "chain/in": "work/sub", "deep": "work/sub/missing",
		"file/x": "work/file/x", base + "/work/sub": "work/sub", "sub/./": "work/sub", "loop": "error", "": "error",
		"a\x00b": "error",
	} {
		got := "-"
		p, err := w.locate(path)
		if err != nil {
			got = "error"
		} else if p.inside() {
			rel, _ := filepath.Rel(base, filepath.Join(p.root, p.rel))
			got = filepath.ToSlash(rel)
		}
		if got != want {
			t.Errorf("%q: %s, want %s (%+v, %v)", path, got, want, p, err)
		}
		if _, err := w.locateForWriting(path); (err == nil) != (want != "-" && want != "error") {
			t.Errorf("%q for writing: %v", path, err)
		}
	}
}

func TestRootIsALink(t *testing.T) {
	base := resolvedTempDir(t)
	writeFile(t, filepath.Join(base, "real", "a.txt"), "a\n")
	symlink(t, "real", filepath.Join(base, "work"))
	w := &Workspace{Dir: filepath.Join(base, "work")}
	if r := call(t, Edit(w), m{"path": "a.txt", "old": "a", "new": "b"}); r.Status != StatusOK ||
		r.Diff.Path != filepath.Join(base, "work", "a.txt") {
		t.Errorf("%+v", r)
	}
	if got := readFile(t, filepath.Join(base, "real", "a.txt")); got != "b\n" {
		t.Errorf("%q", got)
	}
}

// TestLinkAfterCheck turns a folder into a link to the outside between the check
// and the call.
func TestLinkAfterCheck(t *testing.T) {
	base := resolvedTempDir(t)
	w := &Workspace{Dir: filepath.Join(base, "work")}
	writeFile(t, filepath.Join(w.Dir, "sub", "a.txt"), "inside\n")
	writeFile(t, filepath.Join(base, "out", "a.txt"), "secret\n")
	var actions []*Action
	for _, c := range []struct {
		tool Tool
		args m
	}{
		{Read(w), m{"path": "sub/a.txt"}}, {Grep(w), m{"pattern": "secret", "path": "sub/a.txt"}},
		{Edit(w), m{"path": "sub/a.txt", "old": "inside", "new": "x"}},
		{Write(w), m{"path": "sub/a.txt", "content": "x"}}, {Write(w), m{"path": "sub/new.txt", "content": "x"}},
	} {
		a, err := Prepare(t.Context(), c.tool, mustJSON(t, c.args))
		if err != nil {
			t.Fatal(err)
		}
		actions = append(actions, a)
	}
	if err := os.RemoveAll(filepath.Join(w.Dir, "sub")); err != nil {
		t.Fatal(err)
	}
	symlink(t, filepath.Join(base, "out"), filepath.Join(w.Dir, "sub"))
	for _, a := range actions {
		if r := Run(t.Context(), a, nil); r.Status != StatusError || strings.Contains(r.Text, "secret") {
			t.Errorf("%s: %s %q", a.Title, r.Status, r.Text)
		}
	}
	if got := readFile(t, filepath.Join(base, "out", "a.txt")); got != "secret\n" {
		t.Errorf("written outside: %q", got)
	}
	if _, err := os.Lstat(filepath.Join(base, "out", "new.txt")); err == nil {
		t.Error("made outside")
	}
}

// TestLinkAfterQuestion turns a file or a folder that a person was asked about, or
// one inside, into a link to another between the question and the call.
func TestLinkAfterQuestion(t *testing.T) {
	for _, inside := range []bool{false, true} {
		for _, turned := range []string{"asked", "asked/sub", "asked/sub/f.txt"} {
			base := resolvedTempDir(t)
			w := &Workspace{Dir: filepath.Join(base, "work")}
			asked := filepath.Join(base, "asked")
			if inside {
				asked = filepath.Join(w.Dir, "asked")
			}
			writeFile(t, filepath.Join(asked, "sub", "f.txt"), "harmless\n")
			writeFile(t, filepath.Join(base, "secret", "sub", "f.txt"), "SECRET\n")
			if err := os.MkdirAll(w.Dir, 0o755); err != nil {
				t.Fatal(err)
			}
			var actions []*Action
			for _, c := range []struct {
				tool Tool
				args m
			}{
				{Read(w), m{"path": asked + "/sub/f.txt"}}, {Read(w), m{"path": asked + "/sub"}}, {Read(w), m{"path": asked}},
				{Grep(w), m{"pattern": "SECRET", "path": asked}}, {Grep(w), m{"pattern": "SECRET", "path": asked + "/sub"}},
				{Grep(w), m{"pattern": "SECRET", "path": asked + "/sub/f.txt"}}, {Glob(w), m{"pattern": asked + "/**"}},
			} {
				a, err := Prepare(t.Context(), c.tool, mustJSON(t, c.args))
				if err != nil {
					t.Fatal(err)
				}
				actions = append(actions, a)
			}
			// A walk that has begun before counts too.
			p, err := w.locate(asked)
			if err != nil {
				t.Fatal(err)
			}
			rest := strings.TrimPrefix(turned, "asked")
			if err := os.RemoveAll(asked + rest); err != nil {
				t.Fatal(err)
			}
			symlink(t, filepath.Join(base, "secret")+rest, asked+rest)
			writeFile(t, filepath.Join(base, "secret", "more.txt"), "SECRET\n")
			for _, a := range actions {
				if r := Run(t.Context(), a, nil); strings.Contains(r.Text, "SECRET") || strings.Contains(r.Text, "more.txt") {
					t.Errorf("%s is a link now, inside %t: %q: %s %q", turned, inside, a.Title, r.Status, r.Text)
				}
			}
			walk := newWalker(p, func(f walked) bool {
				if found := searchPath(t.Context(), f, mustExpr(t, "SECRET")); found.count > 0 {
					t.Errorf("%s is a link now: a walk found something in %s", turned, f.path)
				}
				return true
			})
			_ = walk.run(t.Context()) // that it fails is fine
		}
	}
}

func mustExpr(t testing.TB, pattern string) *expr {
	t.Helper()
	e, err := compileExpr(pattern, false)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestNoWayUpFromNowhere: what a link says of a folder that is not there, or of a
// file, leads nowhere for the kernel, and so it does here.
func TestNoWayUpFromNowhere(t *testing.T) {
	base := resolvedTempDir(t)
	w := &Workspace{Dir: base + "/work"}
	writeFile(t, w.Dir+"/a/file", "")
	for i, target := range []string{
		"a/no/../file", "a/no/../../work/a/file", "a/file/../file", "no/..", "no/.", "no/", "a/file/.", "a/file/", "a/no/../new", "a/file/../new",
		w.Dir + "/no/../a/file", "a/../a/file/../new", "a/no/./new",
	} {
		link := fmt.Sprintf("link%d", i)
		symlink(t, target, w.Dir+"/"+link)
		before := listing(base)
		for _, path := range []string{link, link + "/x"} {
			if p, err := w.locate(path); err == nil {
				t.Errorf("%s with a link to %s is %s", path, target, p.real)
			}
			if a, err := Prepare(t.Context(), Write(w), mustJSON(t, m{"path": path, "content": "x"})); err == nil {
				t.Errorf("%s with a link to %s: %+v", path, target, Run(t.Context(), a, nil))
			}
		}
		if after := listing(base); len(after) != len(before) {
			t.Errorf("a link to %s made something: %v", target, after)
		}
	}
	for target, want := range map[string]string{"a/../a/./file": "a/file", "a/.": "a", "a/": "a", "./no": "no", ".//a//x": "a/x"} {
		symlink(t, target, w.Dir+"/good")
		if p, err := w.locate("good"); err != nil || p.rel != filepath.FromSlash(want) {
			t.Errorf("%s: %+v %v", target, p, err)
		}
		if err := os.Remove(w.Dir + "/good"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWritesStayInside lets any path go through any tangle of links: what is
// written lands inside a root or nowhere.
func TestWritesStayInside(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege")
	}
	names := []string{"a", "b", "c", "..", "work", "out", "."}
	path := func(rt *rapid.T, label string) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(names), 1, 5).Draw(rt, label), "/")
	}
	rapid.Check(t, func(rt *rapid.T) {
		base := resolvedTempDir(t)
		work, out := filepath.Join(base, "x", "work"), filepath.Join(base, "x", "out")
		for _, dir := range []string{work + "/a/b", out + "/a"} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				rt.Fatal(err)
			}
		}
		for range rapid.IntRange(0, 5).Draw(rt, "links") {
			target := path(rt, "target")
			if rapid.Bool().Draw(rt, "absolute") {
				target = filepath.Join(base, "x", target)
			}
			// A name that is taken or lies nowhere makes no link.
			_ = os.Symlink(target, filepath.Join(base, "x", path(rt, "link")))
		}
		before := listing(base)
		w := &Workspace{Dir: work}
		asked := path(rt, "path")
		p, err := w.locate(asked)
		if real, evalErr := filepath.EvalSymlinks(filepath.Join(work, asked)); evalErr == nil && (err != nil || p.real != real) {
			rt.Fatalf("%s is %s, resolved as %s (%v)", asked, real, p.real, err)
		}
		r := call(t, Write(w), m{"path": asked, "content": "written"})
		for name := range listing(base) {
			if !before[name] && !strings.HasPrefix(name, work+"/") {
				rt.Fatalf("%s made %s: %+v", asked, name, r)
			}
		}
		if r.Status == StatusOK {
			if real, err := filepath.EvalSymlinks(filepath.Join(work, asked)); err != nil || !strings.HasPrefix(real, work+"/") {
				rt.Fatalf("%s was written at %s (%v)", asked, real, err)
			}
		}
	})
}

func listing(dir string) map[string]bool {
	all := make(map[string]bool)
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
		all[path] = true
		return nil
	})
	return all
}
