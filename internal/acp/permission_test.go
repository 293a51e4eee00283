package acp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

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
