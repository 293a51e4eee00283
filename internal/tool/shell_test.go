package tool

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCommandEnviron(t *testing.T) {
	got := commandEnviron([]string{
		"PATH=/bin", "OPENAI_API_KEY=1", "github_token=1", "Secret=1", "DB_PASSWORD=1", "AWS_CREDENTIALS=1", "SSH_PASSPHRASE=1",
		"KEYBOARD=1", "HOME=/h", "PAGER=less", "PWD=/old", "X=KEY",
	}, "/w")
	want := []string{"PATH=/bin", "HOME=/h", "X=KEY", "TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat",
		"GIT_TERMINAL_PROMPT=0", "PWD=/w"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestLookPath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes")
	}
	dir := resolvedTempDir(t)
	writeFile(t, dir+"/a/tool", "")
	writeFile(t, dir+"/b/tool", "")
	writeFile(t, dir+"/c/tool/x", "")
	if err := os.Chmod(dir+"/b/tool", 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for path, want := range map[string]string{
		dir + "/a:" + dir + "/c:" + dir + "/b": dir + "/b/tool", "b": "", ".:": "", dir + "/a": "",
	} {
		if got := lookPath([]string{"PATH=" + dir + "/b", "PATH=" + path}, "tool"); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
	symlink(t, dir+"/b", dir+"/link")
	if got := lookPath([]string{"PATH=" + dir + "/link:" + dir + "/b"}, "tool", dir+"/b"); got != "" {
		t.Errorf("%q lies in a folder that was to be left out", got)
	}
	if got := lookPath(nil, "tool"); got != "" {
		t.Errorf("%q", got)
	}
}

// TestNoHelperOfTheWorkTree: the programs that drover starts for itself are not
// those that a repository brings along, even where PATH names its folder.
func TestNoHelperOfTheWorkTree(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("shell scripts")
	}
	base := resolvedTempDir(t)
	w := &Workspace{Dir: base + "/work", Roots: []string{base + "/more"}}
	for _, dir := range []string{"/work/bin", "/more"} {
		for _, name := range []string{"rg", "bash", "sh", "go", "git"} {
			file := base + dir + "/" + name
			writeFile(t, file, "#!/bin/sh\n: > '"+base+"/ran'\n")
			if err := os.Chmod(file, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	symlink(t, base+"/work/bin", base+"/link")
	writeFile(t, w.Dir+"/.git/HEAD", "")
	writeFile(t, w.Dir+"/a.txt", "needle\n")
	w.Environ = []string{"PATH=" + base + "/work/bin:" + base + "/link:" + base + "/more:" + os.Getenv("PATH"), "HOME=" + base}
	for _, impl := range Builtin(w) {
		args := map[string]m{
			"edit": {"path": "a.txt", "old": "needle", "new": "needles"}, "glob": {"pattern": "*.txt"}, "grep": {"pattern": "needle"},
			"read": {"path": "a.txt"}, "shell": {"command": "echo a"}, "todo": {"items": []string{"[ ] a"}}, "write": {"path": "b.txt", "content": "b"},
		}[impl.Def().Name]
		if r := call(t, impl, args); r.Status != StatusOK {
			t.Errorf("%s: %+v", impl.Def().Name, r)
		}
	}
	(&Sandbox{Self: "x"}).writable(w)
	if exists(base + "/ran") {
		t.Error("a program of the work tree ran")
	}
}

type terminal struct {
	got  *Command
	exit Exit
	err  error
}

func (f *terminal) RunCommand(_ context.Context, c *Command) (Exit, error) {
	f.got = c
	return f.exit, f.err
}

func TestShellInTerminal(t *testing.T) {
	f := &terminal{exit: Exit{Output: "hi", Code: 0}}
	w := &Workspace{Dir: resolvedTempDir(t), Environ: []string{"A=b", "TOKEN=x"}, Terminal: f,
		Wrap: func(argv []string) []string { return append([]string{"/sandbox"}, argv...) }}
	if r := call(t, Shell(w), m{"command": "ls"}); r.Status != StatusOK || r.Text != "hi\n[exit code 0]" {
		t.Errorf("%+v", r)
	}
	if n := len(f.got.Argv); f.got.Argv[0] != "/sandbox" || f.got.Argv[n-1] != "ls" || f.got.Dir != w.Dir ||
		slices.Contains(f.got.Environ, "TOKEN=x") || !slices.Contains(f.got.Environ, "A=b") {
		t.Errorf("%+v", f.got)
	}
	f.exit = Exit{Output: strings.Repeat("x", maxOutputBytes+1), Truncated: true, Code: -1, Signal: "killed"}
	if r := call(t, Shell(w), m{"command": "ls"}); r.Status != StatusError || !strings.HasPrefix(r.Text, "[... earlier output") ||
		!strings.HasSuffix(r.Text, "[ended by signal killed]") || !strings.Contains(r.Text, "1 bytes left out; lost") {
		t.Errorf("%s", r.Text[:200])
	}
	f.err = errors.New("no terminal")
	if r := call(t, Shell(w), m{"command": "ls"}); r.Text != "The command could not be started: no terminal" {
		t.Errorf("%+v", r)
	}
}

func TestShellCannotStart(t *testing.T) {
	w := &Workspace{Dir: resolvedTempDir(t) + "/gone", Environ: testEnviron()}
	if r := call(t, Shell(w), m{"command": "true"}); r.Status != StatusError || !strings.HasPrefix(r.Text, "The command could not be started: ") {
		t.Errorf("%+v", r)
	}
}

// TestProgressPieces: whatever the pieces in which output comes, it is passed on
// whole, in pieces of whole characters that are not too long.
func TestProgressPieces(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringN(0, -1, 3*maxProgressBytes).Draw(rt, "text") +
			strings.Repeat("é", rapid.IntRange(0, 2*maxProgressBytes).Draw(rt, "more"))
		var got strings.Builder
		w := &teller{to: func(piece string) {
			if len(piece) == 0 || len(piece) > maxProgressBytes || strings.ToValidUTF8(piece, "") != piece {
				rt.Fatalf("piece of %d bytes: %.40q", len(piece), piece)
			}
			got.WriteString(piece)
		}}
		for rest := text; rest != ""; {
			n := min(len(rest), rapid.IntRange(1, 3*maxProgressBytes).Draw(rt, "n"))
			_, _ = w.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		w.close()
		if got.String() != text {
			rt.Fatalf("%d bytes of %d came", got.Len(), len(text))
		}
	})
	w := &teller{to: func(string) { panic("a front end's") }}
	if n, err := w.Write([]byte("abc")); n != 3 || err != nil {
		t.Errorf("%d %v", n, err)
	}
}

// TestCapture: the start and the end are kept, and the file holds everything.
func TestCapture(t *testing.T) {
	dir := resolvedTempDir(t)
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(2, 12).Draw(rt, "limit")
		c := &capture{dir: dir, prefix: "x", limit: limit}
		text := ""
		for _, piece := range rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("abcdefgh")), 0, 20, -1), 0, 6).Draw(rt, "pieces") {
			_, _ = c.Write([]byte(piece))
			text += piece
		}
		got := c.close()
		if len(text) <= limit {
			if got != text || c.path != "" {
				rt.Fatalf("%q, file %q", got, c.path)
			}
			return
		}
		head, tail := text[:limit/2], text[len(text)-(limit-limit/2):]
		if !strings.HasPrefix(got, head+"\n[... ") || !strings.HasSuffix(got, " ...]\n"+tail) {
			rt.Fatalf("%q, want %q and %q", got, head, tail)
		}
		if full := readFile(t, c.path); full != text {
			rt.Fatalf("the file has %q, want %q", full, text)
		}
	})
}

func TestBound(t *testing.T) {
	w := &Workspace{SpillDir: resolvedTempDir(t) + "/a/b"}
	if got := w.Bound("12345", 5, "x"); got != "12345" {
		t.Errorf("%q", got)
	}
	if got := w.Bound("123456", 5, "x"); !strings.HasPrefix(got, "12\n[... 1 bytes left out; all of it is in "+w.SpillDir) ||
		!strings.HasSuffix(got, " ...]\n456") {
		t.Errorf("%q", got)
	}
	writeFile(t, w.SpillDir+"/file", "")
	w.SpillDir += "/file"
	if got := w.Bound("123456", 5, "x"); !strings.Contains(got, "; lost, not a directory ...]") {
		t.Errorf("%q", got)
	}
}

func TestSpillIsBounded(t *testing.T) {
	c := &capture{dir: resolvedTempDir(t), prefix: "x", limit: 10}
	piece := make([]byte, 1<<20)
	for range maxSpillBytes>>20 + 2 {
		_, _ = c.Write(piece)
	}
	if got := c.close(); !strings.Contains(got, "only the first 64.0 MB are kept") {
		t.Errorf("%.200q", got)
	}
	if info, err := os.Stat(c.path); err != nil || info.Size() != maxSpillBytes {
		t.Errorf("%v %v", info.Size(), err)
	}
}

// TestTerminalLostSight: what nobody knows is not told as a success or a failure.
func TestTerminalLostSight(t *testing.T) {
	w := &Workspace{Dir: resolvedTempDir(t), Terminal: &terminal{exit: Exit{Output: "hi\n", Lost: "the line is cut"}}}
	if r := call(t, Shell(w), m{"command": "ls"}); r.Status != StatusUnknown || r.Text != "hi\n[nobody knows how it ended: the line is cut]" {
		t.Errorf("%+v", r)
	}
}
