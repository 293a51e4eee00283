package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/tool"
)

func words(s string) []llm.Part { return []llm.Part{llm.Text(s)} }

// steered runs a turn and gives it further messages at the first event of a
// type.
func steered[At agent.Event](t *testing.T, f *fixture, messages ...string) []agent.Event {
	t.Helper()
	var events []agent.Event
	given := false
	for ev := range f.agent.Turn(t.Context(), words("the task")) {
		events = append(events, ev)
		if _, ok := ev.(At); ok && !given {
			given = true
			for _, m := range messages {
				if !f.agent.Steer(words(m)) {
					t.Errorf("%q was refused while the turn ran", m)
				}
			}
		}
	}
	if !given {
		t.Fatalf("the turn had no %T", *new(At))
	}
	return events
}

func TestSteering(t *testing.T) {
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Call(edit("1")), llmtest.Say("first"), llmtest.Say("second")}}
	f := newFixture(t, p, nil, agent.Options{Gate: tool.NewGate(tool.ModeEdit)})
	if f.agent.Steer(words("too early")) {
		t.Error("a message was taken before any turn")
	}
	events := steered[agent.CallStarted](t, f, "use tabs", "and be brief")
	if end := endOf(events); end.Reason != agent.EndCompleted || len(end.Unsent) != 0 {
		t.Errorf("ended %+v", end)
	}
	if n := len(find[agent.Steered](events)); n != 2 {
		t.Errorf("%d messages were told, want 2", n)
	}
	requests := p.Requests()
	if len(requests) != 2 {
		t.Fatalf("%d requests, want 2: a message does not add one while there is work", len(requests))
	}
	var roles []string
	for _, m := range requests[1].Messages {
		roles = append(roles, string(m.Role))
		if m.Continuation != (m.Text() == "use tabs" || m.Text() == "and be brief") {
			t.Errorf("%q continues the exchange: %v", m.Text(), m.Continuation)
		}
	}
	if got := strings.Join(roles, " "); got != "user assistant tool user user" {
		t.Errorf("roles %s", got)
	}
	if f.agent.Steer(words("too late")) {
		t.Error("a message was taken after the turn")
	}
	f.check()
}

// TestSteeringKeepsATurnGoing: a message that comes with the last answer is
// answered in the same turn.
func TestSteeringKeepsATurnGoing(t *testing.T) {
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Say("done"), llmtest.Say("done again")}}
	f := newFixture(t, p, nil, agent.Options{})
	events := steered[agent.Usage](t, f, "once more")
	if end := endOf(events); end.Reason != agent.EndCompleted || text(events) != "donedone again" {
		t.Errorf("ended %+v with %q", end, text(events))
	}
	f.check()
}

// TestUnsentMessagesComeBack: what no request could take is not lost, and no
// part of the conversation.
func TestUnsentMessagesComeBack(t *testing.T) {
	fail := llmtest.Fail(llm.Errorf(llm.CodeAuth, "wrong key"))
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{fail}}
	f := newFixture(t, p, nil, agent.Options{})
	end := endOf(steered[agent.Planned](t, f, "one", "two"))
	if end.Reason != agent.EndError || fmt.Sprint(end.Unsent) != "[[one] [two]]" {
		t.Errorf("ended %s with %v unsent", end.Reason, end.Unsent)
	}
	if messages := f.agent.Messages(); len(messages) != 1 {
		t.Errorf("the conversation has %d turns", len(messages))
	}
	f.check()
}

func TestSteeringNeedsWords(t *testing.T) {
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Say("done")}}
	f := newFixture(t, p, nil, agent.Options{})
	for ev := range f.agent.Turn(t.Context(), words("go")) {
		if _, ok := ev.(agent.Planned); ok && (f.agent.Steer(nil) || f.agent.Steer(words(" \n"))) {
			t.Error("a message without words was taken")
		}
	}
}

// TestSteeringLetsAQuestionBeAskedAgain: the no-progress guard counts from the
// user's last word.
func TestSteeringLetsAQuestionBeAskedAgain(t *testing.T) {
	look := func(n int) llmtest.Answer {
		return llmtest.Call(llm.ToolCall{ID: fmt.Sprint(n), Name: "glob", Arguments: `{"pattern":"*"}`})
	}
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{look(1), look(2), look(3), llmtest.Say("done")}}
	f := newFixture(t, p, nil, agent.Options{})
	calls := 0
	var end agent.End
	for ev := range f.agent.Turn(t.Context(), words("go")) {
		switch ev := ev.(type) {
		case agent.CallFinished:
			if calls++; calls == 2 {
				f.agent.Steer(words("look again"))
			}
		case agent.End:
			end = ev
		}
	}
	if end.Reason != agent.EndCompleted || calls != 3 {
		t.Errorf("%d calls, ended %+v", calls, end)
	}
}

// TestSteeringDoesNotLoseTheTask: in a window that holds a few results only,
// both the task and the message stay in every request that follows.
func TestSteeringDoesNotLoseTheTask(t *testing.T) {
	const rounds, at = 30, 5
	p := &llmtest.Provider{Facts: window(4096)}
	p.Answer = func(n int, _ *llm.Request) llmtest.Answer {
		if n == rounds {
			return llmtest.Say("done")
		}
		return llmtest.Call(llm.ToolCall{ID: fmt.Sprint(n), Name: "read", Arguments: fmt.Sprintf(`{"path":"%d.txt"}`, n)})
	}
	f := newFixture(t, p, nil, agent.Options{})
	for n := range rounds {
		if err := os.WriteFile(filepath.Join(f.dir, fmt.Sprintf("%d.txt", n)), []byte(strings.Repeat(fmt.Sprint("reeds ", n, "\n"), 300)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	calls := 0
	for ev := range f.agent.Turn(t.Context(), words("find the heron")) {
		switch ev := ev.(type) {
		case agent.CallFinished:
			if calls++; calls == at {
				f.agent.Steer(words("and count the reeds"))
			}
		case agent.End:
			if ev.Reason != agent.EndCompleted {
				t.Fatalf("ended %+v", ev)
			}
		}
	}
	for n, req := range p.Requests() {
		task, message := false, false
		for _, m := range req.Messages {
			task = task || strings.Contains(m.Text(), "find the heron")
			message = message || m.Text() == "and count the reeds"
		}
		if !task || message != (n >= at) {
			t.Errorf("request %d: the task %v, the message %v", n, task, message)
		}
	}
	f.check()
}
