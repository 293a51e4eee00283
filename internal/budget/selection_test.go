package budget

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/drover-dev/drover/internal/llm"
)

// Invariant 6: with policy 1 a larger budget never keeps less.
func TestLargerBudgetKeepsNoLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "input")
		in.RequestedOutput = 1
		small, err := Make(Policy1(), in)
		if err != nil {
			return
		}
		in.Snapshot.Window.Tokens += rapid.IntRange(1, 2000).Draw(t, "more")
		large := mustMake(t, Policy1(), in)
		a, b := &small.Report, &large.Report
		if b.RetainedExchanges < a.RetainedExchanges || len(b.Truncations) > len(a.Truncations) || len(b.OmittedImages) > len(a.OmittedImages) {
			t.Fatalf("budget %d: %+v\nbudget %d: %+v", a.InputBudget, a, b.InputBudget, b)
		}
		if b.RetainedExchanges == a.RetainedExchanges {
			for _, c := range b.Truncations {
				for _, was := range a.Truncations {
					if was.Turn == c.Turn && was.BytesAfter > c.BytesAfter+len("[... about 1000000 tokens left out ...]") {
						t.Fatalf("turn %d kept %d bytes, with a larger budget %d", c.Turn, was.BytesAfter, c.BytesAfter)
					}
				}
			}
		}
	})
}

// stageOf names the stage that made a truncation.
var stageOf = map[string]int{"toolResult": 1, "assistantText": 2, "userText": 4}

// Invariant 8: a stage is entered only when the ones before have given all they
// can, and within a stage the order holds.
func TestStageOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "input")
		plan, err := Make(Policy1(), in)
		if err != nil {
			return
		}
		last := 0
		for _, c := range plan.Report.Truncations {
			last = max(last, stageOf[c.Component])
		}
		if len(plan.Report.OmittedImages) > 0 {
			last = max(last, 3)
		}
		price := newPricer(Policy1(), &in.Snapshot)
		for i := range plan.Request.Messages {
			turn := plan.Shape.FirstTurn + i
			stage := map[llm.Role]int{llm.Tool: 1, llm.Assistant: 2, llm.User: 4}[in.Messages[turn].Role]
			if stage < last {
				checkExhausted(t, &price, &in.Messages[turn], &plan.Request.Messages[i])
			}
			if last == 4 && len(plan.Request.Messages[i].Images()) > 0 {
				t.Fatalf("turn %d: a user text was shortened before its image went", turn)
			}
		}
		for _, c := range plan.Report.Truncations {
			checkFirst(t, &price, in, plan, c.Turn)
		}
	})
}

// checkFirst asserts that a turn was shortened after all those of its role whose
// time is before it: the older ones, and for the user's words the newer ones.
func checkFirst(t tb, price *pricer, in *Input, plan *Plan, turn int) {
	t.Helper()
	role := in.Messages[turn].Role
	for i := range plan.Request.Messages {
		n := plan.Shape.FirstTurn + i
		was, is := &in.Messages[n], &plan.Request.Messages[i]
		switch {
		case was.Role != role || n == turn || n < turn != (role != llm.User):
		case len(was.Images()) > 0 && !strings.HasPrefix(is.Text(), "[... about ") && price.textOf(role, was.Text()) < 100:
			// The marker of an image makes a short text and its excerpt cost as much.
		default:
			checkExhausted(t, price, was, is)
		}
	}
}

// The words of a turn give way newest first, and the task last of all.
func TestUserWordsGoNewestFirst(t *testing.T) {
	steer := func(text string) llm.Message {
		return llm.Message{Role: llm.User, Continuation: true, Parts: []llm.Part{llm.Text(text)}}
	}
	for _, p := range []*Policy{Policy1(), Policy2()} {
		in := window(4096, llm.UserText(prose(3000)), steer(prose(3000)), llm.AssistantText("well"), steer(prose(3000)))
		plan := mustMake(t, p, in)
		checkPlan(t, p, in, plan)
		got := map[int]int{}
		for _, c := range plan.Report.Truncations {
			got[c.Turn] = c.BytesAfter
		}
		if got[0] != 0 || got[3] == 0 || got[1] != 0 && got[3] > 60 {
			t.Errorf("policy %d shortened %+v", p.Version, plan.Report.Truncations)
		}
	}
}

// The assistant's words give way oldest first.
func TestAssistantWordsGoOldestFirst(t *testing.T) {
	for _, p := range []*Policy{Policy1(), Policy2()} {
		in := window(4096, llm.UserText("go"), llm.AssistantText(prose(7000)), llm.AssistantText(prose(7000)))
		plan := mustMake(t, p, in)
		checkPlan(t, p, in, plan)
		c := plan.Report.Truncations
		if len(c) == 0 || c[0].Turn != 1 || len(c) > 1 && c[0].BytesAfter > 60 {
			t.Errorf("policy %d shortened %+v", p.Version, c)
		}
	}
}

// checkExhausted asserts that nothing more of a text could be saved.
func checkExhausted(t tb, p *pricer, was, is *llm.Message) {
	t.Helper()
	text := was.Text()
	if text == "" || strings.HasPrefix(is.Text(), "[... about ") {
		return
	}
	cost := p.textOf(was.Role, text)
	if least := p.textOf(was.Role, p.excerptOf(was.Role, text, cost, 0, 0)); least < cost {
		t.Fatalf("a later stage ran although %q could cost %d instead of %d", is.Text(), least, cost)
	}
}

// Invariant 10: when shortening results is enough, nothing else is touched.
func TestResultsGoBeforeWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, in := policies(t), genInput().Draw(t, "input")
		plan, err := Make(p, in)
		if err != nil || plan.Report.RetainedExchanges > 1 || len(plan.Report.OmittedGroups) > 0 {
			return
		}
		price := newPricer(p, &in.Snapshot)
		least := plan.Report.BreakdownBefore.Fixed()
		for _, m := range in.Messages[plan.Shape.FirstTurn:] {
			c := price.turn(&m)
			if m.Role == llm.Tool && c.text > 0 {
				c.total += min(0, price.textOf(m.Role, price.excerptOf(m.Role, m.Text(), c.text, 0, 0))-c.text)
			}
			least += c.total
		}
		if least > plan.Report.InputBudget {
			return
		}
		for _, c := range plan.Report.Truncations {
			if c.Component != "toolResult" {
				t.Fatalf("shortening results would have been enough: %+v", c)
			}
		}
		if len(plan.Report.OmittedImages) > 0 {
			t.Fatal("shortening results would have been enough, an image went")
		}
	})
}

// Invariant 9: with policy 1 more text never costs less, and never under a token
// for two bytes. With policy 2 it may cost a few tokens less where words join.
func TestTextGrowsDearer(t *testing.T) {
	const unevenness = 8
	rapid.Check(t, func(t *rapid.T) {
		a, b := genText(300).Draw(t, "a"), genText(300).Draw(t, "b")
		if !utf8.ValidString(a) {
			return // b could complete a character that counts as broken in a
		}
		whole := cautiousText(a + b)
		if whole < cautiousText(a) || 2*whole < len(a+b) {
			t.Fatalf("%d for %q, %d for %q", cautiousText(a), a, whole, a+b)
		}
		if left, sum := tightText(a), tightText(a+b); left > sum+unevenness || left+tightText(b) < sum-unevenness {
			t.Fatalf("policy 2: %d and %d apart, %d together: %q %q", left, tightText(b), sum, a, b)
		}
	})
}

// What protocol fields are priced by is what the encoder writes.
func TestProtocolFieldsArePricedAsSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genText(200).Draw(t, "text")
		var wire bytes.Buffer
		llm.AppendJSONString(&wire, s)
		if got, want := protocolBytes(s), wire.Len()-2+1; got != want {
			t.Fatalf("protocolBytes(%q) = %d, want %d", s, got, want)
		}
		if got := jsonString(s); got != wire.String() {
			t.Fatalf("jsonString(%q) = %s, want %s", s, got, wire.String())
		}
		if got, want := tightResult(s), tightText(wire.String()); got != want {
			t.Fatalf("tightResult(%q) = %d, want %d", s, got, want)
		}
	})
}

// With policy 2 cuts move in steps: turns that fit change nothing before them,
// and no more than a step is given away.
func TestCutsMoveInSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "input")
		plan, err := Make(Policy2(), in)
		if err != nil {
			return
		}
		r := &plan.Report
		available := r.InputBudget - r.BreakdownBefore.Fixed()
		step := Policy2().selection.step(available)
		if step > 1 && (4*step > available || 8*step <= available) || step < 1 {
			t.Fatalf("step %d for %d tokens", step, available)
		}
		price := newPricer(Policy2(), &in.Snapshot)
		if r.DroppedExchanges > 0 && len(r.Truncations)+len(r.OmittedImages)+len(r.OmittedGroups) == 0 {
			last := 0
			for turn := plan.Shape.FirstTurn - 1; ; turn-- {
				last += price.turn(&in.Messages[turn]).total
				if m := &in.Messages[turn]; m.Role == llm.User && !m.Continuation {
					break
				}
			}
			if kept := r.BreakdownAfter.Exchanges; kept+last <= available-step {
				t.Fatalf("kept %d, dropped %d last, of %d in steps of %d", kept, last, available, step)
			}
		}
		longer := *in
		longer.Messages = append(in.Messages[:len(in.Messages):len(in.Messages)], llm.UserText(genText(200).Draw(t, "more")))
		longer.Previous = plan.Next(llm.Usage{})
		if r.EstimatedAfter+price.turn(&longer.Messages[len(in.Messages)]).total > r.InputBudget {
			return
		}
		next := mustMake(t, Policy2(), &longer)
		n := len(plan.Request.Messages)
		if len(next.Request.Messages) != n+1 || !reflect.DeepEqual(next.Request.Messages[:n], plan.Request.Messages) {
			t.Fatalf("a turn that fits moved the cut from %d to %d", plan.Shape.FirstTurn, next.Shape.FirstTurn)
		}
	})
}
