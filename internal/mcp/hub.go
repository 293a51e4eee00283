// Package mcp gives the tools of MCP servers to a session.
//
// A [Hub] starts its servers side by side, each within a bound, and lists the
// tools of those that are ready. A server that fails is named in a notice and
// left out, and costs the others nothing. One that ends later keeps its tools on
// offer; the next call starts it again.
//
// Rules of the package: the protocol is spoken by the official SDK, the processes
// are started and ended here; what a server sends is data and bounded; secrets of
// a server's settings (its environment, its headers) stand in no message; names
// of tools do not change while the hub lives.
package mcp

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-dev/drover/internal/tool"
)

// The bounds of a server.
const (
	DefaultStartTimeout = 10 * time.Second // to its list of tools
	DefaultCallTimeout  = 10 * time.Minute // of one call
	DefaultKillDelay    = 500 * time.Millisecond
)

// Options are the settings of a [Hub].
type Options struct {
	// Dir is the folder that servers are started in, absolute.
	Dir string
	// Environ is the environment of servers, NAME=value. Names that look like
	// secrets are taken out; what a server's own settings say is added.
	Environ []string
	// SpillDir takes the full text of results that are too long. Empty means that
	// what is cut is lost.
	SpillDir string
	// Version is what drover calls itself to a server.
	Version string
	// Proxy chooses the proxy of HTTP requests. Nil is none.
	Proxy func(*http.Request) (*url.URL, error)
	// StartTimeout, CallTimeout and KillDelay replace the bounds.
	StartTimeout, CallTimeout, KillDelay time.Duration
	// Changed, if set, is called when the list of tools has changed. It must not
	// wait for the hub.
	Changed func()
	// Children, if set, has the servers that are programs. When they are told to end
	// the hub closes at once.
	Children *tool.Children
	// Notices are told first: what is known of the settings already.
	Notices []string
	// Logger takes diagnostics. Default: none.
	Logger *slog.Logger
}

// Hub is the MCP servers of one session. Its methods are safe for concurrent
// use.
type Hub struct {
	opts    Options
	servers []*server
	ctx     context.Context // of everything that runs
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	closing sync.Once
	closed  chan struct{} // when everything has ended

	mu      sync.Mutex
	ended   bool // Close was called
	notices []string
	busy    int           // servers that start, lists that are read again
	idle    chan struct{} // closed when busy is 0
}

var _ tool.Source = (*Hub)(nil)

// Connect starts the servers and does not wait for them. The hub lives until
// [Hub.Close], or until ctx ends.
func Connect(ctx context.Context, specs []tool.ServerSpec, opts *Options) *Hub {
	h := &Hub{closed: make(chan struct{}), idle: make(chan struct{})}
	if opts != nil {
		h.opts = *opts
	}
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{
		{&h.opts.StartTimeout, DefaultStartTimeout},
		{&h.opts.CallTimeout, DefaultCallTimeout},
		{&h.opts.KillDelay, DefaultKillDelay},
	} {
		if *d.value <= 0 {
			*d.value = d.def
		}
	}
	if h.opts.Logger == nil {
		h.opts.Logger = slog.New(slog.DiscardHandler)
	}
	close(h.idle)
	h.notices = slices.Clone(h.opts.Notices)
	h.ctx, h.cancel = context.WithCancel(ctx)
	names := make([]string, len(specs))
	for i := range specs {
		names[i] = specs[i].Name
	}
	for i, label := range labels(names) {
		h.servers = append(h.servers, newServer(h, &specs[i], label))
	}
	for _, s := range h.servers {
		s.begin()
	}
	go func() {
		select {
		case <-h.ctx.Done():
		case <-h.opts.Children.Ending(): // nil is never ready
		}
		_ = h.Close()
	}()
	return h
}

// Tools lists the tools of the servers that are ready: by server in the order of
// the settings, then by name. It does not wait.
func (h *Hub) Tools() []tool.Tool {
	var all []tool.Tool
	for _, s := range h.servers {
		all = append(all, s.list()...)
	}
	return all
}

// Wait waits until every server is ready or has failed and lists that have
// changed are read again; at most a little longer than a server may take to start.
func (h *Hub) Wait(ctx context.Context) {
	patience := time.NewTimer(h.opts.StartTimeout + h.opts.KillDelay)
	defer patience.Stop()
	for {
		h.mu.Lock()
		idle, busy := h.idle, h.busy
		h.mu.Unlock()
		if busy == 0 {
			return
		}
		select {
		case <-idle:
		case <-patience.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Notices returns what a person should know and forgets it.
func (h *Hub) Notices() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.notices
	h.notices = nil
	return list
}

// Close ends the servers: a process is asked to end and, after a while, made to,
// its children with it. It returns when they are gone. Calls that run fail.
func (h *Hub) Close() error {
	h.closing.Do(func() {
		defer close(h.closed)
		h.mu.Lock()
		h.ended = true
		h.mu.Unlock()
		var links sync.WaitGroup
		for _, s := range h.servers {
			links.Go(s.close)
		}
		h.cancel() // servers that are starting
		links.Wait()
		h.wg.Wait()
	})
	<-h.closed
	return nil
}

// spawn runs f, unless the hub is closing. Close waits for it.
func (h *Hub) spawn(f func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return false
	}
	h.wg.Go(f)
	return true
}

func (h *Hub) isClosing() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

// work marks something that Wait waits for, until done is called.
func (h *Hub) work() (done func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.busy == 0 {
		h.idle = make(chan struct{})
	}
	h.busy++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.busy--; h.busy == 0 {
			close(h.idle)
		}
	}
}

// maxNotices bounds what is kept for a person who does not look.
const maxNotices = 100

func (h *Hub) notice(text string) {
	h.opts.Logger.Info("mcp: " + text)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended && len(h.notices) < maxNotices && !slices.Contains(h.notices, text) {
		h.notices = append(h.notices, text)
	}
}

func (h *Hub) changed() {
	if h.opts.Changed != nil {
		h.opts.Changed()
	}
}

// environ is the environment of a server.
func (h *Hub) environ(spec *tool.ServerSpec) []string {
	env := tool.SafeEnviron(h.opts.Environ)
	for _, e := range spec.Env {
		name, _, _ := strings.Cut(e, "=")
		env = slices.DeleteFunc(env, func(old string) bool {
			other, _, _ := strings.Cut(old, "=")
			return tool.SameVariable(name, other)
		})
		env = append(env, e)
	}
	return env
}
