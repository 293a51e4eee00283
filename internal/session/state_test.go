package session

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-dev/drover/internal/llm"
)

// Whatever is appended: the live state and the reloaded one are equal, and the
// messages are a history that an engine takes, at every moment.
func TestLiveStateEqualsFoldedState(t *testing.T) {
	pictures := []*llm.Image{picture(t, 1), picture(t, 2)}
	rapid.Check(t, func(t *rapid.T) {
		l := Memory("/w")
		s := l.NewState()
		for range rapid.IntRange(0, 30).Draw(t, "records") {
			rec := anyRecord(pictures).Draw(t, "record")
			if err := l.Append(rec); err != nil {
				t.Fatal(err)
			}
			s.Apply(rec)
			validHistory(t, s)
		}
		reloaded, err := l.Fold()
		if err != nil {
			t.Fatal(err)
		}
		sameState(t, reloaded, s)
		for _, rec := range s.Interruption() {
			s.Apply(rec)
		}
		if s.OpenTurn || s.OpenCalls() != nil {
			t.Fatalf("still open: %v", s.OpenCalls())
		}
		validHistory(t, s)
	})
}

func TestStateOfATurn(t *testing.T) {
	l := Memory("/w")
	s := l.NewState()
	appendAll(t, l, s, turn(1)...)
	var roles []llm.Role
	for _, m := range s.Messages {
		roles = append(roles, m.Role)
	}
	if want := []llm.Role{llm.User, llm.Assistant, llm.Tool, llm.Assistant}; !reflect.DeepEqual(roles, want) {
		t.Errorf("roles %v, want %v", roles, want)
	}
	if s.Title != "question 1" || s.Turns != 1 || s.OpenTurn || s.End == nil || s.Header.Snapshot.Target.Model != "qwen" {
		t.Errorf("state %+v", s)
	}
	if s.Usage != (Totals{Requests: 1, PromptTokens: 100, CompletionTokens: 7}) {
		t.Errorf("usage %+v", s.Usage)
	}
	if s.Previous == nil || s.Previous.PromptTokens != 100 || s.Previous.Shape.Digest != 1<<63 {
		t.Errorf("previous %+v", s.Previous)
	}
	if s.Notice == nil || s.Notice.Exchanges != 3 {
		t.Errorf("notice %+v", s.Notice)
	}
	if string(s.Messages[1].Calls[0].Extra) != `{"sig":"x"}` {
		t.Errorf("extra %s: the live state must hold what a reload gives", s.Messages[1].Calls[0].Extra)
	}
	appendAll(t, l, s, &TurnStart{})
	if s.Notice != nil || !s.OpenTurn || s.End != nil || s.Turns != 2 {
		t.Errorf("a new turn starts with %+v", s)
	}
}

func TestPreviousFollowsTheAnswer(t *testing.T) {
	s := new(State)
	plan := turn(1)[3].(*RequestPlan)
	s.Apply(plan)
	if s.Previous != nil {
		t.Error("a request that nobody answered is the previous one")
	}
	s.Apply(&AssistantMessage{Text: "cut", Interrupted: true})
	if s.Previous == nil || s.Previous.PromptTokens != 0 {
		t.Errorf("an answer without a count gives %+v", s.Previous)
	}
	s.Apply(plan)
	s.Apply(&AssistantMessage{Discarded: true, Usage: &llm.Usage{PromptTokens: 9, Estimated: true}})
	if s.Previous.PromptTokens != 9 || !s.Previous.Estimated || !s.Usage.Estimated {
		t.Errorf("previous %+v, usage %+v", s.Previous, s.Usage)
	}
	if plan.Next.PromptTokens != 0 {
		t.Error("the record was changed")
	}
	s.Apply(&AssistantMessage{Usage: &llm.Usage{PromptTokens: 11}})
	if s.Previous.PromptTokens != 9 {
		t.Error("an answer without a plan of its own changed the previous shape")
	}
}

func user(text string) *UserMessage { return &UserMessage{Parts: []llm.Part{llm.Text(text)}} }

func calls(ids ...string) *AssistantMessage {
	m := &AssistantMessage{}
	for _, id := range ids {
		m.Calls = append(m.Calls, llm.ToolCall{ID: id, Name: "read", Arguments: "{}"})
	}
	return m
}

func result(id, text string) *ToolResult { return &ToolResult{ID: id, Status: StatusOK, Text: text} }

// short writes messages as one line each: u(text), U for a continuation, a(text
// [ids]), t(id: text), with ! for an error.
func short(messages []llm.Message) []string {
	var list []string
	for _, m := range messages {
		line := map[llm.Role]string{llm.User: "u", llm.Assistant: "a", llm.Tool: "t"}[m.Role]
		if m.Continuation {
			line = "U"
		}
		if m.IsError {
			line += "!"
		}
		line += "(" + m.CallID
		if m.CallID != "" {
			line += ": "
		}
		line += m.Text()
		for _, c := range m.Calls {
			line += " " + c.ID
		}
		list = append(list, line+")")
	}
	return list
}

// historyTest says what becomes of records.
type historyTest struct {
	name string
	recs []Record
	want []string // messages
	open []string // calls
	warn bool
}

func checkHistories(t *testing.T, tests []historyTest) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := new(State)
			for _, rec := range test.recs {
				s.Apply(rec)
				validHistory(t, s)
			}
			if got := short(s.Messages); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
			var open []string
			for _, c := range s.OpenCalls() {
				open = append(open, c.ID)
			}
			if !reflect.DeepEqual(open, test.open) {
				t.Errorf("open %q, want %q", open, test.open)
			}
			if got := len(s.Warnings) > 0; got != test.warn {
				t.Errorf("warnings %v", s.Warnings)
			}
		})
	}
}

func steer() *UserMessage {
	return &UserMessage{Parts: []llm.Part{llm.Text("stop that")}, Continuation: true}
}

func TestHistoryOfUnusualRecords(t *testing.T) {
	checkHistories(t, []historyTest{
		{
			"results in the order of the calls",
			[]Record{user("q"), calls("a", "b"), result("b", "2"), result("a", "1")},
			[]string{"u(q)", "a( a b)", "t(a: 1)", "t(b: 2)"}, nil, false,
		}, {
			"an open group is not history yet",
			[]Record{user("q"), calls("a", "b"), result("b", "2")},
			[]string{"u(q)"}, []string{"a"}, false,
		}, {
			"steer()ing waits for the results",
			[]Record{user("q"), calls("a"), steer(), result("a", "1")},
			[]string{"u(q)", "a( a)", "t(a: 1)", "U(stop that)"}, nil, false,
		}, {
			"ids that an engine repeats",
			[]Record{user("q"), calls("x", "x", "", "x_2"), result("x", "1"), result("x", "2"), result("", "3"), result("x_2", "4")},
			[]string{"u(q)", "a( x x_3 _2 x_2)", "t(x: 1)", "t(x_3: 2)", "t(_2: 3)", "t(x_2: 4)"}, nil, false,
		}, {
			"ids that are used again by the next answer",
			[]Record{user("q"), calls("x"), result("x", "1"), calls("x"), result("x", "2")},
			[]string{"u(q)", "a( x)", "t(x: 1)", "a( x)", "t(x: 2)"}, nil, false,
		}, {
			"empty, discarded and cut answers",
			[]Record{
				user("q"), &AssistantMessage{Reasoning: &llm.Reasoning{Text: "thought only"}},
				&AssistantMessage{Text: "markup", Discarded: true},
				&AssistantMessage{Text: "half", Interrupted: true, Calls: calls("z").Calls},
			},
			[]string{"u(q)", "a(half)"}, nil, false,
		}, {
			"a question that failed stays",
			[]Record{&TurnStart{}, user("q"), &TurnEnd{Reason: EndError}, &TurnStart{}, user("again")},
			[]string{"u(q)", "u(again)"}, nil, false,
		},
	})
}

func TestHistoryWithLostRecords(t *testing.T) {
	const notExecuted = "Not executed: drover ended before the call started."
	const unknown = "Result unknown: drover ended while the call ran. It may have taken effect, wholly or in part; check before doing it again."
	checkHistories(t, []historyTest{
		{
			"lost results",
			[]Record{
				user("q"), calls("a", "b", "c"), &ToolCall{ID: "b", Started: true},
				&PermissionDecision{CallID: "c", Allowed: true}, user("next"),
			},
			[]string{"u(q)", "a( a b c)", "t!(a: " + notExecuted + ")", "t!(b: " + unknown + ")", "t!(c: " + unknown + ")", "u(next)"}, nil, true,
		}, {
			"a lost answer",
			[]Record{user("q"), &ToolCall{ID: "a"}, result("a", "1"), &AssistantMessage{Text: "done"}},
			[]string{"u(q)", "a(done)"}, nil, true,
		}, {
			"a lost question",
			[]Record{&AssistantMessage{Text: "done"}, steer()},
			[]string{"u([the beginning of this conversation could not be read])", "a(done)", "U(stop that)"}, nil, true,
		}, {
			"nothing to continue",
			[]Record{steer()},
			[]string{"u(stop that)"}, nil, false,
		},
	})
}

// A call has started when its intent says so or its permission was given.
func TestInterruption(t *testing.T) {
	s := new(State)
	for _, rec := range []Record{
		&TurnStart{}, user("q"), calls("never", "asked", "refused", "allowed", "free", "done"),
		&ToolCall{ID: "asked"},
		&ToolCall{ID: "refused"}, &PermissionDecision{CallID: "refused", Decision: "reject_once"},
		&ToolCall{ID: "allowed"}, &PermissionDecision{CallID: "allowed", Decision: "allow_once", Allowed: true},
		&ToolCall{ID: "free", Started: true},
		&ToolCall{ID: "done", Started: true}, result("done", "1"),
	} {
		s.Apply(rec)
	}
	got := make(map[string]Status)
	recs := s.Interruption()
	for _, rec := range recs[:len(recs)-1] {
		r := rec.(*ToolResult)
		got[r.ID] = r.Status
	}
	want := map[string]Status{
		"never": StatusNotExecuted, "asked": StatusNotExecuted, "refused": StatusNotExecuted,
		"allowed": StatusUnknown, "free": StatusUnknown,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if end, ok := recs[len(recs)-1].(*TurnEnd); !ok || end.Reason != EndInterrupted {
		t.Errorf("the last record is %+v", recs[len(recs)-1])
	}
	if open := s.OpenCalls(); !open[1].Intended || open[0].Intended || !open[2].Decided || open[2].Started {
		t.Errorf("open calls %+v", open)
	}
	if new(State).Interruption() != nil {
		t.Error("a turn that is not open is closed")
	}
}

func TestWarningsAreBounded(t *testing.T) {
	s := new(State)
	for range 3 * MaxWarnings {
		s.Apply(result("nobody", "1"))
	}
	if len(s.Warnings) != MaxWarnings {
		t.Errorf("%d warnings, want %d", len(s.Warnings), MaxWarnings)
	}
}
