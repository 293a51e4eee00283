package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/agent/agenttest"
	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/openai"
	"github.com/drover-dev/drover/internal/session"
)

// killsPerSession is how often one session is killed before everything in it is
// looked at.
const killsPerSession = 10

// TestKilled kills the binary at random moments of turns with many rounds of
// tools, and goes on with the session each time. $DROVER_KILLS says how often;
// scripts/kill200 runs it with 200.
func TestKilled(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the worker's commands are for a POSIX shell")
	}
	kills := 20
	if n := os.Getenv("DROVER_KILLS"); n != "" {
		var err error
		if kills, err = strconv.Atoi(n); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	if n := os.Getenv("DROVER_SEED"); n != "" {
		var err error
		if seed, err = strconv.ParseUint(n, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("DROVER_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var sum killFigures
	for done := 0; done < kills && !t.Failed(); done += killsPerSession {
		k := newKiller(t, random)
		for range min(killsPerSession, kills-done) {
			k.kill()
		}
		k.finish()
		sum.add(&k.killFigures)
	}
	t.Log(&sum)
	if sum.inTurn == 0 {
		t.Error("no kill hit a turn: the moments are chosen badly")
	}
}

// killFigures say what the kills hit.
type killFigures struct {
	kills, early, inTurn, torn           int
	acknowledged, requests, calls        int
	ok, unknown, notExecuted, ranUnknown int
	requestsUnsent                       int
}

func (f *killFigures) add(o *killFigures) {
	for _, p := range []struct{ to, from *int }{
		{&f.kills, &o.kills}, {&f.early, &o.early}, {&f.inTurn, &o.inTurn}, {&f.torn, &o.torn},
		{&f.acknowledged, &o.acknowledged}, {&f.requests, &o.requests}, {&f.calls, &o.calls},
		{&f.ok, &o.ok}, {&f.unknown, &o.unknown}, {&f.notExecuted, &o.notExecuted}, {&f.ranUnknown, &o.ranUnknown},
		{&f.requestsUnsent, &o.requestsUnsent},
	} {
		*p.to += *p.from
	}
}

func (f *killFigures) String() string {
	return fmt.Sprintf("%d kills: %d before anything was logged, %d inside a turn, %d with a torn record at the end\n"+
		"%d acknowledged events, all in the log; %d requests, each rebuilt from the log byte for byte, %d logged and not sent\n"+
		"%d calls: %d ended, %d unknown (%d of them had run), %d not executed (none of them had run); none ran twice",
		f.kills, f.early, f.inTurn, f.torn, f.acknowledged, f.requests, f.requestsUnsent,
		f.calls, f.ok, f.unknown, f.ranUnknown, f.notExecuted)
}

// killer is one session that is killed again and again.
type killer struct {
	killFigures
	*rig
	random *rand.Rand
	worker *worker
	id     string
	length time.Duration // of a turn
	acks   []event
	seq    int // of the next record, as the last kill left it
}

func newKiller(t *testing.T, random *rand.Rand) *killer {
	k := &killer{random: random, worker: new(worker)}
	k.rig = newRig(t, k.worker.answer)
	start := time.Now()
	if o := k.run(k.turn("", "measure")); o.status != 0 {
		t.Fatalf("without a kill: %+v", o)
	}
	k.length = time.Since(start)
	// The kills begin with a new session in a new folder.
	if err := os.RemoveAll(k.state()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(k.dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(k.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	k.worker.forget()
	return k
}

// kill starts a turn and kills it: after some time, or after some event.
func (k *killer) kill() {
	k.t.Helper()
	cmd := k.turn(k.id, fmt.Sprintf("turn %d", k.kills))
	kill := sync.OnceFunc(func() { _ = cmd.Process.Kill() }) // it may have ended already
	var after time.Duration
	atEvent := -1
	if k.random.IntN(2) == 0 {
		after = time.Duration(k.random.Int64N(int64(k.length)))
	} else {
		atEvent, after = k.random.IntN(60), time.Duration(k.random.IntN(3000))*time.Microsecond
	}
	stdout, stderr := k.start(cmd, func(n int) {
		if n == atEvent {
			time.AfterFunc(after, kill)
		}
	})
	if atEvent < 0 {
		time.AfterFunc(after, kill)
	}
	out := stdout.String()
	_ = cmd.Wait() // killed, or done before
	k.kills++
	list := events(out)
	if len(list) > 0 && list[len(list)-1].Type == "end" && list[len(list)-1].Reason != "completed" {
		k.t.Fatalf("kill %d: the turn ended by itself: %s\n%s", k.kills, out, stderr)
	}
	k.acks = append(k.acks, list...)
	if k.id == "" {
		k.id = k.newest()
	}
	if k.id == "" {
		k.early++
		if len(list) > 0 {
			k.t.Fatalf("events before there is a session: %s", out)
		}
		return
	}
	k.look()
}

// start starts a command and calls each with the number of every event.
func (k *killer) start(cmd *exec.Cmd, each func(n int)) (stdout *drain, stderr *bytes.Buffer) {
	k.t.Helper()
	stderr = new(bytes.Buffer)
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	n := 0
	return newDrain(out, func([]byte) { each(n); n++ }), stderr
}

// look checks the log as the kill left it: all that was acknowledged is there.
func (k *killer) look() {
	k.t.Helper()
	state, err := k.store().Read(k.id)
	if err != nil {
		k.t.Fatalf("kill %d: %v", k.kills, err)
	}
	switch {
	case state.NextSeq == k.seq:
		k.early++
	case state.OpenTurn:
		k.inTurn++
	}
	k.seq = state.NextSeq
	for _, w := range state.Warnings {
		if !strings.Contains(w.Text, "the last record is incomplete") {
			k.t.Errorf("kill %d: %v", k.kills, w)
		}
		k.torn++
	}
	if !state.Intact() {
		k.t.Errorf("kill %d: the log is damaged: %v", k.kills, state.Warnings)
	}
	k.checkAcknowledged()
}

// checkAcknowledged finds each event of stdout in the log.
func (k *killer) checkAcknowledged() {
	k.t.Helper()
	calls, results, plans, ends := make(map[string]bool), make(map[string]*session.ToolResult), 0, 0
	for rec, err := range k.store().Records(k.id) {
		if err != nil {
			k.t.Fatal(err)
		}
		switch rec := rec.(type) {
		case *session.AssistantMessage:
			for _, c := range rec.Calls {
				calls[c.ID+c.Arguments] = true
			}
		case *session.ToolResult:
			results[rec.ID] = rec
		case *session.RequestPlan:
			plans++
		case *session.TurnEnd:
			if rec.Reason == session.EndCompleted {
				ends++
			}
		}
	}
	for _, ev := range k.acks {
		switch ev.Type {
		case "tool_call":
			if !calls[ev.ID+ev.Arguments] {
				k.t.Errorf("kill %d: the call %s was told and is not in the log", k.kills, ev.ID)
			}
		case "tool_result":
			if r := results[ev.ID]; r == nil || string(r.Status) != ev.Status || r.Text != ev.Text {
				k.t.Errorf("kill %d: the result %+v was told, the log has %+v", k.kills, ev, r)
			}
		case "plan":
			plans--
		case "end":
			ends--
		}
	}
	if plans < 0 || ends < 0 {
		k.t.Errorf("kill %d: %d plans and %d ends were told and are not in the log", k.kills, -plans, -ends)
	}
}

// finish runs a whole turn, then looks at everything.
func (k *killer) finish() {
	k.t.Helper()
	o := k.run(k.turn(k.id, "the last turn"))
	if list := events(o.stdout); o.status != 0 || len(list) == 0 || list[len(list)-1].Reason != "completed" {
		k.t.Fatalf("the next prompt after %d kills: %+v", k.kills, o)
	}
	k.acks = append(k.acks, events(o.stdout)...)
	if k.id == "" {
		k.id = k.newest()
	}
	k.acknowledged = len(k.acks)
	k.checkAcknowledged()
	state, recs := k.wholeLog(k.id)
	if state.OpenTurn {
		k.t.Error("a turn is still open")
	}
	k.checkCalls(recs)
	k.checkRequests()
	for _, p := range k.worker.problems {
		k.t.Errorf("the engine got what no engine takes: %s", p)
	}
	if c := k.run(k.command("sessions", "verify")); c.status != 0 {
		k.t.Errorf("verify: %+v", c)
	}
}

// checkCalls compares what the log says of each call with what really ran.
func (k *killer) checkCalls(recs []session.Record) {
	k.t.Helper()
	data, err := os.ReadFile(filepath.Join(k.dir, "ran"))
	if err != nil {
		k.t.Fatal(err)
	}
	ran := make(map[string]int)
	for line := range strings.Lines(string(data)) {
		ran[strings.TrimSpace(line)]++
	}
	made, err := filepath.Glob(filepath.Join(k.dir, "*.made"))
	if err != nil {
		k.t.Fatal(err)
	}
	for _, name := range made {
		ran[strings.TrimSuffix(filepath.Base(name), ".made")]++
	}
	started, results := make(map[string]int), make(map[string]session.Status)
	for _, rec := range recs {
		switch rec := rec.(type) {
		case *session.ToolCall:
			if rec.Started {
				started[rec.ID]++
			}
		case *session.ToolResult:
			if _, twice := results[rec.ID]; twice {
				k.t.Errorf("call %s has two results", rec.ID)
			}
			results[rec.ID] = rec.Status
		}
	}
	for id, n := range ran {
		if n != 1 || started[id] != 1 {
			k.t.Errorf("call %s ran %d times and was started %d times in the log", id, n, started[id])
		}
	}
	for id, status := range results {
		k.calls++
		switch status {
		case session.StatusOK:
			k.ok++
			if ran[id] != 1 {
				k.t.Errorf("call %s is ok, and did not run", id)
			}
		case session.StatusUnknown:
			k.unknown++
			k.ranUnknown += ran[id]
		case session.StatusNotExecuted:
			k.notExecuted++
			if ran[id] != 0 {
				k.t.Errorf("call %s is logged as not executed, and ran", id)
			}
		default:
			k.t.Errorf("call %s ended with %s", id, status)
		}
	}
}

// checkRequests rebuilds every request from the log: those that the engine got
// are among them, byte for byte. A kill may come between log and engine.
func (k *killer) checkRequests() {
	k.t.Helper()
	sent := k.worker.received()
	k.requests = len(sent)
	missing, unsent := k.compareRequests(sent)
	k.requestsUnsent = unsent
	if len(missing) > 0 {
		k.t.Errorf("%d of %d requests cannot be rebuilt from the log, the first is\n%s", len(missing), k.requests, missing[0])
	}
	if unsent > k.kills {
		k.t.Errorf("%d requests are in the log and were never sent", unsent)
	}
}

// compareRequests gives what the engine got and the newest session's log does not
// give, and counts what is in the log alone. The order does not count: the last
// request of a killed process may be read after the first one of the next.
func (r *rig) compareRequests(sent [][]byte) (missing [][]byte, unsent int) {
	r.t.Helper()
	logged := make(map[string]int)
	for _, req := range agenttest.Rebuild(r.t, r.store().Records(r.newest())) {
		body, err := openai.EncodeRequest(&req)
		if err != nil {
			r.t.Fatal(err)
		}
		logged[string(body)]++
		unsent++
	}
	for _, body := range sent {
		if logged[string(body)] == 0 {
			missing = append(missing, body)
			continue
		}
		logged[string(body)]--
		unsent--
	}
	return missing, unsent
}

// worker is a model that calls tools: each call writes its own id to a file, so
// that one that runs twice shows.
type worker struct {
	mu       sync.Mutex
	next     int
	bodies   [][]byte
	problems []string
}

// workRounds is how many results a turn has.
const workRounds = 8

func (w *worker) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bodies, w.problems = nil, nil
}

// received are the requests so far.
func (w *worker) received() [][]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.bodies)
}

func (w *worker) answer(_ *rig, c *enginetest.Chat) enginetest.Answer {
	if !json.Valid(c.Body) { // its sender was killed while sending it
		return enginetest.Answer{Status: http.StatusBadRequest, Body: `{"error":{"message":"broken"}}`}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bodies = append(w.bodies, c.Body)
	if p := badHistory(messagesOf(c)); p != "" {
		w.problems = append(w.problems, p)
	}
	if rounds(c) >= workRounds {
		return enginetest.Answer{Text: "All of it is done.", Chunk: 3, Delay: time.Millisecond}
	}
	a := enginetest.Answer{Text: "More.", Chunk: 1, Delay: 500 * time.Microsecond}
	for range 1 + w.next%3 {
		id := fmt.Sprint("call-", w.next)
		w.next++
		if w.next%4 > 0 {
			a.Calls = append(a.Calls, shellCall(id, "echo "+id+" >> ran"))
			continue
		}
		// Run again, this one would find the file and fail.
		arguments, _ := json.Marshal(map[string]string{"path": id + ".made", "old": "", "new": id})
		a.Calls = append(a.Calls, enginetest.Call{ID: id, Name: "edit", Arguments: string(arguments)})
	}
	return a
}

// badHistory says what an engine would not take of messages: calls without their
// results behind them, or results of no call.
func badHistory(messages []chatMessage) string {
	var open []string
	for i, m := range messages {
		if m.Role != "tool" && len(open) > 0 {
			return fmt.Sprintf("message %d: calls without a result: %v", i, open)
		}
		switch m.Role {
		case "assistant":
			for _, c := range m.ToolCalls {
				open = append(open, c.ID)
			}
		case "tool":
			at := slices.Index(open, m.ToolCallID)
			if at < 0 {
				return fmt.Sprintf("message %d: a result of %q, which was not called", i, m.ToolCallID)
			}
			open = slices.Delete(open, at, at+1)
		}
	}
	return ""
}
