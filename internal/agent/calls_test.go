package agent_test

import (
	"context"
	"fmt"
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
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/tool"
)

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

// TestWhatWasOfferedMayBeCalled: what the engine tells of its window after the
// request was sent does not take tools away from the answer.
func TestWhatWasOfferedMayBeCalled(t *testing.T) {
	p := &llmtest.Provider{Facts: llm.ModelInfo{Window: llm.Window{Tokens: 32768, Source: llm.Declared}}}
	p.Answer = func(n int, _ *llm.Request) llmtest.Answer {
		if n > 0 {
			return llmtest.Say("done")
		}
		p.Facts = window(8192) // the model is loaded now
		return llmtest.Call(llm.ToolCall{ID: "1", Name: "glob", Arguments: `{"pattern":"*"}`})
	}
	f := newFixture(t, p, nil, agent.Options{})
	events := f.turn(t.Context(), "go")
	if r := find[agent.CallFinished](events)[0].Result; r.Status != tool.StatusOK {
		t.Errorf("glob was offered, and gave %+v", r)
	}
	var told []string
	for _, n := range find[agent.Notice](events) {
		told = append(told, n.Text)
	}
	if len(p.Requests()[0].Tools) < 7 || len(p.Requests()[1].Tools) != 4 || !strings.Contains(fmt.Sprint(told), "only edit, grep, read, shell") {
		t.Errorf("offered %d and %d tools, told %q", len(p.Requests()[0].Tools), len(p.Requests()[1].Tools), told)
	}
	f.check()
}

// crowd is a tool whose calls wait until as many run as can.
type crowd struct {
	inside, most atomic.Int32
}

func (*crowd) Def() llm.ToolDef { return llm.NewToolDef("crowd", "", nil) }
func (*crowd) Server() string   { return "crowd" }
func (c *crowd) Prepare(context.Context, string) (*tool.Action, error) {
	return &tool.Action{Title: "in", Access: tool.AccessNone, ReadOnly: true, Run: func(ctx context.Context, _ func(string)) tool.Result {
		n := c.inside.Add(1)
		defer c.inside.Add(-1)
		for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
		}
		time.Sleep(time.Second) // of virtual time: everybody who can come is there
		return tool.Result{Text: "out"}
	}}, nil
}

func TestEightCallsRunSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(crowd)
		var calls []llm.ToolCall
		for i := range 20 {
			calls = append(calls, llm.ToolCall{ID: fmt.Sprint(i), Name: "crowd", Arguments: fmt.Sprintf(`{"n":%d}`, i)})
		}
		p := &llmtest.Provider{Facts: window(32768), Script: []llmtest.Answer{llmtest.Call(calls...), llmtest.Say("done")}}
		f := newFixture(t, p, nil, agent.Options{Connect: func(*agent.Options) tool.Source { return &shelf{tools: []tool.Tool{c}} }})
		if end := endOf(f.turn(t.Context(), "go")); end.Reason != agent.EndCompleted {
			t.Errorf("ended %+v", end)
		}
		if n := c.most.Load(); n != 8 {
			t.Errorf("%d calls ran side by side", n)
		}
		f.check()
	})
}

// TestNothingRunsThatIsNotLogged: a log that takes nothing any more stops writes
// at each record that they depend on, and the message of the person too.
func TestNothingRunsThatIsNotLogged(t *testing.T) {
	written := func(f *fixture) bool {
		_, err := os.Stat(filepath.Join(f.dir, "new.txt"))
		return err == nil
	}
	t.Run("the prompt", func(t *testing.T) {
		f := newFixture(t, &llmtest.Provider{Facts: window(8192)}, nil, agent.Options{})
		f.log.Close()
		if end := endOf(f.turn(t.Context(), "go")); end.Reason != agent.EndError || len(f.provider.Requests()) != 0 {
			t.Errorf("ended %+v after %d requests", end, len(f.provider.Requests()))
		}
	})
	t.Run("the intent", func(t *testing.T) {
		var f *fixture
		p := &llmtest.Provider{Facts: window(8192)}
		p.Answer = func(int, *llm.Request) llmtest.Answer {
			a := llmtest.Call(edit("1"))
			a.Wait = func(context.Context) { f.log.Close() }
			return a
		}
		f = newFixture(t, p, nil, agent.Options{Gate: tool.NewGate(tool.ModeFull)})
		f.turn(t.Context(), "go")
		if written(f) {
			t.Error("a write ran without its intent in the log")
		}
	})
	t.Run("the permission", func(t *testing.T) {
		var f *fixture
		p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Call(edit("1"))}}
		f = newFixture(t, p, approveWith(func() { f.log.Close() }), agent.Options{})
		events := f.turn(t.Context(), "go")
		if r := find[agent.CallFinished](events)[0].Result; written(f) || r.Status != tool.StatusNotExecuted {
			t.Errorf("a write ran without its permission in the log: %+v", r)
		}
	})
}

// TestImagesOfAStoppedBatchAreKept: what a tool returned before the person
// stopped the turn is in the conversation.
func TestImagesOfAStoppedBatchAreKept(t *testing.T) {
	p := &llmtest.Provider{Facts: window(32768), Script: []llmtest.Answer{
		llmtest.Call(llm.ToolCall{ID: "1", Name: "read", Arguments: `{"path":"dot.png"}`}, edit("2")), llmtest.Say("ok"),
	}}
	f := newFixture(t, p, &answers{decision: tool.Cancelled}, agent.Options{})
	if err := os.WriteFile(filepath.Join(f.dir, "dot.png"), pngFile(t, 8, 8), 0o600); err != nil {
		t.Fatal(err)
	}
	if end := endOf(f.turn(t.Context(), "go")); end.Reason != agent.EndCancelled {
		t.Fatalf("ended %+v", end)
	}
	f.turn(t.Context(), "again")
	images := 0
	for _, m := range p.Requests()[1].Messages {
		images += len(m.Images())
	}
	if images != 1 {
		t.Errorf("%d images in the next request", images)
	}
	f.check()
}

// TestCallsOfABrokenAnswerAreNotKept: nobody knows whether they were complete.
func TestCallsOfABrokenAnswerAreNotKept(t *testing.T) {
	broken := llmtest.Answer{
		Events: []llm.Event{llm.TextDelta("I look."), llm.ToolCalls{{ID: "1", Name: "read", Arguments: `{"path":"x"}`}}},
		Err:    llm.Errorf(llm.CodeStreamClosed, "closed"),
	}
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{broken, llmtest.Say("ok")}}
	f := newFixture(t, p, nil, agent.Options{})
	f.turn(t.Context(), "go")
	if end := endOf(f.turn(t.Context(), "continue")); end.Reason != agent.EndCompleted {
		t.Errorf("ended %+v", end)
	}
	for _, m := range p.Requests()[1].Messages {
		if len(m.Calls) > 0 || m.Role == llm.Tool {
			t.Errorf("the next request holds %+v", m)
		}
	}
	f.check()
}
