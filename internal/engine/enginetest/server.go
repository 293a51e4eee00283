package enginetest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// The engines that a server can play, by the names of the presets.
const (
	OMLX     = "omlx"
	VMLX     = "vmlx"
	Ollama   = "ollama"
	LMStudio = "lmstudio"
	LlamaCpp = "llamacpp"
	VLLM     = "vllm"
	SGLang   = "sglang"
	Custom   = "custom"
)

// Options say what a server plays. Nil is a custom engine with one model.
type Options struct {
	// Preset is the engine to play, Custom if empty.
	Preset string
	// Models are listed in this order; none is one model called "brook-7b".
	Models []Model
	// NoModels makes the list empty.
	NoModels bool
	// Router makes llama.cpp a router, which loads models on demand.
	Router bool
	// Key is the bearer token that every call needs, empty for none.
	Key string
	// Overflow says what happens to a prompt that is longer than the model's
	// window. The zero value is the way of the preset.
	Overflow Overflow
	// CountTokens counts the prompt of a chat request body. Nil is
	// [CountTokens].
	CountTokens func(body []byte) int
	// Answer answers the chats that the script does not. Nil answers "ok".
	Answer func(*Chat) Answer
	// InMemory serves on pipes instead of a socket. Port is the port in the URL
	// then, 0 for 8080.
	InMemory bool
	Port     int
}

// Model is a model of a server.
type Model struct {
	ID string
	// Window is what the engine really uses, in tokens: it is told where the
	// engine tells it, and enforced. 0 is neither.
	Window int
	// Declared is what the model could do, in tokens, and NumCtx what an Ollama
	// Modelfile asks for. 0 is not told.
	Declared, NumCtx int
	// OutputLimit is told where the engine has a field for it.
	OutputLimit int
	// Unloaded says that the model is not in memory. A chat loads it.
	Unloaded bool
	// RunsAs is the name under which Ollama lists the running model, if another.
	RunsAs                  string
	Tools, Vision, Thinking bool
	// Effort says that llama.cpp's template takes a reasoning effort.
	Effort bool
	// Entry has further members of the list entry.
	Entry map[string]any
}

// Request is one request that a server got.
type Request struct {
	Method string
	// Path is as it came, escaped and with its query.
	Path   string
	Header http.Header
	Body   []byte
}

// String is method and path.
func (r Request) String() string { return r.Method + " " + r.Path }

// Server is a fake engine. It is closed at the end of the test.
type Server struct {
	// URL is the root, without /v1.
	URL string

	opts     Options
	quit     chan struct{}
	listener *pipeListener // in memory only
	http     *http.Server

	mu        sync.Mutex
	models    []Model
	requests  []Request
	chats     []Chat
	script    []Answer
	faults    []*armed
	loads     []string
	abandoned int
	open      map[net.Conn]bool
	closed    bool
}

// New starts a server that ends with the test.
func New(tb testing.TB, opts *Options) *Server {
	tb.Helper()
	s := &Server{quit: make(chan struct{}), open: map[net.Conn]bool{}}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Preset == "" {
		s.opts.Preset = Custom
	}
	if s.opts.CountTokens == nil {
		s.opts.CountTokens = CountTokens
	}
	s.models = slices.Clone(s.opts.Models)
	if len(s.models) == 0 && !s.opts.NoModels {
		s.models = []Model{{ID: "brook-7b"}}
	}
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), ConnState: s.connState}
	var l net.Listener
	if s.opts.InMemory {
		port := s.opts.Port
		if port == 0 {
			port = 8080
		}
		s.listener = &pipeListener{conns: make(chan net.Conn), quit: s.quit, port: port}
		l = s.listener
	} else {
		var err error
		if l, err = net.Listen("tcp4", "127.0.0.1:0"); err != nil {
			tb.Fatalf("enginetest: %v", err)
		}
	}
	s.URL = "http://" + l.Addr().String()
	go s.http.Serve(l)
	tb.Cleanup(s.Close)
	return s
}

// Close ends the server and every connection.
func (s *Server) Close() {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if !closed {
		close(s.quit)
		s.http.Close()
	}
}

// Port is the port in the URL.
func (s *Server) Port() int {
	n, _ := strconv.Atoi(s.URL[strings.LastIndexByte(s.URL, ':')+1:])
	return n
}

// Dial connects to an in-memory server, whatever address is asked for.
func (s *Server) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case s.listener.conns <- server:
		return client, nil
	case <-s.quit:
		return nil, refused(network, address)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Dialer makes a dialer to in-memory servers, chosen by port. Other ports refuse
// the connection.
func Dialer(servers ...*Server) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		for _, s := range servers {
			if strings.HasSuffix(address, ":"+strconv.Itoa(s.Port())) {
				return s.Dial(ctx, network, address)
			}
		}
		return nil, refused(network, address)
	}
}

func refused(network, address string) error {
	addr, _ := net.ResolveTCPAddr("tcp", address) // only literal addresses are dialled in tests
	return &net.OpError{Op: "dial", Net: network, Addr: addr, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

// Requests are the requests so far, in order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Asked lists method and path of the requests so far.
func (s *Server) Asked() []string {
	var asked []string
	for _, r := range s.Requests() {
		asked = append(asked, r.String())
	}
	return asked
}

// Chats are the chat requests so far.
func (s *Server) Chats() []Chat {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.chats)
}

// Loads are the models that were loaded because of a request, a chat or a
// careless question.
func (s *Server) Loads() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.loads)
}

// Abandoned counts the requests whose client left before the answer was over.
func (s *Server) Abandoned() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.abandoned
}

// Connections counts the connections that are open.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// SetModels replaces the models.
func (s *Server) SetModels(models ...Model) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models = slices.Clone(models)
}

func (s *Server) connState(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		s.open[c] = true
	case http.StateClosed, http.StateHijacked:
		delete(s.open, c)
	}
}

// serve keeps the request, then answers it with the fault that is armed for it,
// or as the engine would.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.requests = append(s.requests, Request{r.Method, r.RequestURI, r.Header.Clone(), body})
	fault := s.takeFault(r)
	s.mu.Unlock()
	defer func() {
		if r.Context().Err() != nil {
			s.mu.Lock()
			s.abandoned++
			s.mu.Unlock()
		}
	}()
	if s.opts.Preset == LlamaCpp {
		w.Header().Set("Server", "llama.cpp")
	}
	if fault != nil && fault.replaces() {
		s.deliver(w, r, reply{}, fault)
		return
	}
	if s.opts.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.opts.Key && r.URL.Path != "/health" {
		s.deliver(w, r, jsonReply(http.StatusUnauthorized,
			errorBody(http.StatusUnauthorized, "Invalid API Key", "authentication_error")), fault)
		return
	}
	if r.Method == http.MethodPost && r.URL.Path == "/v1/chat/completions" {
		s.chat(w, r, body, fault)
		return
	}
	s.deliver(w, r, s.metadata(r, body), fault)
}

// pipeListener accepts pipes.
type pipeListener struct {
	conns chan net.Conn
	quit  chan struct{}
	port  int
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.quit:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { return nil }
func (l *pipeListener) Addr() net.Addr { return pipeAddr(l.port) }

type pipeAddr int

func (pipeAddr) Network() string  { return "pipe" }
func (a pipeAddr) String() string { return fmt.Sprintf("127.0.0.1:%d", int(a)) }
