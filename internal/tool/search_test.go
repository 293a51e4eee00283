package tool

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// patterns are expressions of every kind that the search treats in a way of its
// own.
var patterns = []string{
	"ab", "a", "b+", "a|bc", "(ab|ba)c", "^a", "c$", "^$", "^", "$", "a$|b", `\bab\b`, `\Bb`, `a[^b]*c`, `a\s+b`, `\s`,
	`(?s)a.*b`, `\Aab`, `bc\z`, `(?-m)^b`, "(?i)AB", "(?i)k", "x*", "a?", "[^a]", "é", `\xff`, "\ufffd", "a{2,3}", "(a)(b)?c", ".",
}

// TestSearchLineByLine: the jumps of the search find what looking at every line
// finds.
func TestSearchLineByLine(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "b", "c", "ab", "K", "é", " ", "\n", "\n", "\r\n", "\r", "\xff", "\u212a"})
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(rt, "text"), "")
		pattern, fold := rapid.SampledFrom(patterns).Draw(rt, "pattern"), rapid.Bool().Draw(rt, "fold")
		e, err := compileExpr(pattern, fold)
		if err != nil {
			rt.Fatal(err)
		}
		flags := ""
		if fold {
			flags = "(?i)"
		}
		plain := regexp.MustCompile(flags + pattern)
		var want []int
		for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			if text != "" && plain.MatchString(strings.TrimSuffix(line, "\r")) {
				want = append(want, i+1)
			}
		}
		var got []int
		e.chunk = rapid.IntRange(1, 40).Draw(rt, "chunk")
		found := e.search(context.Background(), []byte(text))
		for _, m := range found.matches {
			got = append(got, m.line)
		}
		if !slices.Equal(got, want) || found.count != len(want) {
			rt.Fatalf("%q in %q (fold %v): %v, want %v", pattern, text, fold, got, want)
		}
	})
}

func TestRequired(t *testing.T) {
	for pattern, want := range map[string]string{
		"func main": "[func main] false", `func \w+\(`: "[func ] false", "abc|defg": "[abc defg] false", "a.*bcd": "[bcd] false",
		"(abc)+x?": "[abc] false", "(abc)?": "[] false", "abc|": "[] false", "x*": "[] false", "(?i)abc": "[ABC] true",
		"a{2}": "[a] false", "^abc$": "[abc] false", `\x{fffd}abc`: "[] false", "[ab]c": "[c] false", "ab(c|d)": "[ab] false",
	} {
		e, err := compileExpr(pattern, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(e.literals, e.fold); got != want {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
}

func TestGrepBounds(t *testing.T) {
	w := &Workspace{Dir: resolvedTempDir(t)}
	writeFile(t, w.Dir+"/n.txt", strings.Repeat("match\n", maxMatches))
	if r := call(t, Grep(w), m{"pattern": "match"}); strings.Count(r.Text, "\n") != maxMatches ||
		!strings.HasSuffix(r.Text, "\n[200 matching lines in 1 file]") {
		t.Errorf("%q", r.Text[len(r.Text)-100:])
	}
	writeFile(t, w.Dir+"/a.txt", "match\n")
	r := call(t, Grep(w), m{"pattern": "match"})
	if strings.Count(r.Text, "\n") != maxMatches || !strings.HasPrefix(r.Text, "a.txt:1: match\nn.txt:1: ") ||
		!strings.HasSuffix(r.Text, "\n[the first 200 of 201 matching lines in 2 files; narrow pattern, path or glob]") {
		t.Errorf("%q", r.Text[len(r.Text)-100:])
	}
	writeFile(t, w.Dir+"/wide.md", strings.Repeat(strings.Repeat("é", 400)+"needle"+strings.Repeat("é", 400)+"\n", 190))
	r = call(t, Grep(w), m{"pattern": "needle"})
	if len(r.Text) > maxGrepBytes+noteBytes || !strings.Contains(r.Text, "of 190 matching lines") || strings.Contains(r.Text, "\uFFFD") {
		t.Errorf("%d bytes, %q", len(r.Text), r.Text[len(r.Text)-100:])
	}
	first, _, _ := strings.Cut(r.Text, "\n")
	if !strings.HasPrefix(first, "wide.md:1: ...é") || !strings.HasSuffix(first, "é...") || !strings.Contains(first, "needle") {
		t.Errorf("%q", first)
	}
	if err := os.Truncate(w.Dir+"/a.txt", maxGrepFile+1); err != nil {
		t.Fatal(err)
	}
	if r := call(t, Grep(w), m{"pattern": "match", "path": "a.txt"}); !strings.Contains(r.Text, "more than the 64.0 MB") {
		t.Errorf("%q", r.Text)
	}
}

func TestGlobBounds(t *testing.T) {
	w := &Workspace{Dir: resolvedTempDir(t)}
	for i := range maxGlobPaths {
		writeFile(t, fmt.Sprintf("%s/%04d", w.Dir, i), "")
	}
	if r := call(t, Glob(w), m{"pattern": "*"}); strings.Count(r.Text, "\n") != maxGlobPaths-1 || strings.Contains(r.Text, "[") {
		t.Errorf("%q", r.Text[len(r.Text)-100:])
	}
	writeFile(t, w.Dir+"/a", "")
	if r := call(t, Glob(w), m{"pattern": "*"}); !strings.HasSuffix(r.Text, "0299\n[the first 300 of 301 files; narrow the pattern]") {
		t.Errorf("%q", r.Text[len(r.Text)-100:])
	}
}

// TestIgnoreLikeGit compares walks with what git itself lists.
func TestIgnoreLikeGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git")
	}
	rules := rapid.SampledFrom([]string{
		"a", "b", "/a", "a/", "/a/", "a/b", "/a/b", "a/**", "**/a", "**/a/b", "a/**/b", "!a", "!b", "!a/b", "!/a/", "*.c", "!x.c", "!a/x.c",
		"*", "/*", "!*/", "a/*", "!a/b/", "**", "**/", "a*", "?", "[ab]", "[!a]", `\!a`, `\#a`, "# a", " ", "a ", `a\ `, "a/**c", "x.c\r", "a/b/",
		"**/b/x.c", "*/b", "*/x.c", "!**/x.c", "a**", "a/b/**", "!a/b/**",
	})
	path := rapid.Custom(func(t *rapid.T) string {
		dirs := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3).Draw(t, "dirs")
		return strings.Join(append(dirs, rapid.SampledFrom([]string{"a", "b", "x.c", "!a", "#a", "a "}).Draw(t, "name")), "/")
	})
	rapid.Check(t, func(rt *rapid.T) {
		dir := resolvedTempDir(t)
		command(rt, dir, git, "init", "-q")
		for _, p := range rapid.SliceOfN(path, 1, 12).Draw(rt, "paths") {
			if os.MkdirAll(filepath.Dir(filepath.Join(dir, p)), 0o755) == nil {
				_ = os.WriteFile(filepath.Join(dir, p), nil, 0o644) // a folder of the name may be there
			}
		}
		for _, where := range []string{".", "a", "a/b"} {
			lines := rapid.SliceOfN(rules, 0, 4).Draw(rt, "rules in "+where)
			if _, err := os.Stat(filepath.Join(dir, where)); err == nil && len(lines) > 0 {
				_ = os.WriteFile(filepath.Join(dir, where, ".gitignore"), []byte(strings.Join(lines, "\n")+"\n"), 0o644)
			}
		}
		want := strings.Split(strings.TrimSuffix(command(rt, dir, git, "ls-files", "-oz", "--exclude-standard"), "\x00"), "\x00")
		want = slices.DeleteFunc(want, func(s string) bool { return s == "" })
		var got []string
		w := &Workspace{Dir: dir}
		p, err := w.locate(".")
		if err != nil {
			rt.Fatal(err)
		}
		walk := newWalker(p, func(f walked) bool { got = append(got, f.rel); return true })
		if err := walk.run(t.Context()); err != nil {
			rt.Fatal(err)
		}
		if !slices.IsSortedFunc(got, comparePaths) {
			rt.Fatalf("not in order: %q", got)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			rt.Fatalf("a walk finds %q, git %q", got, want)
		}
	})
}

func command(t *rapid.T, dir, program string, args ...string) string {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir + "/none", "GIT_CONFIG_NOSYSTEM=1", "PATH=" + os.Getenv("PATH")}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v %s", program, args, err, stderr.String())
	}
	return string(out)
}

// TestRipgrepFindsTheSame compares searches with and without ripgrep.
func TestRipgrepFindsTheSame(t *testing.T) {
	if _, err := exec.LookPath("rg"); err != nil {
		t.Skip("no rg")
	}
	with := &Workspace{Dir: resolvedTempDir(t), Environ: testEnviron()}
	without := &Workspace{Dir: with.Dir}
	writeTree(t, with.Dir, 300)
	for name, text := range map[string]string{
		".git/x": "needle", ".gitignore": "*.log\n/out/\n!keep.log\n", "x.log": "needle", "keep.log": "needle", "out/x": "needle",
		".hidden/x": "needle", "nested/.git/HEAD": "", "nested/y.log": "needle", "nul": "needle" + strings.Repeat("x", sniffBytes) + "\x00",
		"binary": "\x00needle", "sub/.gitignore": "keep.log", "sub/keep.log": "needle", "sub/x": "NEEDLE", "u16": "\xff\xfen\x00e\x00e\x00",
		".ignore": "sub/", "crlf": "needle\r\n", "bad": "\xffneedle\xff",
	} {
		writeFile(t, filepath.Join(with.Dir, name), text)
	}
	if err := os.Symlink("keep.log", with.Dir+"/link"); err != nil {
		t.Skip(err)
	}
	for _, args := range []m{
		{"pattern": "needle"}, {"pattern": "needle", "ignore_case": true}, {"pattern": "needle$"}, {"pattern": "^.?needle"},
		{"pattern": "needle", "path": "sub"}, {"pattern": "needle", "path": "out"}, {"pattern": "needle", "path": "nested"},
		{"pattern": "needle|func \\w+7\\("}, {"pattern": "func", "glob": "*.go"}, {"pattern": "-func"}, {"pattern": "nothing like it"},
		{"pattern": "needle", "path": "x.log"}, {"pattern": "needle", "glob": "!*.log"},
	} {
		p, _ := with.locate(".")
		e, _ := compileExpr(args["pattern"].(string), false)
		if _, used := (&grepTool{w: with}).ripgrep(t.Context(), p, e, func(walked) bool { return true }); !used {
			t.Errorf("%v: ripgrep was not used", args)
		}
		a, b := call(t, Grep(with), args), call(t, Grep(without), args)
		if a.Text != b.Text || a.Status != b.Status {
			t.Errorf("%v\nwith:\n%s\nwithout:\n%s", args, a.Text, b.Text)
		}
	}
}

// TestRipgrepFails: a broken ripgrep only costs time.
func TestRipgrepFails(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a shell script")
	}
	w, bin := &Workspace{Dir: resolvedTempDir(t)}, resolvedTempDir(t)
	w.Environ = []string{"PATH=" + bin}
	writeFile(t, w.Dir+"/.git/HEAD", "")
	writeFile(t, w.Dir+"/a.txt", "needle\n")
	for name, script := range map[string]string{
		"exit 2": "exit 2", "stale": `printf 'gone\0/etc/passwd\0'; printf '%s\0' "$PWD/gone" "$PWD/a.txt"`,
		"no program": "\x00\x01",
	} {
		writeFile(t, bin+"/rg", "#!/bin/sh\n"+script+"\n")
		if err := os.Chmod(bin+"/rg", 0o755); err != nil {
			t.Fatal(err)
		}
		if r := call(t, Grep(w), m{"pattern": "needle", "glob": "*.txt"}); r.Text != "a.txt:1: needle\n[1 matching line in 1 file]" {
			t.Errorf("%s: %q", name, r.Text)
		}
	}
}

// writeTree makes a tree of n Go files in folders of ten.
func writeTree(t testing.TB, dir string, n int) {
	t.Helper()
	for i := range n {
		var b strings.Builder
		for j := range 100 {
			fmt.Fprintf(&b, "func name%d_%d() { return %d }\n", i, j, i*j)
		}
		writeFile(t, fmt.Sprintf("%s/d%d/e%d/f%d.go", dir, i/100, i/10, i), b.String())
	}
	writeFile(t, dir+"/.gitignore", "*.log\nbuild/\n/d9/**\n")
	writeFile(t, dir+"/.git/HEAD", "")
}

func BenchmarkGrep(b *testing.B) {
	w := &Workspace{Dir: resolvedTempDir(b)}
	writeTree(b, w.Dir, 2000)
	for _, pattern := range []string{"name1234_7", `name\d+_7\(`, `(?i)NAME1234_7`, "nowhere"} {
		b.Run(pattern, func(b *testing.B) {
			a, err := Prepare(b.Context(), Grep(w), mustJSON(b, m{"pattern": pattern}))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if r := a.Run(context.Background(), nil); r.Status != StatusOK {
					b.Fatal(r.Text)
				}
			}
		})
	}
}

func BenchmarkGlob(b *testing.B) {
	w := &Workspace{Dir: resolvedTempDir(b)}
	writeTree(b, w.Dir, 2000)
	a, err := Prepare(b.Context(), Glob(w), `{"pattern":"**/e1*/*7.go"}`)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if r := a.Run(context.Background(), nil); r.Status != StatusOK {
			b.Fatal(r.Text)
		}
	}
}
