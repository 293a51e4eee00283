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

	"github.com/drover-dev/drover/internal/acp/acptest"
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

// A load that fails does not stand in the way of the one behind it, in one write
// or not, and leaves nothing: the log is free, and a third one opens it.
func TestLoadRightBehindOneThatFails(t *testing.T) {
	f := newFixture(t, echo("a", "m"))
	e := f.open(plain)
	s := f.session(e).SessionID
	ask(t, e, s, "one")
	e.Call("session/close", object{"sessionId": s}, nil)
	wrong := e.Prepare("session/load", object{"sessionId": s, "cwd": t.TempDir()})
	missing := e.Prepare("session/resume", object{"sessionId": s, "cwd": filepath.Join(f.dir, "no")})
	mode := e.Prepare("session/set_mode", object{"sessionId": s, "modeId": "edit"})
	right := e.Prepare("session/load", object{"sessionId": s, "cwd": f.dir})
	prompt := e.Prepare("session/prompt", promptOf(s, "two"))
	e.Write(wrong.Line + missing.Line + mode.Line + right.Line + prompt.Line)
	for _, r := range []*acptest.Request{wrong, missing, mode} {
		if m, _ := r.Answer(); m.Error == nil {
			t.Errorf("%s", m.Raw)
		}
	}
	var got stop
	if err := errors.Join(right.Wait(nil), prompt.Wait(&got)); err != nil || got.StopReason != "end_turn" {
		t.Fatalf("%v, %+v", err, got)
	}
	if reason := ask(t, e, s, "three"); reason != "end_turn" {
		t.Error(reason)
	}
	e.Call("session/close", object{"sessionId": s}, nil)
	for range 2 { // with nothing behind it, it is over at once
		if err := e.Refused("session/load", object{"sessionId": s, "cwd": t.TempDir()}); err.Code != -32602 {
			t.Error(err)
		}
		if err := e.Refused("session/close", object{"sessionId": s}); err.Code != -32002 {
			t.Error(err)
		}
	}
	e.Call("session/load", object{"sessionId": s, "cwd": f.dir}, nil)
}

// An open session has one folder; a client that names another is told, and nothing
// has changed.
func TestLoadOfAnOpenSessionInAnotherFolder(t *testing.T) {
	f := newFixture(t, echo("a", "m"))
	e := f.open(plain)
	s := f.session(e).SessionID
	err := e.Refused("session/load", object{"sessionId": s, "cwd": t.TempDir()})
	if err.Code != -32602 || !strings.Contains(err.Message, f.dir) {
		t.Error(err)
	}
	if reason := ask(t, e, s, "one"); reason != "end_turn" {
		t.Error(reason)
	}
}

// A load during a turn waits for its end: what is shown again is not mixed with
// what is said.
func TestLoadDuringATurn(t *testing.T) {
	f := newFixture(t, hanging("a"))
	e := f.open(plain)
	s := f.session(e).SessionID
	prompt := e.Start("session/prompt", promptOf(s, "go"))
	awaitText(e, s, "One")
	load := e.Start("session/load", object{"sessionId": s, "cwd": f.dir})
	for range 20 { // what does not wait overtakes it
		e.Call("session/list", object{}, nil)
	}
	e.Notify("session/cancel", object{"sessionId": s})
	ended, endedAt := prompt.Answer()
	loaded, loadedAt := load.Answer()
	if ended.Error != nil || loaded.Error != nil || endedAt > loadedAt {
		t.Fatalf("%s\n%s", ended.Raw, loaded.Raw)
	}
	for _, u := range e.Updates(s, "user_message_chunk") {
		if u.Place < endedAt {
			t.Errorf("shown again before the turn had ended: %s", u.Body)
		}
	}
}

// Another process has the session: the person is told what to do.
func TestSessionThatIsInUse(t *testing.T) {
	f := newFixture(t, echo("a", "m"))
	s := f.session(f.open(plain)).SessionID
	other := f.open(plain)
	for method, params := range map[string]object{
		"session/load": {"sessionId": s, "cwd": f.dir}, "session/delete": {"sessionId": s},
	} {
		err := other.Refused(method, params)
		if err.Code != -32603 || err.Data.Code != "SESSION_STORAGE" || !strings.Contains(err.Message, "Close it there") {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// A session that is opened again goes on with the effort of its last request.
func TestLoadRestoresTheEffort(t *testing.T) {
	f := newFixture(t, echo("a", "m"))
	e := f.open(plain)
	s := f.session(e).SessionID
	e.Call("session/set_config_option", object{"sessionId": s, "configId": "effort", "value": "graze"}, nil)
	ask(t, e, s, "one")
	e.Call("session/close", object{"sessionId": s}, nil)
	var o opened
	e.Call("session/load", object{"sessionId": s, "cwd": f.dir}, &o)
	if got := o.option("effort").CurrentValue; got != "graze" {
		t.Errorf("the effort is %s", got)
	}
}
