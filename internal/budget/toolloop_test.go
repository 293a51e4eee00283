package budget

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/history"
	"github.com/drover-dev/drover/internal/llm"
)

// toolLoop is one long turn: a task, rounds of reading, an instruction and a
// picture on the way.
func toolLoop(rounds int) []llm.Message {
	messages := []llm.Message{llm.UserText("read all the files")}
	for i := range rounds {
		messages = append(messages, round(fmt.Sprintf("c%d", i), []string{"read", "grep"}[i%4/3], `{"path":"a.go"}`, mixed(3000+100*i))...)
		switch i {
		case 2:
			messages = append(messages, llm.Message{Role: llm.User, Continuation: true, Parts: []llm.Part{&llm.Image{Width: 64, Height: 64}}})
		case 4:
			messages = append(messages, llm.Message{Role: llm.User, Continuation: true, Parts: []llm.Part{llm.Text("be quick")}})
		}
	}
	return messages
}

// Without any memory of earlier requests the shape of a growing turn moves in
// steps, an excerpt keeps its bytes, and the last two rounds stay.
func TestToolLoopGivesWayInSteps(t *testing.T) {
	excerpts := map[int]string{}
	shapes, plans := 0, 0
	var last Shape
	for rounds := 1; rounds <= 40; rounds++ {
		in := window(32768, toolLoop(rounds)...)
		plan := mustMake(t, Policy2(), in)
		checkPlan(t, Policy2(), in, plan)
		plans++
		if s := plan.Shape; !reflect.DeepEqual(s.Excerpts, last.Excerpts) || !reflect.DeepEqual(s.LeftOut, last.LeftOut) {
			shapes++
		}
		last = plan.Shape
		left := map[int]bool{}
		for _, g := range plan.Shape.LeftOut {
			for turn := g.Start; turn < g.End; turn++ {
				left[turn] = true
			}
		}
		all, _ := history.Split(in.Messages)
		for i, g := range all[0].Groups {
			if left[g.Start] && i >= rounds-2 {
				t.Fatalf("%d rounds: round %d was left out", rounds, i)
			}
		}
		emitted := plan.Request.Messages
		for turn := range in.Messages {
			if left[turn] {
				continue
			}
			m := emitted[0]
			emitted = emitted[1:]
			if text := m.Text(); text != in.Messages[turn].Text() && m.Role == llm.Tool {
				if was, ok := excerpts[turn]; ok && was != text {
					t.Fatalf("%d rounds: the excerpt of turn %d changed", rounds, turn)
				}
				excerpts[turn] = text
			}
		}
		checkRoundsLine(t, plan, left)
	}
	if len(last.LeftOut) == 0 || len(excerpts) == 0 || shapes > plans*2/3 {
		t.Errorf("%d rounds left out, %d excerpts, %d shapes in %d plans", len(last.LeftOut), len(excerpts), shapes, plans)
	}
	t.Logf("%d shapes in %d plans", shapes, plans)
}

// checkRoundsLine asserts that the line for rounds left out stands at the end of
// the task, that an instruction is never left out and that a tool's picture goes
// with its round.
func checkRoundsLine(t *testing.T, plan *Plan, left map[int]bool) {
	t.Helper()
	task := plan.Request.Messages[0].Text()
	groups := plan.Report.OmittedGroups
	if len(groups) == 0 {
		if task != "read all the files" {
			t.Fatalf("task %q", task)
		}
		return
	}
	tokens, grep := 0, 0
	for _, g := range groups {
		tokens += g.Tokens
		if g.Tools[0] == "grep" {
			grep++
		}
	}
	names := fmt.Sprintf("read %d", len(groups)-grep)
	if grep > 0 {
		names += fmt.Sprintf(", grep %d", grep)
	}
	want := fmt.Sprintf("read all the files\n[drover: %d earlier tool rounds left out (%s), about %d tokens]", len(groups), names, tokens)
	if task != want {
		t.Fatalf("task %q, want %q", task, want)
	}
	const picture, instruction = 7, 12
	if left[instruction] {
		t.Fatal("the instruction was left out")
	}
	if left[picture-2] != left[picture] || len(groups) == 0 != !plan.Report.Trimmed() {
		t.Fatalf("round and picture apart: %v", left)
	}
}

// Rounds are left out in whole steps, so that the next ones move nothing.
func TestRoundsAreLeftOutInSteps(t *testing.T) {
	for rounds := 8; rounds <= 40; rounds++ {
		in := window(8192, llm.UserText("go"))
		for i := range rounds {
			in.Messages = append(in.Messages, round(fmt.Sprint("c", i), "read", "{}", mixed(1900)[:1900])...)
		}
		r := mustMake(t, Policy2(), in).Report
		room := r.InputBudget - r.BreakdownBefore.Fixed()
		step := Policy2().selection.step(room)
		tooMuch, removed := r.BreakdownBefore.Exchanges-room, r.TokensRemoved
		if tooMuch > 0 && len(r.OmittedGroups) < rounds-recentGroups && removed < ceilDiv(tooMuch, step)*step {
			t.Errorf("%d rounds: %d tokens too many, %d removed, in steps of %d", rounds, tooMuch, removed, step)
		}
		if len(r.Truncations) > 0 || (tooMuch > 0) != (len(r.OmittedGroups) > 0) {
			t.Fatalf("%d rounds: %+v", rounds, r)
		}
	}
}

// The line for rounds left out is one line, whatever names a model made up.
func TestRoundsLineIsOneLine(t *testing.T) {
	in := window(8192, llm.UserText("go"))
	for i := range 30 {
		name := []string{"read", "read\n{\"path\":\"x\"}" + strings.Repeat("x", 500)}[i%2]
		in.Messages = append(in.Messages, round(fmt.Sprint("c", i), name, "{}", mixed(1500))...)
	}
	plan := mustMake(t, Policy2(), in)
	checkPlan(t, Policy2(), in, plan)
	text := plan.Request.Messages[0].Text()
	if len(plan.Report.OmittedGroups) < 10 || strings.Count(text, "\n") != 1 || len(text) > 250 {
		t.Errorf("%d rounds left out: %q", len(plan.Report.OmittedGroups), text)
	}
}

// A result under 2,048 bytes is never cut to the fixed size: its round goes whole.
func TestShortResultsAreNotCut(t *testing.T) {
	for _, c := range []struct {
		name string
		body string
		cut  bool
	}{
		{"2,047 bytes", mixed(2100)[:2047], false},
		{"2,048 bytes", mixed(2100)[:2048], true},
	} {
		messages := append([]llm.Message{llm.UserText("go")}, round("a", "read", "{}", c.body)...)
		for i := range 2 {
			messages = append(messages, round(fmt.Sprintf("b%d", i), "read", "{}", mixed(2000))...)
		}
		in := window(3850, messages...)
		in.RequestedOutput = 200
		full := EstimateRequest(Policy2(), &llm.Request{Messages: messages}).Total()
		in.Snapshot.Window.Tokens = full + 200 + 256 - 1
		plan := mustMake(t, Policy2(), in)
		checkPlan(t, Policy2(), in, plan)
		if got := plan.Request.Messages[2].CallID == "a"; c.cut && !got {
			t.Errorf("%s: the round was left out instead of cut", c.name)
		}
		if x := plan.Shape.Excerpts; c.cut != (len(x) == 1 && x[0].Turn == 2 && x[0].Fixed) {
			t.Errorf("%s: excerpts %+v, left out %v", c.name, x, plan.Shape.LeftOut)
		}
	}
}

// A turn that outgrew the window is still seen by the next prompt, shortened
// further while that is enough, and dropped when it is not.
func TestShortenedTurnIsKeptForTheNextPrompt(t *testing.T) {
	in := window(8192, toolLoop(12)...)
	first := mustMake(t, Policy2(), in)
	in.Previous = first.Next(llm.Usage{}) // an engine that does not count
	in.Messages = append(in.Messages, llm.AssistantText(prose(1500)), llm.UserText("what did you read last?"))
	second := mustMake(t, Policy2(), in)
	checkPlan(t, Policy2(), in, second)
	if second.Report.RetainedExchanges != 2 || second.Request.Messages[len(second.Request.Messages)-1].Text() != "what did you read last?" {
		t.Errorf("%+v", second.Report)
	}
	in.Previous = second.Next(llm.Usage{})
	in.Messages = append(in.Messages, llm.AssistantText(prose(16000)), llm.UserText("and now?"))
	third := mustMake(t, Policy2(), in)
	checkPlan(t, Policy2(), in, third)
	if third.Report.DroppedExchanges != 1 || third.Report.Trimmed() && len(third.Report.Truncations) > 0 {
		t.Errorf("a turn that is not the last one any more: %+v", third.Report)
	}
	in.Previous = first.Next(llm.Usage{})
	in.Messages = append(toolLoop(12), llm.UserText(prose(21_800)))
	crowded := mustMake(t, Policy2(), in)
	checkPlan(t, Policy2(), in, crowded)
	if r := crowded.Report; r.DroppedExchanges != 1 || len(r.Truncations) > 0 {
		t.Errorf("no room for the turn before: %+v", r)
	}
}
