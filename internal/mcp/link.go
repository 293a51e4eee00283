package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-dev/drover/internal/tool"
)

const (
	// maxFrame bounds one message of a server: an image of 20 MiB in base64 with
	// what is around it.
	maxFrame = 32 << 20
	// handshake is the protocol version that is asked for first: every server
	// answers it or refuses it. The newest has another first message, at which
	// some servers end.
	handshake = "2025-11-25"
)

// errSlow is why a server that does not answer in time is left out.
var errSlow = errors.New("it did not answer in time")

// link is a connection to a server, with its process.
type link struct {
	session *sdk.ClientSession
	proc    *process // nil for HTTP
	end     context.CancelFunc
	gone    chan struct{} // closed when the connection has ended
	cut     error         // why drover ended it; to be read after gone
	closing sync.Once
	delay   time.Duration

	mu       sync.Mutex
	progress map[int64]func(text string) // of running calls, by token
	lastCall atomic.Int64
}

// open connects to a server with a protocol version, the newest if that is
// empty. ctx bounds the handshake, life the connection.
func (s *server) open(ctx context.Context, version string) (*link, error) {
	life, end := context.WithCancel(context.WithoutCancel(s.hub.ctx))
	l := &link{end: end, gone: make(chan struct{}), delay: s.hub.opts.KillDelay, progress: make(map[int64]func(string))}
	transport, err := s.transport(life, l)
	if err != nil {
		end()
		return nil, err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "drover", Version: s.hub.version()}, &sdk.ClientOptions{
		// No roots: some servers take them for all that they may touch, whatever
		// their arguments say.
		Capabilities:           &sdk.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { s.refresh() },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			l.tell(r.Params)
		},
	})
	type outcome struct {
		session *sdk.ClientSession
		err     error
	}
	connected := make(chan outcome, 1)
	go func() {
		session, err := client.Connect(life, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
		connected <- outcome{session, err}
	}()
	select {
	case o := <-connected:
		if o.err != nil {
			err := s.explain(ctx, l, o.err)
			l.abandon()
			return nil, err
		}
		l.session = o.session
	case <-ctx.Done():
		late := func() {
			l.abandon()
			if o := <-connected; o.session != nil {
				_ = o.session.Close()
			}
		}
		if !s.hub.spawn(late) {
			late()
		}
		return nil, context.Cause(ctx)
	}
	go func() {
		defer close(l.gone)
		l.cut = cutOff(l.session.Wait()) // other ends are told by the calls
	}()
	return l, nil
}

// transport starts what the connection needs.
func (s *server) transport(life context.Context, l *link) (sdk.Transport, error) {
	if s.spec.Command != "" {
		p, err := startProcess(s.hub.opts.Children, s.spec.Command, s.spec.Args, s.hub.opts.Dir, s.hub.environ(s.spec))
		if err != nil {
			return nil, startError(s.spec.Command, err)
		}
		l.proc = p
		return &sdk.IOTransport{Reader: &messages{r: p.out}, Writer: p.in, MaxLineLength: maxFrame}, nil
	}
	web, err := newWebClient(life, s.spec, s.hub.opts.Proxy)
	if err != nil {
		return nil, err
	}
	if s.spec.SSE {
		return &sdk.SSEClientTransport{Endpoint: s.spec.URL, HTTPClient: web.client(), MaxEventSize: maxFrame}, nil
	}
	return &sdk.StreamableClientTransport{Endpoint: s.spec.URL, HTTPClient: web.client(), MaxEventSize: maxFrame}, nil
}

func startError(command string, err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the program %.100q was not found", command)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the program %.100q may not be run", command)
	}
	return fmt.Errorf("it could not be started: %w", err)
}

// explain words why a handshake or call failed: a process that ended is the
// reason for whatever the SDK saw of it.
func (s *server) explain(ctx context.Context, l *link, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, answered := errors.AsType[*jsonrpc.Error](err); answered || l.proc == nil {
		return err
	}
	if cut := cmp.Or(cutOff(err), l.wasCut()); cut != nil {
		return cut
	}
	if how := l.proc.end(); how != "" {
		return errors.New(how)
	}
	return err
}

// cutOff says why a connection was ended because of what a server wrote, nil if it
// was not. The program may then end by itself, which is not the reason.
func cutOff(err error) error {
	const tooLong = "exceeded the configured maximum line length" // the SDK does not export it
	if err == nil {
		return nil
	}
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, kind := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case strings.Contains(err.Error(), tooLong):
		return fmt.Errorf("drover ended the connection, for it sent a message of more than %d MiB", maxFrame>>20)
	case syntax, kind:
		return fmt.Errorf("drover ended the connection, for it sent what is no message (%s)", reason(err))
	}
	return nil
}

// wasCut is cutOff for a connection that ends.
func (l *link) wasCut() error {
	if l.session == nil {
		return nil
	}
	patience := time.NewTimer(lastWordsDelay)
	defer patience.Stop()
	select {
	case <-l.gone:
		return l.cut
	case <-patience.C:
		return nil
	}
}

// wrapping is what the SDK puts in front of the reason of an error.
var wrapping = regexp.MustCompile(`^((calling|sending) "[^"]*": |rejected by transport: )+`)

// reason words an error of the SDK.
func reason(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return "it cannot be reached: " + e.Err.Error()
	}
	return wrapping.ReplaceAllString(err.Error(), "")
}

// tools asks for the list of tools, at most maxTools. More says that there were
// more.
func (l *link) tools(ctx context.Context) (list []*sdk.Tool, more bool, err error) {
	if c := l.session.InitializeResult().Capabilities; c == nil || c.Tools == nil {
		return nil, false, nil
	}
	for t, err := range l.session.Tools(ctx, nil) {
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, false, context.Cause(ctx)
		case err != nil:
			return nil, false, fmt.Errorf("it does not list its tools: %w", err)
		case len(list) == maxTools:
			return list, true, nil
		}
		list = append(list, t)
	}
	return list, false, nil
}

// call calls a tool. It returns when ctx ends, whatever the server does.
func (l *link) call(ctx context.Context, name, arguments string, progress func(string)) (*sdk.CallToolResult, error) {
	params := &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)}
	token := l.lastCall.Add(1)
	params.SetProgressToken(token)
	l.mu.Lock()
	l.progress[token] = progress
	l.mu.Unlock()
	defer func() { // from now on nothing is told
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.progress, token)
	}()
	type outcome struct {
		result *sdk.CallToolResult
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		// Writing to a server that does not read may take for ever: until the
		// connection ends.
		r, err := l.session.CallTool(ctx, params)
		done <- outcome{r, err}
	}()
	select {
	case o := <-done:
		if o.err != nil && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return o.result, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// tell hands the message of a progress notification to its call.
func (l *link) tell(p *sdk.ProgressNotificationParams) {
	if p == nil || p.Message == "" {
		return
	}
	var token int64
	switch v := p.ProgressToken.(type) {
	case int64:
		token = v
	case float64:
		token = int64(v)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if progress := l.progress[token]; progress != nil {
		progress(p.Message[:min(len(p.Message), maxMessage)] + "\n")
	}
}

// isGone reports whether the connection or its process has ended.
func (l *link) isGone() bool {
	select {
	case <-l.gone:
		return true
	default:
	}
	if l.proc == nil {
		return false
	}
	select {
	case <-l.proc.gone:
		return true
	default:
		return false
	}
}

// abandon ends what was started for a connection that did not come about.
func (l *link) abandon() {
	if l.proc != nil {
		l.proc.stop(l.delay)
	}
	l.end()
}

// close ends the connection and its process, and returns when they are gone.
func (l *link) close() {
	l.closing.Do(func() {
		if l.proc != nil {
			l.proc.stop(l.delay)
		}
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			_ = l.session.Close() // the server may have ended it before
		}()
		patience := time.NewTimer(l.delay)
		defer patience.Stop()
		select {
		case <-closed:
		case <-patience.C:
		}
		l.end()
	})
}

var _ tool.Tool = (*remoteTool)(nil)
