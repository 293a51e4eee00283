package acp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/acp/acptest"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/tool"
)

// terminalScene is a session whose model runs one command.
type terminalScene struct {
	*acptest.Editor
	acptest.Terminals
	f       *fixture
	p       *llmtest.Provider
	session string
}

func newTerminalScene(t *testing.T, capabilities, command string, setting bool) *terminalScene {
	t.Helper()
	arguments, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	p := &llmtest.Provider{Route: "a", List: models("m"), Script: []llmtest.Answer{
		llmtest.Call(llm.ToolCall{ID: "c1", Name: "shell", Arguments: string(arguments)}),
		llmtest.Say("Done."),
	}}
	s := &terminalScene{f: newFixture(t, p), p: p}
	s.f.opts.Mode, s.f.opts.Terminals, s.f.opts.Secrets = tool.ModeFull, setting, []string{"HOUSE_SECRET"}
	s.f.opts.Agent.Environ = []string{"PATH=/usr/bin:/bin", "COLOUR=black", "HOUSE_SECRET=x"}
	s.Editor = s.f.open(capabilities)
	s.Editor.Serve = s.Terminals.Serve
	s.session = s.f.session(s.Editor).SessionID
	return s
}

// toolResult is what the model got.
func (s *terminalScene) toolResult(t *testing.T) string {
	t.Helper()
	requests := s.p.Requests()
	last := requests[len(requests)-1].Messages
	return last[len(last)-1].Text()
}

// cards are the updates of the call, without what all have.
func (s *terminalScene) cards() (list []string) {
	for _, u := range s.Updates(s.session) {
		var card struct {
			ToolCallID, Status string
			Content            []struct{ Type, TerminalID string }
		}
		if json.Unmarshal(u.Body, &card) != nil || card.ToolCallID == "" {
			continue
		}
		text := card.Status
		for _, c := range card.Content {
			text += " " + c.Type + c.TerminalID
		}
		list = append(list, text)
	}
	return list
}

func (s *terminalScene) methods() map[string]int {
	counts := make(map[string]int)
	for _, m := range s.Messages() {
		if strings.HasPrefix(m.Method, "terminal/") {
			counts[m.Method]++
		}
	}
	return counts
}

const withTerminals = `{"terminal":true,"_meta":{"terminal_output":true}}`

// A command in the client's terminal: it runs there, is shown there, the model
// gets its output, and the terminal is released once.
func TestCommandInTheEditorsTerminal(t *testing.T) {
	s := newTerminalScene(t, withTerminals, `pwd; echo "$COLOUR-$HOUSE_SECRET-"; exit 3`, true)
	if reason := ask(t, s.Editor, s.session, "go"); reason != "end_turn" {
		t.Fatal(reason)
	}
	made := s.Created()
	if len(made) != 1 || s.Released(made[0].ID) != 1 {
		t.Fatalf("created %+v, calls %v", made, s.methods())
	}
	c := made[0]
	if secret, there := c.Env["HOUSE_SECRET"]; secret != "" || !there || c.Env["COLOUR"] != "black" || c.Env["TERM"] != "dumb" ||
		c.CWD != s.f.dir || c.OutputLimit <= 0 {
		t.Errorf("%+v", c)
	}
	if got := s.toolResult(t); !strings.Contains(got, "\nblack--\n[exit code 3]") {
		t.Errorf("the model got %q", got)
	}
	want := []string{"pending", "in_progress", "in_progress terminal" + c.ID, "failed"}
	if got := s.cards(); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("shown %q, want %q", got, want)
	}
}

// Only by setting and by capability: else the command is a child of drover.
func TestNoTerminalUnasked(t *testing.T) {
	for _, c := range []struct {
		capabilities string
		setting      bool
	}{{withTerminals, false}, {`{"terminal":false}`, true}, {`{}`, true}} {
		s := newTerminalScene(t, c.capabilities, "echo here", c.setting)
		if reason := ask(t, s.Editor, s.session, "go"); reason != "end_turn" {
			t.Error(reason)
		}
		if got := s.toolResult(t); got != "here\n[exit code 0]" || len(s.methods()) > 0 {
			t.Errorf("%+v: %q, %v", c, got, s.methods())
		}
	}
}

// A cancel kills the command and releases its terminal before the turn is
// answered.
func TestCancelOfACommandInATerminal(t *testing.T) {
	s := newTerminalScene(t, withTerminals, "exec sleep 600", true)
	r := s.Start("session/prompt", promptOf(s.session, "go"))
	s.Await("the command", func() bool { return s.methods()["terminal/wait_for_exit"] == 1 })
	s.Notify("session/cancel", object{"sessionId": s.session})
	var answer struct{ StopReason string }
	if err := r.Wait(&answer); err != nil || answer.StopReason != "cancelled" {
		t.Fatalf("%v %+v", err, answer)
	}
	id := s.Created()[0].ID
	if !s.Ended(id) || s.Released(id) != 1 || s.methods()["terminal/kill"] != 1 {
		t.Errorf("ended %v, released %d, calls %v", s.Ended(id), s.Released(id), s.methods())
	}
	if got := s.cards(); got[len(got)-1] != "failed" {
		t.Errorf("shown %q", got)
	}
}

// A cancel while the client still makes the terminal is not held up by it, and
// the terminal is released when it is there.
func TestCancelWhileATerminalIsMade(t *testing.T) {
	s := newTerminalScene(t, withTerminals, "exec sleep 600", true)
	proceed := make(chan struct{})
	s.Before = func(method string) *acptest.Error {
		if method == "terminal/create" {
			<-proceed
		}
		return nil
	}
	r := s.Start("session/prompt", promptOf(s.session, "go"))
	s.Await("the request for a terminal", func() bool { return s.methods()["terminal/create"] == 1 })
	s.Notify("session/cancel", object{"sessionId": s.session})
	var answer struct{ StopReason string }
	if err := r.Wait(&answer); err != nil || answer.StopReason != "cancelled" {
		t.Fatalf("%v %+v", err, answer)
	}
	close(proceed)
	s.Await("the release", func() bool { return s.methods()["terminal/release"] == 1 })
	if n := len(s.methods()); n != 2 {
		t.Errorf("calls %v", s.methods())
	}
}

// A client whose terminals fail costs the call, and what it made is released.
func TestTerminalThatFails(t *testing.T) {
	for _, c := range []struct {
		failing, want string
		releases      int
	}{
		{"terminal/create", "The command could not be started: the editor's terminal: out of terminals", 0},
		{"terminal/wait_for_exit", "[nobody knows how it ended: the editor's terminal: out of terminals", 1},
		{"terminal/output", "[nobody knows how it ended: the editor's terminal: out of terminals", 1},
		{"terminal/release", "hi\n[exit code 0]", 1},
	} {
		s := newTerminalScene(t, withTerminals, "echo hi", true)
		s.Before = func(method string) *acptest.Error {
			if method == c.failing {
				return &acptest.Error{Code: -32603, Message: "out of terminals"}
			}
			return nil
		}
		if reason := ask(t, s.Editor, s.session, "go"); reason != "end_turn" {
			t.Error(reason)
		}
		if got := s.toolResult(t); !strings.Contains(got, c.want) {
			t.Errorf("%s fails: the model got %q", c.failing, got)
		}
		if n := s.methods()["terminal/release"]; n != c.releases {
			t.Errorf("%s fails: %d releases", c.failing, n)
		}
	}
}
