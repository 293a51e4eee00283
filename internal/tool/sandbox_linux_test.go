package tool

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// field is a work tree and what lies around it.
type field struct {
	base string
	w    *Workspace
	s    *Sandbox
	free bool // nothing is confined
}

// newField skips the test when the kernel cannot confine commands.
func newField(t testing.TB) *field {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := &field{base: resolvedTempDir(t)}
	for _, d := range []string{"work/sub", "more", "tmp", "home", "outside/dir", "extra"} {
		if err := os.MkdirAll(f.at(d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, f.at("outside/kept"), "kept\n")
	writeFile(t, f.at("work/mine"), "mine\n")
	writeFile(t, f.at("extra/file"), "")
	symlink(t, f.at("outside"), f.at("work/link"))
	symlink(t, f.at("outside/kept"), f.at("work/linked"))
	f.w = &Workspace{Dir: f.at("work"), Roots: []string{f.at("more")}, Environ: append(testEnviron(), "HOME="+f.at("home"),
		"TMPDIR="+f.at("tmp"), "GIT_CONFIG_NOSYSTEM=1", "GORACE=atexit_sleep_ms=0")}
	f.s = &Sandbox{Self: self, Write: []string{f.at("extra/file")}, temp: []string{f.at("tmp")}}
	if state := f.s.State(); !state.Active() {
		t.Skipf("the sandbox is not tested: %s", state)
	}
	f.w.Wrap = f.s.Wrapper(f.w, func() bool { return !f.free })
	return f
}

func (f *field) at(name string) string { return filepath.Join(f.base, name) }

func (f *field) run(t testing.TB, command string) Result {
	t.Helper()
	return call(t, Shell(f.w), m{"command": "OUT=" + f.at("outside") + "; " + command, "timeout": 300})
}

// outside is all that lies outside what may be written.
func (f *field) outside(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range []string{"outside", "home"} {
		err := filepath.WalkDir(f.at(dir), func(p string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if p == f.at("home/.cache") || p == f.at("home/go") {
				return filepath.SkipDir
			}
			b.WriteString(p + " " + d.Type().String())
			if d.Type().IsRegular() {
				b.WriteString(" " + readFile(t, p))
			}
			b.WriteString("\n")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// TestSandboxRefuses tries to change something outside in every way that a shell
// knows.
func TestSandboxRefuses(t *testing.T) {
	for name, command := range map[string]string{
		"create":              `echo x > $OUT/new`,
		"overwrite":           `echo x > $OUT/kept`,
		"append":              `echo x >> $OUT/kept`,
		"empty":               `: > $OUT/kept`,
		"truncate":            `truncate -s 0 $OUT/kept`,
		"truncate by reading": `python3 -c 'import os,sys; os.open(sys.argv[1], os.O_RDONLY|os.O_TRUNC)' $OUT/kept`,
		"truncate by path":    `python3 -c 'import os,sys; os.truncate(sys.argv[1], 0)' $OUT/kept`,
		"relative":            `echo x > ../outside/new`,
		"linked folder":       `echo x > link/new`,
		"linked file":         `echo x >> linked`,
		"own link":            `ln -s $OUT own && echo x > own/new`,
		"remove":              `rm $OUT/kept`,
		"remove folder":       `rmdir $OUT/dir`,
		"make folder":         `mkdir $OUT/new`,
		"make link":           `ln -s x $OUT/new`,
		"make fifo":           `mkfifo $OUT/new`,
		"make socket":         `python3 -c 'import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1]+"/s")' $OUT`,
		"rename out":          `python3 -c 'import os,sys; os.rename("mine", sys.argv[1]+"/new")' $OUT`,
		"rename in":           `python3 -c 'import os,sys; os.rename(sys.argv[1]+"/kept", "new")' $OUT`,
		"rename outside":      `mv $OUT/kept $OUT/other`,
		"exchange":            `mv $OUT/kept mine`,
		"hard link in":        `ln $OUT/kept new && echo x >> new`,
		"hard link out":       `ln mine $OUT/new`,
		"move out":            `mv mine $OUT/new`,
		"copy out":            `cp mine $OUT/new`,
		"home":                `echo x > ~/.bashrc`,
		"in a nested shell":   `sh -c 'bash -c "echo x > $0/new"' $OUT`,
		"in the background":   `(sleep 0; echo x > $OUT/new) & wait $!`,
		"in a new session":    `setsid -w sh -c 'echo x > $0/new' $OUT`,
		"by a hook":           `git init -q g && cd g && printf '#!/bin/sh\necho x > %s/new\n' $OUT > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && git -c user.name=a -c user.email=b commit -q --allow-empty -m x`,
		"mount":               `mount -t tmpfs none $OUT`,
		"its own sandbox":     `"$SELF" sandbox-exec --write / -- /bin/sh -c 'echo x > $0/new' $OUT`,
		"look into drover":    `readlink /proc/$PPID/fd/2`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			f.w.Environ = append(f.w.Environ, "SELF="+f.s.Self)
			if strings.Contains(command, "python3") {
				if _, err := exec.LookPath("python3"); err != nil {
					t.Skip(err)
				}
			}
			if strings.Contains(name, "truncate") && !f.s.State().Whole() {
				t.Skipf("not tested: %s", f.s.State())
			}
			before := f.outside(t)
			r := f.run(t, command)
			if after := f.outside(t); after != before {
				t.Errorf("changed outside:\n%s\nwas\n%s", after, before)
			}
			if r.Status != StatusError || readFile(t, f.at("work/mine")) != "mine\n" {
				t.Errorf("%s %s", r.Status, r.Text)
			}
		})
	}
}

// TestSandboxAllows does what has to work.
func TestSandboxAllows(t *testing.T) {
	for name, command := range map[string]string{
		"write":            `echo x > new && echo x >> mine && : > mine && rm new mine`,
		"folders":          `mkdir -p a/b && mv a/b c && rmdir a && rm -r c`,
		"rename":           `mv mine sub/mine && mv sub/mine ../more/mine && cat ../more/mine`,
		"hard link":        `ln mine sub/mine`,
		"other root":       `echo x > ../more/new`,
		"temporary":        `f=$(mktemp) && echo x > $f && mv $f sub/ && d=$(mktemp -d) && mv mine $d/`,
		"here document":    "cat <<E\nx\nE",
		"substitution":     `cat <(echo x) > new && echo x | tee >(cat > new2) /dev/stderr`,
		"cache":            `mkdir ~/.cache/x && echo x > ~/.cache/x/y`,
		"one file":         `echo x > ../extra/file && ! (echo x > ../extra/other) 2>/dev/null`,
		"devices":          `echo x > /dev/null && echo x > /dev/zero && echo x > /dev/stdout && echo x >&2 && echo x > /dev/shm/drover-$$ && rm /dev/shm/drover-$$`,
		"read everywhere":  `cat $OUT/kept link/kept /etc/passwd > new && ls / >> new`,
		"through own link": `ln -s ../more own && echo x > own/new`,
		"python":           `command -v python3 || exit 0; python3 -c 'import tempfile, multiprocessing as m; m.Lock(); tempfile.NamedTemporaryFile()'`,
		"git": `git init -q . && git config user.name a && git config user.email b && git add mine && git commit -q -m x && git checkout -q -b y &&
			git mv mine sub/ && git commit -q -am y && git stash list && git gc -q && git clone -q . ../more/copy && git worktree add -q ../more/tree && git status --short`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			before := f.outside(t)
			if r := f.run(t, "set -e; "+command); r.Status != StatusOK {
				t.Errorf("%s %s", r.Status, r.Text)
			}
			if after := f.outside(t); after != before {
				t.Errorf("changed outside:\n%s\nwas\n%s", after, before)
			}
		})
	}
}

// TestSandboxBuilds compiles with the build cache of this machine, which is not in
// the home of the test, and with a module cache that is not there yet.
func TestSandboxBuilds(t *testing.T) {
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Skip(err)
	}
	f := newField(t)
	writeFile(t, f.at("work/go.mod"), "module example.org/x\n\ngo 1.26\n")
	writeFile(t, f.at("work/x.go"), "package main\n\nfunc main() { println(\""+f.base+"\") }\n") // never built before
	f.w.Environ = append(f.w.Environ, "GOCACHE="+strings.TrimSpace(string(cache)), "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local", "GOPROXY=off", "CGO_ENABLED=0")
	if r := f.run(t, "go vet . && go build -o x . && ./x && echo x > $(go env GOMODCACHE)/x"); r.Status != StatusOK || !strings.Contains(r.Text, f.base) {
		t.Errorf("%s", r.Text)
	}
	if !exists(f.at("home/go/pkg/mod/x")) {
		t.Error("the module cache was not made")
	}
}

// TestSandboxLifts: what confined says when a command starts is what counts.
func TestSandboxLifts(t *testing.T) {
	f := newField(t)
	for i, free := range []bool{false, true, false} {
		f.free = free
		r := f.run(t, "echo x >> $OUT/kept")
		if (r.Status == StatusOK) != free {
			t.Errorf("%d: %s %s", i, r.Status, r.Text)
		}
	}
	if got := readFile(t, f.at("outside/kept")); got != "kept\nx\n" {
		t.Errorf("%q", got)
	}
}

// TestSandboxIsSettled: a command cannot make a link out of a root, or of a place
// that every command may write, to widen what the next one may write.
func TestSandboxIsSettled(t *testing.T) {
	f := newField(t)
	if err := os.MkdirAll(f.at("tmp/work"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.w.Roots = append(f.w.Roots, f.at("tmp/work"), f.at("work/sub"))
	f.run(t, "true")
	if r := f.run(t, "rmdir $TMPDIR/work sub && ln -s $OUT $TMPDIR/work && ln -s $OUT sub && rm -rf ~/.cache && ln -s $OUT ~/.cache"); !strings.Contains(r.Text, "denied") {
		t.Errorf("the cache folder itself was replaced: %s", r.Text)
	}
	before := f.outside(t)
	f.run(t, "echo x > $TMPDIR/work/new; echo x > sub/new; echo x > $OUT/new")
	if after := f.outside(t); after != before {
		t.Errorf("changed outside:\n%s", after)
	}
}

// TestSandboxLimits: what a confined command cannot see or do, and what it gets.
func TestSandboxLimits(t *testing.T) {
	f := newField(t)
	f.w.Environ = append(f.w.Environ, "MY_TOKEN=sesame", "PLAIN=oats")
	r := f.run(t, `env; grep NoNewPrivs /proc/self/status`)
	if strings.Contains(r.Text, "sesame") || !strings.Contains(r.Text, "PLAIN=oats") || !strings.Contains(r.Text, "NoNewPrivs:\t1") {
		t.Errorf("%s", r.Text)
	}
	if r := f.run(t, "echo x > $OUT/new"); !strings.HasSuffix(r.Text, "[exit code 1; commands can write only in the work tree, temporary and cache folders]") {
		t.Errorf("%s", r.Text)
	}
	if f.free = true; !strings.HasSuffix(f.run(t, "echo Permission denied; exit 1").Text, "[exit code 1]") {
		t.Error("a free command got the note of the sandbox")
	}
	f.free = false
	if r := f.run(t, "exit 7"); !strings.HasSuffix(r.Text, "[exit code 7, no output]") {
		t.Errorf("%s", r.Text)
	}
	if r := f.run(t, "kill -TERM $$"); !strings.Contains(r.Text, "ended by signal terminated") {
		t.Errorf("%s", r.Text)
	}
}

// TestSandboxFails: a command that cannot be confined does not run.
func TestSandboxFails(t *testing.T) {
	f := newField(t)
	nest := `n=20; next() { n=$((n-1)); if [ $n = 0 ]; then echo deep; else exec "$SELF" sandbox-exec --write / -- /bin/sh -c "n=$n; $BODY"; fi; }; next`
	f.w.Environ = append(f.w.Environ, "SELF="+f.s.Self, "BODY="+nest)
	if r := f.run(t, nest); r.Status != StatusError || strings.Contains(r.Text, "deep") ||
		!strings.Contains(r.Text, "the sandbox could not be set up, so the command was not run: ") || !strings.Contains(r.Text, "too many sandboxes") {
		t.Errorf("%s %s", r.Status, r.Text)
	}
	out, err := exec.Command(f.s.Self, SandboxCommand, "--", f.at("gone")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "gone: no such file") {
		t.Errorf("%s %v", out, err)
	}
}

// TestSandboxIsStopped: the command is the process that was started, and its
// group ends as a whole.
func TestSandboxIsStopped(t *testing.T) {
	f := newField(t)
	s := Shell(f.w).(*shellTool)
	s.killDelay = 50 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	group := 0
	a, err := s.Prepare(ctx, mustJSON(t, m{"command": "trap '' TERM; sleep 1000 & echo $$ > pid; echo ready; wait"}))
	if err != nil {
		t.Fatal(err)
	}
	r := a.Run(ctx, func(text string) {
		if strings.Contains(text, "ready") {
			for _, c := range strings.TrimSpace(readFile(t, f.at("work/pid"))) {
				group = group*10 + int(c-'0')
			}
			cancel()
		}
	})
	if r.Status != StatusError || group == 0 {
		t.Fatalf("%s %s, group %d", r.Status, r.Text, group)
	}
	untilGone(t, group)
}

// BenchmarkSandbox compares the start of a confined program with that of a free
// one. It starts the test binary, or the program that DROVER_BENCH names:
//
//	go build -o /tmp/drover ./cmd/drover && DROVER_BENCH=/tmp/drover go test -run xxx -bench Sandbox ./internal/tool
func BenchmarkSandbox(b *testing.B) {
	f := newField(b)
	if p := os.Getenv("DROVER_BENCH"); p != "" {
		f.s.Self = p
	}
	for _, free := range []bool{true, false} {
		f.free = free
		name := map[bool]string{true: "free", false: "confined"}[free]
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				argv := f.w.Wrap([]string{"/bin/true"})
				cmd := exec.Command(argv[0], argv[1:]...)
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%s %v", out, err)
				}
			}
		})
	}
}
