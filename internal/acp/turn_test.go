package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/tool"
)

// stage is a turn whose events a test makes up, and what the client sees of it.
type stage struct {
	*turn
	lines chan string
}

func newStage(t *testing.T, capabilities string) *stage {
	t.Helper()
	out, in := io.Pipe()
	s := NewServer(strings.NewReader(""), in, nil)
	cl := readClient(readObject(json.RawMessage(`{"clientInfo":{"name":"t"},"clientCapabilities":` + capabilities + `}`)))
	s.client.Store(&cl)
	c := s.newConversation("s")
	w := &workbench{
		dir: "/w", log: session.Memory("/w"), gate: tool.NewGate(tool.ModeAsk),
		selector: target.NewSelector(s.opts.Registry, s.opts.Targets, 0),
	}
	st := &stage{turn: newTurn(c, w), lines: make(chan string, 1000)}
	go func() {
		for r := bufio.NewReader(out); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			_, update, _ := strings.Cut(line, `"update":`)
			st.lines <- strings.TrimSuffix(update, "}}\n")
		}
	}()
	t.Cleanup(func() { _ = s.conn.Close() })
	return st
}

// said returns the updates since the last call.
func (s *stage) said() []string {
	synctest.Wait()
	var list []string
	for {
		select {
		case line := <-s.lines:
			list = append(list, line)
		default:
			return list
		}
	}
}

func shellCall() agent.CallPending {
	return agent.CallPending{
		Call:   llm.ToolCall{ID: "c", Name: "shell", Arguments: `{"command":"make"}`},
		Action: &tool.Action{Kind: tool.KindExecute, Command: "make"},
	}
}

// Output reaches the client at most five times a second, the newest part of it.
func TestOutputIsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, `{}`)
		s.show(shellCall())
		s.show(agent.CallStarted{ID: "c"})
		s.said()
		for range 100 {
			s.show(agent.CallOutput{ID: "c", Text: "line\n"})
			time.Sleep(10 * time.Millisecond)
		}
		if n := len(s.said()); n < 4 || n > 6 {
			t.Errorf("%d updates in a second", n)
		}
		s.show(agent.CallOutput{ID: "c", Text: "last\n"})
		time.Sleep(outputInterval)
		if list := s.said(); len(list) == 0 || !strings.Contains(list[len(list)-1], `last\n`) {
			t.Errorf("the last output was not sent: %q", list)
		}
		s.show(agent.CallOutput{ID: "c", Text: strings.Repeat("x", 1<<20)})
		s.show(agent.CallFinished{ID: "c", Name: "shell", Result: tool.Result{Status: tool.StatusOK, Text: strings.Repeat("y", 2<<20)}})
		list := s.said()
		for _, line := range list {
			if len(line) > 1<<20 {
				t.Errorf("an update of %d bytes", len(line))
			}
		}
		if last := list[len(list)-1]; !strings.Contains(last, `"status":"completed"`) || !strings.Contains(last, "yyy") {
			t.Errorf("%.200s", last)
		}
		time.Sleep(time.Second)
		if list := s.said(); len(list) > 0 {
			t.Errorf("sent after the end: %q", list)
		}
	})
}

// A client with terminals of its own gets the output as what they append.
func TestOutputInATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, `{"terminal":true,"_meta":{"terminal_output":true}}`)
		s.show(shellCall())
		s.show(agent.CallOutput{ID: "c", Text: "one\n"})
		s.show(agent.CallOutput{ID: "c", Text: "two\n"})
		s.show(agent.CallFinished{ID: "c", Name: "shell", Result: tool.Result{Status: tool.StatusError, Text: "one\ntwo\n[exit code 3]"}})
		want := []string{
			`{"sessionUpdate":"tool_call","toolCallId":"c","title":"make","name":"shell","kind":"execute","status":"pending","content":[{"type":"terminal","terminalId":"c"}],"rawInput":{"command":"make"},"_meta":{"terminal_info":{"terminal_id":"c","cwd":"/w"}}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress","_meta":{"terminal_output":{"terminal_id":"c","data":"one\n"}}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed","content":[{"type":"terminal","terminalId":"c"}],"_meta":{"terminal_exit":{"terminal_id":"c","exit_code":3,"signal":null},"terminal_output":{"terminal_id":"c","data":"two\n"}}}`,
		}
		got := s.said()
		if len(got) != len(want) {
			t.Fatalf("%d updates: %q", len(got), got)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("got  %s\nwant %s", got[i], want[i])
			}
		}
	})
}

// A new message begins after each call and where thoughts turn into an answer;
// within a message the id stays.
func TestMessageIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, `{}`)
		for _, ev := range []agent.Event{
			agent.Reasoning("a"), agent.Reasoning("b"), agent.Text("c"), agent.Text("d"), shellCall(),
			agent.CallFinished{ID: "c", Result: tool.Result{Status: tool.StatusOK, Text: "ok"}}, agent.Text("e"),
		} {
			s.show(ev)
		}
		var ids []string
		for _, line := range s.said() {
			var u struct{ MessageID string }
			if json.Unmarshal([]byte(line), &u) == nil && u.MessageID != "" {
				ids = append(ids, u.MessageID[strings.Index(u.MessageID, "-"):])
			}
		}
		if got := strings.Join(ids, " "); got != "-1 -1 -2 -2 -3" {
			t.Error(got)
		}
	})
}

// The meter is sent when it changes, never without a window, never above it.
func TestUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, `{}`)
		window := llm.Window{Tokens: 1000, Source: llm.Effective}
		usage := func(prompt, completion int) agent.Usage {
			return agent.Usage{Usage: llm.Usage{PromptTokens: prompt, CompletionTokens: completion}, Window: window}
		}
		for _, ev := range []agent.Event{
			agent.Planned{Report: budget.Report{EstimatedAfter: 300, WindowTokens: 8192}},
			agent.Planned{Report: budget.Report{EstimatedAfter: 300, WindowTokens: 1000, WindowSource: llm.Effective}},
			usage(200, 50), usage(200, 50), usage(250, 0), usage(990, 20),
			agent.Usage{Usage: llm.Usage{PromptTokens: 5}},
		} {
			s.show(ev)
		}
		want := []string{
			`{"sessionUpdate":"usage_update","used":300,"size":1000}`,
			`{"sessionUpdate":"usage_update","used":250,"size":1000}`,
			`{"sessionUpdate":"usage_update","used":1000,"size":1000}`,
		}
		if got := strings.Join(s.said(), "\n"); got != strings.Join(want, "\n") {
			t.Errorf("got\n%s", got)
		}
	})
}

func TestNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, `{"session":{"notices":{}}}`)
		s.show(agent.Notice{Kind: agent.NoticeInfo, Text: "two\nlines"})
		s.show(agent.Waiting{Elapsed: 9 * time.Second})
		s.show(agent.Waiting{Elapsed: 10 * time.Second})
		s.show(agent.Waiting{Elapsed: 20 * time.Second})
		s.show(agent.Retrying{Err: llm.Errorf(llm.CodeRateLimit, "slow down"), Wait: 1500 * time.Millisecond, Attempt: 1})
		s.show(agent.Notice{Kind: agent.NoticeTrim, Text: "held until the end"})
		want := []string{
			`{"sessionUpdate":"notice","severity":"info","title":"two lines"}`,
			`{"sessionUpdate":"notice","severity":"info","title":"The engine has been computing the prompt for 10 s."}`,
			`{"sessionUpdate":"notice","severity":"warning","title":"slow down. Trying again in 1.5s (1)."}`,
		}
		if got := strings.Join(s.said(), "\n"); got != strings.Join(want, "\n") {
			t.Errorf("got\n%s", got)
		}

		s = newStage(t, `{}`)
		s.show(agent.Text("a"))
		s.show(agent.Notice{Kind: agent.NoticeInfo, Text: "note"})
		s.show(agent.Text("b"))
		list := s.said()
		if len(list) != 3 || !strings.Contains(list[1], `"agent_thought_chunk"`) || !strings.Contains(list[1], `[drover] note`) ||
			strings.Contains(list[2], `-1"`) {
			t.Errorf("%q", list)
		}
	})
}

// The trim notice is said once, with its last figures, before the turn is over:
// also when it was cancelled.
func TestTrimNoticeIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, `{"session":{"notices":{}}}`)
		opts := agent.Options{}
		s.w.agent = agent.New(s.w.selector, s.w.log, s.w.log.NewState(), nil, &opts)
		s.show(agent.Notice{Kind: agent.NoticeTrim, Text: "1 exchange left out"})
		s.show(agent.Notice{Kind: agent.NoticeTrim, Text: "2 exchanges left out"})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if end := s.run(ctx, []llm.Part{llm.Text("x")}); end.Reason != agent.EndCancelled {
			t.Errorf("end %+v", end)
		}
		if got := strings.Join(s.said(), "\n"); got != `{"sessionUpdate":"notice","severity":"info","title":"2 exchanges left out"}` {
			t.Errorf("got\n%s", got)
		}
	})
}

func TestPlanOf(t *testing.T) {
	p, ok := planOf(`{"items":[{"content":"a","status":"completed","priority":"high"},{"text":"b","status":""},"c"]}`)
	text, err := json.Marshal(p)
	want := `{"sessionUpdate":"plan","entries":[{"content":"a","priority":"medium","status":"completed"},{"content":"b","priority":"medium","status":"pending"},{"content":"c","priority":"medium","status":"pending"}]}`
	if !ok || err != nil || string(text) != want {
		t.Errorf("%v %v %s", ok, err, text)
	}
	if _, ok := planOf(`{"other":1}`); ok {
		t.Error("a plan without entries")
	}
}

// A change too large for a line is told in words; a line stays under 1 MiB
// whatever a call holds, live and when it is shown again.
func TestLinesStayBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, `{}`)
		check := func(what string) {
			for _, line := range s.said() {
				if len(line) > 1<<20-1000 {
					t.Errorf("%s: a line of %d bytes", what, len(line))
				}
				if !json.Valid([]byte(line)) {
					t.Errorf("%s: not JSON: %.100s", what, line)
				}
			}
		}
		n := 0
		show := func(call llm.ToolCall, diff *tool.Diff, text string) {
			n++
			call.ID = fmt.Sprint(n)
			what := fmt.Sprintf("call %d, %.10q", n, call.Name)
			s.show(agent.CallPending{Call: call, Action: &tool.Action{Diff: diff}})
			s.show(agent.CallFinished{ID: call.ID, Result: tool.Result{Status: tool.StatusOK, Text: text, Diff: diff}})
			check(what)
			s.c.replay(s.w, []llm.Message{
				{Role: llm.User, Parts: []llm.Part{llm.Text(text)}},
				{Role: llm.Assistant, Parts: []llm.Part{llm.Text(text)}, Reasoning: &llm.Reasoning{Text: text}, Calls: []llm.ToolCall{call}},
				{Role: llm.Tool, CallID: call.ID, Parts: []llm.Part{llm.Text(text)}},
			})
			check(what + ", shown again")
		}
		for _, size := range []int{maxField / 2, maxField + 1} {
			body := strings.Repeat("\x01", size)
			diff := &tool.Diff{Path: "/w/x", Old: strings.Repeat("a", size), New: strings.Repeat("b", size)}
			object := func(name string) string {
				text, _ := json.Marshal(map[string]string{"path": "x", name: body})
				return string(text)
			}
			for name, arguments := range map[string]string{
				"write": object("content"), "read": object("path"), "shell": object("command"), "grep": object("pattern"),
				"remember": object("title"), body: object("path"),
			} {
				show(llm.ToolCall{Name: name, Arguments: arguments}, diff, "Created "+body)
			}
			edit, _ := json.Marshal(map[string]string{"path": "x", "old": diff.Old, "new": diff.New})
			show(llm.ToolCall{Name: "edit", Arguments: string(edit)}, nil, "Edited "+body)
			s.show(agent.Text(body))
			check("text")
		}
	})
}
