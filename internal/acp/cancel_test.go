package acp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/acp/acptest"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
)

// hanging is a provider whose every answer hangs behind its first word.
func hanging(route string) *llmtest.Provider {
	return &llmtest.Provider{Route: route, List: models("m"), Answer: func(n int, req *llm.Request) llmtest.Answer {
		return llmtest.Hang("One")
	}}
}

type stop struct{ StopReason string }

func awaitText(e *acptest.Editor, session, text string) {
	e.Await(fmt.Sprintf("the text %q", text), func() bool {
		return strings.Contains(e.Text(session, "agent_message_chunk"), text)
	})
}

func TestCancelMidStream(t *testing.T) {
	f := newFixture(t, hanging("a"))
	e := f.open(plain)
	s := f.session(e).SessionID
	prompt := e.Start("session/prompt", promptOf(s, "go"))
	awaitText(e, s, "One")
	e.Notify("session/cancel", object{"sessionId": s})
	var got stop
	if err := prompt.Wait(&got); err != nil || got.StopReason != "cancelled" {
		t.Fatalf("%v, %+v", err, got)
	}
}

// A cancel in the same write as its prompt finds it, every time.
func TestCancelInOneWriteWithItsPrompt(t *testing.T) {
	p := hanging("a")
	f := newFixture(t, p)
	e := f.open(plain)
	s := f.session(e).SessionID
	for range 100 {
		prompt := e.Prepare("session/prompt", promptOf(s, "go"))
		e.Write(prompt.Line + acptest.Note("session/cancel", object{"sessionId": s}))
		var got stop
		if err := prompt.Wait(&got); err != nil || got.StopReason != "cancelled" {
			t.Fatalf("%v, %+v", err, got)
		}
	}
}

// A cancel answers the running prompt and all that were queued before it. The
// next prompt runs.
func TestCancelAnswersQueuedPromptsTogether(t *testing.T) {
	p := &llmtest.Provider{Route: "a", List: models("m"), Answer: func(n int, req *llm.Request) llmtest.Answer {
		last := req.Messages[len(req.Messages)-1]
		if last.Text() == "last" {
			return llmtest.Say("Alive.")
		}
		return llmtest.Hang("One")
	}}
	f := newFixture(t, p)
	e := f.open(plain)
	s := f.session(e).SessionID
	var lines string
	var prompts []*acptest.Request
	for _, words := range []string{"first", "second", "third"} {
		r := e.Prepare("session/prompt", promptOf(s, words))
		prompts = append(prompts, r)
		lines += r.Line
	}
	last := e.Prepare("session/prompt", promptOf(s, "last"))
	e.Write(lines + acptest.Note("session/cancel", object{"sessionId": s}) + last.Line)
	for i, r := range prompts {
		var got stop
		if err := r.Wait(&got); err != nil || got.StopReason != "cancelled" {
			t.Errorf("prompt %d: %v, %+v", i, err, got)
		}
	}
	var got stop
	if err := last.Wait(&got); err != nil || got.StopReason != "end_turn" {
		t.Errorf("the prompt behind the cancel: %v, %+v", err, got)
	}
	if n := len(p.Requests()); n > 2 {
		t.Errorf("%d requests were sent for prompts that were cancelled in the queue", n-1)
	}
	if text := e.Text(s, "agent_message_chunk"); !strings.HasSuffix(text, "Alive.") {
		t.Errorf("said %q", text)
	}
}

func TestPromptsAreQueuedInOrder(t *testing.T) {
	p := &llmtest.Provider{Route: "a", List: models("m"), Answer: func(n int, req *llm.Request) llmtest.Answer {
		return llmtest.Say(req.Messages[len(req.Messages)-1].Text() + ".")
	}}
	f := newFixture(t, p)
	e := f.open(plain)
	s := f.session(e).SessionID
	var lines string
	var prompts []*acptest.Request
	for i := range 5 {
		r := e.Prepare("session/prompt", promptOf(s, fmt.Sprint(i)))
		prompts = append(prompts, r)
		lines += r.Line
	}
	e.Write(lines)
	at := -1
	for _, r := range prompts {
		m, place := r.Answer()
		if m.Error != nil || place < at {
			t.Fatalf("%s at %d, the one before at %d", m.Raw, place, at)
		}
		at = place
	}
	if text := e.Text(s, "agent_message_chunk"); text != "0.1.2.3.4." {
		t.Errorf("said %q", text)
	}
}

// A cancel without a turn does nothing, and does not wait for the next one.
func TestIdleCancelDoesNotPoisonTheNextPrompt(t *testing.T) {
	f := newFixture(t, &llmtest.Provider{Route: "a", List: models("m")})
	e := f.open(plain)
	s := f.session(e).SessionID
	for range 50 {
		r := e.Prepare("session/prompt", promptOf(s, "go"))
		e.Write(acptest.Note("session/cancel", object{"sessionId": s}) + r.Line)
		var got stop
		if err := r.Wait(&got); err != nil || got.StopReason != "end_turn" {
			t.Fatalf("%v, %+v", err, got)
		}
	}
	e.Notify("session/cancel", object{"sessionId": "unknown"})
	e.Notify("session/cancel", object{})
	if reason := ask(t, e, s, "go"); reason != "end_turn" {
		t.Fatal(reason)
	}
}

func TestCancelRequestCancelsOnePrompt(t *testing.T) {
	f := newFixture(t, hanging("a"))
	e := f.open(plain)
	s := f.session(e).SessionID
	first := e.Start("session/prompt", promptOf(s, "first"))
	second := e.Start("session/prompt", promptOf(s, "second"))
	awaitText(e, s, "One")
	e.Notify("$/cancel_request", object{"requestId": first.ID})
	var got stop
	if err := first.Wait(&got); err != nil || got.StopReason != "cancelled" {
		t.Fatalf("%v, %+v", err, got)
	}
	awaitText(e, s, "OneOne") // the second one runs
	if second.Answered() {
		t.Fatal("the second prompt was cancelled, too")
	}
	e.Notify("session/cancel", object{"sessionId": s})
	if err := second.Wait(&got); err != nil || got.StopReason != "cancelled" {
		t.Fatalf("%v, %+v", err, got)
	}
}

func writeCall(id string) llm.ToolCall {
	return llm.ToolCall{ID: id, Name: "write", Arguments: `{"path":"` + id + `.txt","content":"x\n"}`}
}

// The client never answers the permission request: it is told that the answer
// is not needed, and nobody waits for it. A late answer is ignored.
func TestCancelWhileAPermissionWaits(t *testing.T) {
	p := &llmtest.Provider{Route: "a", List: models("m"), Script: []llmtest.Answer{llmtest.Call(writeCall("c1"))}}
	f := newFixture(t, p)
	e := f.open(plain)
	asked := make(chan struct{})
	e.Permission = func(json.RawMessage) string { close(asked); return "" }
	s := f.session(e).SessionID
	prompt := e.Start("session/prompt", promptOf(s, "go"))
	<-asked
	e.Notify("session/cancel", object{"sessionId": s})
	var got stop
	if err := prompt.Wait(&got); err != nil || got.StopReason != "cancelled" {
		t.Fatalf("%v, %+v", err, got)
	}
	var question json.RawMessage
	withdrawn := false
	for _, m := range e.Messages() {
		switch m.Method {
		case "session/request_permission":
			question = m.ID
		case "$/cancel_request":
			withdrawn = strings.Contains(string(m.Params), string(question))
		}
	}
	if !withdrawn {
		t.Error("the question was not withdrawn")
	}
	e.Write(`{"jsonrpc":"2.0","id":` + string(question) + `,"result":{"outcome":{"outcome":"selected","optionId":"allow_once"}}}` + "\n")
	if reason := ask(t, e, s, "and now?"); reason != "end_turn" {
		t.Error(reason)
	}
	if status := lastStatus(e, s, "c1"); status != "failed" {
		t.Errorf("the call is %q", status)
	}
}

func lastStatus(e *acptest.Editor, session, call string) string {
	status := ""
	for _, u := range e.Updates(session, "tool_call", "tool_call_update") {
		var body struct{ ToolCallID, Status string }
		if json.Unmarshal(u.Body, &body) == nil && body.ToolCallID == call && body.Status != "" {
			status = body.Status
		}
	}
	return status
}

func TestCancelKillsARunningCommand(t *testing.T) {
	p := &llmtest.Provider{Route: "a", List: models("m"), Script: []llmtest.Answer{
		llmtest.Call(llm.ToolCall{ID: "c1", Name: "shell", Arguments: `{"command":"echo started; sleep 60"}`}),
		llmtest.Say("After."),
	}}
	f := newFixture(t, p)
	e := f.open(plain)
	s := f.session(e).SessionID
	prompt := e.Start("session/prompt", promptOf(s, "go"))
	e.Await("output", func() bool {
		for _, u := range e.Updates(s, "tool_call_update") {
			if strings.Contains(string(u.Body), "started") {
				return true
			}
		}
		return false
	})
	e.Notify("session/cancel", object{"sessionId": s})
	var got stop
	if err := prompt.Wait(&got); err != nil || got.StopReason != "cancelled" {
		t.Fatalf("%v, %+v", err, got)
	}
	if status := lastStatus(e, s, "c1"); status != "failed" {
		t.Errorf("the call is %q", status)
	}
	if reason := ask(t, e, s, "go on"); reason != "end_turn" {
		t.Error(reason)
	}
}
