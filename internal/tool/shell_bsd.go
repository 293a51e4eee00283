//go:build unix && !linux

package tool

import "syscall"

// groupAlive reports whether the group has processes.
func groupAlive(group int) bool { return syscall.Kill(-group, 0) != syscall.ESRCH }
