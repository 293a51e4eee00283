package tui

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/brief"
	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/picker"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/tool"
)

// desk does what takes time: both forms of the UI work at it. Its methods are
// safe for concurrent use.
type desk struct {
	opts *Options
	gate *tool.Gate
	// events takes what happens in turns, in order: [agent.Event], question and
	// withdrawn. Whoever shows the UI empties it.
	events chan event
	over   chan struct{} // closed when nobody takes events any more
	// sandboxed says that commands are confined while the mode is not full.
	sandboxed bool

	// looking is held by everybody who looks for engines, and by close for good.
	looking sync.RWMutex
	closed  bool

	mu   sync.Mutex
	open *bench
}

// event is something that happened in a turn, and when.
type event struct {
	what any
	at   time.Time
}

// maxEvents is how many events wait to be shown before a turn waits for the
// screen.
const maxEvents = 256

// bench is an open session.
type bench struct {
	id       string
	dir      string
	saved    bool // there is a file of it
	unsaved  atomic.Bool
	agent    *agent.Agent
	selector *target.Selector
	wanted   llm.Target
	restored bool
	named    bool
	notes    []string
	messages []llm.Message // that the session began with
	trim     string        // the trim notice of its last turn
	spent    brief.Spent   // belongs to who shows the UI
	began    bool          // a turn was begun here or before; guarded by desk.mu
}

func newDesk(opts *Options) *desk {
	if opts.Agent.Logger == nil {
		opts.Agent.Logger = slog.New(slog.DiscardHandler)
	}
	return &desk{
		opts: opts, gate: tool.NewGate(opts.Mode), events: make(chan event, maxEvents), over: make(chan struct{}),
		sandboxed: opts.Agent.Sandbox.State().Active(),
	}
}

// policy is the budget's policy of all sessions.
func (d *desk) policy() *budget.Policy {
	if p := d.opts.Agent.Policy; p != nil {
		return p
	}
	p, _ := budget.PolicyByVersion(budget.DefaultVersion)
	return p
}

// openSession opens a session in place of the one that is open. When it cannot,
// the open one stays.
func (d *desk) openSession(id string) (*bench, error) {
	s, err := d.opts.Open(id)
	if err != nil {
		return nil, err
	}
	b := &bench{
		id: s.Log.ID(), dir: s.Dir, saved: !s.Log.InMemory(), wanted: s.Target, restored: s.Restored, named: s.Named, notes: s.Notes,
		selector: target.NewSelector(d.opts.Registry, d.opts.Targets, s.Effort),
		messages: s.State.Messages, began: s.State.Turns > 0, spent: maps.Clone(s.State.Spent),
	}
	if s.State.Notice != nil {
		b.trim = s.State.Notice.Text
	}
	opts := d.opts.Agent
	opts.Dir, opts.Gate = s.Dir, d.gate
	if opts.SpillDir != "" {
		opts.SpillDir = filepath.Join(opts.SpillDir, b.id)
	}
	b.agent = agent.New(b.selector, s.Log, s.State, &approver{d}, &opts)
	d.mu.Lock()
	before := d.open
	d.open = b
	d.mu.Unlock()
	if err := d.shut(before); err != nil {
		b.notes = append(b.notes, err.Error())
	}
	return b, nil
}

// shut closes a session, and removes it if nothing was said in it.
func (d *desk) shut(b *bench) error {
	if b == nil {
		return nil
	}
	err := b.agent.Close()
	d.mu.Lock()
	began := b.began
	d.mu.Unlock()
	if err == nil && b.saved && !began {
		err = d.opts.Sessions.Remove(b.id)
	}
	return err
}

// close ends everything. No turn may run any more, and whoever looks for engines
// is waited for.
func (d *desk) close() error {
	d.looking.Lock()
	d.closed = true
	d.looking.Unlock()
	d.mu.Lock()
	b := d.open
	d.open = nil
	d.mu.Unlock()
	return d.shut(b)
}

// ended says what is left when the UI is over.
func (d *desk) ended() Ended {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil || !d.open.began || !d.open.saved {
		return Ended{}
	}
	return Ended{Session: d.open.id}
}

// look finds the engines and lists their models.
func (d *desk) look(ctx context.Context) ([]catalog.Listing, error) {
	d.looking.RLock()
	defer d.looking.RUnlock()
	if d.closed {
		return nil, context.Canceled
	}
	if err := d.opts.Connect(ctx); err != nil {
		return nil, err
	}
	listings := d.opts.Registry.All(ctx)
	d.opts.Targets.Listed(listings)
	return listings, nil
}

// choose gives the model of a session: the one it wants, else the picker's
// choice. note tells the person when another was chosen than was wanted.
func (d *desk) choose(b *bench, listings []catalog.Listing) (t llm.Target, note string, err error) {
	wanted := b.wanted
	if !wanted.IsZero() {
		missing := d.opts.Provided(wanted.Provider)
		if missing == nil {
			return wanted, "", nil
		}
		switch others := len(d.opts.Registry.Providers()) > 0; {
		case others && b.named:
			return llm.Target{}, "", missing
		case others && b.restored:
			return llm.Target{}, "", fmt.Errorf("this session used %s: %w", wanted, missing)
		}
	}
	t, ok := picker.Default(llm.Target{}, listings)
	if !ok {
		return llm.Target{}, "", d.opts.NoModel(listings)
	}
	if !wanted.IsZero() {
		return t, fmt.Sprintf("%s has no provider here; this session uses %s.", wanted, t), nil
	}
	return t, "", nil
}

// cost is what a session has cost so far in US dollars, at the prices that are known
// of its models, else those of the lists; "" while it has used none with a price.
func (d *desk) cost(b *bench, listings []catalog.Listing) string {
	amount, known := b.spent.Cost(func(t llm.Target) llm.Prices { return d.opts.Targets.Prices(t, listings) })
	if !known {
		return ""
	}
	return brief.Dollars(amount)
}

// probed is what the handshake with a model gave.
type probed struct {
	bench *bench
	// selection is the one that was asked about. The selector's own revision
	// would not do: a turn asks about the same model again.
	selection int
	snapshot  llm.Snapshot
	info      llm.ModelInfo
	err       error
	// estimate is what the next request costs by the plan, 0 if unknown.
	estimate int
	window   llm.Window
}

// probe waits for the handshake with the selected model and plans an empty
// request.
func (d *desk) probe(ctx context.Context, b *bench) probed {
	p := probed{bench: b}
	p.snapshot, p.err = b.selector.Wait(ctx)
	p.info = b.selector.Info()
	p.window = p.snapshot.Window
	if p.err != nil {
		return p
	}
	plan, err := b.agent.Preview(ctx, emptyPrompt)
	switch overflow, _ := errors.AsType[*budget.OverflowError](err); {
	case err == nil:
		p.estimate = plan.Report.EstimatedAfter
		p.window = llm.Window{Tokens: plan.Report.WindowTokens, Source: plan.Report.WindowSource}
	case overflow != nil:
		p.estimate = overflow.Report.EstimatedBefore
		p.window = llm.Window{Tokens: overflow.Report.WindowTokens, Source: overflow.Report.WindowSource}
	}
	return p
}

// turn runs one turn and sends its events.
func (d *desk) turn(ctx context.Context, b *bench, parts []llm.Part) {
	d.mu.Lock()
	b.began = true
	d.mu.Unlock()
	defer func() {
		if failure := recover(); failure != nil {
			d.opts.Agent.Logger.Error("tui: turn", "panic", failure)
			d.emit(agent.End{Reason: agent.EndError, Err: errors.New("drover failed in this turn; what was said is kept. --log-file tells more")})
		}
	}()
	for ev := range b.agent.Turn(ctx, parts) {
		if n, ok := ev.(agent.Notice); ok && n.Kind == agent.NoticeStore {
			b.unsaved.Store(b.agent.Unsaved())
		}
		d.emit(ev)
	}
	// Closing the agent ends the request for a title.
	b.agent.WriteTitle(context.WithoutCancel(ctx))
}

func (d *desk) emit(what any) {
	select {
	case d.events <- event{what, time.Now()}:
	case <-d.over:
	}
}

// list gives the sessions of a folder, newest first.
func (d *desk) list(dir string) ([]session.Info, error) {
	return d.opts.Sessions.List(&session.ListOptions{CWD: dir})
}

// question is a call that waits for a person's answer. The answer counts while
// the turn waits for it; what comes later is read by nobody.
type question struct {
	*tool.Question
	answer chan<- tool.Decision
}

// withdrawn says that nobody waits for the answer to a call's question any more.
type withdrawn struct{ callID string }

// approver asks the person in front of the terminal.
type approver struct{ desk *desk }

// Approve implements [tool.Approver]. The event that announces the call went the
// same way before, so the call is on the screen.
func (a *approver) Approve(ctx context.Context, q *tool.Question) (tool.Decision, error) {
	answer := make(chan tool.Decision, 1)
	a.desk.emit(question{q, answer})
	select {
	case decision := <-answer:
		return decision, nil
	case <-ctx.Done():
		a.desk.emit(withdrawn{q.CallID})
		return tool.Cancelled, nil
	}
}
