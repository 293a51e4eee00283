package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestMain lets the sandbox start this binary again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == SandboxCommand {
		fmt.Fprintln(os.Stderr, "drover:", SandboxExec(os.Args[2:], os.Environ()))
		os.Exit(126)
	}
	os.Exit(m.Run())
}

func TestSandboxState(t *testing.T) {
	for _, c := range []struct {
		state         SandboxState
		active, whole bool
		want          string
	}{
		{SandboxState{Off: true}, false, false, "off"},
		{SandboxState{Reason: "this kernel has no Landlock"}, false, false, "this kernel has no Landlock"},
		{SandboxState{ABI: 2}, true, false, "Landlock 2, which cannot keep commands from emptying files elsewhere"},
		{SandboxState{ABI: 3}, true, true, "Landlock 3"},
	} {
		if s := c.state; s.Active() != c.active || s.Whole() != c.whole || s.String() != c.want {
			t.Errorf("%+v: %t %t %q", s, s.Active(), s.Whole(), s)
		}
	}
	if s := (*Sandbox)(nil).State(); !s.Off {
		t.Errorf("%+v", s)
	}
	if s := new(Sandbox).State(); s.Off || s.Active() == (s.Reason != "") || s.Active() && runtime.GOOS != "linux" {
		t.Errorf("%+v", s)
	}
	t.Logf("here: %s", new(Sandbox).State())
}

func TestSandboxArguments(t *testing.T) {
	write, argv, err := sandboxArguments([]string{"--write", "/a", "--write", "--", "--", "sh", "--", "--write"})
	if err != nil || !slices.Equal(write, []string{"/a", "--"}) || !slices.Equal(argv, []string{"sh", "--", "--write"}) {
		t.Errorf("%q %q %v", write, argv, err)
	}
	for _, args := range [][]string{nil, {"--"}, {"sh"}, {"--write"}, {"--write", "/a"}, {"--write", "/a", "--"}, {"--read", "/a", "--", "sh"}} {
		if _, _, err := sandboxArguments(args); err == nil {
			t.Errorf("%q was taken", args)
		}
		if SandboxExec(args, nil) == nil {
			t.Errorf("%q ran", args)
		}
	}
}

// TestWithoutSandbox: what cannot be confined stays as it is.
func TestWithoutSandbox(t *testing.T) {
	if w := (*Sandbox)(nil).Wrapper(&Workspace{Dir: t.TempDir()}, func() bool { return true }); !slices.Equal(w([]string{"a"}), []string{"a"}) {
		t.Error("a sandbox that is off changes commands")
	}
}

func TestWritablePlaces(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths of Linux")
	}
	base := resolvedTempDir(t)
	at := func(name string) string { return filepath.Join(base, name) }
	writeFile(t, at("home/.npm/x"), "")
	writeFile(t, at("home/.cargo/.package-cache"), "")
	writeFile(t, at("home/.config/go/env"), "GOPATH="+at("elsewhere")+"\nGOFLAGS=-mod=mod\n")
	writeFile(t, at("bin/go"), "")
	if err := os.Chmod(at("bin/go"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"work", "more", "secret", "disk/npm"} {
		if err := os.MkdirAll(at(d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	symlink(t, at("more"), at("link"))
	// What a command of an earlier session may have left in its work tree.
	symlink(t, at("secret"), at("work/planted"))
	symlink(t, at("work/planted"), at("way"))
	w := &Workspace{Dir: at("work"), Roots: []string{at("link")},
		Environ: []string{"HOME=" + at("home"), "PATH=" + at("bin"), "GOCACHE=" + at("build")}}
	s := &Sandbox{temp: []string{"relative"}, Write: []string{at("work/planted"), at("work/planted/x"), at("way"), at("way/x"), at("work/inside"), at("gone"), "x"}}
	var got []string
	for _, p := range s.writable(w) {
		if rel, ok := below(base, p); ok {
			got = append(got, rel)
		} else if !slices.Contains(devices, p) {
			t.Errorf("%s may be written", p)
		}
	}
	want := []string{"build", "elsewhere/pkg/mod", "elsewhere/pkg/sumdb", "gone", "home/.cache", "home/.cargo/.package-cache", "home/.npm", "more", "work"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for _, made := range []string{"build", "elsewhere/pkg/mod", "home/.cache"} {
		if !exists(at(made)) {
			t.Errorf("%s was not made", made)
		}
	}
	if exists(at("gone")) {
		t.Error("a folder of the configuration was made")
	}
	if got := cachePlaces(nil, nil); len(got) != 0 {
		t.Errorf("without a home: %q", got)
	}
	if got := tempPlaces([]string{"TMPDIR=/x"}); !slices.Contains(got, "/x") || !slices.Contains(got, "/tmp") {
		t.Errorf("%q", got)
	}
	symlink(t, at("b"), at("a"))
	symlink(t, at("a"), at("b"))
	if _, err := follow(at("a")); err == nil {
		t.Error("links without end were followed")
	}
}

// TestGoEnvironOfThePerson: what may be written is not said by a file that a
// repository holds, however the person's settings would lead to it.
func TestGoEnvironOfThePerson(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths of Linux")
	}
	base := resolvedTempDir(t)
	at := func(name string) string { return filepath.Join(base, name) }
	planted := "GOCACHE=" + at("victim") + "\nGOMODCACHE=" + at("victim") + "\nGOPATH=" + at("victim") + "\n"
	for _, name := range []string{"off", "env", "go/env", ".config/go/env", "x/.config/go/env", "x/go/env"} {
		writeFile(t, at("work/"+name), planted)
		writeFile(t, at("temp/"+name), planted)
	}
	writeFile(t, at("home/.config/go/env"), "GOCACHE="+at("mine")+"\n")
	writeFile(t, at("bin/go"), "")
	if err := os.Chmod(at("bin/go"), 0o755); err != nil {
		t.Fatal(err)
	}
	symlink(t, at("work/env"), at("link"))
	writeFile(t, at("evil"), planted)
	symlink(t, at("evil"), at("work/leads-out"))
	t.Chdir(at("work"))
	for _, c := range []struct {
		environ string
		mine    bool // the person's own file counts
	}{
		{"HOME=" + at("home"), true}, {"GOENV=" + at("home/.config/go/env"), true}, {"XDG_CONFIG_HOME=" + at("home/.config"), true},
		{"GOENV=off", false}, {"GOENV=env", false}, {"GOENV=./env", false}, {"GOENV=../work/env", false}, {"XDG_CONFIG_HOME=.", false},
		{"XDG_CONFIG_HOME=x", false}, {"HOME=.", false}, {"HOME=x", false}, {"HOME=", false}, {"GOENV=" + at("work/env"), false},
		{"GOENV=" + at("temp/env"), false}, {"GOENV=" + at("link"), false}, {"GOENV=" + at("work/leads-out"), false}, {"HOME=" + at("work"), false},
		{"XDG_CONFIG_HOME=" + at("work"), false},
	} {
		w := &Workspace{Dir: at("work"), Environ: []string{"HOME=" + at("home"), "PATH=" + at("bin"), c.environ}}
		got := (&Sandbox{temp: []string{at("temp")}}).writable(w)
		if slices.Contains(got, at("victim")) || slices.Contains(got, at("victim/pkg/mod")) || slices.Contains(got, at("mine")) != c.mine {
			t.Errorf("%s: %q", c.environ, got)
		}
	}
}

// TestSandboxNote: only what the sandbox can have refused is put down to it.
func TestSandboxNote(t *testing.T) {
	base := resolvedTempDir(t)
	for _, d := range []string{"work", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(base, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, base+"/elsewhere/file", "")
	surely, perhaps := "; commands can write", "; if it was writing"
	if runtime.GOOS != "linux" {
		surely = ""
	}
	for output, want := range map[string]string{
		"touch: cannot touch '" + base + "/elsewhere/new': Permission denied": surely, "open " + base + "/elsewhere/file: permission denied": surely,
		"mv: cannot move 'a' to '" + base + "/elsewhere/a': Invalid cross-device link": surely, "bash: ../elsewhere/x: Permission denied": surely,
		"cat: " + base + "/work/x: Permission denied": "", "ls: cannot open directory '" + base + "/no/folder/here': Permission denied": "",
		"./run.sh: Permission denied": "", "no such file": "", "": "", "kill: Operation not permitted": perhaps, "Error: EACCES": perhaps,
		"cat: /proc/kmsg/x: Permission denied\nfine\ntouch: " + base + "/elsewhere/y: Permission denied": surely,
	} {
		got := sandboxNote(output, base+"/work", []string{base + "/work"})
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}

// TestSandboxInATerminal: what starts a command in a front end's terminal is
// another process, in which /proc/self/exe is another program.
func TestSandboxInATerminal(t *testing.T) {
	s := &Sandbox{Self: "/proc/self/exe", Path: "/opt/drover"}
	for want, terminal := range map[string]Terminal{"/opt/drover": &terminal{}, "/proc/self/exe": nil} {
		w := &Workspace{Dir: resolvedTempDir(t), Terminal: terminal}
		if !s.State().Active() {
			want = "ls" // this kernel confines nothing
		}
		if argv := s.Wrapper(w, func() bool { return true })([]string{"ls"}); argv[0] != want {
			t.Errorf("started as %q, want %s", argv, want)
		}
	}
}
