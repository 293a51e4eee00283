package acp_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// What could not be saved is not lost because a client loads the session with
// other servers.
func TestLoadKeepsWhatIsNotSaved(t *testing.T) {
	f := newFixture(t, echo("a", "m"))
	root := filepath.Join(t.TempDir(), "sessions")
	f.opts.Sessions = session.NewStore(root)
	e := f.open(plain)
	o := f.session(e)
	if err := os.RemoveAll(root); err != nil {
		t.Skip(err) // no open file can be removed here
	}
	if err := os.WriteFile(root, nil, 0o600); err != nil { // in the way
		t.Fatal(err)
	}
	ask(t, e, o.SessionID, "precious words")
	load := object{"sessionId": o.SessionID, "cwd": f.dir, "mcpServers": []any{object{"name": "x", "command": "/no/such/program", "args": []any{}, "env": []any{}}}}
	e.Call("session/load", load, nil)
	if err := os.Remove(root); err != nil { // the disk is well again
		t.Fatal(err)
	}
	ask(t, e, o.SessionID, "go on")
	e.Call("session/close", object{"sessionId": o.SessionID}, nil)
	s, err := f.opts.Sessions.Read(o.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Messages) != 4 || s.Messages[0].Text() != "precious words" {
		t.Errorf("messages %+v", s.Messages)
	}
}

// A session is deleted with what its tools have kept, and no other is touched,
// whatever a client takes for an id.
func TestDeleteRemovesOutputs(t *testing.T) {
	f := newFixture(t, echo("a", "m"))
	f.opts.Agent.SpillDir = t.TempDir()
	e := f.open(plain)
	gone, kept := f.session(e).SessionID, f.session(e).SessionID
	for _, id := range []string{gone, kept} {
		if err := os.MkdirAll(filepath.Join(f.opts.Agent.SpillDir, id), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(f.opts.Agent.SpillDir, id, "shell-1.txt"), []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{".", "..", kept + "/../" + kept, "./" + kept} {
		e.Call("session/delete", object{"sessionId": id}, nil)
	}
	e.Call("session/close", object{"sessionId": gone}, nil)
	e.Call("session/delete", object{"sessionId": strings.ToUpper(gone)}, nil) // the store takes both
	if left, err := filepath.Glob(filepath.Join(f.opts.Agent.SpillDir, "*", "*")); err != nil || len(left) != 1 || filepath.Base(filepath.Dir(left[0])) != kept {
		t.Errorf("left %v, %v", left, err)
	}
}

// Opening a session is no change of it: the client is told the same time and title
// as by session/list, and a title of any length is one line.
func TestLoadTellsWhenTheSessionWasChanged(t *testing.T) {
	f := newFixture(t, echo("a", "m"))
	then := time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)
	log, err := f.opts.Sessions.Create(f.dir, &session.CreateOptions{Now: func() time.Time { return then }})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(log.Append(&session.SessionInfo{Title: "Two\n" + strings.Repeat("lines ", 1<<12)}), log.Close()); err != nil {
		t.Fatal(err)
	}
	type info struct{ Title, UpdatedAt string }
	e := f.open(plain)
	e.Call("session/load", object{"sessionId": log.ID(), "cwd": f.dir}, nil)
	var told info
	if err := json.Unmarshal(e.AwaitUpdate(log.ID(), "session_info_update").Body, &told); err != nil {
		t.Fatal(err)
	}
	if told.UpdatedAt != "2020-02-03T04:05:06Z" || !strings.HasPrefix(told.Title, "Two lines") {
		t.Errorf("told %.200q", told)
	}
	ask(t, e, log.ID(), "one")
	var list struct{ Sessions []info }
	e.Call("session/list", object{}, &list)
	if len(list.Sessions) != 1 || list.Sessions[0].UpdatedAt <= told.UpdatedAt || list.Sessions[0].Title != told.Title {
		t.Errorf("listed %.200q", list)
	}
}
