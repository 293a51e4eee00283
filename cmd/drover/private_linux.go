package main

import "golang.org/x/sys/unix"

// keepPrivate keeps the memory and the environment of the process, in which keys
// are, from the other processes of the same user: commands and MCP servers could
// read them in /proc. It costs core dumps, and attaching a debugger needs root.
// Programs that this one starts are not concerned.
func keepPrivate() {
	// It cannot fail with these arguments.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}
