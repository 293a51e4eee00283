//go:build engines

package main

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/engine/livetest"
	"github.com/drover-dev/drover/internal/session"
)

// wholeProxy stands in front of a real engine and keeps the chats that reached it
// whole: a client that is killed may leave half of one.
type wholeProxy struct {
	url    string
	mu     sync.Mutex
	bodies [][]byte
}

func newWholeProxy(t *testing.T, engine string) *wholeProxy {
	t.Helper()
	u, err := url.Parse(engine)
	if err != nil {
		t.Fatal(err)
	}
	p := new(wholeProxy)
	front := livetest.Front(func() *url.URL { return u })
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/chat/completions") {
			p.mu.Lock()
			p.bodies = append(p.bodies, body)
			p.mu.Unlock()
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		front.ServeHTTP(w, req)
	}))
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

func (p *wholeProxy) received() [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.bodies)
}

// TestKilledLive kills turns of a real engine, in the middle of an answer, of a
// call and of two calls, and has the engine take the next prompt each time.
func TestKilledLive(t *testing.T) {
	proxy := newWholeProxy(t, livetest.Llama(t, "plain", "--alias", "plain", "-c", "16384", "-np", "1").URL)
	r := rigFor(t, proxy.url, "plain")
	if o := r.run(r.turn("", "Please [[shell]] it.")); o.status != 0 {
		t.Fatalf("without a kill: %+v", o)
	}
	id := r.newest()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	inTurn := 0
	for i := range 15 {
		cmd := r.turn(id, []string{"And [[loop]] now.", "Please [[shell]] it.", "Look at [[two]] files."}[i%3])
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := sync.OnceFunc(func() {
			time.AfterFunc(time.Duration(random.IntN(500))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		})
		endless := i%3 == 0
		stdout := newDrain(out, func(line []byte) {
			if endless && bytes.Contains(line, []byte(`"type":"text"`)) {
				kill() // inside the turn, however slow the machine
			}
		})
		if !endless {
			kill()
		}
		_ = stdout.String()
		_ = cmd.Wait()
		if s, err := r.store().Read(id); err != nil || !s.Intact() {
			t.Fatalf("kill %d: %v, %v", i, err, s.Warnings)
		} else if s.OpenTurn {
			inTurn++
		}
		if o := r.run(r.turn(id, "Please [[shell]] it.")); o.status != 0 {
			t.Fatalf("the next prompt after kill %d: %+v", i, o)
		}
	}
	if inTurn == 0 {
		t.Error("no kill hit a turn: the moments are chosen badly")
	}
	r.wholeLog(id)
	sent := proxy.received()
	if missing, _ := r.compareRequests(sent); len(missing) > 0 {
		t.Errorf("%d of %d requests cannot be rebuilt from the log", len(missing), len(sent))
	}
	unknown := 0
	for rec := range r.store().Records(id) {
		if res, ok := rec.(*session.ToolResult); ok && res.Status == session.StatusUnknown {
			unknown++
		}
	}
	t.Logf("15 kills, %d inside a turn, %d calls of unknown end; %d requests, each rebuilt", inTurn, unknown, len(sent))
}
