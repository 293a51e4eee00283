package mcp

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/tool"
)

// A server that has ended is on no account any more: its process id may belong to
// somebody else when the account is settled.
func TestEndedServerIsForgotten(t *testing.T) {
	children := tool.NewChildren()
	p, err := startProcess(children, "/bin/sh", []string{"-c", "exec sleep 1000"}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	p.stop(time.Minute)
	other := exec.Command("/bin/sh", "-c", "exec sleep 1000")
	tool.OwnGroup(other)
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	p.cmd.Process = other.Process // has its id by now
	children.Kill()
	if err := syscall.Kill(-other.Process.Pid, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	_ = other.Wait() // says how it was ended
	if how := other.ProcessState.Sys().(syscall.WaitStatus); how.Signal() != syscall.SIGTERM {
		t.Errorf("another process was ended by %v", how.Signal())
	}
}
