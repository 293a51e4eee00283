package tool

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startShell prepares a command that has so long to end when it is stopped. It is
// drained for long: a busy machine may take its time to read what is there.
func startShell(t *testing.T, command string, timeout time.Duration, kill time.Duration) (run func(context.Context, func(string)) Result) {
	t.Helper()
	w := &Workspace{Dir: resolvedTempDir(t), Environ: testEnviron()}
	s := Shell(w).(*shellTool)
	s.killDelay, s.drainDelay = kill, 10*time.Second
	c := &Command{Argv: shellArgv(w.Environ, command), Dir: w.Dir, Environ: commandEnviron(w.Environ, w.Dir), OutputLimit: maxOutputBytes}
	return func(ctx context.Context, progress func(string)) Result { return s.run(ctx, c, timeout, progress) }
}

// TestStopEndsTheGroup cancels commands as soon as they say that they are ready,
// and looks for what is left of their group.
func TestStopEndsTheGroup(t *testing.T) {
	for _, c := range []struct {
		name, command string
		kill          time.Duration // how long is waited before SIGKILL
		want          string
	}{
		{"polite", `sleep 1000 & echo ready $$; wait`, time.Minute, "[stopped: cancelled]"},
		{"pipeline", `echo ready $$; sleep 1000 | cat | cat`, time.Minute, "[stopped: cancelled]"},
		{"cleans up", `trap 'echo cleaned; exit 0' TERM; echo ready $$; while :; do sleep 0.01; done`, time.Minute,
			"cleaned\n[stopped: cancelled]"},
		{"child cleans up", `(trap 'echo cleaned; exit 0' TERM; echo ready $$; while :; do sleep 0.01; done) & trap 'exit 0' TERM; wait`,
			time.Minute, "cleaned\n[stopped: cancelled]"},
		{"deaf", `trap '' TERM; echo ready $$; while :; do sleep 0.01; done`, 20 * time.Millisecond, "[stopped: cancelled]"},
		{"deaf child", `(trap '' TERM; exec >/dev/null 2>&1; while :; do sleep 0.01; done) & echo ready $$; wait`,
			20 * time.Millisecond, "[stopped: cancelled]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			group := 0
			r := startShell(t, c.command, time.Hour, c.kill)(ctx, func(text string) {
				if _, err := fmt.Sscanf(text, "ready %d", &group); err == nil {
					cancel()
				}
			})
			if r.Status != StatusError || !strings.HasSuffix(r.Text, c.want) {
				t.Errorf("%s %q", r.Status, r.Text)
			}
			if group == 0 {
				t.Fatal("the command was never ready")
			}
			untilGone(t, group)
		})
	}
}

// untilGone fails when the group still has a process after a while. What was
// sent SIGKILL may be there for a moment.
func untilGone(t *testing.T, group int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); groupAlive(group); {
		if time.Now().After(deadline) {
			_ = syscall.Kill(-group, syscall.SIGKILL)
			t.Fatalf("group %d still runs", group)
		}
	}
}

func TestTimeout(t *testing.T) {
	r := startShell(t, "echo before; exec sleep 1000", 30*time.Millisecond, time.Minute)(t.Context(), nil)
	if r.Status != StatusError || !strings.HasSuffix(r.Text, "[stopped after 0 seconds; timeout can be up to 600]") {
		t.Errorf("%s %q", r.Status, r.Text)
	}
}

// TestBackgroundHoldsOutput: a command that has ended is not waited for because
// a child of it still has the output.
func TestBackgroundHoldsOutput(t *testing.T) {
	w := &Workspace{Dir: resolvedTempDir(t), Environ: testEnviron()}
	s := Shell(w).(*shellTool)
	s.drainDelay = 50 * time.Millisecond
	c := &Command{Argv: shellArgv(w.Environ, "sleep 1000 & echo $$"), Dir: w.Dir, Environ: commandEnviron(w.Environ, w.Dir), OutputLimit: maxOutputBytes}
	group := 0
	r := s.run(t.Context(), c, time.Hour, func(text string) {
		group, _ = strconv.Atoi(strings.TrimSpace(text))
	})
	if r.Status != StatusOK || !strings.Contains(r.Text, "[exit code 0; a background process still held the output and was ended") {
		t.Errorf("%s %q", r.Status, r.Text)
	}
	untilGone(t, group)
}

// TestStopEndsWhatLeftTheGroup: a process that left the group of its command, by a
// session of its own, is ended with it too, whoever its parent is by then.
func TestStopEndsWhatLeftTheGroup(t *testing.T) {
	const stray = `sh -c 'echo stray $$; exec sleep 1000 >/dev/null 2>&1'`
	for name, command := range map[string]string{
		"in front":         `echo ready; setsid ` + stray + `; :`,
		"behind":           `setsid ` + stray + ` & echo ready; wait`,
		"forked":           `setsid -f ` + stray + `; echo ready; exec sleep 1000`,
		"parent gone":      `(setsid ` + stray + ` &); echo ready; exec sleep 1000`,
		"twice":            `(setsid sh -c '(setsid sh -c "echo stray \$\$; exec sleep 1000 >/dev/null 2>&1" &)' &); echo ready; exec sleep 1000`,
		"without environ":  `echo ready; env -i "$(command -v setsid)" -w "$(command -v sh)" -c 'echo stray $$; while :; do :; done'`,
		"deaf":             `setsid sh -c 'trap "" TERM; echo stray $$; exec >/dev/null 2>&1; while :; do sleep 0.01; done' & echo ready; wait`,
		"holds the output": `setsid sh -c 'echo stray $$; exec sleep 1000' & echo ready; wait`,
		"starts others":    `setsid sh -c 'echo stray $$; sleep 1000 & sleep 1000 & wait' & echo ready; wait`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			said, child := "", 0
			r := startShell(t, command, time.Hour, 50*time.Millisecond)(ctx, func(text string) {
				said += text
				for line := range strings.Lines(said) {
					_, _ = fmt.Sscanf(line, "stray %d\n", &child)
				}
				if child != 0 && strings.Contains(said, "ready\n") {
					cancel()
				}
			})
			if r.Status != StatusError || !strings.HasSuffix(r.Text, "[stopped: cancelled]") || child == 0 {
				t.Fatalf("%s %q", r.Status, r.Text)
			}
			untilGone(t, child)
			for deadline := time.Now().Add(10 * time.Second); ; {
				p := lookAt(child)
				if p == nil || !p.runs() {
					break
				}
				if time.Now().After(deadline) {
					_ = syscall.Kill(child, syscall.SIGKILL)
					t.Fatalf("%d still runs", child)
				}
			}
		})
	}
}

// TestStopLeavesOthers: what an earlier command has left running on purpose is none
// of a later one's.
func TestStopLeavesOthers(t *testing.T) {
	r := startShell(t, "setsid sleep 1000 >/dev/null 2>&1 & echo $!", time.Hour, time.Minute)(t.Context(), nil)
	first, _, _ := strings.Cut(r.Text, "\n")
	pid, err := strconv.Atoi(first)
	if err != nil || r.Status != StatusOK {
		t.Fatalf("%q", r.Text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	startShell(t, "echo ready; sleep 1000", time.Hour, time.Minute)(ctx, func(string) { cancel() })
	if p := lookAt(pid); p == nil || !p.runs() {
		t.Error("it is gone")
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// TestBackgroundWithoutOutputStays: a server that was started properly survives
// its command.
func TestBackgroundWithoutOutputStays(t *testing.T) {
	r := startShell(t, "sleep 1000 >/dev/null 2>&1 & echo $!", time.Hour, time.Minute)(t.Context(), nil)
	first, _, _ := strings.Cut(r.Text, "\n")
	pid, err := strconv.Atoi(first)
	if err != nil || r.Status != StatusOK {
		t.Fatalf("%q", r.Text)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("it is gone: %v", err)
	}
}

// TestNoTerminal: a command cannot ask at the terminal of drover, nor read its
// input.
func TestNoTerminal(t *testing.T) {
	r := startShell(t, "readlink /proc/self/fd/0; (: < /dev/tty) 2>/dev/null || echo no terminal", time.Hour, time.Minute)(t.Context(), nil)
	if r.Text != "/dev/null\nno terminal\n[exit code 0]" {
		t.Errorf("%q", r.Text)
	}
}

func TestSpilledOutput(t *testing.T) {
	w := &Workspace{Dir: resolvedTempDir(t), Environ: testEnviron()}
	w.SpillDir = w.Dir + "/../spill"
	r := call(t, Shell(w), m{"command": "seq 1 50000"})
	if r.Status != StatusOK || len(r.Text) > maxOutputBytes+300 || !strings.HasPrefix(r.Text, "1\n2\n3\n") ||
		!strings.HasSuffix(r.Text, "\n49999\n50000\n[exit code 0]") {
		t.Fatalf("%d bytes: %.80q", len(r.Text), r.Text)
	}
	_, rest, ok := strings.Cut(r.Text, "all of it is in ")
	path, _, _ := strings.Cut(rest, " ...]")
	if !ok {
		t.Fatal("no file is named")
	}
	full := readFile(t, path)
	if !strings.HasPrefix(full, "1\n2\n") || strings.Count(full, "\n") != 50000 {
		t.Errorf("%d bytes in the file", len(full))
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if a, err := Prepare(t.Context(), Read(w), mustJSON(t, m{"path": path})); err != nil || a.Access != AccessRead {
		t.Errorf("reading it asks: %+v %v", a, err)
	}
}
