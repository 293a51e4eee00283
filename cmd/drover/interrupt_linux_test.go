package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-dev/drover/internal/engine/enginetest"
)

// TestSecondInterrupt: who interrupts again does not wait for a command that takes
// its time, and is not left with it either.
func TestSecondInterrupt(t *testing.T) {
	r := newRig(t, func(*rig, *enginetest.Chat) enginetest.Answer {
		return enginetest.Answer{Calls: []enginetest.Call{shellCall("c1",
			"trap 'echo asked >&3' TERM; exec 3>asked; sleep 600 & echo $$ $! >&3; while :; do wait; done")}}
	})
	asked := filepath.Join(r.dir, "asked")
	if err := syscall.Mkfifo(asked, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := r.turn("", "wait for it")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fifo, err := os.Open(asked) // waits for the command
	if err != nil {
		t.Fatal(err)
	}
	defer fifo.Close()
	lines := bufio.NewReader(fifo)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pids := strings.Fields(line)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if line, err := lines.ReadString('\n'); err != nil || line != "asked\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the status tells
	if code := cmd.ProcessState.ExitCode(); code != exitCancelled {
		t.Errorf("it ended as %v", cmd.ProcessState)
	}
	untilGone(t, pids)
}
