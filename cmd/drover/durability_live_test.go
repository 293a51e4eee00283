//go:build engines

package main

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/agent/agenttest"
	"github.com/drover-dev/drover/internal/engine/livetest"
	"github.com/drover-dev/drover/internal/openai"
	"github.com/drover-dev/drover/internal/session"
)

// TestKilledLive kills turns of a real engine, in the middle of an answer, of a
// call and of two calls, and has the engine take the next prompt each time.
func TestKilledLive(t *testing.T) {
	rec, url := record(t, livetest.Llama(t, "plain", "--alias", "plain", "-c", "16384", "-np", "1").URL)
	r := rigFor(t, url, "plain")
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
		stdout := newDrain(out, func([]byte) {})
		time.AfterFunc(time.Duration(random.IntN(500))*time.Millisecond, func() { _ = cmd.Process.Kill() })
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
	sent := rec.take()
	requests := len(sent)
	for _, req := range agenttest.Rebuild(t, r.store().Records(id)) {
		body, err := openai.EncodeRequest(&req)
		if err != nil {
			t.Fatal(err)
		}
		if len(sent) > 0 && bytes.Equal(body, sent[0]) {
			sent = sent[1:]
		}
	}
	if len(sent) > 0 {
		t.Errorf("%d of %d requests cannot be rebuilt from the log", len(sent), requests)
	}
	unknown := 0
	for rec := range r.store().Records(id) {
		if res, ok := rec.(*session.ToolResult); ok && res.Status == session.StatusUnknown {
			unknown++
		}
	}
	t.Logf("15 kills, %d inside a turn, %d calls of unknown end; %d requests, each rebuilt", inTurn, unknown, requests)
}
