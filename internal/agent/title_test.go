package agent_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/tool"
)

func TestTheModelWritesTheTitle(t *testing.T) {
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{
		llmtest.Call(edit("1")), llmtest.Say("done"), llmtest.Say("**Title:** \"Herons of the\tmill pond\"\nIt fits."), llmtest.Say("more"),
	}}
	f := newFixture(t, p, nil, agent.Options{ModelTitles: true, Gate: tool.NewGate(tool.ModeEdit)})
	if f.agent.WriteTitle(t.Context()) {
		t.Error("a title before any turn")
	}
	f.turn(t.Context(), "look for herons")
	if got := f.agent.Title(); got != "look for herons" {
		t.Errorf("title %q before the model was asked", got)
	}
	before := f.agent.Messages()
	if !f.agent.WriteTitle(t.Context()) || f.agent.Title() != "Herons of the mill pond" {
		t.Errorf("title %q", f.agent.Title())
	}
	if after := f.agent.Messages(); len(after) != len(before) {
		t.Errorf("the conversation has %d turns, %d before", len(after), len(before))
	}
	if f.agent.WriteTitle(t.Context()) {
		t.Error("a second title")
	}
	f.turn(t.Context(), "go on")

	requests := p.Requests()
	if len(requests) != 4 {
		t.Fatalf("%d requests", len(requests))
	}
	// What the engine has stored for the conversation stays of use.
	for n, prefix := range map[int]int{2: 1, 3: 1} {
		req, last := requests[n], requests[prefix]
		if req.System != last.System || len(req.Messages) <= len(last.Messages) {
			t.Errorf("request %d does not begin as request %d", n, prefix)
		}
		for i := range last.Messages {
			if req.Messages[i].Text() != last.Messages[i].Text() {
				t.Errorf("request %d: message %d differs", n, i)
			}
		}
		for _, m := range req.Messages {
			if strings.Contains(m.Text(), "give this conversation a title") != (n == 2 && m.Text() == req.Messages[len(req.Messages)-1].Text()) {
				t.Errorf("request %d holds %q", n, m.Text())
			}
		}
	}
	state, err := f.log.Fold()
	if err != nil || state.Title != "Herons of the mill pond" || state.OpenTurn || state.Usage.Requests != 4 {
		t.Errorf("the log says %q, open %v, %d requests, %v", state.Title, state.OpenTurn, state.Usage.Requests, err)
	}
	f.check()
}

func TestTitlesThatAreNotWritten(t *testing.T) {
	tests := []struct {
		name    string
		off     bool
		first   llmtest.Answer
		title   llmtest.Answer
		request bool
	}{
		{name: "not asked for", off: true, first: llmtest.Say("ok"), title: llmtest.Say("Herons")},
		{name: "the turn failed", first: llmtest.Fail(llm.Errorf(llm.CodeAuth, "no")), title: llmtest.Say("Herons")},
		{name: "the request fails", first: llmtest.Say("ok"), title: llmtest.Fail(llm.Errorf(llm.CodeServer, "busy")), request: true},
		{name: "it breaks off", first: llmtest.Say("ok"), title: llmtest.Answer{
			Events: []llm.Event{llm.TextDelta("Her")}, Err: llm.Errorf(llm.CodeStreamClosed, "closed")}, request: true},
		{name: "no words in it", first: llmtest.Say("ok"), title: llmtest.Say("***\n\n\"\""), request: true},
		{name: "a call instead", first: llmtest.Say("ok"), title: llmtest.Call(edit("1")), request: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{tt.first, tt.title, llmtest.Say("ok")}}
			f := newFixture(t, p, nil, agent.Options{ModelTitles: !tt.off, Gate: tool.NewGate(tool.ModeFull)})
			f.turn(t.Context(), "look for herons")
			if f.agent.WriteTitle(t.Context()) || f.agent.Title() != "look for herons" {
				t.Errorf("title %q", f.agent.Title())
			}
			want := 1
			if tt.request {
				want = 2
			}
			if n := len(p.Requests()); n != want {
				t.Errorf("%d requests, want %d", n, want)
			}
			if end := endOf(f.turn(t.Context(), "go on")); end.Reason != agent.EndCompleted {
				t.Errorf("the next turn ended %+v", end)
			}
			if n := len(p.Requests()); f.agent.WriteTitle(t.Context()) || len(p.Requests()) != n {
				t.Error("a title was asked for after the second turn")
			}
			for rec, err := range f.log.Records() {
				if err != nil {
					t.Fatal(err)
				}
				if c, ok := rec.(*session.ToolCall); ok {
					t.Errorf("a call ran: %+v", c)
				}
			}
			f.check()
		})
	}
}

// TestATurnEndsTheTitle: nobody waits for a title.
func TestATurnEndsTheTitle(t *testing.T) {
	for _, closed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Say("ok"), llmtest.Hang("Her"), llmtest.Say("ok")}}
			f := newFixture(t, p, nil, agent.Options{ModelTitles: true})
			f.turn(t.Context(), "look for herons")
			written := make(chan bool)
			go func() { written <- f.agent.WriteTitle(t.Context()) }()
			synctest.Wait() // the model has begun to answer
			if closed {
				if err := f.agent.Close(); err != nil {
					t.Error(err)
				}
			} else if end := endOf(f.turn(t.Context(), "go on")); end.Reason != agent.EndCompleted {
				t.Errorf("ended %+v", end)
			}
			if <-written || f.agent.Title() != "look for herons" {
				t.Errorf("title %q", f.agent.Title())
			}
			if !closed {
				f.check()
			}
		})
	}
}
