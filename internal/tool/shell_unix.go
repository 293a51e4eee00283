//go:build unix

package tool

import (
	"io/fs"
	"os"
	"os/exec"
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
// and it has no terminal to ask for a password at.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// The errors of signals say that nobody is left to get one.
func askGroup(cmd *exec.Cmd)  { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

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
