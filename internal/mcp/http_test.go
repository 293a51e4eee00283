package mcp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-dev/drover/internal/mcp"
	"github.com/drover-dev/drover/internal/tool"
)

const bearer = "Bearer sk-http-secret"

// guard refuses requests without the key and counts those with it.
type guard struct {
	next    http.Handler
	mu      sync.Mutex
	methods []string
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != bearer {
		http.Error(w, "no key", http.StatusUnauthorized)
		return
	}
	g.mu.Lock()
	g.methods = append(g.methods, r.Method)
	g.mu.Unlock()
	g.next.ServeHTTP(w, r)
}

func (g *guard) seen(method string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Count(strings.Join(g.methods, " "), method)
}

func serveHTTP(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

func streamable(kind string) http.Handler {
	s := newServer(kind)
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
}

func TestHTTP(t *testing.T) {
	sse := newServer("good")
	handlers := map[bool]http.Handler{
		false: streamable("good"),
		true:  sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return sse }, nil),
	}
	for isSSE, handler := range handlers {
		g := &guard{next: handler}
		url := serveHTTP(t, g)
		changed := make(chan struct{}, 10)
		h := connect(t, &mcp.Options{Changed: func() { changed <- struct{}{} }},
			tool.ServerSpec{Name: "web", URL: url, SSE: isSSE, Headers: map[string]string{"authorization": bearer}},
			tool.ServerSpec{Name: "anonymous", URL: url, SSE: isSSE})
		notices := h.Notices()
		if len(notices) != 1 || !strings.Contains(notices[0], "anonymous is left out: ") || !strings.Contains(notices[0], "Unauthorized") {
			t.Errorf("%q", notices)
		}
		<-changed
		if r := call(t, h, "web__echo", `{"n":1}`); r.Text != `{"n":1}` {
			t.Errorf("sse %v: %+v", isSSE, r)
		}
		if r := call(t, h, "web__grow", `{}`); r.Text != "grown" {
			t.Errorf("sse %v: %+v", isSSE, r)
		}
		<-changed
		h.Wait(t.Context())
		if r := call(t, h, "web__grown_tool", `{}`); r.Text != "I am new" {
			t.Errorf("sse %v: %+v", isSSE, r)
		}
		_ = h.Close()
		if !isSSE && g.seen("DELETE") != 1 {
			t.Error("the session was not ended")
		}
	}
}

// The server was started again behind the same address: it does not know the
// session, ran nothing, and the call is made again.
func TestHTTPServerRestarts(t *testing.T) {
	var current atomic.Pointer[http.Handler]
	set := func(h http.Handler) { current.Store(&h) }
	set(streamable("good"))
	url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*current.Load()).ServeHTTP(w, r) }))
	h := connect(t, nil, tool.ServerSpec{Name: "web", URL: url})
	if r := call(t, h, "web__echo", `{}`); r.Text != "{}" {
		t.Fatalf("%+v", r)
	}
	set(streamable("good"))
	if r := call(t, h, "web__echo", `{"n":3}`); r.Text != `{"n":3}` {
		t.Errorf("%+v", r)
	}
	set(http.NotFoundHandler())
	r := call(t, h, "web__echo", `{"n":4}`)
	if r.Status == tool.StatusOK || !strings.Contains(r.Text, "the MCP server web is not there") {
		t.Errorf("%+v", r)
	}
	set(streamable("good"))
	if r := call(t, h, "web__echo", `{"n":5}`); r.Text != `{"n":5}` {
		t.Errorf("%+v", r)
	}
}

// Keys do not follow a redirection to another host.
func TestHeadersStayWithTheirOrigin(t *testing.T) {
	var leaked atomic.Bool
	var asked atomic.Int32
	thief := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("X-Api-Key") != "" || r.Header.Get("Authorization") != "" {
			leaked.Store(true)
		}
		http.NotFound(w, r)
	}))
	url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief, http.StatusTemporaryRedirect)
	}))
	for _, isSSE := range []bool{false, true} {
		h := connect(t, nil, tool.ServerSpec{
			Name: "web", URL: url, SSE: isSSE, Headers: map[string]string{"X-Api-Key": "sk-secret-1", "Authorization": "Bearer x"},
		})
		if n := h.Notices(); len(n) != 1 || strings.Contains(n[0], "sk-secret-1") {
			t.Errorf("%q", n)
		}
	}
	if asked.Load() == 0 || leaked.Load() {
		t.Errorf("asked %d times, leaked %v", asked.Load(), leaked.Load())
	}
}

// A server that hangs is given up with everything that was asked of it.
func TestHTTPServerThatNeverAnswers(t *testing.T) {
	reached := make(chan struct{}, 100)
	url := serveHTTP(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else nobody notices that the client is gone
		reached <- struct{}{}
		<-r.Context().Done()
	}))
	h := mcp.Connect(t.Context(), []tool.ServerSpec{{Name: "a", URL: url}, {Name: "b", URL: url, SSE: true}}, nil)
	<-reached
	<-reached
	_ = h.Close()
	if len(h.Tools()) != 0 {
		t.Error("tools from nowhere")
	}
}
