package acp_test

import (
	"testing"

	"github.com/drover-dev/drover/internal/llm/llmtest"
)

func TestPromptStreamsTheAnswer(t *testing.T) {
	p := &llmtest.Provider{Route: "a", List: models("m"), Script: []llmtest.Answer{llmtest.Say("Hello there.")}}
	f := newFixture(t, p)
	e := f.open(plain)
	s := f.session(e)
	if reason := ask(t, e, s.SessionID, "hi"); reason != "end_turn" {
		t.Fatalf("stopReason %q", reason)
	}
	if got := e.Text(s.SessionID, "agent_message_chunk"); got != "Hello there." {
		t.Errorf("said %q", got)
	}
	if got := e.Updates(s.SessionID, "session_info_update"); len(got) == 0 {
		t.Error("no title after the first turn")
	}
}
