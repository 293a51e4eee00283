package tool

import (
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

const shellName = "shell (sh if installed, else cmd)"

var programSuffixes = []string{".exe", ".cmd", ".bat"}

func envNameEqual(a, b string) bool { return strings.EqualFold(a, b) }

func isProgram(info fs.FileInfo) bool { return info.Mode().IsRegular() }

func shellArgv(environ []string, command string, without ...string) []string {
	for _, name := range []string{"bash", "sh"} {
		// The bash of System32 starts a Linux machine with other paths.
		if shell := lookPath(environ, name, without...); shell != "" && !strings.Contains(strings.ToLower(shell), `\system32\`) {
			return []string{shell, "-c", command}
		}
	}
	for _, e := range environ {
		if name, value, _ := strings.Cut(e, "="); strings.EqualFold(name, "COMSPEC") && value != "" {
			return []string{value, "/d", "/s", "/c", command}
		}
	}
	return []string{"cmd.exe", "/d", "/s", "/c", command}
}

func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
	if n := len(cmd.Args); n > 2 && cmd.Args[n-2] == "/c" {
		// cmd takes what stands between the outer quotes as it is.
		cmd.SysProcAttr.CmdLine = syscall.EscapeArg(cmd.Path) + ` /d /s /c "` + cmd.Args[n-1] + `"`
	}
}

// askGroup ends the tree at once: a console program cannot be asked from outside
// its console.
func askGroup(cmd *exec.Cmd) { killGroup(cmd) }

func killGroup(cmd *exec.Cmd) {
	kill := exec.Command("taskkill", "/t", "/f", "/pid", strconv.Itoa(cmd.Process.Pid))
	if kill.Run() != nil {
		_ = cmd.Process.Kill() // already gone
	}
}

func commandAlive(*exec.Cmd) bool { return false }

func exitOf(state *os.ProcessState) Exit {
	if state == nil {
		return Exit{Code: -1}
	}
	return Exit{Code: state.ExitCode()}
}
