// Package tool is what a tool is, the built-in ones, and asking before running.
//
// A call goes through two steps. [Tool.Prepare] reads the arguments and says
// what would happen, without any effect outside the process; the answer is an
// [Action] with a title, the paths and the diff or command that a person needs
// to decide. Only an action that the [Gate] allows is then run.
//
// Rules of the package: a failure of a tool is a [Result] for the model, not a
// Go error; paths are resolved, symbolic links included, before they are
// checked against the roots; nothing is written outside the roots; every result
// is bounded; what a tool returns is data and never an instruction.
package tool

import (
	"cmp"
	"context"
	"slices"

	"github.com/drover-dev/drover/internal/llm"
)

// Tool is something that a model can call. Implementations are safe for
// concurrent use.
type Tool interface {
	// Def describes the tool to the model. It is constant.
	Def() llm.ToolDef
	// Prepare reads the arguments, which are a JSON object, and says what the
	// call would do. It may look at files but changes nothing. The error, if
	// any, is for the model: it names the argument and what to do.
	Prepare(ctx context.Context, arguments string) (*Action, error)
}

// Kind groups tools for display. The values are those of the Agent Client
// Protocol.
type Kind string

// The kinds.
const (
	KindRead    Kind = "read"
	KindEdit    Kind = "edit"
	KindSearch  Kind = "search"
	KindExecute Kind = "execute"
	KindThink   Kind = "think"
	KindOther   Kind = "other"
)

// Access says what a call touches; the [Mode] decides by it.
type Access uint8

// What a call may touch, least first.
const (
	AccessNone        Access = iota // nothing outside drover: a plan, a note to itself
	AccessRead                      // reads inside the roots
	AccessReadOutside               // reads outside the roots
	AccessWrite                     // writes inside the roots
	AccessExecute                   // runs a command
	AccessExternal                  // an MCP server's tool that is not marked read-only
)

// Action is a prepared call.
type Action struct {
	// Title is one line for people: the path or the command.
	Title  string
	Kind   Kind
	Access Access
	// ReadOnly says that the call changes nothing, so that it may run beside
	// other read-only calls.
	ReadOnly bool
	// Locations are the absolute paths that the call is about.
	Locations []Location
	// Diff is what a write would change, nil for other calls.
	Diff *Diff
	// Command is the command line of AccessExecute.
	Command string
	// Scopes say what an answer "always" would cover, in words ("edits", "git
	// status"), one for each command of a command line. The same scope means
	// the same permission, and a call is free when all of its scopes are. Empty
	// means that only this one call can be allowed.
	Scopes []string
	// Run does it. Output that appears while it runs goes to progress, which
	// may be nil and is called from one goroutine at a time. When ctx ends, Run
	// stops what it started and returns what it has.
	Run func(ctx context.Context, progress func(text string)) Result
}

// Location is a place in a file. Line counts from 1; 0 is the whole file.
type Location struct {
	Path string `json:"path"`
	Line int    `json:"line,omitempty"`
}

// Diff is the text of one file before and after.
type Diff struct {
	Path string `json:"path"` // absolute
	Old  string `json:"old"`
	New  string `json:"new"`
	// Created says that there was no such file.
	Created bool `json:"created,omitempty"`
}

// Status says how a call ended.
type Status string

// The statuses. They are part of the session log.
const (
	StatusOK          Status = "ok"
	StatusError       Status = "error"
	StatusDenied      Status = "denied"
	StatusNotExecuted Status = "notExecuted" // never started
	StatusUnknown     Status = "unknown"     // started, and nobody knows how it ended
)

// Result is what a call gave.
type Result struct {
	Status Status
	// Text is for the model, and verbatim what it will see. Never empty.
	Text string
	// Images are for the model too; Text names them.
	Images []*llm.Image
	// Diff is what was really changed, nil if nothing was.
	Diff *Diff
}

// Failed is the result of a call that went wrong.
func Failed(text string) Result { return Result{Status: StatusError, Text: text} }

// runner makes an Action's Run of a function without progress: its error is for
// the model.
func runner(do func(ctx context.Context) (Result, error)) func(context.Context, func(string)) Result {
	return func(ctx context.Context, _ func(string)) Result {
		r, err := do(ctx)
		if err != nil {
			return Failed(err.Error())
		}
		return r
	}
}

// Set is the tools of a session by name.
type Set struct {
	byName map[string]Tool
	sorted []Tool
}

// NewSet makes a set. Of two tools with one name the first wins.
func NewSet(tools ...Tool) *Set {
	s := &Set{byName: make(map[string]Tool, len(tools))}
	for _, t := range tools {
		name := t.Def().Name
		if _, taken := s.byName[name]; taken {
			continue
		}
		s.byName[name] = t
		s.sorted = append(s.sorted, t)
	}
	slices.SortFunc(s.sorted, func(a, b Tool) int { return cmp.Compare(a.Def().Name, b.Def().Name) })
	return s
}

// Lookup finds a tool by the name that a model used.
func (s *Set) Lookup(name string) (Tool, bool) {
	t, ok := s.byName[name]
	return t, ok
}

// Defs describes the tools to a model, sorted by name.
func (s *Set) Defs() []llm.ToolDef {
	defs := make([]llm.ToolDef, len(s.sorted))
	for i, t := range s.sorted {
		defs[i] = t.Def()
	}
	return defs
}

// Source gives the tools of MCP servers, which come and go.
type Source interface {
	// Tools lists what is there now, in a stable order. It does not wait.
	Tools() []Tool
	// Notices returns what a person should know (a server that did not start)
	// and forgets it.
	Notices() []string
	// Close ends the servers.
	Close() error
}

// ServerSpec says how to reach one MCP server: Command for a child process on
// stdio, else URL.
type ServerSpec struct {
	Name    string
	Command string
	Args    []string
	Env     []string // NAME=value
	URL     string
	SSE     bool // the older HTTP+SSE transport
	Headers map[string]string
}

// FS reads and writes text files for the file tools: the disk, or an editor
// with unsaved buffers. Paths are absolute and already checked. An error that is
// [io/fs.ErrNotExist] says that it does not know the file: what is on disk counts then.
type FS interface {
	ReadTextFile(ctx context.Context, path string) (string, error)
	WriteTextFile(ctx context.Context, path, text string) error
}
