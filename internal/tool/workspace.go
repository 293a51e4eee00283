package tool

import "context"

// Workspace is what the built-in tools of one session work on. It is given by
// the caller, who reads the process's environment and the configuration; this
// package reads neither. It is not changed after the first tool was made.
type Workspace struct {
	// Dir is the working directory, absolute. It is always a root.
	Dir string
	// Roots are further directories, absolute, that may be read and written.
	Roots []string
	// FS holds the text files inside the roots: an editor's buffers. Nil is the
	// disk.
	FS FS
	// Environ is the environment of commands, NAME=value. Names that look like
	// secrets are taken out before a command sees it.
	Environ []string
	// SpillDir is an absolute directory of this session for output that is too
	// long for a result. It is made when it is needed, and the tools may read it
	// without asking. Where its name is a session's id, old output is removed from
	// folders of that kind beside it. Empty means that what is cut from a result is lost.
	SpillDir string
	// Terminal runs commands where a person can watch them. Nil runs them as
	// children of this process.
	Terminal Terminal
	// Wrap changes the argument vector of a command when it is started, to run it
	// in a sandbox (see [Sandbox.Wrapper]). Nil leaves it as it is.
	Wrap func(argv []string) []string
	// Children, if set, has the commands that run.
	Children *Children
}

// Terminal runs commands in a front end's own terminal.
type Terminal interface {
	// RunCommand starts the command and returns when it has ended. When ctx
	// ends it stops the command and returns what there is; an error means that
	// the command could not be started.
	RunCommand(ctx context.Context, c *Command) (Exit, error)
}

// Command is one program to run.
type Command struct {
	Argv    []string // the program and its arguments
	Dir     string   // absolute
	Environ []string // NAME=value, complete
	// OutputLimit is how many bytes of output to keep, the newest.
	OutputLimit int

	confined bool // by a sandbox
}

// Exit is how a command ended.
type Exit struct {
	Output    string // what is left of standard output and standard error
	Truncated bool   // Output is not all of it
	Code      int    // the exit code, -1 if a signal ended it
	Signal    string // the name of that signal, if it is known
	Lost      string // why nobody knows how it ended, else empty
}

// Builtin makes the six built-in tools that work on files and commands, and the
// plan.
func Builtin(w *Workspace) []Tool {
	return []Tool{Edit(w), Glob(w), Grep(w), Read(w), Shell(w), Todo(), Write(w)}
}

// Small makes the four tools that a small window has room for. Edit creates
// files too, and the shell lists them.
func Small(w *Workspace) []Tool {
	return []Tool{Edit(w), Grep(w), Read(w), Shell(w)}
}
