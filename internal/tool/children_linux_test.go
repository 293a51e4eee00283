package tool

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"testing"
	"time"
)

// TestChildrenKill: whatever runs is ended at once with its group, what has ended
// is not on the account any more, and nothing is started afterwards.
func TestChildrenKill(t *testing.T) {
	children := NewChildren()
	w := &Workspace{Dir: resolvedTempDir(t), Environ: testEnviron(), Children: children}
	s := Shell(w).(*shellTool)
	run := func(command string, progress func(string)) Result {
		c := &Command{Argv: shellArgv(w.Environ, command), Dir: w.Dir, Environ: commandEnviron(w.Environ, w.Dir), OutputLimit: maxOutputBytes}
		return s.run(context.Background(), c, time.Hour, progress)
	}
	run("true", nil)
	if n := len(children.running); n != 0 {
		t.Fatalf("%d commands on the account after the end of one", n)
	}
	group := 0
	deaf := `trap '' HUP INT TERM; (trap '' TERM; sleep 1000) & echo ready $$; while :; do sleep 0.01; done`
	r := run(deaf, func(text string) {
		if _, err := fmt.Sscanf(text, "ready %d", &group); err == nil {
			children.Kill()
		}
	})
	if group == 0 {
		t.Fatalf("the command was never ready: %+v", r)
	}
	untilGone(t, group)
	if err := children.Start(exec.Command("true")); !errors.Is(err, errKilled) {
		t.Errorf("started after the end: %v", err)
	}
}

// TestNoChildren: the account may be missing.
func TestNoChildren(t *testing.T) {
	var none *Children
	none.End()
	none.Kill()
	cmd := exec.Command("true")
	if err := none.Start(cmd); err != nil {
		t.Fatal(err)
	}
	none.Forget(cmd)
	if err := cmd.Wait(); err != nil || none.Ending() != nil {
		t.Errorf("%v %v", err, none.Ending())
	}
}

// What is being started, and hangs there, does not keep the process from its end.
func TestChildrenKillIsBounded(t *testing.T) {
	children := NewChildren()
	children.mu.Lock() // as a program does that is being started
	children.killWithin(time.Millisecond)
	children.mu.Unlock()
	children.Kill()
	if err := children.Start(exec.Command("true")); !errors.Is(err, errKilled) {
		t.Error(err)
	}
}
