// Package agent runs turns: take a snapshot, assemble the system turn, plan,
// log, stream, call tools, repeat.
//
// One [Agent] serves one session and runs one turn at a time. Everything that a
// model sees is written to the session log before it is sent, so that every
// request can be rebuilt from the log. The snapshot of the selected model is
// taken once a step and passed by value to prompt, planning, encoding and log.
//
// A turn runs in a goroutine of its own that sends its events to the iterator
// of [Agent.Turn]; leaving the loop ends the turn's context.
package agent

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/tool"
)

// Options are the settings of an [Agent].
type Options struct {
	// Dir is the working directory of the session, absolute. Without it no
	// tools are offered.
	Dir string
	// Dirs are additional directories in which tools may work, absolute.
	Dirs []string
	// FS replaces the disk for text files, for editors with unsaved buffers.
	FS tool.FS
	// Environ is the environment of commands.
	Environ []string
	// SpillDir takes the full text of outputs that are too long for a result.
	SpillDir string
	// ToolsOff names tools that are not offered.
	ToolsOff []string
	// Gate decides which calls run, are refused or are asked about. Default: a
	// gate in mode ask.
	Gate *tool.Gate
	// Policy is the budget's policy. Default: the package's default policy.
	Policy *budget.Policy
	// Instructions are further instruction files, absolute.
	Instructions []string
	// Now is the clock. Default: [time.Now].
	Now func() time.Time
	// Logger takes diagnostics. Default: none.
	Logger *slog.Logger
}

// Agent runs the turns of one session. Its methods are safe for concurrent use;
// turns run one after the other.
type Agent struct {
	selector *target.Selector
	log      *session.Log
	approver tool.Approver
	opts     Options
	full     *tool.Set // every tool
	small    *tool.Set // those for small windows

	turns chan struct{} // holds one token while a turn runs

	mu    sync.Mutex // guards what follows
	state *session.State

	// Owned by the running turn.
	costs      budget.Costs
	headed     bool      // a request header was written by this process
	limit      seenLimit // what an engine said of its window
	confirmed  llm.Target
	toldModel  llm.Snapshot
	saidNoTool llm.Target
}

// seenLimit is a window that an engine named when it refused a request.
type seenLimit struct {
	target llm.Target
	tokens int
}

// New makes an agent that goes on where state ends. It owns log and state from
// then on. approver may be nil: calls that need a question are then refused.
func New(selector *target.Selector, log *session.Log, state *session.State, approver tool.Approver, opts *Options) *Agent {
	a := &Agent{selector: selector, log: log, state: state, approver: approver, turns: make(chan struct{}, 1)}
	if opts != nil {
		a.opts = *opts
	}
	if a.opts.Gate == nil {
		a.opts.Gate = tool.NewGate(tool.ModeAsk)
	}
	if a.opts.Policy == nil {
		a.opts.Policy, _ = budget.PolicyByVersion(budget.DefaultVersion)
	}
	if a.opts.Now == nil {
		a.opts.Now = time.Now
	}
	if a.opts.Logger == nil {
		a.opts.Logger = slog.New(slog.DiscardHandler)
	}
	a.full, a.small = tool.NewSet(), tool.NewSet()
	if a.opts.Dir != "" {
		w := &tool.Workspace{
			Dir: a.opts.Dir, Roots: a.opts.Dirs, FS: a.opts.FS,
			Environ: a.opts.Environ, SpillDir: a.opts.SpillDir,
		}
		a.full = tool.NewSet(a.without(tool.Builtin(w))...)
		a.small = tool.NewSet(a.without(tool.Small(w))...)
	}
	return a
}

func (a *Agent) without(tools []tool.Tool) []tool.Tool {
	return slices.DeleteFunc(tools, func(t tool.Tool) bool { return slices.Contains(a.opts.ToolsOff, t.Def().Name) })
}

// Turn runs one turn on a user message and yields what happens; the last event
// is always [End]. It waits while another turn of the session runs. When ctx
// ends, or the loop is left, the turn is cancelled: the request is stopped,
// running tools are ended, and what is known is kept in the log.
func (a *Agent) Turn(ctx context.Context, parts []llm.Part) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		select {
		case a.turns <- struct{}{}:
			defer func() { <-a.turns }()
		case <-ctx.Done():
			yield(End{Reason: EndCancelled})
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		events := make(chan Event)
		go func() {
			defer close(events)
			t := &turn{Agent: a, emit: func(ev Event) { events <- ev }}
			t.run(ctx, parts)
		}()
		open := true
		for ev := range events {
			if open && !yield(ev) {
				open = false
				cancel()
			}
		}
	}
}

// Preview plans the next request as it would be if the user sent parts now,
// without sending or logging anything. Its error is that of package budget, or
// the provider's refusal of the selected model.
func (a *Agent) Preview(ctx context.Context, parts []llm.Part) (*budget.Plan, error) {
	snap, err := a.selector.Wait(ctx)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	messages, previous := a.state.Messages, a.state.Previous
	a.mu.Unlock()
	if len(parts) > 0 {
		messages = append(slices.Clone(messages), llm.Message{Role: llm.User, Parts: parts})
	}
	tools := a.offered(&snap).Defs()
	return budget.Make(a.opts.Policy, &budget.Input{
		Snapshot: snap, System: systemTurn(&snap, a.surroundings()), Tools: tools,
		Messages: messages, Previous: previous,
	})
}

// smallWindow is the window in tokens below which the smaller set of tools is
// offered: the schemas of all of them would be a large part of it.
const smallWindow = 12_000

// offered are the tools for a model: none where the engine is known not to
// support them.
func (a *Agent) offered(snap *llm.Snapshot) *tool.Set {
	switch {
	case snap.Capabilities.Tools.Support == llm.Unsupported:
		return tool.NewSet()
	case snap.Window.Tokens < smallWindow:
		return a.small
	}
	return a.full
}

// Gate returns the session's permission gate.
func (a *Agent) Gate() *tool.Gate { return a.opts.Gate }

// Messages returns the conversation so far. The caller must not change it.
func (a *Agent) Messages() []llm.Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clip(a.state.Messages)
}

// Title returns the session's title, empty before the first turn.
func (a *Agent) Title() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.Title
}

// Close ends what belongs to the session: a pending probe and the log. It waits
// for a running turn, which the caller has to cancel.
func (a *Agent) Close() error {
	a.turns <- struct{}{}
	defer func() { <-a.turns }()
	a.selector.Close()
	return a.log.Close()
}
