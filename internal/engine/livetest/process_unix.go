//go:build unix

package livetest

import (
	"os/exec"
	"strconv"
	"syscall"
)

// isolate gives the engine a process group, since engines start processes of
// their own, which must end with them.
func isolate(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// The errors are ignored: the group has ended, which is what was wanted.

func interrupt(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }

func kill(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }

// guard makes the group end with the test process, however that ends, such as
// by a timeout, after which no cleanup runs: a shell in the group waits for the
// end of a pipe that nobody writes to. The function returned waits for the
// shell, which is killed with the group. Without a guard tests work as well.
func guard(c *exec.Cmd) (unguard func()) {
	leader := c.Process.Pid
	watch := exec.Command("/bin/sh", "-c", `read -r _; kill -s KILL -- "-$0"`, strconv.Itoa(leader))
	watch.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: leader}
	pipe, err := watch.StdinPipe()
	if err != nil {
		return func() {}
	}
	if err := watch.Start(); err != nil {
		return func() { _ = pipe.Close() }
	}
	return func() {
		_ = watch.Wait() // killed
		_ = pipe.Close()
	}
}
