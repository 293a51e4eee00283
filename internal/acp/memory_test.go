package acp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/acp/acptest"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/memory"
)

// plans are the plan updates of a session, as their entries in one line each.
func plans(t *testing.T, e *acptest.Editor, session string) []string {
	t.Helper()
	var list []string
	for _, m := range e.Messages() {
		var note struct {
			Method string
			Params struct {
				SessionID string
				Update    struct {
					SessionUpdate string
					Entries       []struct{ Content, Priority, Status string }
				}
			}
		}
		if json.Unmarshal([]byte(m.Raw), &note) != nil || note.Params.Update.SessionUpdate != "plan" || note.Params.SessionID != session {
			continue
		}
		text := ""
		for _, entry := range note.Params.Update.Entries {
			text += entry.Content + " " + entry.Priority + " " + entry.Status + "; "
		}
		list = append(list, text)
	}
	return list
}

// TestPlanUpdates runs the real tool todo: what it takes is shown, also when the
// session is loaded again, and what it refuses is not.
func TestPlanUpdates(t *testing.T) {
	p := &llmtest.Provider{Route: "a", List: models("m"), Script: []llmtest.Answer{
		llmtest.Call(llm.ToolCall{ID: "c1", Name: "todo", Arguments: `{"items":["[>] read","[ ] write"]}`}),
		llmtest.Call(llm.ToolCall{ID: "c2", Name: "todo", Arguments: `{"items":"[\"[x] read\",\"[>] write\"]"}`}),
		llmtest.Call(llm.ToolCall{ID: "c3", Name: "todo", Arguments: `{"items":[{"text":"write","status":"odd"}]}`}),
		llmtest.Call(llm.ToolCall{ID: "c4", Name: "todo", Arguments: `{"entries":["x"]}`}),
		llmtest.Call(llm.ToolCall{ID: "c5", Name: "todo", Arguments: `{"items":[]}`}),
		llmtest.Say("Done."),
	}}
	f := newFixture(t, p)
	e := f.open(plain)
	s := f.session(e).SessionID
	if got := ask(t, e, s, "go"); got != "end_turn" {
		t.Fatalf("stop %s", got)
	}
	want := []string{"read medium in_progress; write medium pending; ", "read medium completed; write medium in_progress; ", ""}
	if got := plans(t, e, s); strings.Join(got, "|") != strings.Join(want, "|") || len(got) != len(want) {
		t.Errorf("live %q, want %q", got, want)
	}
	for id, status := range map[string]string{"c1": "completed", "c2": "completed", "c3": "failed", "c4": "failed", "c5": "completed"} {
		if got := lastStatus(e, s, id); got != status {
			t.Errorf("%s is %s, want %s", id, got, status)
		}
	}
	e.Close()
	again := f.open(plain)
	again.Call("session/load", object{"sessionId": s, "cwd": f.dir, "mcpServers": []any{}}, nil)
	if got := plans(t, again, s); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("loaded %q, want %q", got, want)
	}
}

func TestMemoryCommand(t *testing.T) {
	p := &llmtest.Provider{Route: "a", List: models("m"), Script: []llmtest.Answer{
		llmtest.Call(llm.ToolCall{ID: "c1", Name: "remember", Arguments: `{"title":"Build | it","text":"make build","summary":"use make"}`}),
		llmtest.Say("Noted."),
	}}
	f := newFixture(t, p)
	global := t.TempDir()
	f.opts.Agent.Memory = memory.Open(global)
	e := f.open(plain)
	var shown struct {
		ToolCall struct {
			Title, Kind string
			Content     []struct{ Type, Path, NewText string }
		}
	}
	e.Permission = func(params json.RawMessage) string {
		if err := json.Unmarshal(params, &shown); err != nil {
			t.Error(err)
		}
		return "allow_once"
	}
	s := f.session(e).SessionID
	said := func(command string) string {
		t.Helper()
		before := len(e.Text(s, "agent_message_chunk"))
		if got := ask(t, e, s, command); got != "end_turn" {
			t.Errorf("%s: stop %s", command, got)
		}
		return e.Text(s, "agent_message_chunk")[before:]
	}
	if got := said("/memory"); !strings.Contains(got, "There are no notes.") {
		t.Errorf("without notes: %s", got)
	}
	said("keep it")
	if c := shown.ToolCall; c.Title != "remember: Build | it" || c.Kind != "edit" || len(c.Content) != 1 || c.Content[0].Type != "diff" ||
		!strings.Contains(c.Content[0].NewText, "make build") {
		t.Errorf("asked with %+v", c)
	}
	for name, content := range map[string]string{"me.md": "---\ntitle: Me\n---\nI speak Danish\n", "bad.md": "x"} {
		if err := os.WriteFile(filepath.Join(global, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := said("/memory")
	for _, want := range []string{`| Build \| it | project | use make |`, "| Me | global |  |", "bad.md: it does not begin"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := said("/memory build | it"); !strings.Contains(got, "make build") || !strings.Contains(got, "**Build | it**") {
		t.Errorf("one note: %s", got)
	}
	if err := e.Refused("session/prompt", promptOf(s, "/memory nothing")); !strings.Contains(err.Message, "no such note") {
		t.Errorf("%v", err)
	}
	if got := len(p.Requests()); got != 2 {
		t.Errorf("%d requests: a command reached the model", got)
	}
}
