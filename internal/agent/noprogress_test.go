package agent_test

import (
	"fmt"
	"testing"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
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
