package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/tool"
)

// Calls that cannot be prepared, again and again, are no progress either.
func TestNoProgressOfCallsThatCannotRun(t *testing.T) {
	for _, c := range []llm.ToolCall{{Name: "teleport", Arguments: "{}"}, {Name: "read", Arguments: `{"path": oops`}} {
		p := &llmtest.Provider{Facts: window(32768)}
		p.Answer = func(n int, _ *llm.Request) llmtest.Answer {
			if n == 20 {
				return llmtest.Say("done")
			}
			c.ID = fmt.Sprint(n)
			return llmtest.Call(c)
		}
		f := newFixture(t, p, nil, agent.Options{})
		end := endOf(f.turn(t.Context(), "go"))
		if end.Reason != agent.EndError || agent.Code(end.Err) != llm.CodeNoProgress || len(p.Requests()) != 3 {
			t.Errorf("%s: ended %+v after %d requests", c.Name, end, len(p.Requests()))
		}
		f.check()
	}
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
