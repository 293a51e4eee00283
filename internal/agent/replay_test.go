package agent_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/openai"
)

// Reasoning is priced where it is sent, and nowhere else: a plan that counts what
// stays away drops exchanges that would have had room.
func TestReasoningIsPricedWhereItIsSent(t *testing.T) {
	here, there := llm.Target{Provider: "p", Model: "m"}, llm.Target{Provider: "p", Model: "other"}
	sent := 0
	for _, profile := range []llm.Profile{llm.Generic, llm.Qwen, llm.DeepSeek, llm.Replay} {
		for _, effort := range append(llm.Efforts(), 0) {
			for _, origin := range []llm.Target{here, there, {}} {
				answer := llm.AssistantText("answer")
				answer.Origin = origin
				bare := &llm.Request{
					Snapshot: llm.Snapshot{Target: here, Profile: profile, Effort: effort},
					Messages: []llm.Message{llm.UserText("go"), answer, llm.UserText("on")},
				}
				answer.Reasoning = &llm.Reasoning{Text: "pondering", Field: "reasoning_content"}
				thinking := *bare
				thinking.Messages = []llm.Message{llm.UserText("go"), answer, llm.UserText("on")}
				body, err := openai.EncodeRequest(&thinking)
				if err != nil {
					t.Fatal(err)
				}
				isSent := bytes.Contains(body, []byte("pondering"))
				for _, p := range []*budget.Policy{budget.Policy1(), budget.Policy2()} {
					more := budget.EstimateRequest(p, &thinking).Total() - budget.EstimateRequest(p, bare).Total()
					if isSent != (more > 0) {
						t.Errorf("%s: sent %v, priced %d", fmt.Sprint(profile, effort, origin, p.Version), isSent, more)
					}
				}
				if isSent {
					sent++
				}
			}
		}
	}
	if sent == 0 {
		t.Error("nothing was sent back")
	}
}
