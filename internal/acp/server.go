package acp

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/jsonrpc2"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/tool"
)

// Options are what a [Server] works with. A nil field has the default named.
type Options struct {
	// Registry holds the providers. Default: an empty one.
	Registry *catalog.Registry
	// Ready registers engines that are there and not registered yet. It is
	// called before the list of models is read for a session that is opened, and
	// again while a session has no model, never at initialize; calls do not
	// overlap. Its error is told to the person when there is no model, and
	// stops nothing. Nil: everything is registered already.
	Ready func(ctx context.Context) error
	// Targets keeps what is known of models. Default: an empty store.
	Targets *target.Store
	// Sessions keeps the session logs. Default: sessions live in memory.
	Sessions *session.Store

	// Target is the configured model, Effort and Mode what new sessions start
	// with. Their zero values are "not configured" and the defaults.
	Target llm.Target
	Effort llm.Effort
	Mode   tool.Mode

	// Agent is the template of the options of every session's agent. Dir, Dirs,
	// FS, Terminal and Gate are set for each session; SpillDir gets a folder for each.
	Agent agent.Options
	// Terminals runs commands in the client's terminals where it has some. Secrets
	// are the names of variables that no command may see; there they are set
	// empty, as the client's environment is its own.
	Terminals bool
	Secrets   []string
	// Version is drover's version, for agentInfo.
	Version string
	// ConfigError, if set, is answered to whoever opens a session.
	ConfigError error
	// Logger takes diagnostics. Default: none.
	Logger *slog.Logger
}

// Server serves one client. Make it with [NewServer].
type Server struct {
	opts   Options
	log    *slog.Logger
	conn   *jsonrpc2.Conn
	client atomic.Pointer[client] // set by initialize

	ready    sync.Mutex // held while Options.Ready runs
	children *tool.Children

	mu       sync.Mutex
	sessions map[string]*conversation // open, being opened or being closed
	closed   bool                     // nothing is opened any more
}

// NewServer makes a server that reads from in and writes to out, and owns both.
// opts may be nil.
func NewServer(in io.Reader, out io.Writer, opts *Options) *Server {
	s := &Server{sessions: make(map[string]*conversation)}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Registry == nil {
		s.opts.Registry = new(catalog.Registry)
	}
	if s.opts.Targets == nil {
		s.opts.Targets = new(target.Store)
	}
	if s.opts.Sessions == nil {
		s.opts.Sessions = session.NewStore("")
	}
	if s.children = s.opts.Agent.Children; s.children == nil {
		s.children = tool.NewChildren()
	}
	s.log = s.opts.Logger
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.client.Store(new(client))
	s.conn = jsonrpc2.New(in, out, s.handle, &jsonrpc2.Options{
		Logger: s.log, Panic: internal(llm.CodeUnknown, panicText),
	})
	return s
}

// Serve serves one client until the input ends, ctx ends or the connection
// breaks, then ends every turn and closes every session. It returns nil at the
// end of input. Nothing but messages is written to out.
func Serve(ctx context.Context, in io.Reader, out io.Writer, opts *Options) error {
	return NewServer(in, out, opts).Serve(ctx)
}

// Serve is the function [Serve]. It may be called once.
func (s *Server) Serve(ctx context.Context) error {
	err := s.conn.Run(ctx)
	s.children.End()
	// The contexts of all requests have ended by now, and with them the turns.
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), exitTimeout)
	defer cancel()
	s.closeAll(bound)
	if waitErr := s.conn.Wait(bound); waitErr != nil {
		s.log.Debug("acp: left unanswered at the end", "error", waitErr)
	}
	s.children.Kill() // of those that had no time to be ended in peace
	if closeErr := s.conn.Close(); closeErr != nil {
		s.log.Debug("acp: close", "error", closeErr)
	}
	return err
}

// closeAll closes all sessions side by side and waits for them.
func (s *Server) closeAll(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	var open []*conversation
	for _, c := range s.sessions {
		open = append(open, c)
	}
	s.mu.Unlock()
	for _, c := range open {
		c.close()
	}
	for _, c := range open {
		select {
		case <-c.done:
		case <-ctx.Done():
			s.log.Warn("acp: session not closed in time", "session", c.id)
		}
	}
}

// handle is called in the read loop for every message. It must not wait.
func (s *Server) handle(req *jsonrpc2.Request) (any, error) {
	switch req.Method {
	case "initialize":
		return s.initialize(req)
	case "authenticate":
		return s.authenticate(req)
	case "session/new":
		return s.sessionNew(req)
	case "session/load":
		return s.sessionOpen(req, true)
	case "session/resume":
		return s.sessionOpen(req, false)
	case "session/list":
		return s.sessionList(req)
	case "session/close":
		return s.sessionClose(req)
	case "session/delete":
		return s.sessionDelete(req)
	case "session/prompt":
		return s.sessionPrompt(req)
	case "session/cancel":
		return s.sessionCancel(req)
	case "session/set_mode":
		return s.setMode(req)
	case "session/set_config_option":
		return s.setConfigOption(req)
	case "session/set_model":
		return s.setModel(req)
	}
	return nil, jsonrpc2.ErrMethodNotFound
}

// find returns the session that a message names, if it can take messages.
func (s *Server) find(req *jsonrpc2.Request) (*conversation, object, error) {
	o, id, err := sessionParams(req)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	c := s.sessions[id]
	s.mu.Unlock()
	if c == nil || c.isClosing() {
		return nil, nil, notFound(id)
	}
	return c, o, nil
}

// inMailbox gives a request to the mailbox of the session that it names.
func (s *Server) inMailbox(req *jsonrpc2.Request, do func(ctx context.Context, c *conversation, o object) (any, error)) (any, error) {
	c, o, err := s.find(req)
	if err != nil {
		return nil, err
	}
	c.post(func() {
		req.Do(func(ctx context.Context) (any, error) {
			if err := c.usable(); err != nil {
				return nil, err
			}
			return do(ctx, c, o)
		})
	})
	return nil, jsonrpc2.ErrDeferred
}

// terminals reports whether commands run in the client's terminals.
func (s *Server) terminals() bool { return s.opts.Terminals && s.client.Load().terminal }

// policy is the budget policy that agents plan with.
func (s *Server) policy() *budget.Policy {
	if s.opts.Agent.Policy != nil {
		return s.opts.Agent.Policy
	}
	p, _ := budget.PolicyByVersion(budget.DefaultVersion)
	return p
}

// publish makes a session known. It returns the one that had the id, if any.
func (s *Server) publish(c *conversation) (before *conversation, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false
	}
	before = s.sessions[c.id]
	s.sessions[c.id] = c
	return before, true
}

// forget removes a session that has ended, unless another took its id.
func (s *Server) forget(c *conversation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(c)
}

func (s *Server) forgetLocked(c *conversation) {
	if s.sessions[c.id] == c {
		delete(s.sessions, c.id)
	}
}

// catalogue is a detached snapshot of what the providers list, with the error
// of looking for engines.
type catalogue struct {
	listings []catalog.Listing
	err      error
}

// readCatalogue looks for engines and asks all providers side by side, each
// step bounded. It never fails: a provider that does has its error in its
// listing.
func (s *Server) readCatalogue(ctx context.Context) catalogue {
	var c catalogue
	if s.opts.Ready != nil {
		c.err = s.makeReady(ctx)
	}
	c.listings = s.opts.Registry.All(ctx)
	s.opts.Targets.Listed(c.listings)
	for i := range c.listings {
		if err := c.listings[i].Err; err != nil {
			s.log.Debug("acp: no list of models", "provider", c.listings[i].Provider.ID, "error", err)
		}
	}
	return c
}

// errNotReady is told where there is no model yet.
var errNotReady = fmt.Errorf("looking for engines takes longer than %v: a keyring may be waiting to be unlocked", readyTimeout)

func (s *Server) makeReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, errNotReady)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		s.ready.Lock()
		defer s.ready.Unlock()
		if ctx.Err() != nil {
			done <- context.Cause(ctx)
			return
		}
		done <- s.opts.Ready(ctx)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// notify sends an update. When the connection has ended there is nobody to
// send it to.
func (s *Server) notify(id string, update any) {
	if err := s.conn.Notify("session/update", notification{id, update}); err != nil {
		s.log.Debug("acp: update not sent", "session", id, "error", err)
	}
}
