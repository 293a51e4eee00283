package engine

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/probe"
)

// A handshake ends after two seconds to the nanosecond, whatever is slow.
func TestHandshakeLimit(t *testing.T) {
	faults := map[string]enginetest.Fault{
		"hang":         {Hang: true},
		"slow header":  {Wait: time.Minute},
		"just late":    {Wait: HandshakeLimit + time.Nanosecond},
		"dribble":      {Dribble: 100 * time.Millisecond},
		"stalled body": {Stall: true},
	}
	for name, fault := range faults {
		bubble(t, "catalogue/"+name, func(t *testing.T) {
			e, srv := startInMemory(t, nil, Custom, nil)
			srv.Fault("/v1/models", fault)
			begin := time.Now()
			_, err := e.Models(t.Context(), "lab")
			checkError(t, err, llm.CodeTimeout, "local:8080: did not answer within 2 s")
			if took := time.Since(begin); took != HandshakeLimit {
				t.Errorf("took %v", took)
			}
			begin = time.Now()
			info, err := e.Describe(t.Context(), target("brook-7b"))
			if took := time.Since(begin); took != HandshakeLimit || err != nil {
				t.Errorf("took %v, %v", took, err)
			}
			if info.Window.Tokens != 0 || !info.Unlearned || len(info.Notes) != 1 || !strings.Contains(info.Notes[0], "within 2 s") {
				t.Errorf("info %+v", info)
			}
		})
		bubble(t, "probe/"+name, func(t *testing.T) {
			// The list takes a second of the two.
			e, srv := startInMemory(t, &enginetest.Options{Preset: Ollama.string(),
				Models: []enginetest.Model{{ID: "brook", Window: 8192, Declared: 9000, Tools: true}}}, Ollama, nil)
			srv.Fault("/v1/models", enginetest.Fault{Wait: time.Second})
			srv.Fault("/api/show", fault)
			begin := time.Now()
			info, err := e.Describe(t.Context(), target("brook"))
			if took := time.Since(begin); took != HandshakeLimit || err != nil {
				t.Errorf("took %v, %v", took, err)
			}
			if info.Window.Tokens != 8192 || info.Capabilities.Tools.Support != llm.Unknown {
				t.Errorf("what did answer was lost: %+v", info)
			}
			if len(info.Notes) != 1 || !strings.HasPrefix(info.Notes[0], "POST /api/show: ") {
				t.Errorf("notes %q", info.Notes)
			}
		})
	}
	bubble(t, "just in time", func(t *testing.T) {
		e, srv := startInMemory(t, nil, Custom, nil)
		srv.Fault("/v1/models", enginetest.Fault{Wait: HandshakeLimit - time.Nanosecond})
		if _, err := e.Models(t.Context(), "lab"); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "dialer hangs", func(t *testing.T) {
		e, _ := startInMemory(t, nil, Custom, nil)
		e.opts.Dial = hangingDial
		begin := time.Now()
		_, err := e.Models(t.Context(), "lab")
		checkError(t, err, llm.CodeTimeout, "within 2 s")
		if took := time.Since(begin); took != HandshakeLimit {
			t.Errorf("took %v", took)
		}
	})
}

// A person who asks about a model waits for one handshake, and hears why an
// engine that gives no list gives none.
func TestExamine(t *testing.T) {
	bubble(t, "slow list, silent metadata", func(t *testing.T) {
		e, srv := startInMemory(t, &enginetest.Options{Preset: enginetest.LlamaCpp}, LlamaCpp, nil)
		srv.Fault("/v1/models", enginetest.Fault{Wait: HandshakeLimit - time.Nanosecond})
		srv.Fault("/props", enginetest.Fault{Hang: true})
		begin := time.Now()
		info, err := e.Examine(t.Context(), target("brook-7b"))
		if took := time.Since(begin); took != HandshakeLimit || err != nil || info.Unlearned || len(info.Notes) != 1 {
			t.Errorf("took %v: %+v, %v", took, info, err)
		}
		checkAsked(t, srv, "GET /v1/models", "GET /props?model=brook-7b&autoload=false")
	})
	bubble(t, "no list", func(t *testing.T) {
		e, srv := startInMemory(t, nil, Custom, nil)
		srv.Fault("", enginetest.Loading())
		info, err := e.Examine(t.Context(), target("m"))
		checkError(t, err, llm.CodeServer, "503: still loading")
		if !info.Unlearned || info.ID != "m" {
			t.Errorf("%+v", info)
		}
		checkAsked(t, srv, "GET /v1/models")
	})
	bubble(t, "cancelled", func(t *testing.T) {
		e, srv := startInMemory(t, nil, Custom, nil)
		srv.Fault("/v1/models/m", enginetest.Fault{Hang: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := e.Examine(ctx, target("m"))
		checkError(t, err, llm.CodeTimeout, "in time")
		_, err = e.Examine(t.Context(), llm.Target{Provider: "x", Model: "m"})
		checkError(t, err, llm.CodeNoAdapter, "")
	})
}

func (p Preset) string() string { return string(p) }

// After a handshake that timed out the connections are closed and nothing of the
// engine is left running: synctest would report a goroutine that stays.
func TestTimedOutHandshakeLeavesNothing(t *testing.T) {
	bubble(t, "hang", func(t *testing.T) {
		e, srv := startInMemory(t, nil, Custom, nil)
		srv.Fault("", enginetest.Fault{Hang: true})
		_, err := e.Models(t.Context(), "lab")
		checkError(t, err, llm.CodeTimeout, "")
		synctest.Wait()
		if srv.Connections() != 0 || srv.Abandoned() != 1 {
			t.Errorf("%d connections, %d abandoned", srv.Connections(), srv.Abandoned())
		}
	})
}

func TestCallerEndsHandshake(t *testing.T) {
	bubble(t, "cancel", func(t *testing.T) {
		e, srv := startInMemory(t, nil, Custom, nil)
		srv.Fault("", enginetest.Fault{Hang: true})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		begin := time.Now()
		info, err := e.Describe(ctx, target("m"))
		checkError(t, err, llm.CodeAborted, "cancelled")
		if time.Since(begin) != time.Second || info.ID != "m" {
			t.Errorf("took %v: %+v", time.Since(begin), info)
		}
	})
	bubble(t, "deadline", func(t *testing.T) {
		e, srv := startInMemory(t, nil, Custom, nil)
		srv.Fault("", enginetest.Fault{Hang: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := e.Models(ctx, "lab")
		checkError(t, err, llm.CodeTimeout, "in time")
	})
}

func TestBodyBounds(t *testing.T) {
	models := []enginetest.Model{{ID: "brook", Declared: 9000, Tools: true}}
	tests := []struct {
		preset Preset
		path   string
		limit  int
	}{
		{Custom, "/v1/models", probe.MaxLargeDocument},
		{Custom, "/v1/models/brook", probe.MaxDocument},
		{Ollama, "/api/show", probe.MaxLargeDocument},
		{Ollama, "/api/ps", probe.MaxDocument},
		{LMStudio, "/api/v1/models", probe.MaxDocument},
		{LlamaCpp, "/props", probe.MaxDocument},
		{OMLX, "/v1/models/status", probe.MaxDocument},
		{VMLX, "/v1/models/brook/capabilities", probe.MaxDocument},
	}
	for _, test := range tests {
		for _, declared := range []bool{false, true} {
			for extra := range 2 {
				bubble(t, fmt.Sprintf("%s declared=%v +%d", test.path, declared, extra), func(t *testing.T) {
					e, srv := startInMemory(t, &enginetest.Options{Preset: string(test.preset), Models: models}, test.preset, nil)
					fault := enginetest.Fault{Pad: test.limit + extra}
					if declared {
						fault = enginetest.Fault{PadDeclared: test.limit + extra}
					}
					srv.Fault(test.path, fault)
					info, err := e.Describe(t.Context(), target("brook"))
					if err != nil {
						t.Fatal(err)
					}
					refused := strings.Contains(strings.Join(info.Notes, "\n"), "larger than")
					if refused != (extra > 0) {
						t.Errorf("notes %q", info.Notes)
					}
					if extra > 0 { // the rest is not read: the connection is given up
						e.Close()
						synctest.Wait()
						if srv.Connections() != 0 {
							t.Errorf("%d connections", srv.Connections())
						}
					}
				})
			}
		}
	}
}

// An excess ends the wait at once, as soon as it is declared or has come: the
// engine sends no more here until it is left.
func TestExcessEndsTheReading(t *testing.T) {
	for name, fault := range map[string]enginetest.Fault{
		"declared": {PadDeclared: probe.MaxLargeDocument + 1, Stall: true},
		"real":     {Pad: 2 * (probe.MaxLargeDocument + 1), Stall: true, Chunked: true},
	} {
		bubble(t, name, func(t *testing.T) {
			e, srv := startInMemory(t, nil, Custom, nil)
			srv.Fault("/v1/models", fault)
			begin := time.Now()
			_, err := e.Models(t.Context(), "lab")
			checkError(t, err, llm.CodeMalformedResponse, "larger than 1024 KiB")
			if took := time.Since(begin); took > 0 {
				t.Errorf("took %v", took)
			}
			synctest.Wait()
			if srv.Connections() != 0 {
				t.Errorf("%d connections", srv.Connections())
			}
		})
	}
}

// Only status 200 is evidence, and nothing else makes an engine unusable.
func TestOnly200IsEvidence(t *testing.T) {
	for _, status := range []int{201, 203, 206, 204, 301, 302, 304, 400, 401, 403, 404, 405, 500, 502, 503} {
		bubble(t, fmt.Sprint(status), func(t *testing.T) {
			e, srv := startInMemory(t, &enginetest.Options{Preset: enginetest.Ollama, Models: []enginetest.Model{{ID: "m", Window: 512, Tools: true}}}, Ollama, nil)
			body := `{"capabilities":["tools"],"models":[{"name":"m","context_length":512}]}`
			if status == 204 || status == 304 {
				body = ""
			}
			srv.Fault("/api/show", enginetest.Fault{Status: status, Body: body})
			srv.Fault("/api/ps", enginetest.Fault{Status: status, Body: body})
			info, err := e.Describe(t.Context(), target("m"))
			if err != nil || info.Window.Tokens != 0 || info.Capabilities.Tools.Support != llm.Unknown {
				t.Errorf("%+v, %v", info, err)
			}
			if r := collect(t, e, t.Context(), request("m", "hello")); r.text != "ok" {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestMetadataRedirects(t *testing.T) {
	for hops := 3; hops <= 4; hops++ {
		t.Run(fmt.Sprint(hops), func(t *testing.T) {
			e, srv := start(t, nil, Custom, &Options{Key: "sesame"})
			srv.Fault("/v1/models", enginetest.Redirect(http.StatusFound, "/hop1"))
			for i := 1; i < hops; i++ {
				srv.Fault(fmt.Sprintf("/hop%d", i), enginetest.Redirect(http.StatusFound, fmt.Sprintf("/hop%d", i+1)))
			}
			srv.Fault(fmt.Sprintf("/hop%d", hops), enginetest.Body(`{"data":[{"id":"far"}]}`))
			models, err := e.Models(t.Context(), "lab")
			if hops == maxRedirects && (err != nil || len(models) != 1) {
				t.Errorf("%v, %v", models, err)
			}
			if hops > maxRedirects {
				checkError(t, err, "HTTP_302", "redirects to somewhere else")
			}
			if got := len(srv.Requests()); got != maxRedirects+1 {
				t.Errorf("%d requests", got)
			}
		})
	}
}

// A redirect that brings user information would have it sent as a key.
func TestRedirectWithUserInformation(t *testing.T) {
	e, srv := start(t, nil, Custom, nil)
	srv.Fault("/v1/models", enginetest.Redirect(http.StatusFound, strings.Replace(srv.URL, "://", "://me:hush@", 1)+"/hop"))
	_, err := e.Models(t.Context(), "lab")
	checkError(t, err, "HTTP_302", "redirects to somewhere else")
	checkAsked(t, srv, "GET /v1/models")
}

// A key never reaches another origin, whoever asks for it.
func TestKeyStaysAtItsOrigin(t *testing.T) {
	thief := enginetest.New(t, nil)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, location := range []string{thief.URL + "/capture", strings.Replace(thief.URL, "127.0.0.1", "localhost", 1)} {
			e, srv := start(t, nil, Custom, &Options{Key: "sesame"})
			srv.Fault("", enginetest.Redirect(status, location))
			if _, err := e.Models(t.Context(), "lab"); err == nil {
				t.Error("a redirect to another origin was followed")
			}
			if info, err := e.Describe(t.Context(), target("m")); err != nil || len(info.Notes) == 0 {
				t.Errorf("%+v, %v", info, err)
			}
			r := collect(t, e, t.Context(), request("m", "hello"))
			checkError(t, r.err, llm.HTTPCode(status), "redirect")
			for _, req := range srv.Requests() {
				if req.Header.Get("Authorization") != "Bearer sesame" {
					t.Errorf("%s: no key", req)
				}
			}
		}
	}
	if got := thief.Requests(); len(got) > 0 {
		t.Errorf("the other origin was asked: %v", got)
	}
}

// A redirect within the origin keeps the method: a POST never becomes a GET.
func TestRedirectOfPost(t *testing.T) {
	for status, want := range map[int]int{302: 0, 307: 1} {
		e, srv := start(t, &enginetest.Options{Preset: enginetest.Ollama}, Ollama, nil)
		srv.Fault("/api/show", enginetest.Redirect(status, "/moved"))
		if _, err := e.Describe(t.Context(), target("brook-7b")); err != nil {
			t.Fatal(err)
		}
		moved := 0
		for _, r := range srv.Requests() {
			if r.Path == "/moved" {
				moved++
				if r.Method != http.MethodPost || string(r.Body) != `{"model":"brook-7b"}` {
					t.Errorf("%s %s", r, r.Body)
				}
			}
		}
		if moved != want {
			t.Errorf("%d: %d requests", status, moved)
		}
	}
}

func TestNoCookies(t *testing.T) {
	e, srv := start(t, nil, Custom, nil)
	srv.Fault("/v1/models", enginetest.Fault{Status: 200, Header: http.Header{"Set-Cookie": {"a=b"}, "Cache-Control": {"max-age=99"}}, Body: `{"data":[]}`})
	for range 2 {
		if _, err := e.Models(t.Context(), "lab"); err != nil {
			t.Fatal(err)
		}
	}
	requests := srv.Requests()
	if len(requests) != 2 || requests[1].Header.Get("Cookie") != "" {
		t.Errorf("%v", requests)
	}
}
