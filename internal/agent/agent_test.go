package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/agent/agenttest"
	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/memory"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/tool"
)

// fixture is one session on a scripted provider.
type fixture struct {
	t        *testing.T
	provider *llmtest.Provider
	selector *target.Selector
	log      *session.Log
	agent    *agent.Agent
	dir      string
}

func window(tokens int) llm.ModelInfo {
	return llm.ModelInfo{Window: llm.Window{Tokens: tokens, Source: llm.Effective}}
}

func newFixture(t *testing.T, p *llmtest.Provider, approver tool.Approver, opts agent.Options) *fixture {
	t.Helper()
	f := &fixture{t: t, provider: p, dir: t.TempDir()}
	registry := new(catalog.Registry)
	if _, err := registry.Register(p, "p"); err != nil {
		t.Fatal(err)
	}
	f.selector = target.NewSelector(registry, new(target.Store), llm.Graze)
	f.selector.Select(t.Context(), llm.Target{Provider: "p", Model: "m"})
	var err error
	if f.log, err = session.NewStore("").Create(f.dir, nil); err != nil {
		t.Fatal(err)
	}
	opts.Dir = f.dir
	f.agent = agent.New(f.selector, f.log, f.log.NewState(), approver, &opts)
	return f
}

// turn runs a turn to its end and returns its events.
func (f *fixture) turn(ctx context.Context, prompt string) []agent.Event {
	f.t.Helper()
	var events []agent.Event
	for ev := range f.agent.Turn(ctx, []llm.Part{llm.Text(prompt)}) {
		events = append(events, ev)
	}
	if _, ok := events[len(events)-1].(agent.End); !ok {
		f.t.Errorf("the last event is %T", events[len(events)-1])
	}
	return events
}

// check holds the log against what the provider was sent.
func (f *fixture) check() {
	f.t.Helper()
	agenttest.Check(f.t, f.log.Records(), f.provider.Requests())
}

func find[T agent.Event](events []agent.Event) []T {
	var found []T
	for _, ev := range events {
		if e, ok := ev.(T); ok {
			found = append(found, e)
		}
	}
	return found
}

func endOf(events []agent.Event) agent.End { return find[agent.End](events)[0] }

func text(events []agent.Event) string {
	var b strings.Builder
	for _, t := range find[agent.Text](events) {
		b.WriteString(string(t))
	}
	return b.String()
}

// answers gives the same decision to every question and records them.
type answers struct {
	decision tool.Decision
	err      error
	asked    []string
	wait     bool
}

func (a *answers) Approve(ctx context.Context, q *tool.Question) (tool.Decision, error) {
	a.asked = append(a.asked, q.Tool+" "+q.Action.Title)
	if a.wait {
		<-ctx.Done()
		return tool.Cancelled, nil
	}
	return a.decision, a.err
}

func edit(id string) llm.ToolCall {
	return llm.ToolCall{ID: id, Name: "edit", Arguments: `{"path":"new.txt","old":"","new":"hello\n"}`}
}

func TestATurnOfTextAlone(t *testing.T) {
	f := newFixture(t, &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Say("Hello.")}}, nil, agent.Options{})
	events := f.turn(t.Context(), "Hi there,\nplease say hello")
	if text(events) != "Hello." || endOf(events).Reason != agent.EndCompleted {
		t.Errorf("events %v", events)
	}
	if got := f.agent.Title(); got != "Hi there," {
		t.Errorf("title %q", got)
	}
	f.check()
}

func TestEveryRequestIsRebuiltFromTheLog(t *testing.T) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprint("policy ", version), func(t *testing.T) {
			policy, _ := budget.PolicyByVersion(version)
			p := &llmtest.Provider{Facts: window(8192)}
			// Rounds of tool calls with large results, an answer, again.
			p.Answer = func(n int, _ *llm.Request) llmtest.Answer {
				if n%4 == 3 {
					return llmtest.Say(strings.Repeat("An answer that takes some room. ", 20))
				}
				return llmtest.Call(llm.ToolCall{ID: fmt.Sprint("c", n), Name: "read", Arguments: fmt.Sprintf(`{"path":"big.txt","offset":%d}`, n%4+1)})
			}
			f := newFixture(t, p, nil, agent.Options{Policy: policy})
			big := strings.Repeat("A line of a file that is read again and again.\n", 60)
			if err := os.WriteFile(filepath.Join(f.dir, "big.txt"), []byte(big), 0o600); err != nil {
				t.Fatal(err)
			}
			trimmed := false
			for i := range 4 {
				events := f.turn(t.Context(), fmt.Sprint("prompt ", i))
				if end := endOf(events); end.Reason != agent.EndCompleted {
					t.Fatalf("turn %d: %v %v", i, end.Reason, end.Err)
				}
				for _, planned := range find[agent.Planned](events) {
					trimmed = trimmed || planned.Report.Trimmed()
				}
			}
			if !trimmed || len(p.Requests()) != 16 {
				t.Errorf("trimmed %v, %d requests: the test does not reach what it is about", trimmed, len(p.Requests()))
			}
			f.check()
		})
	}
}

func TestTheSystemTurnStaysTheSameWithinATurn(t *testing.T) {
	p := &llmtest.Provider{Facts: window(32768), Script: []llmtest.Answer{
		llmtest.Call(llm.ToolCall{ID: "1", Name: "shell", Arguments: `{"command":"git init -q . && echo rule > AGENTS.md"}`}),
		llmtest.Say("done"),
	}}
	f := newFixture(t, p, nil, agent.Options{Gate: tool.NewGate(tool.ModeFull), Environ: os.Environ()})
	f.turn(t.Context(), "go")
	reqs := p.Requests()
	if reqs[0].System != reqs[1].System {
		t.Errorf("the system turn changed:\n%s\n---\n%s", reqs[0].System, reqs[1].System)
	}
	f.turn(t.Context(), "again")
	if got := p.Requests()[2].System; !strings.Contains(got, "rule") {
		t.Errorf("the next turn does not see the new instructions:\n%s", got)
	}
	f.check()
}

func TestPermission(t *testing.T) {
	tests := []struct {
		name     string
		approver *answers
		mode     tool.Mode
		status   tool.Status
		asked    int
		end      agent.EndReason
	}{
		{"allowed", &answers{decision: tool.AllowOnce}, tool.ModeAsk, tool.StatusOK, 1, agent.EndCompleted},
		{"rejected", &answers{decision: tool.RejectOnce}, tool.ModeAsk, tool.StatusDenied, 1, agent.EndCompleted},
		{"cancelled at the question", &answers{decision: tool.Cancelled}, tool.ModeAsk, tool.StatusNotExecuted, 1, agent.EndCancelled},
		{"nobody to ask", nil, tool.ModeAsk, tool.StatusDenied, 0, agent.EndCompleted},
		{"mode edit", nil, tool.ModeEdit, tool.StatusOK, 0, agent.EndCompleted},
		{"mode read-only", &answers{decision: tool.AllowOnce}, tool.ModeReadOnly, tool.StatusDenied, 0, agent.EndCompleted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Call(edit("1")), llmtest.Say("done")}}
			var approver tool.Approver
			if tt.approver != nil {
				approver = tt.approver
			}
			f := newFixture(t, p, approver, agent.Options{Gate: tool.NewGate(tt.mode)})
			events := f.turn(t.Context(), "go")
			finished := find[agent.CallFinished](events)
			if len(finished) != 1 || finished[0].Result.Status != tt.status {
				t.Errorf("results %+v, want one %s", finished, tt.status)
			}
			if end := endOf(events); end.Reason != tt.end {
				t.Errorf("ended %s (%v), want %s", end.Reason, end.Err, tt.end)
			}
			_, err := os.Stat(filepath.Join(f.dir, "new.txt"))
			if written := err == nil; written != (tt.status == tool.StatusOK) {
				t.Errorf("file written: %v", written)
			}
			if tt.approver != nil && len(tt.approver.asked) != tt.asked {
				t.Errorf("asked %v", tt.approver.asked)
			}
			f.check()
		})
	}
}

func TestAlwaysHoldsForTheSession(t *testing.T) {
	again := llm.ToolCall{ID: "2", Name: "edit", Arguments: `{"path":"other.txt","old":"","new":"x"}`}
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Call(edit("1")), llmtest.Call(again), llmtest.Say("done")}}
	a := &answers{decision: tool.AllowAlways}
	f := newFixture(t, p, a, agent.Options{})
	events := f.turn(t.Context(), "go")
	if len(a.asked) != 1 || endOf(events).Reason != agent.EndCompleted {
		t.Errorf("asked %v, ended %+v", a.asked, endOf(events))
	}
	if _, err := os.Stat(filepath.Join(f.dir, "other.txt")); err != nil {
		t.Error(err)
	}
	f.check()
}

func TestCallsThatCannotRun(t *testing.T) {
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{
		llmtest.Call(
			llm.ToolCall{ID: "1", Name: "teleport", Arguments: `{}`},
			llm.ToolCall{ID: "2", Name: "read", Arguments: `{"path": oops`},
			llm.ToolCall{ID: "3", Name: "read", Arguments: `{"pth":"x"}`},
			llm.ToolCall{ID: "4", Name: "read", Arguments: `{"path":"none.txt"}`},
		),
		llmtest.Say("done"),
	}}
	f := newFixture(t, p, nil, agent.Options{})
	events := f.turn(t.Context(), "go")
	finished := find[agent.CallFinished](events)
	if len(finished) != 4 || endOf(events).Reason != agent.EndCompleted {
		t.Fatalf("%+v", events)
	}
	for i, want := range []string{`no tool "teleport"`, "byte 9", "pth", "none.txt"} {
		r := finished[i].Result
		if r.Status != tool.StatusError || !strings.Contains(r.Text, want) {
			t.Errorf("call %d: %s %q, want an error about %s", i, r.Status, r.Text, want)
		}
	}
	f.check()
}

func TestLengthNeverRunsCalls(t *testing.T) {
	cut := llmtest.Answer{Events: []llm.Event{
		llm.TextDelta("I write"), llm.ToolCalls{edit("1")}, llm.Finish{Reason: llm.FinishLength},
	}}
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{cut, llmtest.Say("on")}}
	f := newFixture(t, p, nil, agent.Options{Gate: tool.NewGate(tool.ModeFull)})
	events := f.turn(t.Context(), "go")
	if endOf(events).Reason != agent.EndMaxTokens || len(p.Requests()) != 1 {
		t.Errorf("ended %+v after %d requests", endOf(events), len(p.Requests()))
	}
	if _, err := os.Stat(filepath.Join(f.dir, "new.txt")); err == nil {
		t.Error("the call ran")
	}
	if endOf(f.turn(t.Context(), "continue")).Reason != agent.EndCompleted {
		t.Error("the session cannot go on")
	}
	f.check()
}

func TestReadOnlyCallsRunSideBySide(t *testing.T) {
	var calls []llm.ToolCall
	for i := range 20 {
		calls = append(calls, llm.ToolCall{ID: fmt.Sprint(i), Name: "read", Arguments: fmt.Sprintf(`{"path":"f%d"}`, i)})
	}
	calls = slices.Insert(calls, 10, edit("w"))
	p := &llmtest.Provider{Facts: window(32768), Script: []llmtest.Answer{llmtest.Call(calls...), llmtest.Say("done")}}
	f := newFixture(t, p, nil, agent.Options{Gate: tool.NewGate(tool.ModeEdit)})
	for i := range 20 {
		if err := os.WriteFile(filepath.Join(f.dir, fmt.Sprint("f", i)), fmt.Appendf(nil, "content %d\n", i), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	events := f.turn(t.Context(), "go")
	var order []string
	for _, c := range find[agent.CallFinished](events) {
		if c.Result.Status != tool.StatusOK {
			t.Errorf("call %s: %s", c.ID, c.Result.Text)
		}
		order = append(order, c.ID)
	}
	for i, c := range calls {
		if order[i] != c.ID {
			t.Fatalf("results in the order %v", order)
		}
	}
	f.check()
}

func TestNothingFits(t *testing.T) {
	p := &llmtest.Provider{Facts: window(600)}
	f := newFixture(t, p, nil, agent.Options{})
	end := endOf(f.turn(t.Context(), "go"))
	if end.Reason != agent.EndError || agent.Code(end.Err) != llm.CodeContextWindowExceeded {
		t.Errorf("ended %+v", end)
	}
	if len(p.Requests()) != 0 {
		t.Error("a request was sent")
	}
}

// slowPrefill is the cause of a first-byte timeout.
type slowPrefill struct{}

func (slowPrefill) Error() string    { return "no answer began" }
func (slowPrefill) Prefilling() bool { return true }

func TestRetries(t *testing.T) {
	busy := llm.Errorf(llm.CodeServer, "busy")
	tests := []struct {
		name     string
		script   []llmtest.Answer
		requests int
		end      agent.EndReason
		took     time.Duration // at most; jitter is a tenth
	}{
		{"once", []llmtest.Answer{llmtest.Fail(busy), llmtest.Say("ok")}, 2, agent.EndCompleted, 550 * time.Millisecond},
		{"too often", slices.Repeat([]llmtest.Answer{llmtest.Fail(busy)}, 9), 6, agent.EndError, 17100 * time.Millisecond},
		{"nobody listens", slices.Repeat([]llmtest.Answer{llmtest.Fail(&llm.Error{Code: llm.CodeTransport, Message: "refused", Unreached: true})}, 9), 3, agent.EndError, 1650 * time.Millisecond},
		{"in a long prefill", []llmtest.Answer{llmtest.Fail(&llm.Error{Code: llm.CodeTimeout, Message: "slow", Cause: slowPrefill{}}), llmtest.Say("ok")}, 1, agent.EndError, 0},
		{"not after output", []llmtest.Answer{{Events: []llm.Event{llm.TextDelta("half")}, Err: busy}, llmtest.Say("ok")}, 1, agent.EndError, 0},
		{"not when it is permanent", []llmtest.Answer{llmtest.Fail(&llm.Error{Code: llm.CodeServer, Message: "failed to load model", Permanent: true}), llmtest.Say("ok")}, 1, agent.EndError, 0},
		{"not for a bad request", []llmtest.Answer{llmtest.Fail(llm.Errorf(llm.CodeInvalidRequest, "no")), llmtest.Say("ok")}, 1, agent.EndError, 0},
		{"empty once", []llmtest.Answer{llmtest.Fail(llm.Errorf(llm.CodeEmptyResponse, "nothing")), llmtest.Say("ok")}, 2, agent.EndCompleted, 550 * time.Millisecond},
		{"empty twice", slices.Repeat([]llmtest.Answer{llmtest.Fail(llm.Errorf(llm.CodeEmptyResponse, "nothing"))}, 3), 2, agent.EndError, 550 * time.Millisecond},
		{"asked to wait", []llmtest.Answer{llmtest.Fail(&llm.Error{Code: llm.CodeRateLimit, Message: "slow", RetryAfter: 30 * time.Second}), llmtest.Say("ok")}, 2, agent.EndCompleted, 30 * time.Second},
		{"asked to wait too long", []llmtest.Answer{llmtest.Fail(&llm.Error{Code: llm.CodeRateLimit, Message: "slow", RetryAfter: time.Hour}), llmtest.Say("ok")}, 1, agent.EndError, 0},
		{"loading", append(slices.Repeat([]llmtest.Answer{llmtest.Fail(&llm.Error{Code: llm.CodeServer, Message: "loading", Loading: true})}, 20), llmtest.Say("ok")), 21, agent.EndCompleted, 40 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &llmtest.Provider{Facts: window(8192), Script: tt.script}
				f := newFixture(t, p, nil, agent.Options{})
				start := time.Now()
				end := endOf(f.turn(t.Context(), "go"))
				if end.Reason != tt.end || len(p.Requests()) != tt.requests {
					t.Errorf("ended %+v after %d requests, want %s after %d", end, len(p.Requests()), tt.end, tt.requests)
				}
				if took := time.Since(start); took > tt.took || took < tt.took*8/10 {
					t.Errorf("took %v, want about %v", took, tt.took)
				}
				f.check()
			})
		})
	}
}

func TestAPartialAnswerIsKept(t *testing.T) {
	broken := llmtest.Answer{Events: []llm.Event{llm.TextDelta("The first half")}, Err: llm.Errorf(llm.CodeStreamClosed, "closed")}
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{broken, llmtest.Say("on")}}
	f := newFixture(t, p, nil, agent.Options{})
	end := endOf(f.turn(t.Context(), "go"))
	if end.Reason != agent.EndError || !strings.Contains(end.Err.Error(), "continue") {
		t.Errorf("ended %+v", end)
	}
	f.turn(t.Context(), "continue")
	reqs := p.Requests()
	if got := reqs[1].Messages; len(got) != 3 || got[1].Text() != "The first half" {
		t.Errorf("the second request holds %+v", got)
	}
	f.check()
}

func TestARefusedOptionIsLeftOut(t *testing.T) {
	refused := &llm.Error{Code: llm.CodeUnsupportedOption, Message: "no temperature", Option: llm.RefusedSampling}
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Fail(refused), llmtest.Say("ok"), llmtest.Say("ok")}}
	f := newFixture(t, p, nil, agent.Options{})
	if end := endOf(f.turn(t.Context(), "go")); end.Reason != agent.EndCompleted {
		t.Errorf("ended %+v", end)
	}
	f.turn(t.Context(), "again")
	for i, req := range p.Requests() {
		if sent := req.Snapshot.Temperature() != nil; sent != (i == 0) {
			t.Errorf("request %d: temperature sent %v", i, sent)
		}
	}
	f.check()
}

func TestTheEnginesWindowIsBelieved(t *testing.T) {
	over := &llm.Error{Code: llm.CodeContextWindowExceeded, Message: "too long", Window: 4096, PromptTokens: 5000}
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Fail(over), llmtest.Say("ok"), llmtest.Say("ok")}}
	f := newFixture(t, p, nil, agent.Options{})
	if end := endOf(f.turn(t.Context(), "go")); end.Reason != agent.EndCompleted {
		t.Fatalf("ended %+v", end)
	}
	f.turn(t.Context(), "again")
	for i, want := range []int{8192, 4096, 4096} {
		if got := p.Requests()[i].Snapshot.Window.Tokens; got != want {
			t.Errorf("request %d was planned for %d, want %d", i, got, want)
		}
	}
	f.check()

	twice := &llmtest.Provider{Facts: window(8192), Script: slices.Repeat([]llmtest.Answer{llmtest.Fail(over)}, 5)}
	f = newFixture(t, twice, nil, agent.Options{})
	if end := endOf(f.turn(t.Context(), "go")); end.Reason != agent.EndError || len(twice.Requests()) != 2 {
		t.Errorf("ended %+v after %d requests: no loops", end, len(twice.Requests()))
	}
}

func TestASilentCutIsTold(t *testing.T) {
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{{Events: []llm.Event{
		llm.TextDelta("ok"), llm.Usage{PromptTokens: 12, CompletionTokens: 1}, llm.Finish{Reason: llm.FinishStop},
	}}}}
	f := newFixture(t, p, nil, agent.Options{})
	told := 0
	for _, n := range find[agent.Notice](f.turn(t.Context(), strings.Repeat("word after word ", 200))) {
		if strings.Contains(n.Text, "cut the prompt") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

func TestCancel(t *testing.T) {
	sleeping := llmtest.Call(llm.ToolCall{ID: "1", Name: "shell", Arguments: `{"command":"sleep 600"}`})
	tests := []struct {
		name     string
		script   []llmtest.Answer
		approver tool.Approver
		mode     tool.Mode
		until    func(agent.Event) bool
	}{
		{"before the first byte", []llmtest.Answer{llmtest.Hang("")}, nil, tool.ModeAsk, func(ev agent.Event) bool { _, ok := ev.(agent.Planned); return ok }},
		{"in the stream", []llmtest.Answer{llmtest.Hang("half")}, nil, tool.ModeAsk, func(ev agent.Event) bool { _, ok := ev.(agent.Text); return ok }},
		{"at a question", []llmtest.Answer{llmtest.Call(edit("1"))}, &answers{wait: true}, tool.ModeAsk, func(ev agent.Event) bool { _, ok := ev.(agent.CallPending); return ok }},
		{"in a tool", []llmtest.Answer{sleeping}, nil, tool.ModeFull, func(ev agent.Event) bool { _, ok := ev.(agent.CallStarted); return ok }},
		{"in a wait", slices.Repeat([]llmtest.Answer{llmtest.Fail(llm.Errorf(llm.CodeServer, "busy"))}, 6), nil, tool.ModeAsk, func(ev agent.Event) bool { _, ok := ev.(agent.Retrying); return ok }},
	}
	for _, tt := range tests {
		for _, leave := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, leave %v", tt.name, leave), func(t *testing.T) {
				p := &llmtest.Provider{Facts: window(8192), Script: tt.script}
				f := newFixture(t, p, tt.approver, agent.Options{Gate: tool.NewGate(tt.mode), Environ: os.Environ()})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var last agent.Event
				for ev := range f.agent.Turn(ctx, []llm.Part{llm.Text("go")}) {
					last = ev
					if tt.until(ev) {
						if leave {
							break
						}
						cancel()
					}
				}
				if end, ok := last.(agent.End); !leave && (!ok || end.Reason != agent.EndCancelled) {
					t.Errorf("ended with %#v", last)
				}
				var end *session.TurnEnd
				for rec, err := range f.log.Records() {
					if err != nil {
						t.Fatal(err)
					}
					if e, ok := rec.(*session.TurnEnd); ok {
						end = e
					}
				}
				if end == nil || end.Reason != session.EndCancelled {
					t.Errorf("the log ends with %+v", end)
				}
				p.Answer = func(int, *llm.Request) llmtest.Answer { return llmtest.Say("ok") }
				if end := endOf(f.turn(t.Context(), "next")); end.Reason != agent.EndCompleted {
					t.Errorf("the next prompt ended %+v", end)
				}
				f.check()
			})
		}
	}
}

func TestASelectionTakesEffectAtTheNextStep(t *testing.T) {
	p := &llmtest.Provider{Facts: window(8192)}
	f := newFixture(t, p, nil, agent.Options{Gate: tool.NewGate(tool.ModeEdit)})
	p.Answer = func(n int, _ *llm.Request) llmtest.Answer {
		if n == 0 {
			f.selector.Select(t.Context(), llm.Target{Provider: "p", Model: "other"})
			return llmtest.Call(edit("1"))
		}
		return llmtest.Say("done")
	}
	events := f.turn(t.Context(), "go")
	for i, want := range []string{"m", "other"} {
		req := p.Requests()[i]
		if req.Snapshot.Target.Model != want || !strings.Contains(req.System, "the model "+want+" of p") {
			t.Errorf("request %d goes to %s and says:\n%s", i, req.Snapshot.Target, req.System)
		}
	}
	if models := find[agent.Model](events); len(models) != 2 {
		t.Errorf("%d model events", len(models))
	}
	f.check()
}

func TestToolsAreNotOfferedWhereTheyAreUnsupported(t *testing.T) {
	facts := window(8192)
	facts.Capabilities.Tools.Support = llm.Unsupported
	p := &llmtest.Provider{Facts: facts}
	f := newFixture(t, p, nil, agent.Options{})
	events := f.turn(t.Context(), "go")
	if n := len(p.Requests()[0].Tools); n != 0 {
		t.Errorf("%d tools sent", n)
	}
	if len(find[agent.Notice](events)) != 1 {
		t.Errorf("notices %v", find[agent.Notice](events))
	}
	f.check()
}

func TestSmallWindowsGetFewerTools(t *testing.T) {
	for size, want := range map[int]string{
		11_999: "[edit grep read shell]",
		12_000: "[edit forget glob grep read remember shell todo write]",
	} {
		p := &llmtest.Provider{Facts: window(size)}
		f := newFixture(t, p, nil, agent.Options{Memory: memory.Open("")})
		f.turn(t.Context(), "go")
		var names []string
		for _, d := range p.Requests()[0].Tools {
			names = append(names, d.Name)
		}
		if got := fmt.Sprint(names); got != want {
			t.Errorf("window %d: %s", size, got)
		}
	}
}

// TestWhatEveryRequestCosts holds the fixed part of a request small: local
// windows are.
func TestWhatEveryRequestCosts(t *testing.T) {
	for _, tt := range []struct{ window, tools, together int }{
		{8192, 850, 1250},
		{32768, 1450, 1850},
	} {
		p := &llmtest.Provider{Facts: window(tt.window)}
		f := newFixture(t, p, nil, agent.Options{Memory: memory.Open("")})
		r := find[agent.Planned](f.turn(t.Context(), "go"))[0].Report
		b := r.BreakdownAfter
		t.Logf("window %d: system %d, tools %d", tt.window, b.System, b.ToolSchemas)
		if b.ToolSchemas >= tt.tools || b.System+b.ToolSchemas >= tt.together {
			t.Errorf("window %d: system %d and tools %d tokens, want tools under %d and both under %d",
				tt.window, b.System, b.ToolSchemas, tt.tools, tt.together)
		}
	}
}

func TestAResumedSessionGoesOn(t *testing.T) {
	store := session.NewStore(t.TempDir())
	dir := t.TempDir()
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Say("one"), llmtest.Say("two")}}
	registry := new(catalog.Registry)
	if _, err := registry.Register(p, "p"); err != nil {
		t.Fatal(err)
	}
	sel := target.NewSelector(registry, new(target.Store), 0)
	sel.Select(t.Context(), llm.Target{Provider: "p", Model: "m"})
	log, err := store.Create(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	id := log.ID()
	first := agent.New(sel, log, log.NewState(), nil, &agent.Options{Dir: dir})
	for range first.Turn(t.Context(), []llm.Part{llm.Text("first")}) {
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	log, state, err := store.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	second := agent.New(sel, log, state, nil, &agent.Options{Dir: dir})
	for range second.Turn(t.Context(), []llm.Part{llm.Text("second")}) {
	}
	if got := p.Requests()[1].Messages; len(got) != 3 || got[1].Text() != "one" {
		t.Errorf("the second request holds %+v", got)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	agenttest.Check(t, store.Records(id), p.Requests())
}

func TestCallIDsAreUniqueInTheWholeConversation(t *testing.T) {
	p := &llmtest.Provider{Facts: window(8192)}
	p.Answer = func(n int, _ *llm.Request) llmtest.Answer {
		if n == 40 {
			return llmtest.Say("done")
		}
		return llmtest.Call(llm.ToolCall{ID: "call_0", Name: "read", Arguments: fmt.Sprintf(`{"path":"big.txt","offset":%d}`, n+1)})
	}
	f := newFixture(t, p, nil, agent.Options{})
	big := strings.Repeat("A line of a file that is read again and again.\n", 100)
	if err := os.WriteFile(filepath.Join(f.dir, "big.txt"), []byte(big), 0o600); err != nil {
		t.Fatal(err)
	}
	events := f.turn(t.Context(), "go")
	seen := make(map[string]bool)
	for _, c := range find[agent.CallPending](events) {
		if seen[c.Call.ID] {
			t.Fatalf("the id %s is used twice", c.Call.ID)
		}
		seen[c.Call.ID] = true
	}
	if planned := find[agent.Planned](events); len(planned[len(planned)-1].Report.OmittedGroups) == 0 {
		t.Error("no round was left out: the test does not reach what it is about")
	}
	f.check()
}

// printedCall is the cause of an answer that printed a call as text.
type printedCall struct{ text string }

func (p *printedCall) Error() string       { return "printed" }
func (p *printedCall) PrintedCall() string { return p.text }

func TestAPrintedCallIsAskedForOnceMore(t *testing.T) {
	bad := llmtest.Answer{
		Events: []llm.Event{llm.TextDelta("I will look.")},
		Err:    &llm.Error{Code: llm.CodeMalformedResponse, Message: "printed", Cause: &printedCall{"<tool_call>{}"}},
	}
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{bad, llmtest.Say("good"), bad, bad}}
	f := newFixture(t, p, nil, agent.Options{})
	if end := endOf(f.turn(t.Context(), "go")); end.Reason != agent.EndCompleted {
		t.Fatalf("ended %+v", end)
	}
	second := p.Requests()[1].Messages
	if len(second) != 2 || !second[1].Continuation || !agent.IsNote(&second[1]) || !strings.Contains(second[1].Text(), "written as text") {
		t.Errorf("the second request holds %+v", second)
	}
	end := endOf(f.turn(t.Context(), "again"))
	if end.Reason != agent.EndError || agent.Code(end.Err) != llm.CodeMalformedResponse || len(p.Requests()) != 4 {
		t.Errorf("ended %+v after %d requests", end, len(p.Requests()))
	}
	for _, m := range f.agent.Messages() {
		if strings.Contains(m.Text(), "<tool_call>") || strings.Contains(m.Text(), "I will look") {
			t.Errorf("the conversation holds %q", m.Text())
		}
	}
	f.check()
}

func TestNoProgress(t *testing.T) {
	again := func(n int, _ *llm.Request) llmtest.Answer {
		// Spaces and order of members do not make another call.
		arguments := []string{`{"path":"f.txt","limit":5}`, `{ "limit": 5, "path": "f.txt" }`}[n%2]
		return llmtest.Call(llm.ToolCall{ID: fmt.Sprint(n), Name: "read", Arguments: arguments})
	}
	for _, tt := range []struct {
		name     string
		approver *answers
		requests int
		code     llm.Code
		end      agent.EndReason
	}{
		{"nobody to ask", nil, 3, llm.CodeNoProgress, agent.EndError},
		{"stop", &answers{decision: tool.RejectOnce}, 3, llm.CodeNoProgress, agent.EndError},
		{"cancel", &answers{decision: tool.Cancelled}, 3, "", agent.EndCancelled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &llmtest.Provider{Facts: window(32768), Answer: again}
			var approver tool.Approver
			if tt.approver != nil {
				approver = tt.approver
			}
			f := newFixture(t, p, approver, agent.Options{})
			if err := os.WriteFile(filepath.Join(f.dir, "f.txt"), []byte("x\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			end := endOf(f.turn(t.Context(), "go"))
			if end.Reason != tt.end || tt.code != "" && agent.Code(end.Err) != tt.code || len(p.Requests()) != tt.requests {
				t.Errorf("ended %+v after %d requests", end, len(p.Requests()))
			}
			f.check()
		})
	}
	t.Run("go on", func(t *testing.T) {
		a := &answers{decision: tool.AllowOnce}
		p := &llmtest.Provider{Facts: window(32768)}
		p.Answer = func(n int, req *llm.Request) llmtest.Answer {
			if n == 8 {
				return llmtest.Say("done")
			}
			return again(n, req)
		}
		f := newFixture(t, p, a, agent.Options{})
		end := endOf(f.turn(t.Context(), "go"))
		if end.Reason != agent.EndCompleted || len(a.asked) != 3 {
			t.Errorf("ended %+v, asked %v", end, a.asked)
		}
	})
	t.Run("a change starts the count again", func(t *testing.T) {
		p := &llmtest.Provider{Facts: window(32768)}
		p.Answer = func(n int, req *llm.Request) llmtest.Answer {
			switch {
			case n == 12:
				return llmtest.Say("done")
			case n%3 == 2:
				return llmtest.Call(llm.ToolCall{ID: fmt.Sprint(n), Name: "write", Arguments: fmt.Sprintf(`{"path":"f.txt","content":"%d"}`, n)})
			}
			return again(n, req)
		}
		f := newFixture(t, p, nil, agent.Options{Gate: tool.NewGate(tool.ModeEdit)})
		if end := endOf(f.turn(t.Context(), "go")); end.Reason != agent.EndCompleted {
			t.Errorf("ended %+v", end)
		}
	})
}

func TestALearntWindowHoldsWhileTheClaimIsRepeated(t *testing.T) {
	over := &llm.Error{Code: llm.CodeContextWindowExceeded, Message: "too long", Window: 4096, PromptTokens: 5000}
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Fail(over), llmtest.Say("ok")}}
	f := newFixture(t, p, nil, agent.Options{})
	f.turn(t.Context(), "go")
	plan, err := f.agent.Preview(t.Context(), []llm.Part{llm.Text("next")})
	if err != nil || plan.Report.WindowTokens != 4096 {
		t.Errorf("preview for %d, %v", plan.Report.WindowTokens, err)
	}
	p.Facts = window(65536) // raised, as the hint says
	f.selector.Select(t.Context(), llm.Target{Provider: "p", Model: "m"})
	f.turn(t.Context(), "next")
	if got := p.Requests()[2].Snapshot.Window.Tokens; got != 65536 {
		t.Errorf("planned for %d", got)
	}
	f.check()
}

func TestOnlyTheOutputIsTooLong(t *testing.T) {
	for _, tt := range []struct{ prompt, maxTokens, window int }{
		{7500, 8192 - 7500 - 64, 8192}, // room for an answer
		{8100, 0, 0},                   // none: the whole is planned smaller
	} {
		over := &llm.Error{Code: llm.CodeContextWindowExceeded, Message: "too long", Window: 8192, PromptTokens: tt.prompt}
		p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Fail(over), llmtest.Say("ok")}}
		f := newFixture(t, p, nil, agent.Options{})
		if end := endOf(f.turn(t.Context(), "go")); end.Reason != agent.EndCompleted {
			t.Fatalf("ended %+v", end)
		}
		second := p.Requests()[1]
		if tt.maxTokens > 0 && second.MaxTokens != tt.maxTokens {
			t.Errorf("prompt %d: max_tokens %d, want %d", tt.prompt, second.MaxTokens, tt.maxTokens)
		}
		if tt.window == 0 && second.Snapshot.Window.Tokens >= 8192 {
			t.Errorf("prompt %d: planned for %d again", tt.prompt, second.Snapshot.Window.Tokens)
		}
		f.check()
	}
}

func TestAnAssumedWindowIsWidenedOnce(t *testing.T) {
	facts := llm.ModelInfo{Window: llm.Window{Tokens: 4096, Source: llm.Assumed, Declared: 32768}}
	p := &llmtest.Provider{Facts: facts}
	long := strings.Repeat("word ", 1400)
	f := newFixture(t, p, nil, agent.Options{})
	f.selector.SetEffort(llm.Summit)
	plan, err := f.agent.Preview(t.Context(), []llm.Part{llm.Text(long)})
	if err != nil || plan.Report.WindowTokens != 4096 {
		t.Fatalf("preview %+v, %v", plan, err)
	}
	if err := os.WriteFile(filepath.Join(f.dir, "AGENTS.md"), []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	told := 0
	for range 2 {
		for _, n := range find[agent.Notice](f.turn(t.Context(), "go")) {
			if strings.Contains(n.Text, "are assumed") {
				told++
			}
		}
	}
	for _, req := range p.Requests() {
		if req.Snapshot.Window.Tokens != 8192 {
			t.Errorf("planned for %d", req.Snapshot.Window.Tokens)
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	f.check()
}

func TestTheWindowIsConfirmedAfterTheFirstAnswer(t *testing.T) {
	p := &llmtest.Provider{Facts: llm.ModelInfo{Window: llm.Window{Tokens: 4096, Source: llm.Assumed, Declared: 32768}}}
	p.Answer = func(int, *llm.Request) llmtest.Answer {
		p.Facts = window(512) // the engine loads it smaller, and cuts
		return llmtest.Answer{Events: []llm.Event{
			llm.TextDelta("ok"), llm.Usage{PromptTokens: 512, CompletionTokens: 1}, llm.Finish{Reason: llm.FinishStop},
		}}
	}
	f := newFixture(t, p, nil, agent.Options{ToolsOff: []string{"read", "edit", "grep", "shell"}})
	events := f.turn(t.Context(), "go")
	cut := 0
	for _, n := range find[agent.Notice](events) {
		if strings.Contains(n.Text, "exactly its window: it cut the prompt") {
			cut++
		}
	}
	if models := find[agent.Model](events); cut != 1 || len(models) != 2 || models[1].Snapshot.Window.Tokens != 512 {
		t.Errorf("told %d times, models %+v", cut, models)
	}
}

func TestAClosedSessionRunsNothing(t *testing.T) {
	p := &llmtest.Provider{Facts: window(8192)}
	f := newFixture(t, p, nil, agent.Options{})
	f.turn(t.Context(), "one")
	if err := f.agent.Close(); err != nil {
		t.Fatal(err)
	}
	if end := endOf(f.turn(t.Context(), "two")); end.Reason != agent.EndError || len(p.Requests()) != 1 {
		t.Errorf("ended %+v after %d requests", end, len(p.Requests()))
	}
}

func TestAPanicInTheLoopEndsTheTurn(t *testing.T) {
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Hang("half"), llmtest.Say("ok")}}
	f := newFixture(t, p, nil, agent.Options{})
	func() {
		defer func() { _ = recover() }()
		for ev := range f.agent.Turn(t.Context(), []llm.Part{llm.Text("go")}) {
			if _, ok := ev.(agent.Text); ok {
				panic("front end")
			}
		}
	}()
	if end := endOf(f.turn(t.Context(), "next")); end.Reason != agent.EndCompleted {
		t.Errorf("ended %+v", end)
	}
	f.check()
}

// TestAQuestionComesAfterItsCall holds the order that front ends rely on.
func TestAQuestionComesAfterItsCall(t *testing.T) {
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Call(edit("1")), llmtest.Say("done")}}
	var handled atomic.Bool
	f := newFixture(t, p, approverFunc(func() { // asked while the loop below may still be at it
		if !handled.Load() {
			t.Error("asked before the call was shown")
		}
	}), agent.Options{})
	for ev := range f.agent.Turn(t.Context(), []llm.Part{llm.Text("go")}) {
		if _, ok := ev.(agent.CallPending); ok {
			runtime.Gosched()
			handled.Store(true)
		}
	}
}

type approverFunc func()

func (f approverFunc) Approve(context.Context, *tool.Question) (tool.Decision, error) {
	f()
	return tool.AllowOnce, nil
}

func TestEveryCallIsShownBeforeItsResult(t *testing.T) {
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Call(edit("1"), edit("2"), edit("3"))}}
	f := newFixture(t, p, &answers{decision: tool.Cancelled}, agent.Options{})
	shown := make(map[string]bool)
	results := 0
	for _, ev := range f.turn(t.Context(), "go") {
		switch ev := ev.(type) {
		case agent.CallPending:
			shown[ev.Call.ID] = true
		case agent.CallFinished:
			results++
			if !shown[ev.ID] {
				t.Errorf("the result of %s comes before the call", ev.ID)
			}
		}
	}
	if results != 3 {
		t.Errorf("%d results", results)
	}
	f.check()
}

func TestImagesAreSentWithAWarning(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	img, err := llm.NewImage("dot.png", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	refused := &llm.Error{Code: llm.CodeInvalidRequest, Message: "no images", Option: llm.RefusedImages}
	p := &llmtest.Provider{Facts: window(16384), Script: []llmtest.Answer{llmtest.Fail(refused), llmtest.Say("ok")}}
	f := newFixture(t, p, nil, agent.Options{})
	var events []agent.Event
	for ev := range f.agent.Turn(t.Context(), []llm.Part{img, llm.Text("what is it?")}) {
		events = append(events, ev)
	}
	notices := fmt.Sprint(find[agent.Notice](events))
	if !strings.Contains(notices, "not proven") || !strings.Contains(notices, "refuses images") || endOf(events).Reason != agent.EndCompleted {
		t.Errorf("notices %s, ended %+v", notices, endOf(events))
	}
	f.check()
}

func TestToolsAreTurnedOffAndOn(t *testing.T) {
	p := &llmtest.Provider{Facts: window(8192)}
	f := newFixture(t, p, nil, agent.Options{ToolsOff: []string{"grep"}})
	if err := f.agent.SetTool("shell", false); err != nil {
		t.Fatal(err)
	}
	if err := f.agent.SetTool("grep", true); err != nil {
		t.Fatal(err)
	}
	if err := f.agent.SetTool("teleport", false); err == nil || !strings.Contains(err.Error(), "edit, glob, grep") {
		t.Errorf("%v", err)
	}
	f.turn(t.Context(), "go")
	var names []string
	for _, d := range p.Requests()[0].Tools {
		names = append(names, d.Name)
	}
	if got := fmt.Sprint(names); got != "[edit grep read]" {
		t.Errorf("offered %s", got)
	}
}

func TestAnEngineThatIsGoneIsForgotten(t *testing.T) {
	gone := &llm.Error{Code: llm.CodeTransport, Message: "refused", Unreached: true}
	synctest.Test(t, func(t *testing.T) {
		p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Fail(gone), llmtest.Say("ok")}}
		registry := new(catalog.Registry)
		if _, err := registry.Register(p, "p"); err != nil {
			t.Fatal(err)
		}
		store := new(target.Store)
		sel := target.NewSelector(registry, store, 0)
		sel.Select(t.Context(), llm.Target{Provider: "p", Model: "m"})
		log, err := session.NewStore("").Create(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for range agent.New(sel, log, log.NewState(), nil, nil).Turn(t.Context(), []llm.Part{llm.Text("go")}) {
		}
		if known, ok := store.Get(llm.Target{Provider: "p", Model: "m"}); ok {
			t.Errorf("the store still holds %+v", known)
		}
	})
}
