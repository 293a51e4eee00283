package engine

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/llm"
)

func TestStream(t *testing.T) {
	for _, preset := range []string{enginetest.Ollama, enginetest.LlamaCpp, enginetest.Custom} {
		t.Run(preset, func(t *testing.T) {
			e, srv := start(t, &enginetest.Options{Preset: preset, Models: []enginetest.Model{{ID: "org/brook", Tools: true}}}, Preset(preset), nil)
			srv.Script(
				enginetest.Answer{Reasoning: "so, the sky", Text: "It is blue: ☁☁☁.", Chunk: 2},
				enginetest.Answer{Calls: []enginetest.Call{{ID: "c1", Name: "look", Arguments: `{"where":"up"}`}}},
			)
			req := request("org/brook", "hello")
			req.Tools = []llm.ToolDef{llm.NewToolDef("look", "Look somewhere", []byte(`{"type":"object","properties":{"where":{"type":"string"}}}`))}
			r := collect(t, e, t.Context(), req)
			if r.err != nil || r.text != "It is blue: ☁☁☁." || r.reasoning != "so, the sky" || r.finish == nil ||
				r.finish.Reason != llm.FinishStop || r.usage.PromptTokens == 0 || r.usage.Estimated {
				t.Errorf("%+v", r)
			}
			r = collect(t, e, t.Context(), req)
			if r.err != nil || len(r.calls) != 1 || r.calls[0].Name != "look" || r.finish.Reason != llm.FinishToolCalls {
				t.Errorf("%+v", r)
			}
			chat := srv.Chats()[0]
			if chat.Model != "org/brook" || chat.MaxTokens != 64 || !chat.Stream || chat.Path != "/v1/chat/completions" {
				t.Errorf("%+v", chat)
			}
			if h := chat.Header; h.Get("Content-Type") != "application/json" || h.Get("Accept") != "text/event-stream" || h.Get("Authorization") != "" {
				t.Errorf("%v", h)
			}
		})
	}
}

func TestStreamErrors(t *testing.T) {
	tests := map[string]struct {
		answer enginetest.Answer
		code   llm.Code
		part   string
	}{
		"auth":        {enginetest.Answer{Status: 401, Body: `{"error":{"message":"no"}}`}, llm.CodeAuth, "no"},
		"server":      {enginetest.Answer{Status: 500, Body: `{"error":"boom"}`}, llm.CodeServer, "boom"},
		"string":      {enginetest.Answer{Status: 400, Body: `{"error":"no model id could be identified","src":"x"}`}, llm.CodeInvalidRequest, "no model id"},
		"loading":     {enginetest.Answer{Status: 503, Body: `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`}, llm.CodeServer, "oading"},
		"redirect":    {enginetest.Answer{Status: 307, Header: http.Header{"Location": {"/v1/elsewhere"}}, Body: "{}"}, "HTTP_307", "redirect"},
		"not 200":     {enginetest.Answer{Status: 418, Body: `{}`}, "HTTP_418", ""},
		"cut":         {enginetest.Answer{Text: "half", Cut: true}, llm.CodeStreamClosed, ""},
		"broken":      {enginetest.Answer{Text: "half an answer", Fault: &enginetest.Fault{Break: true}}, llm.CodeStreamClosed, ""},
		"html":        {enginetest.Answer{Raw: "<!doctype html><html></html>"}, llm.CodeMalformedResponse, ""},
		"200 error":   {enginetest.Answer{Raw: `{"error":"Unexpected endpoint or method. (POST /x)"}`}, "", "Unexpected endpoint"},
		"event error": {enginetest.Answer{Raw: "data: {\"error\":{\"code\":500,\"message\":\"Context size has been exceeded.\"}}\n\n"}, llm.CodeContextWindowExceeded, ""},
		"empty":       {enginetest.Answer{Raw: "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"}, llm.CodeEmptyResponse, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e, srv := start(t, nil, Custom, nil)
			srv.Script(test.answer)
			r := collect(t, e, t.Context(), request("m", "hello"))
			if test.code == "" {
				test.code = llm.CodeOf(r.err)
			}
			checkError(t, r.err, test.code, test.part)
			if r.finish != nil {
				t.Error("a failed answer has a finish")
			}
			if name == "loading" && !r.err.Loading {
				t.Errorf("%+v", r.err)
			}
			if len(srv.Requests()) != 1 {
				t.Errorf("asked %v", srv.Asked())
			}
		})
	}
}

func TestOverflow(t *testing.T) {
	long := strings.Repeat("word ", 400)
	for _, preset := range []string{enginetest.LlamaCpp, enginetest.VLLM, enginetest.SGLang, enginetest.OMLX, enginetest.LMStudio, enginetest.Custom} {
		e, _ := start(t, &enginetest.Options{Preset: preset, Models: []enginetest.Model{{ID: "m", Window: 256}}}, Preset(preset), nil)
		r := collect(t, e, t.Context(), request("m", long))
		checkError(t, r.err, llm.CodeContextWindowExceeded, "")
		if r.err.Window != 256 {
			t.Errorf("%s: window %d", preset, r.err.Window)
		}
	}
	e, srv := start(t, &enginetest.Options{Preset: enginetest.Ollama, Models: []enginetest.Model{{ID: "m", Window: 256}}}, Ollama, nil)
	r := collect(t, e, t.Context(), request("m", long))
	if r.err != nil || r.usage.PromptTokens != 256 || srv.Chats()[0].PromptTokens <= 256 {
		t.Errorf("%+v", r)
	}
}

func TestResetBeforeTheAnswer(t *testing.T) {
	e, srv := start(t, nil, Custom, nil)
	srv.Fault("", enginetest.Fault{Reset: true})
	r := collect(t, e, t.Context(), request("m", "hello"))
	checkError(t, r.err, llm.CodeTransport, fmt.Sprintf("local:%d: connection reset while the prompt was processed", srv.Port()))
	if r.err.Unreached {
		t.Error("somebody listens there")
	}
}

// checkTimeout sends a request that has to end at a limit, to the nanosecond.
func checkTimeout(t *testing.T, e *Engine, want time.Duration, part string) *llm.Error {
	t.Helper()
	begin := time.Now()
	r := collect(t, e, t.Context(), request("m", "hello"))
	checkError(t, r.err, llm.CodeTimeout, part)
	if took := time.Since(begin); took != want {
		t.Errorf("took %v, want %v", took, want)
	}
	return r.err
}

func TestTimeLimits(t *testing.T) {
	public := mustParse(t, "https://llm.example.org")
	if got := (Limits{}).or(public); got != (Limits{HandshakeLimit, ConnectLimit, FirstByteLimit, IdleLimit}) {
		t.Errorf("elsewhere %+v", got)
	}
	bubble(t, "connect", func(t *testing.T) {
		e, _ := startInMemory(t, nil, Custom, nil)
		e.opts.Dial = hangingDial
		err := checkTimeout(t, e, ConnectLimit, "local:8080: no connection within 10 s")
		if cause, ok := err.Cause.(*TimeoutError); !ok || cause.Prefilling() {
			t.Errorf("%#v", err.Cause)
		}
	})
	bubble(t, "no header", func(t *testing.T) {
		e, srv := startInMemory(t, nil, Custom, nil)
		srv.Fault("", enginetest.Fault{Hang: true})
		err := checkTimeout(t, e, LoopbackFirstByteLimit, "local:8080: no answer began within 10 min")
		if cause, ok := err.Cause.(*TimeoutError); !ok || !cause.Prefilling() {
			t.Errorf("%#v", err.Cause)
		}
		if len(srv.Requests()) != 1 {
			t.Errorf("sent again: %v", srv.Asked())
		}
	})
	bubble(t, "header, then nothing", func(t *testing.T) {
		e, srv := startInMemory(t, nil, Custom, nil)
		srv.Script(enginetest.Answer{Text: "late", Delay: LoopbackFirstByteLimit + 1})
		checkTimeout(t, e, LoopbackFirstByteLimit, "no answer began")
	})
	bubble(t, "elsewhere", func(t *testing.T) {
		e, srv := startInMemory(t, nil, Custom, nil)
		far := New("lab", mustParse(t, "http://192.168.7.7:8080"), Custom, &Options{Dial: e.opts.Dial})
		t.Cleanup(far.Close)
		srv.Fault("", enginetest.Fault{Hang: true})
		checkTimeout(t, far, FirstByteLimit, "192.168.7.7:8080: no answer began within 2 min")
	})
}

func TestTimeLimitsOfLivingAnswers(t *testing.T) {
	bubble(t, "long prefill", func(t *testing.T) {
		e, srv := startInMemory(t, nil, Custom, nil)
		srv.Script(enginetest.Answer{Text: "at last", Prefill: LoopbackFirstByteLimit - 1})
		if r := collect(t, e, t.Context(), request("m", "hello")); r.text != "at last" {
			t.Errorf("%+v", r)
		}
	})
	bubble(t, "slow but alive", func(t *testing.T) {
		e, srv := startInMemory(t, nil, Custom, nil)
		srv.Script(enginetest.Answer{Text: "abc", Chunk: 1, Delay: IdleLimit - 1})
		if r := collect(t, e, t.Context(), request("m", "hello")); r.text != "abc" {
			t.Errorf("%+v", r)
		}
	})
	bubble(t, "comments are alive", func(t *testing.T) {
		e, srv := startInMemory(t, nil, Custom, nil)
		body := ": keep-alive\n" + `data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
		srv.Script(enginetest.Answer{Raw: body, Fault: &enginetest.Fault{Dribble: time.Minute}})
		if r := collect(t, e, t.Context(), request("m", "hello")); r.text != "x" || r.err != nil {
			t.Errorf("%+v", r)
		}
	})
	bubble(t, "stalls", func(t *testing.T) {
		e, srv := startInMemory(t, nil, Custom, nil)
		srv.Script(enginetest.Answer{Text: "half", Fault: &enginetest.Fault{Stall: true}})
		checkTimeout(t, e, IdleLimit, "local:8080: the answer stopped, nothing came for 5 min")
		synctest.Wait()
		if srv.Connections() != 0 || srv.Abandoned() != 1 {
			t.Errorf("%d connections, %d abandoned", srv.Connections(), srv.Abandoned())
		}
	})
	bubble(t, "slow reader", func(t *testing.T) {
		e, srv := startInMemory(t, nil, Custom, nil)
		srv.Script(enginetest.Answer{Text: "abc", Chunk: 1, Delay: time.Second})
		for _, err := range e.Stream(t.Context(), request("m", "hello")) {
			if err != nil {
				t.Error(err)
			}
			time.Sleep(2 * IdleLimit) // a person decides about something
		}
	})
	bubble(t, "error body", func(t *testing.T) {
		e, srv := startInMemory(t, nil, Custom, nil)
		srv.Fault("", enginetest.Fault{Status: 500, Body: `{"error":"boom"}`, Dribble: time.Second})
		begin := time.Now()
		r := collect(t, e, t.Context(), request("m", "hello"))
		checkError(t, r.err, llm.CodeServer, "")
		if took := time.Since(begin); took != errorBodyLimit {
			t.Errorf("took %v", took)
		}
	})
}

// A cancel ends the stream at once and closes the connection, wherever it comes.
func TestCancel(t *testing.T) {
	answers := map[string]enginetest.Answer{
		"prefill":  {Text: "late", Prefill: time.Minute},
		"between":  {Text: "abcdefgh", Chunk: 1, Delay: time.Second},
		"stalled":  {Text: "half", Fault: &enginetest.Fault{Stall: true}},
		"no first": {Text: "late", Delay: time.Minute},
	}
	for name, answer := range answers {
		bubble(t, name, func(t *testing.T) {
			e, srv := startInMemory(t, nil, Custom, nil)
			srv.Script(answer)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(2500*time.Millisecond, cancel)
			begin := time.Now()
			r := collect(t, e, ctx, request("m", "hello"))
			checkError(t, r.err, llm.CodeAborted, "cancelled")
			if took := time.Since(begin); took != 2500*time.Millisecond {
				t.Errorf("took %v", took)
			}
			synctest.Wait()
			if srv.Connections() != 0 || srv.Abandoned() != 1 {
				t.Errorf("%d connections, %d abandoned", srv.Connections(), srv.Abandoned())
			}
		})
	}
	bubble(t, "dial", func(t *testing.T) {
		e, _ := startInMemory(t, nil, Custom, nil)
		e.opts.Dial = hangingDial
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		checkError(t, collect(t, e, ctx, request("m", "hello")).err, llm.CodeAborted, "")
	})
	bubble(t, "before", func(t *testing.T) {
		e, srv := startInMemory(t, nil, Custom, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		checkError(t, collect(t, e, ctx, request("m", "hello")).err, llm.CodeAborted, "")
		checkAsked(t, srv)
	})
	bubble(t, "deadline", func(t *testing.T) {
		e, srv := startInMemory(t, nil, Custom, nil)
		srv.Script(enginetest.Answer{Prefill: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		checkError(t, collect(t, e, ctx, request("m", "hello")).err, llm.CodeTimeout, "in time")
	})
	bubble(t, "leaving the loop", func(t *testing.T) {
		e, srv := startInMemory(t, nil, Custom, nil)
		srv.Script(enginetest.Answer{Text: "abcdefgh", Chunk: 1, Delay: time.Second})
		for range e.Stream(t.Context(), request("m", "hello")) {
			break
		}
		synctest.Wait()
		if srv.Connections() != 0 || srv.Abandoned() != 1 {
			t.Errorf("%d connections, %d abandoned", srv.Connections(), srv.Abandoned())
		}
	})
}

func TestErrorBodyIsBounded(t *testing.T) {
	bubble(t, "64 KiB", func(t *testing.T) {
		e, srv := startInMemory(t, nil, Custom, nil)
		frame := len(`{"error":""}`)
		for extra := range 2 {
			srv.Fault("", enginetest.Fault{Status: 400, Body: `{"error":"` + strings.Repeat("x", maxErrorBody-frame+extra) + `"}`})
			r := collect(t, e, t.Context(), request("m", "hello"))
			checkError(t, r.err, llm.CodeInvalidRequest, "xxx")
			if whole := !strings.Contains(r.err.Message, `{"error`); whole != (extra == 0) {
				t.Errorf("+%d: %.40s", extra, r.err.Message)
			}
		}
		srv.Fault("", enginetest.Fault{Status: 500, Body: `{"error":"y"}`, Pad: 4 << 20})
		checkError(t, collect(t, e, t.Context(), request("m", "hello")).err, llm.CodeServer, "")
		e.Close()
		synctest.Wait()
		if srv.Connections() != 0 {
			t.Errorf("%d connections", srv.Connections())
		}
	})
}

func TestHeaderIsBounded(t *testing.T) {
	e, srv := start(t, nil, Custom, nil)
	for size, want := range map[int]llm.Code{maxHeader - 1024: llm.CodeServer, maxHeader: llm.CodeTransport} {
		srv.Fault("", enginetest.Fault{Status: 500, Body: "{}", Header: http.Header{"X-Filler": {strings.Repeat("x", size)}}})
		r := collect(t, e, t.Context(), request("m", "hello"))
		checkError(t, r.err, want, "")
		_, err := e.Models(t.Context(), "lab")
		checkError(t, err, want, "")
		if want == llm.CodeTransport {
			checkError(t, err, want, "the header of the answer is too large")
		}
	}
}

func TestRetryAfter(t *testing.T) {
	date := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"7": 7 * time.Second, date.Add(40 * time.Second).Format(http.TimeFormat): 40 * time.Second,
		date.Add(-time.Hour).Format(http.TimeFormat): 0, "soon": 0, "": 0,
	} {
		e, srv := start(t, nil, Custom, nil)
		srv.Fault("", enginetest.Fault{Status: 429, Body: `{"error":"slow down"}`,
			Header: http.Header{"Retry-After": {value}, "Date": {date.Format(http.TimeFormat)}}})
		r := collect(t, e, t.Context(), request("m", "hello"))
		checkError(t, r.err, llm.CodeRateLimit, "")
		if r.err.RetryAfter != want {
			t.Errorf("%q: %v, want %v", value, r.err.RetryAfter, want)
		}
	}
}

func TestGzip(t *testing.T) {
	// A small answer that grows beyond every bound.
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	io.WriteString(z, `{"data":[`+strings.Repeat(" ", 2<<20))
	z.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			t.Error("gzip is not asked for")
		}
		w.Header().Set("Content-Encoding", "gzip")
		if r.Method == http.MethodGet {
			w.Write(bomb.Bytes())
			return
		}
		z := gzip.NewWriter(w)
		defer z.Close()
		for _, text := range []string{"a", "b"} {
			fmt.Fprintf(z, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", text)
			z.Flush()
			w.(http.Flusher).Flush()
		}
		io.WriteString(z, "data: [DONE]\n\n")
	}))
	defer srv.Close()
	e := New("lab", mustParse(t, srv.URL), Custom, &Options{Limits: Limits{Handshake: realHandshake}})
	defer e.Close()
	if r := collect(t, e, t.Context(), request("m", "hello")); r.text != "ab" || r.err != nil {
		t.Errorf("%+v", r)
	}
	_, err := e.Models(t.Context(), "lab")
	checkError(t, err, llm.CodeMalformedResponse, "larger than 1024 KiB")
}

func TestBadlyCompressed(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, chunk("a"))
	z.Close()
	flipped := bytes.Clone(packed.Bytes())
	flipped[len(flipped)-8] ^= 1 // of the checksum
	for name, body := range map[string][]byte{"not at all": []byte(chunk("a") + "data: [DONE]\n\n"), "checksum": flipped, "data": append(bytes.Clone(packed.Bytes()[:10]), 0xff, 0xff, 0xff)} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(body)
		}))
		e := New("lab", mustParse(t, srv.URL), Custom, nil)
		r := collect(t, e, t.Context(), request("m", "hello"))
		if r.err == nil || r.err.Code != llm.CodeMalformedResponse || r.err.Message != e.saved.String()+": the answer is not compressed as its header says" {
			t.Errorf("%s: %+v", name, r.err)
		}
		e.Close()
		srv.Close()
	}
}

func TestTLS(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\ndata: [DONE]\n\n", r.Proto)
	}))
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains of a client that trusts it not
	srv.StartTLS()
	defer srv.Close()

	e := New("lab", mustParse(t, srv.URL), Custom, nil)
	defer e.Close()
	r := collect(t, e, t.Context(), request("m", "hello"))
	checkError(t, r.err, llm.CodeTransport, "the TLS certificate is signed by an unknown authority")

	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	trusting := New("lab", e.saved, Custom, nil)
	defer trusting.Close()
	trusting.transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	if r := collect(t, trusting, t.Context(), request("m", "hello")); r.text != "HTTP/2.0" {
		t.Errorf("%+v", r)
	}

	plain := httptest.NewServer(srv.Config.Handler)
	defer plain.Close()
	wrong := New("lab", mustParse(t, strings.Replace(plain.URL, "http:", "https:", 1)), Custom, nil)
	defer wrong.Close()
	checkError(t, collect(t, wrong, t.Context(), request("m", "hello")).err, llm.CodeTransport, "does not speak TLS there, try http")
}

// A proxy that cannot be had is named: it is not the engine that refuses.
func TestProxyIsAway(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden) // to a CONNECT
	}))
	defer refusing.Close()
	for _, test := range []struct {
		proxy, engine, part string
		unreached           bool
	}{
		{address, "http://192.0.2.1:8000", "192.0.2.1:8000: connection refused (through the proxy " + address + ")", true},
		{address, "https://llm.example", "llm.example:443: connection refused (through the proxy " + address + ")", true},
		{refusing.Listener.Addr().String(), "https://llm.example", "(through the proxy " + refusing.Listener.Addr().String() + ")", false},
		{address, "http://127.0.0.1:1", "local:1: connection refused", true},
	} {
		through := &url.URL{Scheme: "http", User: url.UserPassword("me", "hush"), Host: test.proxy}
		e := New("lab", mustParse(t, test.engine), Custom, &Options{Proxy: http.ProxyURL(through), Limits: Limits{Handshake: realHandshake}})
		t.Cleanup(e.Close)
		_, err := e.Models(t.Context(), "lab")
		checkError(t, err, llm.CodeTransport, test.part)
		r := collect(t, e, t.Context(), request("m", "hello"))
		checkError(t, r.err, llm.CodeTransport, test.part)
		if r.err.Unreached != test.unreached || strings.Contains(r.err.Message+err.Error(), "hush") {
			t.Errorf("%+v", r.err)
		}
		if local := strings.HasPrefix(test.part, "local:"); local != !strings.Contains(err.Error(), "proxy") {
			t.Error(err)
		}
	}
}

// A proxy is used for other machines only, and named when it answers itself.
func TestProxy(t *testing.T) {
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Host)
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer proxy.Close()
	through, _ := url.Parse(proxy.URL)
	opts := &Options{Proxy: http.ProxyURL(through), Limits: Limits{Handshake: realHandshake}}

	far := New("far", mustParse(t, "http://llm.example.org/secret-path"), Custom, opts)
	defer far.Close()
	r := collect(t, far, t.Context(), request("m", "hello"))
	checkError(t, r.err, llm.CodeServer, "through the proxy "+through.Host)
	_, err := far.Models(t.Context(), "far")
	checkError(t, err, llm.CodeServer, "answered 502 instead of a list of models (through the proxy "+through.Host)
	if len(asked) != 2 || asked[0] != "llm.example.org" {
		t.Errorf("the proxy was asked for %v", asked)
	}

	near, srv := start(t, nil, Custom, opts)
	if r := collect(t, near, t.Context(), request("m", "hello")); r.text != "ok" {
		t.Errorf("%+v", r)
	}
	if len(asked) != 2 || len(srv.Requests()) != 1 {
		t.Errorf("the proxy was asked for %v", asked)
	}
}

// A proxy that cannot be had, or connects to nothing, is named as the culprit,
// without its password.
func TestProxyThatFails(t *testing.T) {
	status := http.StatusProxyAuthRequired
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			t.Errorf("the proxy was asked to %s", r.Method)
		}
		w.WriteHeader(status)
	}))
	defer proxy.Close()
	host := strings.TrimPrefix(proxy.URL, "http://")
	through, _ := url.Parse("http://ann:sesame@" + host)
	e := New("far", mustParse(t, "https://llm.example.org/secret-path"), Custom, &Options{Proxy: http.ProxyURL(through)})
	defer e.Close()
	check := func(want string) {
		t.Helper()
		r := collect(t, e, t.Context(), request("m", "hello"))
		checkError(t, r.err, llm.CodeTransport, "")
		if r.err.Message != "llm.example.org:443: "+want+" (through the proxy "+host+")" {
			t.Errorf("said %q", r.err.Message)
		}
	}
	check("the proxy answered 407: it wants a user name and a password")
	status = http.StatusForbidden
	check("the proxy answered 403")
	proxy.Close()
	check("connection refused")
}

// A kept connection that the engine closed meanwhile is no error.
func TestStaleConnection(t *testing.T) {
	bubble(t, "closed", func(t *testing.T) {
		e, srv := startInMemory(t, nil, Custom, nil)
		var conns []net.Conn
		dial := e.opts.Dial
		e.opts.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dial(ctx, network, address)
			conns = append(conns, c)
			return c, err
		}
		if _, err := e.Models(t.Context(), "lab"); err != nil {
			t.Fatal(err)
		}
		for _, c := range conns {
			c.Close()
		}
		if r := collect(t, e, t.Context(), request("m", "hello")); r.text != "ok" {
			t.Errorf("%+v", r)
		}
		if len(srv.Chats()) != 1 {
			t.Errorf("%d chats", len(srv.Chats()))
		}
	})
}
