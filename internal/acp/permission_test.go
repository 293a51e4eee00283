package acp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
)

func TestPermission(t *testing.T) {
	tests := []struct {
		answer  string
		stop    string
		written bool
	}{
		{"allow_once", "end_turn", true},
		{"allow_always", "end_turn", true},
		{"reject_once", "end_turn", false},
		{"reject_always", "end_turn", false},
		{"no such option", "end_turn", false},
		{"cancelled", "cancelled", false},
	}
	for _, tt := range tests {
		t.Run(tt.answer, func(t *testing.T) {
			p := &llmtest.Provider{Route: "a", List: models("m"), Script: []llmtest.Answer{
				llmtest.Call(writeCall("c1")), llmtest.Say("Done."), llmtest.Call(writeCall("c2")), llmtest.Say("Done."),
			}}
			f := newFixture(t, p)
			e := f.open(plain)
			asked := 0
			e.Permission = func(json.RawMessage) string { asked++; return tt.answer }
			s := f.session(e).SessionID
			if got := ask(t, e, s, "write"); got != tt.stop {
				t.Errorf("stop %q, want %q", got, tt.stop)
			}
			if _, err := os.Stat(filepath.Join(f.dir, "c1.txt")); (err == nil) != tt.written {
				t.Errorf("written: %v", err)
			}
			want := map[bool]string{true: "completed", false: "failed"}[tt.written]
			if status := lastStatus(e, s, "c1"); status != want {
				t.Errorf("the call is %q, want %q", status, want)
			}
			if tt.stop == "cancelled" {
				return
			}
			ask(t, e, s, "write more")
			if always := tt.answer == "allow_always" || tt.answer == "reject_always"; always && asked != 1 || !always && asked != 2 {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

// A client that cannot ask is no reason to run a call, nor to hang.
func TestPermissionOfAClientThatCannotAsk(t *testing.T) {
	p := &llmtest.Provider{Route: "a", List: models("m"), Script: []llmtest.Answer{
		llmtest.Call(writeCall("c1")), llmtest.Say("Done."),
	}}
	f := newFixture(t, p)
	e := f.open(plain)
	e.Permission = func(json.RawMessage) string { return "" }
	s := f.session(e).SessionID
	prompt := e.Start("session/prompt", promptOf(s, "write"))
	e.Await("the question", func() bool {
		for _, m := range e.Messages() {
			if m.Method == "session/request_permission" {
				e.Write(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32601,"message":"no such method"}}` + "\n")
				return true
			}
		}
		return false
	})
	var got stop
	if err := prompt.Wait(&got); err != nil || got.StopReason != "end_turn" {
		t.Fatalf("%v, %+v", err, got)
	}
	if status := lastStatus(e, s, "c1"); status != "failed" {
		t.Errorf("the call is %q", status)
	}
}

// A person sees what they are asked about, also where the title has no room for
// it: all of a command, and why there is a question about what is free.
func TestQuestionSaysWhatItIsAbout(t *testing.T) {
	const script = "cd build\nrm -r old\n"
	long := "echo " + strings.Repeat("a", 300) + "; touch x"
	call := func(name string, arguments object) llm.ToolCall {
		text, _ := json.Marshal(arguments)
		return llm.ToolCall{ID: "c", Name: name, Arguments: string(text)}
	}
	read := llmtest.Call(call("read", object{"path": "."}))
	tests := []struct {
		name   string
		script []llmtest.Answer
		caps   string
		want   string // of the text shown, "" for none
	}{
		{"short", []llmtest.Answer{llmtest.Call(call("shell", object{"command": "touch x"}))}, plain, ""},
		{"lines", []llmtest.Answer{llmtest.Call(call("shell", object{"command": script}))}, plain, "```\n" + script + "```"},
		{"long", []llmtest.Answer{llmtest.Call(call("shell", object{"command": long}))}, plain, "```\n" + long + "\n```"},
		{"terminal", []llmtest.Answer{llmtest.Call(call("shell", object{"command": script}))}, `{"_meta":{"terminal_output":true}}`, "```\n" + script + "```"},
		{"again", []llmtest.Answer{read, read, read}, plain, "read . once more? It gave the same result 2 times"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, &llmtest.Provider{Route: "a", List: models("m"), Script: append(tt.script, llmtest.Say("Done."))})
			e := f.open(tt.caps)
			var questions []json.RawMessage
			e.Permission = func(params json.RawMessage) string {
				questions = append(questions, params)
				return "cancelled"
			}
			if reason := ask(t, e, f.session(e).SessionID, "go"); reason != "cancelled" || len(questions) != 1 {
				t.Fatalf("%s, %d questions", reason, len(questions))
			}
			var q struct {
				ToolCall struct {
					Content []struct {
						Type    string
						Content struct{ Text string }
					}
				}
			}
			if err := json.Unmarshal(questions[0], &q); err != nil {
				t.Fatal(err)
			}
			shown, terminals := "", 0
			for _, c := range q.ToolCall.Content {
				shown += c.Content.Text
				if c.Type == "terminal" {
					terminals++
				}
			}
			if shown != tt.want || (terminals == 1) != (tt.name == "terminal") {
				t.Errorf("shown %q and %d terminals, want %q", shown, terminals, tt.want)
			}
		})
	}
}
