package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/jsonrpc2"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/picker"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/tool"
)

// setup is what session/new, session/load and session/resume have in common.
type setup struct {
	dir     string
	dirs    []string
	servers []tool.ServerSpec
	notices []string
}

// readSetup reads and checks the parameters without looking at the disk.
func readSetup(o object) (setup, error) {
	dir, ok := o.text("cwd")
	if !ok || !filepath.IsAbs(dir) {
		return setup{}, badParams("cwd must be an absolute path")
	}
	s := setup{dir: filepath.Clean(dir)}
	for _, d := range o.texts("additionalDirectories") {
		if !filepath.IsAbs(d) {
			return setup{}, badParams("additionalDirectories: %.200q is not an absolute path", d)
		}
		if d = filepath.Clean(d); d != s.dir && !slices.Contains(s.dirs, d) {
			s.dirs = append(s.dirs, d)
		}
	}
	s.servers, s.notices = readServers(o)
	return s, nil
}

// check looks at the directories.
func (s *setup) check() error {
	for _, dir := range append([]string{s.dir}, s.dirs...) {
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			return badParams("%s is not a folder that can be read", dir)
		}
	}
	return nil
}

// sessionNew makes a session. The list of models is read before anything of the
// session exists, so what goes wrong there leaves nothing behind.
func (s *Server) sessionNew(req *jsonrpc2.Request) (any, error) {
	o, err := params(req)
	if err != nil {
		return nil, err
	}
	set, err := readSetup(o)
	if err != nil {
		return nil, err
	}
	return req.Go(func(ctx context.Context) (any, error) {
		if err := set.check(); err != nil {
			return nil, err
		}
		if err := s.opts.ConfigError; err != nil {
			return nil, internal(codeConfiguration, err.Error())
		}
		cat := s.readCatalogue(ctx)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		log, err := s.opts.Sessions.Create(set.dir, &session.CreateOptions{Program: s.opts.Version})
		if err != nil {
			log = session.Memory(set.dir)
			set.notices = append(set.notices, fmt.Sprintf("This session is not saved: %v.", err))
		} else if log.InMemory() {
			set.notices = append(set.notices, "This session is not saved: there is no folder for sessions.")
		}
		c := s.newConversation(log.ID())
		w := c.openWorkshop(ctx, &set, cat, log, log.NewState())
		if _, ok := s.publish(c); !ok {
			c.shut()
			return nil, jsonrpc2.ErrClosed
		}
		answer := c.state(w)
		answer.SessionID = c.id
		c.announce(w)
		return answer, nil
	})
}

// openWorkshop makes everything that a session works with. It owns the log.
func (c *conversation) openWorkshop(ctx context.Context, set *setup, cat catalogue, log *session.Log, state *session.State) *workshop {
	s := c.srv
	effort := s.opts.Effort
	if state.Header != nil {
		effort = state.Header.Snapshot.Effort.Or(effort)
	}
	w := &workshop{
		dir: set.dir, dirs: set.dirs, log: log,
		selector: target.NewSelector(s.opts.Registry, s.opts.Targets, effort),
		gate:     tool.NewGate(s.opts.Mode),
		notices:  set.notices, title: state.Title,
	}
	w.setCatalogue(cat)

	opts := s.opts.Agent
	opts.Dir, opts.Dirs, opts.Gate = w.dir, w.dirs, w.gate
	if cl := s.client.Load(); cl.readFile && cl.writeFile {
		opts.FS = &editorFS{c: c}
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
func (w *workshop) setCatalogue(cat catalogue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.catalogue, w.readAt = cat, time.Now()
}

// choice is what the session's model option depends on now.
func (c *conversation) choice(w *workshop) *modelChoice {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &modelChoice{
		current:   w.selector.Target(),
		past:      slices.Clone(w.past),
		providers: c.srv.opts.Registry.Providers(),
		listings:  w.catalogue.listings,
		known:     c.srv.opts.Targets.Get,
		flat:      c.srv.client.Load().quirks.flatModels,
	}
}

// options is the complete list of the session's options, in the order in which
// clients show them, and remembers it as what the client knows.
func (c *conversation) options(w *workshop) []configOption {
	list, text := c.currentOptions(w)
	w.mu.Lock()
	w.sent = text
	w.mu.Unlock()
	return list
}

func (c *conversation) currentOptions(w *workshop) (list []configOption, text string) {
	list = append(list, modeOption(w.gate.Mode()))
	if o, ok := c.choice(w).option(); ok {
		list = append(list, o)
	}
	snapshot, _ := w.selector.Current()
	list = append(list, effortOption(&snapshot, c.srv.policy()))
	encoded, err := json.Marshal(list)
	if err != nil {
		panic(err) // strings alone
	}
	return list, string(encoded)
}

// state is what a client is told of a session when it is opened.
func (c *conversation) state(w *workshop) sessionState {
	st := sessionState{Modes: modeStateOf(w.gate.Mode())}
	if !c.srv.client.Load().quirks.modesOnly {
		st.ConfigOptions = c.options(w)
	}
	return st
}

// sendOptions sends the options if they are not what the client knows.
func (c *conversation) sendOptions(w *workshop) {
	if c.srv.client.Load().quirks.modesOnly {
		return
	}
	list, text := c.currentOptions(w)
	w.mu.Lock()
	known := w.sent == text
	w.sent = text
	w.mu.Unlock()
	if !known {
		c.update(optionsUpdate{Kind: "config_option_update", ConfigOptions: list})
	}
}

// selectTarget makes t the session's model and starts its probe.
func (c *conversation) selectTarget(ctx context.Context, w *workshop, t llm.Target) {
	w.selector.Select(ctx, t)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restored = false
	if !slices.Contains(w.past, t) {
		w.past = append(w.past, t)
	}
}
