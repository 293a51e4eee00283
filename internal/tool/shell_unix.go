//go:build unix

package tool

import (
	"crypto/rand"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"syscall"
)

const shellName = "bash"

// programSuffixes are what may follow a program's name in its file's name.
var programSuffixes = []string{""}

func envNameEqual(a, b string) bool { return a == b }

func isProgram(info fs.FileInfo) bool {
	return info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// shellArgv is how a command line is run, by no shell that lies in one of the
// folders without.
func shellArgv(environ []string, command string, without ...string) []string {
	shell := lookPath(environ, "bash", without...)
	if shell == "" {
		shell = lookPath(environ, "sh", without...)
	}
	if shell == "" {
		shell = "/bin/sh"
	}
	return []string{shell, "-c", command}
}

// ownGroup starts a command in a new session: its group can be ended as a whole,
// and it has no terminal to ask for a password at. A mark in its environment tells
// what it has started when that leaves the group.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if cmd.Env != nil {
		cmd.Env = append(slices.Clip(cmd.Env), markName+"="+rand.Text())
	}
}

// markName is the variable by which what a command has started is known.
const markName = "DROVER_COMMAND"

// markOf is the mark in an environment, "" if there is none.
func markOf(environ []string) string {
	if value := variable(environ, markName); value != "" {
		return markName + "=" + value
	}
	return ""
}

// The errors of signals say that nobody is left to get one. What left the group is
// looked for while its parents are still there.
func askGroup(cmd *exec.Cmd)  { signalGroup(cmd, syscall.SIGTERM) }
func killGroup(cmd *exec.Cmd) { signalGroup(cmd, syscall.SIGKILL) }

func signalGroup(cmd *exec.Cmd, signal syscall.Signal) {
	signalStrays(cmd, signal)
	_ = syscall.Kill(-cmd.Process.Pid, signal)
}

// commandAlive reports whether something that a command has started still runs.
func commandAlive(cmd *exec.Cmd) bool { return groupAlive(cmd.Process.Pid) || straysAlive(cmd) }

func exitOf(state *os.ProcessState) Exit {
	if state == nil {
		return Exit{Code: -1}
	}
	e := Exit{Code: state.ExitCode()}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Signal = ws.Signal().String()
	}
	return e
}
