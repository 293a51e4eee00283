package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/drover-dev/drover/internal/config"
	"github.com/drover-dev/drover/internal/tool"
)

// What a shell says of a command that it could not run, or not find.
const (
	exitNotRun   = 126
	exitNotFound = 127
)

// isSandboxExec reports whether this process was started to confine a command.
// That is no command of cobra: nobody types it, and each command of a model
// waits for it.
func isSandboxExec(args []string) bool { return len(args) > 1 && args[1] == tool.SandboxCommand }

// sandboxExec becomes a command that is confined, or says why not.
func sandboxExec(args []string, stderr io.Writer) int {
	err := tool.SandboxExec(args[2:], config.Environment())
	fmt.Fprintf(stderr, "drover: %v\n", err)
	if errors.Is(err, fs.ErrNotExist) {
		return exitNotFound
	}
	return exitNotRun
}

// newSandbox is the sandbox of commands, nil if it is turned off.
func newSandbox(cfg *config.Config) *tool.Sandbox {
	if cfg.SandboxOff {
		return nil
	}
	path, err := os.Executable()
	if err != nil {
		path = ownProgram()
	}
	return &tool.Sandbox{Self: ownProgram(), Path: path, Write: cfg.SandboxWrite}
}

// runningFile is, on Linux, the file that a process runs, whatever has become of
// its name. In a child it is the parent's until the child runs another.
const runningFile = "/proc/self/exe"

// ownProgram is what to start to have this program again. The name of a file
// would not do: a command that may write there could put another file in its
// place, which would then run without being confined.
func ownProgram() string {
	if _, err := os.Readlink(runningFile); err == nil {
		return runningFile
	}
	if self, err := os.Executable(); err == nil {
		return self
	}
	return os.Args[0]
}

// sandboxNotice says that commands are not confined although the mode and the
// configuration would have it.
func sandboxNotice(state tool.SandboxState, mode tool.Mode) string {
	if state.Active() || state.Off || mode == tool.ModeFull || mode == tool.ModeReadOnly {
		return ""
	}
	return fmt.Sprintf("commands are not confined to the work tree: %s", state)
}

// examineSandbox says whether commands are confined.
func examineSandbox(f *findings, s *tool.Sandbox) {
	const area = "sandbox"
	switch state := s.State(); {
	case state.Off:
		f.add(area, note, "", "it is off (sandbox.off): commands can write wherever you can")
	case !state.Active():
		f.add(area, note, "Read a command before you allow it.", "%s: commands can write wherever you can", state)
	case !state.Whole():
		f.add(area, note, "A kernel from 6.2 on can.", "%s; otherwise they write only in the work tree, temporary and cache folders", state)
	default:
		f.add(area, fine, "", "%s: commands write only in the work tree, temporary and cache folders, unless the mode is full", state)
	}
}
