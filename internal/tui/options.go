package tui

import (
	"context"
	"io"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/tool"
)

// Options are what the UI is made of. All of them are needed unless a default is
// named.
type Options struct {
	// In and Out are the terminal. Environ are its variables (TERM, NO_COLOR).
	In      io.Reader
	Out     io.Writer
	Environ []string

	Registry *catalog.Registry
	Targets  *target.Store
	// Connect registers the engines. It may be called again, and then looks again
	// where there was none.
	Connect func(ctx context.Context) error
	// NoModel says in words what was tried when no listing has a model.
	NoModel func(listings []catalog.Listing) error
	// Provided says why a route has no provider, nil if it has one.
	Provided func(route string) error

	// Open opens a session: the one of an id or of its beginning, or a new one for
	// "". It looks at no engine.
	Open func(id string) (*Session, error)
	// Sessions are listed, and an empty one is removed from it in the end.
	Sessions *session.Store
	// Resume is the session to begin with, "" for a new one.
	Resume string
	Mode   tool.Mode
	// Agent are the options of every session's agent, without its folder and gate.
	Agent agent.Options
	// Explain turns an error into words with what to do about it.
	Explain func(err error) string
}

// Session is a session that was opened. The UI owns its log.
type Session struct {
	Log   *session.Log
	State *session.State
	// Dir is the folder that tools work in.
	Dir string
	// Target is the model to use, zero to choose one. Restored says that it is the
	// one that the session used last, Named that the person asked for it: then no
	// other takes its place.
	Target   llm.Target
	Restored bool
	Named    bool
	Effort   llm.Effort
	// Notes are for the person.
	Notes []string
}

// Ended says how the UI was left.
type Ended struct {
	// Session is the id of the session to go on with, "" if nothing of it is kept.
	Session string
}
