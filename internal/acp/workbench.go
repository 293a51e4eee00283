package acp

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/brief"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/picker"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/tool"
)

// workbench is an opened session.
type workbench struct {
	dir      string            // the working directory, absolute
	dirs     []string          // additional directories
	servers  []tool.ServerSpec // of the client
	agent    *agent.Agent
	log      *session.Log
	selector *target.Selector
	gate     *tool.Gate

	mu        sync.Mutex
	catalogue catalogue
	readAt    time.Time    // when the catalogue was read or a refresh began
	restored  bool         // the target comes from the log and nobody chose another
	past      []llm.Target // that were current, oldest first
	sent      string       // the options as the client knows them, as JSON
	notices   []string     // for the person, not said yet
	spent     brief.Spent
	turn      *turn // that runs, nil for none
	title     string
}

// openWorkbench makes everything that a session works with. It owns the log.
func (c *conversation) openWorkbench(ctx context.Context, set *setup, cat catalogue, log *session.Log, state *session.State) *workbench {
	s := c.srv
	effort := s.opts.Effort
	if state.Header != nil {
		effort = state.Header.Snapshot.Effort.Or(effort)
	}
	w := &workbench{
		dir: set.dir, dirs: set.dirs, servers: set.servers, log: log,
		selector: target.NewSelector(s.opts.Registry, s.opts.Targets, effort),
		gate:     tool.NewGate(s.opts.Mode),
		notices:  set.notices, title: state.Title, spent: maps.Clone(state.Spent),
	}
	w.setCatalogue(cat)

	opts := s.opts.Agent
	opts.Dir, opts.Dirs, opts.Gate, opts.Children = w.dir, w.dirs, w.gate, s.children
	opts.Servers = append(slices.Clone(opts.Servers), set.servers...)
	if cl := s.client.Load(); cl.readFile && cl.writeFile {
		opts.FS = &editorFS{c: c}
	}
	if s.terminals() {
		opts.Terminal = &editorTerminal{c: c}
	}
	if opts.SpillDir != "" {
		opts.SpillDir = filepath.Join(opts.SpillDir, log.ID())
	}
	w.agent = agent.New(w.selector, log, state, &approver{c: c}, &opts)

	t, restored, notice := s.firstTarget(state.Header, cat)
	w.restored = restored
	if notice != "" {
		w.notices = append(w.notices, notice)
	}
	// What the session has used stays selectable.
	w.past = slices.DeleteFunc(slices.Clone(state.Used), func(used llm.Target) bool { return used == t })
	if !t.IsZero() {
		// The probe starts now, so that the first prompt need not wait for it.
		w.selector.Restore(context.WithoutCancel(ctx), t)
		w.past = append(w.past, t)
	}
	for _, warning := range state.Warnings {
		w.notices = append(w.notices, "The session's log: "+warning.String())
	}
	c.mu.Lock()
	c.open = w
	c.mu.Unlock()
	return w
}

// onlyHere reports whether something of the session is in memory alone, so that it
// cannot be opened anew without a loss.
func (w *workbench) onlyHere() bool { return w.log.InMemory() || w.log.Unsaved() != nil }

// firstTarget chooses the target of a session that is opened: what its log says
// was used last, else the configured one, else the picker's choice. restored
// says that it is the log's although its provider is gone.
func (s *Server) firstTarget(header *session.RequestHeader, cat catalogue) (t llm.Target, restored bool, notice string) {
	configured := s.opts.Target
	if header != nil && !header.Snapshot.Target.IsZero() {
		used := header.Snapshot.Target
		if s.registered(used) {
			return used, false, ""
		}
		if s.registered(configured) {
			return configured, false, fmt.Sprintf("This session used %s, whose provider is gone; it goes on with %s.", used, configured)
		}
		return used, true, ""
	}
	if s.registered(configured) {
		return configured, false, ""
	}
	if t, ok := picker.Default(llm.Target{}, cat.listings); ok {
		return t, false, chosenNotice(configured, t)
	}
	return configured, false, ""
}

// setCatalogue replaces the session's snapshot of the catalogue.
func (w *workbench) setCatalogue(cat catalogue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.catalogue, w.readAt = cat, time.Now()
}

// selectTarget makes t the session's model and starts its probe.
func (c *conversation) selectTarget(ctx context.Context, w *workbench, t llm.Target) {
	w.selector.Select(ctx, t)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restored = false
	if !slices.Contains(w.past, t) {
		w.past = append(w.past, t)
	}
}

func (w *workbench) setTurn(t *turn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn = t
}

func (w *workbench) runningTurn() *turn {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.turn
}
