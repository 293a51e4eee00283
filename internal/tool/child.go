package tool

import "os/exec"

// What packages need that start programs of their own beside the tools.

// SafeEnviron is an environment without the variables whose names say that they
// are secrets: what a program sees whose output goes to a model.
func SafeEnviron(environ []string) []string { return safeEnviron(environ) }

// SameVariable reports whether two names mean one variable on this platform.
func SameVariable(a, b string) bool { return envNameEqual(a, b) }

// OwnGroup makes a command start in a process group of its own, without a
// terminal.
func OwnGroup(cmd *exec.Cmd) { ownGroup(cmd) }

// AskGroup asks the processes of a started command's group to end, where the
// platform can. On Linux it and the next two also reach what the command has started
// and left the group.
func AskGroup(cmd *exec.Cmd) { askGroup(cmd) }

// KillGroup ends the processes of a started command's group.
func KillGroup(cmd *exec.Cmd) { killGroup(cmd) }

// GroupAlive reports whether a process of a started command's group still runs.
func GroupAlive(cmd *exec.Cmd) bool { return commandAlive(cmd) }
