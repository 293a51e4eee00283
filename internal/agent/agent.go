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
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/memory"
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
	// Terminal runs commands where a person can watch them, for editors.
	Terminal tool.Terminal
	// Environ is the environment of commands.
	Environ []string
	// SpillDir takes the full text of outputs that are too long for a result.
	SpillDir string
	// ToolsOff names tools that are not offered, and as mcp:NAME the MCP servers
	// whose tools are not.
	ToolsOff []string
	// Servers are the MCP servers of the session. Connect starts them, nil starts
	// none; the agent closes what it gives. A source with a method Wait is waited
	// for before each request.
	Servers []tool.ServerSpec
	Connect func(o *Options) tool.Source
	// Gate decides which calls run, are refused or are asked about. Default: a
	// gate in mode ask.
	Gate *tool.Gate
	// Sandbox confines commands while the gate's mode is not full. Nil is none.
	Sandbox *tool.Sandbox
	// Policy is the budget's policy. Default: the package's default policy.
	Policy *budget.Policy
	// Instructions are further instruction files, absolute. NoInstructions leaves
	// these and those of the project out.
	Instructions   []string
	NoInstructions bool
	// Memory holds the notes that the system turn shows and the tools remember
	// and forget change; those of Dir's project are added. Nil is none of both.
	Memory *memory.Store
	// ModelTitles lets the model write the titles of sessions; see
	// [Agent.WriteTitle].
	ModelTitles bool
	// ScaleImages makes images smaller that are larger than a model can use. The
	// session keeps the originals.
	ScaleImages bool
	// Children, if set, has the programs that tools and servers start.
	Children *tool.Children
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
	memory   *memory.Store
	full     []tool.Tool // every tool
	small    []tool.Tool // those for small windows
	servers  tool.Source // of MCP servers, nil for none

	turns chan struct{} // holds one token while a turn runs

	mu      sync.Mutex // guards what follows
	state   *session.State
	closed  bool
	off     []string   // tools that are not offered
	limit   seenLimit  // what an engine said of its window
	widened llm.Target // whose assumed window was not enough
	// steering are the messages that the running turn has not taken yet;
	// steerable says that it still takes some.
	steering  [][]llm.Part
	steerable bool
	waiting   int    // turns that wait for their time
	titled    bool   // the model was asked for a title
	stopTitle func() // ends the request for it, nil before the first

	// Owned by the running turn.
	costs     budget.Costs
	headed    bool // a request header was written by this process
	confirmed llm.Target
	lost      bool    // the engine was gone since its model was described
	counted   counted // for the last request
	toldModel llm.Snapshot
	told      map[string]bool // notices that are given once
	// seenImages are the images that models have answered for, of the turns alone.
	seenImages map[seenImage]bool
	toolsTold  map[llm.Target]string
}

// seenLimit is a window that an engine named when it refused a request, and the
// one that it had claimed before. It holds as long as the claim is repeated.
type seenLimit struct {
	target  llm.Target
	claimed int
	tokens  int
}

// New makes an agent that goes on where state ends. It owns log and state from
// then on. approver may be nil: calls that need a question are then refused.
func New(selector *target.Selector, log *session.Log, state *session.State, approver tool.Approver, opts *Options) *Agent {
	a := &Agent{selector: selector, log: log, state: state, approver: approver, turns: make(chan struct{}, 1), told: make(map[string]bool), toolsTold: make(map[llm.Target]string)}
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
	a.off = slices.Clone(a.opts.ToolsOff)
	a.memory = a.opts.Memory.In(a.opts.Dir)
	if a.opts.Dir != "" {
		w := &tool.Workspace{
			Dir: a.opts.Dir, Roots: a.opts.Dirs, FS: a.opts.FS, Terminal: a.opts.Terminal,
			Environ: a.opts.Environ, SpillDir: a.opts.SpillDir, Children: a.opts.Children,
		}
		w.Wrap = a.opts.Sandbox.Wrapper(w, func() bool { return a.opts.Gate.Mode() != tool.ModeFull })
		a.full, a.small = append(tool.Builtin(w), a.memory.Tools()...), tool.Small(w)
	}
	a.connect()
	return a
}

// Turn runs one turn on a user message and yields what happens; the last event
// is always [End]. It waits while another turn of the session runs. When ctx
// ends, or the loop is left, the turn is cancelled: the request is stopped,
// running tools are ended, and what is known is kept in the log. A panic of the
// turn is raised in the loop, where the caller can recover.
func (a *Agent) Turn(ctx context.Context, parts []llm.Part) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		a.waitForTurn(1)
		select {
		case a.turns <- struct{}{}:
			a.waitForTurn(-1)
			defer func() { <-a.turns }()
		case <-ctx.Done():
			a.waitForTurn(-1)
			yield(End{Reason: EndCancelled})
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		events, taken := make(chan Event), make(chan struct{})
		// Whatever ends the loop, a panic in it too, the turn is over before
		// another can begin.
		defer func() {
			cancel()
			close(taken)
			for range events {
			}
		}()
		var failure any
		go func() {
			defer close(events)
			defer func() {
				if failure = recover(); failure != nil {
					failure = fmt.Errorf("agent: turn: %v\n%s", failure, debug.Stack())
				}
			}()
			t := &turn{Agent: a, emit: inOrder(events, taken), seen: make(outcomes)}
			t.run(ctx, parts)
		}()
		for ev := range events {
			if !yield(ev) {
				return
			}
			taken <- struct{}{}
		}
		if failure != nil {
			panic(failure)
		}
	}
}

// inOrder gives a function that hands on one event at a time and returns when
// the receiver is done with it: a question must not overtake the call that it is
// about. It may be called from several goroutines.
func inOrder(events chan<- Event, taken <-chan struct{}) func(Event) {
	var mu sync.Mutex
	return func(ev Event) {
		mu.Lock()
		defer mu.Unlock()
		events <- ev
		<-taken
	}
}

// Preview plans the next request as it would be if the user sent parts now,
// without sending or logging anything. Its error is that of package budget, or
// the provider's refusal of the selected model.
func (a *Agent) Preview(ctx context.Context, parts []llm.Part) (*budget.Plan, error) {
	snap, err := a.current(ctx)
	if err != nil {
		return nil, err
	}
	messages, previous := a.history()
	if parts, _ = a.scaled(parts); len(parts) > 0 {
		messages = append(messages, llm.Message{Role: llm.User, Parts: parts})
	}
	notes, omitted := a.notes(a.memory.Digest(), &snap)
	return a.fit(&budget.Input{
		Snapshot: snap, System: systemTurn(&snap, a.surroundings()), Memory: notes, OmittedNotes: omitted,
		Tools: a.offered(&snap).Defs(), Messages: messages, Previous: previous,
	})
}

// current is the snapshot of the selected model, with what its engine has said
// of its window since it was probed.
func (a *Agent) current(ctx context.Context) (llm.Snapshot, error) {
	snap, err := a.selector.Wait(ctx)
	if err != nil {
		return snap, err
	}
	if snap.Target.IsZero() {
		return snap, llm.Errorf(llm.CodeNoAdapter, "no model is selected")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.limit; l.target == snap.Target && l.claimed == snap.Window.Tokens {
		snap.Window.Tokens, snap.Window.Source = l.tokens, llm.Effective
		snap.Window.Evidence = []llm.Evidence{{Endpoint: "POST /v1/chat/completions", Field: "error"}}
	}
	if a.widened == snap.Target {
		snap.Window = widen(snap.Window)
	}
	return snap, nil
}

// widen is the next assumption about a window that is only declared: twice the
// lowest default of the engines.
func widen(w llm.Window) llm.Window {
	if w.Source == llm.Assumed {
		w.Tokens = min(max(w.Declared, w.Tokens), 2*w.Tokens)
	}
	return w
}

// fit plans a request. Where nothing fits an assumed window, the next larger
// assumption is tried; the plan's snapshot tells.
func (a *Agent) fit(in *budget.Input) (*budget.Plan, error) {
	plan, err := budget.Make(a.opts.Policy, in)
	wider := widen(in.Snapshot.Window)
	if err == nil || wider.Tokens == in.Snapshot.Window.Tokens {
		return plan, err
	}
	a.mu.Lock()
	known := a.widened == in.Snapshot.Target
	a.mu.Unlock()
	if known {
		return plan, err
	}
	again := *in
	again.Snapshot.Window = wider
	if plan, e := budget.Make(a.opts.Policy, &again); e == nil {
		return plan, nil
	}
	return plan, err
}

// history is the conversation so far, in a slice of the caller's own, and the
// shape of the last request.
func (a *Agent) history() ([]llm.Message, *budget.Previous) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clip(a.state.Messages), a.state.Previous
}

// smallWindow is the window in tokens below which the smaller set of tools is
// offered: the schemas of all of them would be a large part of it.
const smallWindow = 12_000

// remoteShare is the part of a small window that the tools of MCP servers may
// take: an eighth.
const remoteShare = 8

// offered are the tools for a model: none where the engine is known not to
// support them. In a small window there are fewer, and of the MCP servers those
// whose tools have room.
func (a *Agent) offered(snap *llm.Snapshot) *tool.Set {
	set, _ := a.offeredWithout(snap)
	return set
}

// offeredWithout is offered, with the MCP servers that had no room.
func (a *Agent) offeredWithout(snap *llm.Snapshot) (set *tool.Set, without []string) {
	switch {
	case snap.Capabilities.Tools.Support == llm.Unsupported:
		return tool.NewSet(), nil
	case snap.Window.Tokens >= smallWindow:
		return tool.NewSet(a.turnedOn(a.everyTool())...), nil
	}
	room := budget.ReservesFor(a.opts.Policy, snap, 0).Window / remoteShare
	tools := a.turnedOn(a.small)
	remote := a.turnedOn(a.remote())
	for len(remote) > 0 {
		server := serverOf(remote[0])
		end := slices.IndexFunc(remote, func(t tool.Tool) bool { return serverOf(t) != server })
		if end < 0 {
			end = len(remote)
		}
		cost := 0
		for _, t := range remote[:end] {
			def := t.Def()
			cost += budget.EstimateTool(a.opts.Policy, &def)
		}
		if cost <= room {
			room -= cost
			tools = append(tools, remote[:end]...)
		} else {
			without = append(without, server)
		}
		remote = remote[end:]
	}
	return tool.NewSet(tools...), without
}

// everyTool lists the tools of drover and of the MCP servers, those turned off too.
func (a *Agent) everyTool() []tool.Tool { return slices.Concat(a.full, a.remote()) }

func (a *Agent) turnedOn(tools []tool.Tool) []tool.Tool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(tools), func(t tool.Tool) bool {
		return slices.Contains(a.off, t.Def().Name) || slices.Contains(a.off, serverOf(t))
	})
}

// SetTool turns a tool of the session on or off, from the next step on. The
// error names the tools there are.
func (a *Agent) SetTool(name string, on bool) error {
	names := a.switchable()
	if !slices.Contains(names, name) {
		return fmt.Errorf("there is no tool %q (there are: %s)", name, strings.Join(names, ", "))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.off = slices.DeleteFunc(a.off, func(off string) bool { return off == name })
	if !on {
		a.off = append(a.off, name)
	}
	return nil
}

// Messages returns the conversation so far. The caller must not change it.
func (a *Agent) Messages() []llm.Message {
	messages, _ := a.history()
	return messages
}

// Memory returns the notes of the session, nil for none.
func (a *Agent) Memory() *memory.Store { return a.memory }

// Title returns the session's title, empty before the first turn.
func (a *Agent) Title() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.Title
}

// Unsaved reports whether a part of the session waits to be saved.
func (a *Agent) Unsaved() bool { return a.log.Unsaved() != nil }

// Updated returns when the session was changed last.
func (a *Agent) Updated() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.Updated
}

// Close ends what belongs to the session: a pending probe and the log. It waits
// for a running turn, which the caller has to cancel; turns that come after it
// fail. An error means that a part of the session could not be saved.
func (a *Agent) Close() error {
	a.waitForTurn(1)
	a.turns <- struct{}{}
	a.waitForTurn(-1)
	defer func() { <-a.turns }()
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.selector.Close()
	return errors.Join(a.closeServers(), a.log.Close())
}
