package acp_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/drover-dev/drover/internal/acp/acptest"
	"github.com/drover-dev/drover/internal/llm/llmtest"
)

// TestModelTitle: the title of the model follows the answer to the first prompt,
// and no prompt waits for it.
func TestModelTitle(t *testing.T) {
	p := &llmtest.Provider{Route: "a", List: models("m"), Script: []llmtest.Answer{
		llmtest.Say("done"), llmtest.Say("Herons of the pond"), llmtest.Say("more"),
	}}
	f := newFixture(t, p)
	f.opts.Agent.ModelTitles = true
	e := f.open(plain)
	s := f.session(e).SessionID
	if got := ask(t, e, s, "look for herons"); got != "end_turn" {
		t.Fatalf("stop %s", got)
	}
	for _, want := range []string{"look for herons", "Herons of the pond"} {
		awaitTitle(t, e, want)
	}
	if got := ask(t, e, s, "go on"); got != "end_turn" {
		t.Fatalf("stop %s", got)
	}
	var list struct{ Sessions []struct{ Title string } }
	e.Call("session/list", object{}, &list)
	if len(list.Sessions) != 1 || list.Sessions[0].Title != "Herons of the pond" {
		t.Errorf("the list has %+v", list.Sessions)
	}
}

func awaitTitle(t *testing.T, e *acptest.Editor, want string) {
	t.Helper()
	e.Await("the title "+want, func() bool {
		return slices.ContainsFunc(e.Messages(), func(m acptest.Message) bool {
			var note struct {
				Params struct {
					Update struct{ SessionUpdate, Title string }
				}
			}
			err := json.Unmarshal([]byte(m.Raw), &note)
			u := &note.Params.Update
			return err == nil && u.SessionUpdate == "session_info_update" && u.Title == want
		})
	})
}
