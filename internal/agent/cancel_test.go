package agent_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/tool"
)

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
