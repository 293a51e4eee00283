//go:build unix && !linux

package tool

import (
	"os/exec"
	"syscall"
)

// groupAlive reports whether the group has processes.
func groupAlive(group int) bool { return syscall.Kill(-group, 0) != syscall.ESRCH }

// What left a command's group is not found without /proc.

func signalStrays(*exec.Cmd, syscall.Signal) {}

func straysAlive(*exec.Cmd) bool { return false }
