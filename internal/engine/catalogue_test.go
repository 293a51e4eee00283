package engine

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/llm"
)

func TestModels(t *testing.T) {
	e, _ := start(t, &enginetest.Options{Preset: enginetest.VLLM, Models: []enginetest.Model{
		{ID: "org/brook 7b", Window: 32768}, {ID: "creek", Entry: map[string]any{"type": "embedding", "name": "Creek"}},
	}}, VLLM, &Options{Name: "Lab"})
	models, err := e.Models(t.Context(), "lab")
	if err != nil || len(models) != 2 {
		t.Fatalf("%v, %v", models, err)
	}
	a, b := models[0], models[1]
	if a.Provider != "lab" || a.ID != "org/brook 7b" || a.Name != a.ID || a.Window.Tokens != 32768 || a.Window.Source != llm.Effective || a.NotChat {
		t.Errorf("%+v", a)
	}
	if b.Name != "Creek" || !b.NotChat || b.Window.Source != llm.Fallback {
		t.Errorf("%+v", b)
	}
	if _, err := e.Models(t.Context(), "other"); llm.CodeOf(err) != llm.CodeNoAdapter {
		t.Errorf("another route: %v", err)
	}
	if info := e.Info("lab"); info != (llm.ProviderInfo{ID: "lab", Name: "Lab"}) {
		t.Errorf("%+v", info)
	}
}

func TestEmptyCatalogue(t *testing.T) {
	e, _ := start(t, &enginetest.Options{Preset: enginetest.Ollama, NoModels: true}, Ollama, nil)
	h := e.Health(t.Context())
	if h.Err != nil || len(h.Models) != 0 || len(h.Notes) != 1 || !strings.Contains(h.Notes[0], "no models installed") {
		t.Errorf("%+v", h)
	}
	models, err := e.Models(t.Context(), "lab")
	if err != nil || models == nil || len(models) != 0 {
		t.Errorf("%v, %v", models, err)
	}
}

func TestCatalogueIsCut(t *testing.T) {
	for extra := range 2 {
		e, srv := start(t, nil, Custom, nil)
		var ids []string
		for i := range 1024 + extra {
			ids = append(ids, fmt.Sprintf(`{"id":"m%d"}`, i))
		}
		srv.Fault("/v1/models", enginetest.Body(`{"data":[`+strings.Join(ids, ",")+`]}`))
		h := e.Health(t.Context())
		if h.Err != nil || len(h.Models) != 1024 || h.Omitted != extra || len(h.Notes) != extra {
			t.Errorf("+%d: %d models, %d omitted, %q, %v", extra, len(h.Models), h.Omitted, h.Notes, h.Err)
		}
		if got := h.Models[1023].Notes; len(got) != extra {
			t.Errorf("+%d: the list does not say that it is cut: %q", extra, got)
		}
	}
}

func TestCatalogueErrors(t *testing.T) {
	tests := map[string]struct {
		fault enginetest.Fault
		key   string
		code  llm.Code
		part  string
	}{
		"needs a key":   {enginetest.Refuse(401, "Invalid API Key", "authentication_error"), "", llm.CodeAuth, "401: needs a key"},
		"refuses a key": {enginetest.Refuse(403, "no", "x"), "sesame", llm.CodeAuth, "403: the key is not accepted"},
		"not found":     {enginetest.Fault{Status: 404, Body: "404 page not found"}, "", "HTTP_404", "404: there is no list of models"},
		"HTML":          {enginetest.HTML(200), "", llm.CodeMalformedResponse, "answered HTML"},
		"HTML 404":      {enginetest.HTML(404), "", "HTTP_404", "404: there is no list of models"},
		"server error":  {enginetest.Fault{Status: 500, Body: `{"error":"boom"}`}, "", llm.CodeServer, "answered 500"},
		"bad gateway":   {enginetest.Fault{Status: 502, Body: ` `}, "", llm.CodeServer, "answered 502"},
		"loading":       {enginetest.Loading(), "", llm.CodeServer, "503: still loading the model"},
		"not JSON":      {enginetest.Body(`hello`), "", llm.CodeMalformedResponse, "no JSON"},
		"cut JSON":      {enginetest.Body(`{"data":[{"id":`), "", llm.CodeMalformedResponse, "no list of models"},
		"another JSON":  {enginetest.Body(`{"data":{"id":"m"}}`), "", llm.CodeMalformedResponse, "no list of models"},
		"LM Studio":     {enginetest.Body(`{"error":"Unexpected endpoint or method. (GET /v1/models)"}`), "", llm.CodeMalformedResponse, "Unexpected endpoint"},
		"nothing":       {enginetest.Body(" "), "", llm.CodeMalformedResponse, "answered nothing"},
		"reset":         {enginetest.Fault{Reset: true}, "", llm.CodeTransport, "connection reset"},
		"broken body":   {enginetest.Fault{Break: true}, "", llm.CodeStreamClosed, "broke off"},
		"partial":       {enginetest.Fault{Status: 206, Body: `{"data":[{"id":"m"}]}`}, "", "HTTP_206", "answered 206"},
		"huge header":   {enginetest.Fault{Status: 200, Header: http.Header{"X-Pad": {strings.Repeat("x", 64<<10)}}, Body: `{"data":[]}`}, "", llm.CodeTransport, "header of the answer is too large"},
		"redirect":      {enginetest.Redirect(302, "http://192.0.2.1/secret-path"), "", "HTTP_302", "redirects to somewhere else"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e, srv := start(t, nil, Custom, &Options{Key: test.key})
			srv.Fault("/v1/models", test.fault)
			_, err := e.Models(t.Context(), "lab")
			checkError(t, err, test.code, test.part)
			if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("local:%d: ", srv.Port())) {
				t.Errorf("%v does not begin with host and port", err)
			}
			if strings.Contains(fmt.Sprint(err), "secret") || strings.Contains(fmt.Sprint(err), "sesame") {
				t.Errorf("%v tells a secret", err)
			}
			// A list that cannot be had does not stop a chat.
			srv.Heal()
			if r := collect(t, e, t.Context(), request("typed", "hello")); r.text != "ok" {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestNothingListens(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	e := New("lab", loopback(port), Custom, nil)
	_, err = e.Models(t.Context(), "lab")
	checkError(t, err, llm.CodeTransport, fmt.Sprintf("local:%d: connection refused", port))

	named := New("lab", mustParse(t, fmt.Sprintf("http://localhost:%d/secret-path", port)), Custom, nil)
	_, err = named.Models(t.Context(), "lab")
	checkError(t, err, llm.CodeTransport, fmt.Sprintf("local:%d: connection refused by 127.0.0.1:%d and [::1]:%d", port, port, port))
	if strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	r := collect(t, e, t.Context(), request("m", "hello"))
	checkError(t, r.err, llm.CodeTransport, fmt.Sprintf("local:%d: connection refused", port))
	if strings.Contains(r.err.Message, "prompt") {
		t.Error(r.err)
	}
	for _, e := range []*Engine{e, named} {
		info, err := e.Describe(t.Context(), llm.Target{Provider: "lab", Model: "m"})
		if err != nil || !info.Unlearned || !info.Unreached {
			t.Errorf("described as %+v, %v", info, err)
		}
	}
	// Whoever stops asking learns nothing about where the engine is.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if info, _ := e.Describe(ctx, llm.Target{Provider: "lab", Model: "m"}); !info.Unlearned || info.Unreached {
		t.Errorf("cancelled, and described as %+v", info)
	}
}

// localhost is both loopback addresses, whatever a resolver says.
func TestLocalhostIsBothAddresses(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Skipf("no %s here: %v", address, err)
		}
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
		})}
		go srv.Serve(l)
		t.Cleanup(func() { srv.Close() })
		e := New("lab", mustParse(t, fmt.Sprintf("http://localhost:%d", l.Addr().(*net.TCPAddr).Port)), Custom, &Options{Limits: Limits{Handshake: realHandshake}})
		t.Cleanup(e.Close)
		if models, err := e.Models(t.Context(), "lab"); err != nil || len(models) != 1 {
			t.Errorf("%s: %v, %v", address, models, err)
		}
	}
}

func TestDeclaredModels(t *testing.T) {
	e, srv := start(t, nil, Custom, &Options{
		Models:       []llm.ModelInfo{{ID: "fast", Name: "Fast", Description: "quick"}, {ID: "slow"}},
		Window:       llm.Window{Tokens: 1_000_000, Source: llm.Declared, Declared: 1_000_000, OutputLimit: 384_000},
		Capabilities: llm.Capabilities{Tools: llm.Fact{Support: llm.Supported}},
	})
	models, err := e.Models(t.Context(), "lab")
	if err != nil || len(models) != 2 || models[0].Provider != "lab" || models[1].Name != "slow" {
		t.Errorf("%+v, %v", models, err)
	}
	models[0].ID = "changed"
	for _, id := range []string{"fast", "private"} {
		info, err := e.Describe(t.Context(), target(id))
		if err != nil || info.ID != id || info.Window.Tokens != 1_000_000 || info.Window.OutputLimit != 384_000 ||
			info.Capabilities.Tools.Support != llm.Supported {
			t.Errorf("%+v, %v", info, err)
		}
		if id == "fast" && (info.Name != "Fast" || info.Description != "quick") {
			t.Errorf("%+v", info)
		}
	}
	checkAsked(t, srv)

	none := New("lab", loopback(1), Custom, &Options{Models: []llm.ModelInfo{}})
	if models, err := none.Models(t.Context(), "lab"); err != nil || len(models) != 0 {
		t.Errorf("%+v, %v", models, err)
	}
}

// An engine on its other port is found only when it proves to be the preset's,
// and never with a key in the hand.
func TestFallbackPorts(t *testing.T) {
	type server struct {
		port   int
		preset string
	}
	tests := map[string]struct {
		preset  Preset
		address string
		key     string
		servers []server
		want    string // where requests go then, "" for an error
	}{
		"second port":       {OMLX, "http://127.0.0.1:8000", "", []server{{8001, enginetest.OMLX}}, "local:8001"},
		"saved first":       {OMLX, "http://127.0.0.1:8001", "", []server{{8000, enginetest.OMLX}, {8001, enginetest.OMLX}}, "local:8001"},
		"in order":          {OMLX, "http://127.0.0.1:9999", "", []server{{8001, enginetest.OMLX}, {8000, enginetest.OMLX}}, "local:8000"},
		"another engine":    {OMLX, "http://127.0.0.1:8001", "", []server{{8000, enginetest.VMLX}}, ""},
		"unknown engine":    {OMLX, "http://127.0.0.1:8001", "", []server{{8000, enginetest.Custom}}, ""},
		"with a key":        {OMLX, "http://127.0.0.1:8000", "sesame", []server{{8001, enginetest.OMLX}}, ""},
		"ollama":            {Ollama, "http://127.0.0.1:9999", "", []server{{11434, enginetest.Ollama}}, "local:11434"},
		"not ollama":        {Ollama, "http://127.0.0.1:9999", "", []server{{11434, enginetest.LlamaCpp}}, ""},
		"lm studio":         {LMStudio, "http://127.0.0.1:9999", "", []server{{1234, enginetest.LMStudio}}, "local:1234"},
		"not lm studio":     {LMStudio, "http://127.0.0.1:9999", "", []server{{1234, enginetest.Custom}}, ""},
		"llama.cpp":         {LlamaCpp, "http://127.0.0.1:9999", "", []server{{8080, enginetest.LlamaCpp}}, "local:8080"},
		"custom":            {Custom, "http://127.0.0.1:9999", "", []server{{8080, enginetest.LlamaCpp}}, ""},
		"vllm has no other": {VLLM, "http://127.0.0.1:9999", "", []server{{8000, enginetest.VLLM}}, ""},
		"another machine":   {OMLX, "http://192.168.7.7:9999", "", []server{{8000, enginetest.OMLX}}, ""},
	}
	for name, test := range tests {
		bubble(t, name, func(t *testing.T) {
			var servers []*enginetest.Server
			for _, s := range test.servers {
				servers = append(servers, enginetest.New(t, &enginetest.Options{Preset: s.preset, InMemory: true, Port: s.port}))
			}
			saved := mustParse(t, test.address)
			e := New("lab", saved, test.preset, &Options{Key: test.key, Dial: enginetest.Dialer(servers...)})
			t.Cleanup(e.Close)
			h := e.Health(t.Context())
			if test.want == "" {
				checkError(t, h.Err, llm.CodeTransport, saved.String()+": connection refused")
				if e.Endpoint() != saved {
					t.Errorf("requests go to %s", e.Endpoint())
				}
			} else if h.Err != nil || e.Endpoint().String() != test.want || h.Endpoint != e.Endpoint() {
				t.Errorf("%+v, requests go to %s", h, e.Endpoint())
			} else if told := foundElsewhere(t, e); told != (test.want != saved.String()) {
				t.Errorf("that the engine is not at its address is told: %t", told)
			} else if r := collect(t, e, t.Context(), request("brook-7b", "hi")); r.text != "ok" && r.err.Code != llm.CodeInvalidRequest {
				t.Errorf("%+v", r)
			}
			for _, s := range servers {
				for _, r := range s.Requests() {
					if r.Header.Get("Authorization") != "" {
						t.Errorf("a guessed port got the key: %s", r)
					}
				}
			}
		})
	}
}

// foundElsewhere reports whether somebody who uses a model of the engine is told
// that it is not the one at the address that was named.
func foundElsewhere(t *testing.T, e *Engine) bool {
	t.Helper()
	info, err := e.Describe(t.Context(), llm.Target{Provider: "lab", Model: "brook-7b"})
	if err != nil {
		t.Error(err)
	}
	return slices.Contains(info.Notes, "found at "+e.Endpoint().String()+" instead of "+e.saved.String())
}

// The other ports are for a saved address where nobody listens: an engine that
// answers badly is not another one.
func TestNoFallbackFromAnAnswer(t *testing.T) {
	for name, fault := range map[string]enginetest.Fault{
		"hang": {Hang: true}, "404": enginetest.HTML(404), "loading": enginetest.Loading(), "no list": enginetest.Body("{}"), "broken": {Break: true},
	} {
		bubble(t, name, func(t *testing.T) {
			saved := enginetest.New(t, &enginetest.Options{Preset: enginetest.OMLX, InMemory: true, Port: 8001})
			other := enginetest.New(t, &enginetest.Options{Preset: enginetest.OMLX, InMemory: true, Port: 8000})
			saved.Fault("", fault)
			e := New("lab", mustParse(t, saved.URL), OMLX, &Options{Dial: enginetest.Dialer(saved, other)})
			t.Cleanup(e.Close)
			if h := e.Health(t.Context()); h.Err == nil || e.Endpoint() != e.saved {
				t.Errorf("%+v, requests go to %s", h, e.Endpoint())
			}
			checkAsked(t, other)
		})
	}
}

// Requests go back to the saved address when nothing is found any more, and when
// the engine is there again.
func TestFallbackIsLeft(t *testing.T) {
	bubble(t, "comes and goes", func(t *testing.T) {
		other := enginetest.New(t, &enginetest.Options{Preset: enginetest.Ollama, InMemory: true, Port: 11434})
		saved := enginetest.New(t, &enginetest.Options{Preset: enginetest.Ollama, InMemory: true, Port: 9999})
		running := []*enginetest.Server{other}
		e := New("lab", mustParse(t, saved.URL), Ollama, &Options{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return enginetest.Dialer(running...)(ctx, network, address)
		}})
		t.Cleanup(e.Close)
		look := func(want string) {
			t.Helper()
			e.Health(t.Context())
			e.Close() // a connection that is kept would be used again
			if got := e.Endpoint().String(); got != want {
				t.Errorf("requests go to %s, want %s", got, want)
			}
		}
		look("local:11434")
		running = nil
		look("local:9999")
		running = []*enginetest.Server{other}
		look("local:11434")
		other.Fault("/", enginetest.Fault{Status: 404, Body: "Ollama is running"}) // any page may say so
		look("local:9999")
		running = []*enginetest.Server{saved, other}
		other.Heal()
		look("local:9999")
	})
}
