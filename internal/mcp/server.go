package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

// Bounds of what one server may offer.
const (
	maxTools       = 1000
	maxDescription = 8 << 10  // bytes; a longer one is cut
	maxSchema      = 64 << 10 // bytes; a tool with a larger one is left out
)

// server is one server of a hub.
type server struct {
	hub     *Hub
	spec    *tool.ServerSpec
	label   string
	secrets *strings.Replacer
	spills  *tool.Workspace // for results that are too long

	mu       sync.Mutex
	names    *namer
	tools    []tool.Tool
	link     *link         // nil while there is no connection
	starting chan struct{} // closed when the attempt is over; nil while there is none
	failure  error         // of the last attempt
	reading  bool          // the list is being read again
	stale    bool          // and has changed since
	ended    bool
}

func newServer(h *Hub, spec *tool.ServerSpec, label string) *server {
	return &server{
		hub: h, spec: spec, label: label, names: newNamer(label), secrets: secretsOf(spec),
		spills: &tool.Workspace{SpillDir: h.opts.SpillDir},
	}
}

func (h *Hub) version() string { return cmp.Or(h.opts.Version, "unknown") }

func (s *server) list() []tool.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools // never changed in place
}

// begin starts the server for the first time.
func (s *server) begin() {
	done := s.hub.work()
	s.mu.Lock()
	over := s.startLocked()
	s.mu.Unlock()
	if over == nil || !s.hub.spawn(func() {
		defer done()
		<-over
		s.mu.Lock()
		err := s.failure
		s.mu.Unlock()
		if err != nil && !s.hub.isClosing() {
			s.hub.notice(fmt.Sprintf("The MCP server %.100s is left out: %s.", s.spec.Name, s.message(reason(err))))
		}
	}) {
		done()
	}
}

// startLocked makes one attempt to connect, in the background. It gives what is
// closed when that is over, nil if the hub is closing.
func (s *server) startLocked() chan struct{} {
	over := make(chan struct{})
	if !s.hub.spawn(func() { s.start(over) }) {
		return nil
	}
	s.starting, s.stale = over, false
	return over
}

func (s *server) start(over chan struct{}) {
	defer close(over)
	l, tools, err := s.dial()
	s.mu.Lock()
	if err == nil && s.ended {
		err = errClosed
	}
	s.failure, s.starting = err, nil
	if err == nil {
		s.link, s.tools = l, tools
	}
	stale := s.stale
	s.mu.Unlock()
	switch {
	case l == nil:
	case err != nil || !s.hub.spawn(func() { s.watch(l) }):
		l.close()
	default:
		if stale {
			s.refresh()
		}
		s.hub.changed()
	}
}

var errClosed = errors.New("the session is closed")

// dial connects and reads the list of tools, within the bound.
func (s *server) dial() (*link, []tool.Tool, error) {
	ctx, cancel := context.WithTimeoutCause(s.hub.ctx, s.hub.opts.StartTimeout,
		fmt.Errorf("%w (%s)", errSlow, s.hub.opts.StartTimeout))
	defer cancel()
	l, err := s.open(ctx, handshake)
	if _, refused := errors.AsType[*jsonrpc.Error](err); refused {
		l, err = s.open(ctx, "")
	}
	if err != nil {
		return nil, nil, err
	}
	list, more, err := l.tools(ctx)
	if err != nil {
		err = s.explain(ctx, l, err)
		l.close()
		return nil, nil, err
	}
	return l, s.offer(list, more), nil
}

// offer makes tools of what the server lists, sorted by name.
func (s *server) offer(list []*sdk.Tool, more bool) []tool.Tool {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *sdk.Tool) int { return cmp.Compare(a.Name, b.Name) })
	list = slices.CompactFunc(list, func(a, b *sdk.Tool) bool { return a.Name == b.Name })
	if more {
		s.hub.notice(fmt.Sprintf("The MCP server %.100s has more than %d tools: the rest is left out.", s.spec.Name, maxTools))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	tools := make([]tool.Tool, 0, len(list))
	for _, t := range list {
		schema, err := encode(t.InputSchema)
		if err != nil || len(schema) > maxSchema || t.Name == "" {
			s.hub.notice(fmt.Sprintf("The tool %.100s of the MCP server %.100s is left out: its schema has %d bytes, more than %d.",
				t.Name, s.spec.Name, len(schema), maxSchema))
			continue
		}
		description := cmp.Or(t.Description, t.Title)
		if len(description) > maxDescription {
			description = strings.ToValidUTF8(description[:maxDescription], "") + "..."
		}
		tools = append(tools, &remoteTool{
			server: s, name: t.Name, def: llm.NewToolDef(s.names.name(t.Name), description, schema),
			readOnly: t.Annotations != nil && t.Annotations.ReadOnlyHint,
		})
	}
	return tools
}

// encode gives JSON without the escapes of HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// refresh reads the list of tools again. Changes that come meanwhile are read
// once, afterwards.
func (s *server) refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading {
		s.stale = true
		return
	}
	if s.link == nil { // it starts, and may have been read already
		s.stale = true
		return
	}
	done := s.hub.work()
	if !s.hub.spawn(func() { s.readAgain(sync.OnceFunc(done)) }) {
		done()
		return
	}
	s.reading = true
}

// Pauses between two readings of a list of tools: a server may say that it has
// changed as often as it is read.
const (
	firstReadPause   = 200 * time.Millisecond
	longestReadPause = 30 * time.Second
)

// readAgain reads the list of tools until it is not stale any more. read is
// called after the first time: further ones hold up nobody.
func (s *server) readAgain(read func()) {
	for pause := firstReadPause; ; pause = min(2*pause, longestReadPause) {
		s.mu.Lock()
		l := s.link
		s.stale = false
		s.mu.Unlock()
		if l != nil {
			s.readFrom(l)
		}
		read()
		s.mu.Lock()
		if !s.stale || l == nil || s.ended {
			s.reading = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		select {
		case <-time.After(pause):
		case <-s.hub.ctx.Done():
		}
	}
}

func (s *server) readFrom(l *link) {
	ctx, cancel := context.WithTimeoutCause(s.hub.ctx, s.hub.opts.StartTimeout, errSlow)
	defer cancel()
	list, more, err := l.tools(ctx)
	if err != nil {
		if !l.isGone() && !s.hub.isClosing() {
			s.hub.notice(fmt.Sprintf("The MCP server %.100s says that its tools have changed, but %s.", s.spec.Name, s.message(reason(err))))
		}
		return
	}
	tools := s.offer(list, more)
	s.mu.Lock()
	s.tools = tools
	s.mu.Unlock()
	s.hub.changed()
}

// watch waits for the end of a connection.
func (s *server) watch(l *link) {
	select {
	case <-l.gone:
		s.drop(l)
	case <-s.hub.ctx.Done():
		l.close()
	}
}

// drop forgets a connection that has ended.
func (s *server) drop(l *link) {
	s.mu.Lock()
	current := s.link == l
	if current {
		s.link = nil
	}
	s.mu.Unlock()
	defer l.close()
	if !current {
		return
	}
	how := "its connection ended"
	if cut := l.wasCut(); cut != nil {
		how = cut.Error()
	} else if l.proc != nil {
		if end := l.proc.end(); end != "" {
			how = end
		}
	}
	if !s.hub.isClosing() {
		s.hub.notice(fmt.Sprintf("The MCP server %.100s is gone: %s. Its next call starts it again.", s.spec.Name, s.message(how)))
	}
}

// connection gives the connection for a call, and starts the server again, once,
// if there is none.
func (s *server) connection(ctx context.Context) (*link, error) {
	s.mu.Lock()
	if l := s.link; l != nil && !l.isGone() {
		s.mu.Unlock()
		return l, nil
	}
	if old := s.link; old != nil { // its program has ended, and may have left children
		s.link = nil
		s.hub.spawn(old.close)
	}
	over := s.starting
	if over == nil {
		over = s.startLocked()
	}
	s.mu.Unlock()
	if over == nil {
		return nil, errClosed
	}
	select {
	case <-over:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == nil {
		return nil, cmp.Or(s.failure, errGone)
	}
	return s.link, nil
}

var errGone = errors.New("it ended at once")

// close ends the server.
func (s *server) close() {
	s.mu.Lock()
	s.ended = true
	l := s.link
	s.link = nil
	s.mu.Unlock()
	if l != nil {
		l.close()
	}
}
