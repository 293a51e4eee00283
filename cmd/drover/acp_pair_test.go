package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/acp/acptest"
	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/session"
)

// TestOnePair: whatever is selected and when, the option, the log, the request on
// the wire and its system text name the same pair of provider and model, request
// by request.
func TestOnePair(t *testing.T) {
	r := rigFor(t, "", "")
	type sent struct {
		target llm.Target
		system string
	}
	var requests []sent // one at a time: there is one session
	held := make(chan func(), 1)
	settings := "model = \"a/shared\"\n"
	for _, name := range []string{"a", "b"} {
		s := enginetest.New(t, &enginetest.Options{
			Preset: enginetest.LlamaCpp,
			Models: []enginetest.Model{{ID: "shared", Window: 32768, Tools: true}, {ID: name + "-own", Window: 32768, Tools: true}},
			Answer: func(c *enginetest.Chat) enginetest.Answer {
				list := messagesOf(c)
				requests = append(requests, sent{llm.Target{Provider: name, Model: c.Model}, string(list[0].Content)})
				select {
				case during := <-held: // the first request of a turn
					during()
					return enginetest.Answer{Calls: []enginetest.Call{{ID: fmt.Sprint("c", len(requests)), Name: "glob", Arguments: `{"pattern":"*"}`}}}
				default:
					return enginetest.Answer{Text: "Done."}
				}
			},
		})
		settings += fmt.Sprintf("\n[engines.%s]\npreset = \"llamacpp\"\nurl = %q\n", name, s.URL)
	}
	r.configure(settings)

	const turns = 30
	rng := rand.New(rand.NewPCG(1, 2))
	e := r.editor()
	e.Call("initialize", map[string]any{"protocolVersion": 1}, nil)
	var opened struct{ SessionID string }
	e.Call("session/new", map[string]any{"cwd": r.dir, "mcpServers": []any{}}, &opened)
	selected := llm.Target{Provider: "a", Model: "shared"}
	choose := func() {
		targets := []llm.Target{{Provider: "a", Model: "shared"}, {Provider: "b", Model: "shared"}, {Provider: "a", Model: "a-own"}, {Provider: "b", Model: "b-own"}}
		selected = targets[rng.IntN(len(targets))]
		value, _ := json.Marshal([]string{selected.Provider, selected.Model})
		var state acpOptions
		e.Call("session/set_config_option", map[string]any{"sessionId": opened.SessionID, "configId": "model", "value": string(value)}, &state)
		if got := state.model(); got != string(value) {
			t.Errorf("set %s, and the option says %s", value, got)
		}
	}
	var want []llm.Target
	for n := range turns {
		if n%3 == 0 {
			choose()
		}
		want = append(want, selected)
		held <- func() {
			if n%2 == 0 { // the request is on its way: it holds from the next step
				choose()
			}
		}
		prompt := map[string]any{"sessionId": opened.SessionID, "prompt": []any{map[string]any{"type": "text", "text": fmt.Sprint("turn ", n)}}}
		e.Call("session/prompt", prompt, nil)
		want = append(want, selected)
		if got := newestModel(e); got != "" && got != modelText(selected) {
			t.Errorf("turn %d: the newest update of the option says %s, selected is %s", n, got, selected)
		}
	}
	e.Close()

	_, records := r.wholeLog(opened.SessionID)
	var logged []llm.Target
	var header *session.RequestHeader
	for _, rec := range records {
		switch rec := rec.(type) {
		case *session.RequestHeader:
			header = rec
		case *session.RequestPlan:
			logged = append(logged, header.Snapshot.Target)
			if !strings.Contains(header.System, "the model "+header.Snapshot.Target.Model+" of "+header.Snapshot.Target.Provider+".") {
				t.Errorf("the log has %s with the system text %.300s", header.Snapshot.Target, header.System)
			}
		}
	}
	if len(requests) != len(want) || len(logged) != len(want) {
		t.Fatalf("%d requests, %d in the log, want %d", len(requests), len(logged), len(want))
	}
	for i := range want {
		named := "the model " + want[i].Model + " of " + want[i].Provider + "."
		if requests[i].target != want[i] || logged[i] != want[i] || !strings.Contains(requests[i].system, named) {
			t.Errorf("request %d: selected %s, sent to %s, logged %s, system text %.300s", i, want[i], requests[i].target, logged[i], requests[i].system)
		}
	}
}

// acpOptions is what holds the options of a session.
type acpOptions struct {
	ConfigOptions []struct{ ID, CurrentValue string }
}

func (o *acpOptions) model() string {
	for _, option := range o.ConfigOptions {
		if option.ID == "model" {
			return option.CurrentValue
		}
	}
	return ""
}

func modelText(t llm.Target) string { return fmt.Sprintf("[%q,%q]", t.Provider, t.Model) }

// newestModel is the model of the newest config_option_update, "" if none came.
func newestModel(e *acptest.Editor) string {
	updates := e.Updates("", "config_option_update")
	if len(updates) == 0 {
		return ""
	}
	var o acpOptions
	_ = json.Unmarshal(updates[len(updates)-1].Body, &o)
	return o.model()
}
