package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/llm"
)

// discoverTest is what listens at the usual ports, and what is found: route,
// preset and endpoint.
type discoverTest struct {
	servers []discoverServer
	want    []string
}

type discoverServer struct {
	port  int
	fake  enginetest.Options
	fault *enginetest.Fault
}

func discoverTests() map[string]discoverTest {
	loading, locked, html := enginetest.Loading(), enginetest.Refuse(401, "Invalid API Key", "authentication_error"), enginetest.HTML(200)
	return map[string]discoverTest{
		"nothing": {nil, nil},
		"usual": {[]discoverServer{
			{11434, enginetest.Options{Preset: enginetest.Ollama}, nil},
			{8080, enginetest.Options{Preset: enginetest.LlamaCpp}, nil},
			{1234, enginetest.Options{Preset: enginetest.LMStudio}, nil},
			{30000, enginetest.Options{Preset: enginetest.SGLang}, nil},
		}, []string{"ollama ollama local:11434", "lmstudio lmstudio local:1234", "llamacpp llamacpp local:8080", "sglang sglang local:30000"}},
		"named by themselves": {[]discoverServer{
			{8000, enginetest.Options{Preset: enginetest.VLLM}, nil},
			{8001, enginetest.Options{Preset: enginetest.VMLX}, nil},
			{8080, enginetest.Options{Preset: enginetest.OMLX}, nil},
		}, []string{"omlx omlx local:8080", "vllm vllm local:8000", "vmlx vmlx local:8001"}},
		"two of a kind": {[]discoverServer{
			{8080, enginetest.Options{Preset: enginetest.LlamaCpp}, nil},
			{8000, enginetest.Options{Preset: enginetest.LlamaCpp}, nil},
		}, []string{"llamacpp llamacpp local:8080", "llamacpp-8000 llamacpp local:8000"}},
		"unknown": {[]discoverServer{
			{11434, enginetest.Options{}, nil}, {8001, enginetest.Options{}, nil},
		}, []string{"local custom local:11434", "local-8001 custom local:8001"}},
		"without a preset": {[]discoverServer{
			{8000, enginetest.Options{Models: []enginetest.Model{{ID: "m", Entry: map[string]any{"owned_by": "tabbyAPI"}}}}, nil},
		}, []string{"local custom local:8000"}},
		"vMLX at Ollama's port": {[]discoverServer{{11434, enginetest.Options{Preset: enginetest.VMLX}, nil}}, []string{"vmlx vmlx local:11434"}},
		"no models":             {[]discoverServer{{11434, enginetest.Options{Preset: enginetest.Ollama, NoModels: true}, nil}}, []string{"ollama ollama local:11434"}},
		"loading":               {[]discoverServer{{8080, enginetest.Options{Preset: enginetest.LlamaCpp}, &loading}}, []string{"llamacpp llamacpp local:8080"}},
		"needs a key":           {[]discoverServer{{8080, enginetest.Options{Preset: enginetest.LlamaCpp}, &locked}}, []string{"llamacpp llamacpp local:8080"}},
		"someone else's 401":    {[]discoverServer{{8000, enginetest.Options{}, &locked}}, nil},
		"a web page":            {[]discoverServer{{8000, enginetest.Options{}, &html}}, nil},
	}
}

func TestDiscover(t *testing.T) {
	for name, test := range discoverTests() {
		bubble(t, name, func(t *testing.T) {
			var servers []*enginetest.Server
			for _, s := range test.servers {
				s.fake.InMemory, s.fake.Port = true, s.port
				srv := enginetest.New(t, &s.fake)
				if s.fault != nil {
					srv.Fault("", *s.fault)
				}
				servers = append(servers, srv)
			}
			d := Discover(t.Context(), &DiscoverOptions{Dial: enginetest.Dialer(servers...)})
			var got []string
			for _, f := range d.Found {
				got = append(got, fmt.Sprintf("%s %s %s", f.Route, f.Preset, f.Endpoint))
				if f.Endpoint != f.Health.Endpoint || (f.Health.Err != nil) != (name == "loading" || name == "needs a key") {
					t.Errorf("%+v", f)
				}
				for _, m := range f.Health.Models {
					if m.Provider != f.Route {
						t.Errorf("%s: %+v", f.Route, m)
					}
				}
			}
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("found %q, want %q", got, test.want)
			}
			if len(d.Tried) != len(discoveryPorts) || strings.Count(d.String(), "\n") != len(discoveryPorts)-1 {
				t.Errorf("tried %+v", d.Tried)
			}
			for _, s := range servers {
				for _, r := range s.Requests() {
					if r.Header.Get("Authorization") != "" || r.Method != "GET" || r.Path != "/v1/models" && r.Path != "/" && r.Path != "/api/v1/models" {
						t.Errorf("port %d was asked %s", s.Port(), r)
					}
					if r.Path == "/api/v1/models" && s.Port() != 1234 {
						t.Errorf("port %d was asked for LM Studio", s.Port())
					}
				}
			}
		})
	}
}

// Engines that do not answer cost two seconds together and hide nobody.
func TestDiscoverIsBounded(t *testing.T) {
	bubble(t, "hang", func(t *testing.T) {
		good := enginetest.New(t, &enginetest.Options{Preset: enginetest.Ollama, InMemory: true, Port: 11434})
		slow := enginetest.New(t, &enginetest.Options{InMemory: true, Port: 8000})
		slow.Fault("", enginetest.Fault{Dribble: 100 * time.Millisecond})
		dial := enginetest.Dialer(good, slow)
		begin := time.Now()
		d := Discover(t.Context(), &DiscoverOptions{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasSuffix(address, ":8080") || strings.HasSuffix(address, ":1234") {
				return hangingDial(ctx, network, address)
			}
			return dial(ctx, network, address)
		}})
		if took := time.Since(begin); took != HandshakeLimit {
			t.Errorf("took %v", took)
		}
		if len(d.Found) != 1 || d.Found[0].Route != "ollama" || len(d.Found[0].Health.Models) != 1 {
			t.Errorf("%+v", d.Found)
		}
		for _, want := range []string{"local:11434: found", "local:8080: did not answer within 2 s", "local:8000: did not answer within 2 s", "local:30000: connection refused"} {
			if !strings.Contains(d.String(), want) {
				t.Errorf("%q is missing in\n%s", want, d)
			}
		}
	})
	bubble(t, "cancel", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		d := Discover(ctx, &DiscoverOptions{Dial: hangingDial})
		for _, tried := range d.Tried {
			checkError(t, tried.Err, llm.CodeAborted, "")
		}
	})
}

func TestAwait(t *testing.T) {
	bubble(t, "comes back", func(t *testing.T) {
		e, srv := startInMemory(t, nil, Custom, nil)
		dial, begin := e.opts.Dial, time.Now()
		var tries []time.Duration
		e.opts.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			tries = append(tries, time.Since(begin))
			if len(tries) < 8 {
				return nil, errors.New("connect: connection refused")
			}
			return dial(ctx, network, address)
		}
		var pauses []time.Duration
		h := e.Await(t.Context(), func(err *llm.Error, next time.Duration) { pauses = append(pauses, next) })
		if h.Err != nil || len(h.Models) != 1 {
			t.Errorf("%+v", h)
		}
		if got, want := fmt.Sprint(tries), "[1s 3s 7s 15s 31s 1m1s 1m31s 2m1s]"; got != want {
			t.Errorf("looked after %s, want %s", got, want)
		}
		if got, want := fmt.Sprint(pauses), "[2s 4s 8s 16s 30s 30s 30s]"; got != want {
			t.Errorf("pauses %s, want %s", got, want)
		}
		checkAsked(t, srv, "GET /v1/models")
	})
	bubble(t, "given up", func(t *testing.T) {
		e, srv := startInMemory(t, nil, Custom, nil)
		srv.Fault("", enginetest.HTML(404))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		checkError(t, e.Await(ctx, nil).Err, llm.CodeTimeout, "")
	})
}
