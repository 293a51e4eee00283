//go:build engines

package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/drover-dev/drover/internal/agent/agenttest"
	"github.com/drover-dev/drover/internal/engine/livetest"
	"github.com/drover-dev/drover/internal/session"
)

// recorder stands in front of a real engine and keeps the chats that it got.
type recorder struct {
	mu     sync.Mutex
	bodies [][]byte
}

func record(t *testing.T, engine string) (*recorder, string) {
	t.Helper()
	u, err := url.Parse(engine)
	if err != nil {
		t.Fatal(err)
	}
	r := new(recorder)
	front := livetest.Front(func() *url.URL { return u })
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/chat/completions") {
			body, err := io.ReadAll(req.Body)
			if err != nil {
				t.Error(err)
			}
			r.mu.Lock()
			r.bodies = append(r.bodies, body)
			r.mu.Unlock()
			req.Body = io.NopCloser(bytes.NewReader(body))
		}
		front.ServeHTTP(w, req)
	}))
	t.Cleanup(s.Close)
	return r, s.URL
}

func (r *recorder) take() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	bodies := r.bodies
	r.bodies = nil
	return bodies
}

// TestLive runs the conversations of testdata/live over the binary against real
// engines: $LLAMA and $OLLAMA with the window of 8192 and 4096 tokens that they
// have by themselves, $SMALL a llama-server of 4096 and $TINY one of 1024.
//
//	rebuild N
//	    checks that the newest session's log gives, byte for byte, the N
//	    requests that the engines got since the last rebuild
//	resume VAR
//	    sets VAR to the id of the newest session
func TestLive(t *testing.T) {
	urls := map[string]string{
		"LLAMA":  livetest.Llama(t, "plain", "--alias", "plain").URL,
		"SMALL":  livetest.Llama(t, "vocab", "--alias", "vocab", "-c", "4096", "-np", "1").URL,
		"TINY":   livetest.Llama(t, "plain", "--alias", "plain", "-c", "1024", "-np", "1").URL,
		"OLLAMA": livetest.Ollama(t).URL,
	}
	var recorders []*recorder
	for name, u := range urls {
		r, proxied := record(t, u)
		recorders = append(recorders, r)
		urls[name] = proxied
	}
	take := func() (bodies [][]byte) {
		for _, r := range recorders {
			bodies = append(bodies, r.take()...)
		}
		return bodies
	}
	newest := func(ts *testscript.TestScript) (*session.Store, string) {
		store := session.NewStore(filepath.Join(ts.Getenv("HOME"), ".local", "state", "drover", "sessions"))
		list, err := store.List(nil)
		ts.Check(err)
		if len(list) == 0 {
			ts.Fatalf("no session was saved")
		}
		return store, list[0].ID
	}
	params := testscript.Params{
		Setup: func(env *testscript.Env) error {
			take()
			for name, u := range urls {
				env.Setenv(name, u)
			}
			return emptyHome(env)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"expand": expandFile,
			"resume": func(ts *testscript.TestScript, _ bool, args []string) {
				_, id := newest(ts)
				ts.Setenv(args[0], id)
			},
			"rebuild": func(ts *testscript.TestScript, _ bool, args []string) {
				store, id := newest(ts)
				bodies := take()
				if want := args[0]; want != strconv.Itoa(len(bodies)) {
					ts.Fatalf("the engines got %d requests, want %s", len(bodies), want)
				}
				agenttest.CheckBodies(scriptTB{ts: ts}, store.Records(id), bodies)
			},
			"requests": func(ts *testscript.TestScript, _ bool, args []string) {
				if n := len(take()); args[0] != strconv.Itoa(n) {
					ts.Fatalf("the engines got %d requests, want %s", n, args[0])
				}
			},
		},
	}
	scripts, err := filepath.Glob("testdata/live/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, script := range scripts {
		// One after the other: they share the engines and their records.
		t.Run("", func(t *testing.T) {
			one := params
			one.Files = []string{script}
			testscript.Run(t, one)
		})
	}
}
