package acp_test

import (
	"slices"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/session"
)

// A replay shows as the person's what the person said, in the middle of a turn
// too, and nothing that the host put into the conversation.
func TestReplayShowsThePersonsWordsAlone(t *testing.T) {
	f := newFixture(t, echo("a", "m"))
	log, err := f.opts.Sessions.Create(f.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	png, err := llm.NewImage("shot.png", []byte("\x89PNG\r\n\x1a\n"))
	if err != nil {
		t.Fatal(err)
	}
	target := llm.Target{Provider: "a", Model: "m"}
	user := func(continuation bool, parts ...llm.Part) *session.UserMessage {
		return &session.UserMessage{Parts: parts, Continuation: continuation}
	}
	for _, rec := range []session.Record{
		&session.TurnStart{},
		user(false, llm.Text("[drover: this is how I begin]")), // a person may write what they like
		&session.AssistantMessage{Target: target, Calls: []llm.ToolCall{{ID: "c1", Name: "read", Arguments: `{"path":"shot.png"}`}}},
		&session.ToolResult{ID: "c1", Status: "ok", Text: "An image."},
		user(true, png), // what the tool returned
		&session.AssistantMessage{Target: target, Text: "I look at it."},
		user(true, llm.Text("[drover: your last answer was odd.]")),
		&session.AssistantMessage{Target: target, Text: "Again."},
		user(true, llm.Text("Not that one, this one:"), png), // steering
		&session.AssistantMessage{Target: target, Text: "Better."},
		&session.TurnEnd{Reason: session.EndCompleted},
	} {
		if err := log.Append(rec); err != nil {
			t.Fatal(err)
		}
	}
	id := log.ID()
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	e := f.open(plain)
	e.Call("session/load", object{"sessionId": id, "cwd": f.dir, "mcpServers": []any{}}, nil)
	var shown []string
	for _, u := range e.Updates(id, "user_message_chunk", "agent_message_chunk", "tool_call") {
		shown = append(shown, u.Kind[:4]+" "+u.Text())
	}
	want := []string{
		"user [drover: this is how I begin]", "tool ", "agen I look at it.", "agen Again.",
		"user Not that one, this one:", "user ", "agen Better.",
	}
	if !slices.Equal(shown, want) {
		t.Errorf("shown %q,\nwant  %q", shown, want)
	}
}
