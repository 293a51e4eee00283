package budget

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-dev/drover/internal/history"
	"github.com/drover-dev/drover/internal/llm"
)

// engine stands for an engine that counts exactly: a share, in percent, of the
// tight estimate.
type engine struct{ percent int }

func (e engine) count(r *llm.Request) llm.Usage {
	b := EstimateRequest(Policy2(), r)
	return llm.Usage{PromptTokens: b.Total() * e.percent / 100}
}

// relogged sends a value through its JSON form, as the session log does.
func relogged(t tb, p *Previous) *Previous {
	t.Helper()
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	out := new(Previous)
	if err := json.Unmarshal(data, out); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(out, p) {
		t.Fatalf("%+v came back as %+v", p, out)
	}
	return out
}

// session plans one step after the other, as the agent does.
type session struct {
	in     *Input
	policy *Policy
	engine engine
	plans  []*Plan
}

func (s *session) step(t tb) *Plan {
	t.Helper()
	plan := mustMake(t, s.policy, s.in)
	checkPlan(t, s.policy, s.in, plan)
	usage := s.engine.count(&plan.Request)
	if window := plan.Report.WindowTokens; usage.PromptTokens+plan.Request.MaxTokens > window {
		t.Fatalf("request %d: %d tokens counted and %d to come, window %d", len(s.plans), usage.PromptTokens, plan.Request.MaxTokens, window)
	}
	if minimum := plan.ProvableMinimum(); minimum > usage.PromptTokens {
		t.Fatalf("request %d: at least %d tokens, counted %d", len(s.plans), minimum, usage.PromptTokens)
	}
	s.in.Previous = relogged(t, plan.Next(usage))
	s.plans = append(s.plans, plan)
	return plan
}

func (s *session) add(messages ...llm.Message) {
	s.in.Messages = append(s.in.Messages[:len(s.in.Messages):len(s.in.Messages)], messages...)
}

// commonPrefix is how many messages two requests share at the start.
func commonPrefix(a, b *llm.Request) int {
	n := 0
	for n < len(a.Messages) && n < len(b.Messages) && reflect.DeepEqual(a.Messages[n], b.Messages[n]) {
		n++
	}
	return n
}

// The small-window task: one prompt, 40 rounds of reading 4 kB files, then a
// second prompt.
func TestSmallWindowTask(t *testing.T) {
	for _, tokens := range []int{4096, 8192, 32768} {
		for _, percent := range []int{45, 60, 100} {
			t.Run(fmt.Sprintf("window %d, engine %d%%", tokens, percent), func(t *testing.T) {
				s := &session{policy: Policy2(), engine: engine{percent}, in: window(tokens)}
				s.in.System = prose(1200)
				s.in.Snapshot.Effort = llm.Climb
				s.in.Costs = new(Costs)
				task := "please read every file of this folder and write down what each one is for"
				s.add(llm.UserText(task))
				kept := 0
				for i := range 40 {
					plan := s.step(t)
					if !strings.HasPrefix(plan.Request.Messages[0].Text(), task) {
						t.Fatalf("request %d lost the task: %q", i, plan.Request.Messages[0].Text())
					}
					if n := len(s.plans); n > 1 && commonPrefix(&s.plans[n-2].Request, &plan.Request) == len(s.plans[n-2].Request.Messages) {
						kept++
					}
					s.add(round(fmt.Sprintf("call_%d", i), "read", fmt.Sprintf(`{"path":"src/file%d.go"}`, i), mixed(4 << 10)[:4<<10])...)
				}
				last := s.step(t)
				s.add(llm.AssistantText("It is a budget planner; each file is one concept of it."), llm.UserText("which one would you read first?"))
				second := s.step(t)
				t.Logf("%d of 39 requests extended the one before; then %s", kept, second.Report.Summary())
				if second.Report.RetainedExchanges != 2 {
					t.Errorf("the second prompt does not see the first one's rounds: %+v", second.Report)
				}
				if percent < 100 && commonPrefix(&last.Request, &second.Request) != len(last.Request.Messages) {
					t.Errorf("the second prompt moved what was sent before")
				}
			})
		}
	}
}

// However a session goes, no request is over the window, and while the last
// shape fits, it is sent again byte for byte.
func TestSessionInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "input")
		in.Snapshot.Profile = llm.Generic
		all := in.Messages
		s := &session{policy: Policy2(), engine: engine{rapid.IntRange(30, 100).Draw(t, "percent")}, in: in}
		if rapid.Bool().Draw(t, "costs") {
			in.Costs = new(Costs)
		}
		var before *Plan
		for n := range all {
			in.Messages = all[:n+1]
			if all[n].Role == llm.Assistant || historyOpen(all[:n+1]) {
				continue
			}
			prev := in.Previous
			plan, err := Make(s.policy, in)
			if err != nil {
				return
			}
			checkPlan(t, s.policy, in, plan)
			if again := mustMake(t, s.policy, in); !reflect.DeepEqual(again, plan) {
				t.Fatal("same input, other plan")
			}
			usage := s.engine.count(&plan.Request)
			if usage.PromptTokens > plan.Report.InputBudget {
				t.Fatalf("%d tokens counted, budget %d", usage.PromptTokens, plan.Report.InputBudget)
			}
			if before != nil {
				if plan.Shape.FirstTurn < before.Shape.FirstTurn {
					t.Fatalf("the cut moved back from %d to %d", before.Shape.FirstTurn, plan.Shape.FirstTurn)
				}
				same := commonPrefix(&before.Request, &plan.Request) == len(before.Request.Messages)
				if plan.Report.Anchor != nil && !same {
					t.Fatal("anchored, and the prefix changed")
				}
				if plan.Report.Anchor != nil {
					checkReplanned(t, s.policy, in, plan)
				}
				if same && !prev.Opaque && plan.ProvableMinimum() < prev.exact() {
					t.Fatalf("provable minimum %d, the prefix alone counted %d", plan.ProvableMinimum(), prev.exact())
				}
			}
			before = plan
			in.Previous = relogged(t, plan.Next(usage))
		}
	})
}

// checkReplanned plans what an anchored plan emitted, with the same previous
// request in terms of the emitted messages.
func checkReplanned(t tb, p *Policy, in *Input, plan *Plan) {
	t.Helper()
	again := *in
	again.Messages = plan.Request.Messages
	prev := *in.Previous
	prev.Shape = Shape{Turns: prev.Shape.Emitted, Emitted: prev.Shape.Emitted, Digest: prev.Shape.Digest}
	again.Previous, again.Costs = &prev, nil
	twice := mustMake(t, p, &again)
	if !reflect.DeepEqual(twice.Request, plan.Request) || twice.Report.EstimatedAfter != plan.Report.EstimatedAfter {
		t.Fatalf("planning the plan changed it: %+v, then %+v", plan.Report, twice.Report)
	}
}

func historyOpen(messages []llm.Message) bool {
	_, err := history.Split(messages)
	return err != nil
}

func TestAnchorIsTrustedOnlyWhenSound(t *testing.T) {
	sound := Previous{Window: 8192, Output: 1024, Estimate: 4000, PromptTokens: 2500}
	for _, c := range []struct {
		name   string
		change func(*Previous)
		want   bool
	}{
		{"sound", func(*Previous) {}, true},
		{"missing", func(p *Previous) { p.PromptTokens = 0 }, false},
		{"estimated", func(p *Previous) { p.Estimated = true }, false},
		{"one under what the output leaves", func(p *Previous) { p.PromptTokens = 7167 }, true},
		{"as much as the output leaves", func(p *Previous) { p.PromptTokens = 7168 }, false},
		{"a quarter", func(p *Previous) { p.PromptTokens = 1000 }, true},
		{"under a quarter", func(p *Previous) { p.PromptTokens = 999 }, false},
		{"images or reasoning", func(p *Previous) { p.Opaque = true }, false},
		{"as before", func(p *Previous) { p.Earlier = 2500 }, true},
		{"shrunk", func(p *Previous) { p.Earlier = 2501 }, false},
	} {
		p := sound
		c.change(&p)
		if got := p.trusted(); got != c.want {
			t.Errorf("%s: trusted = %v", c.name, got)
		}
	}
}

// trimmedSession is a session whose first plan dropped something and whose engine
// counted half the estimate, and two turns later.
func trimmedSession(t tb) (in *Input, first *Plan) {
	t.Helper()
	in = window(4096, llm.UserText("first task"), llm.AssistantText(prose(9000)), llm.UserText("second task"))
	in.System = "You are drover."
	first = mustMake(t, Policy2(), in)
	if !first.Report.Trimmed() {
		t.Fatal("nothing was trimmed")
	}
	in.Previous = first.Next(llm.Usage{PromptTokens: first.Report.EstimatedAfter / 2})
	in.Messages = append(slices.Clip(in.Messages), llm.AssistantText("done"), llm.UserText("third task"))
	return in, first
}

// The last request counts only while everything before the conversation is the
// same.
func TestPreviousIsValidForTheSameHead(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Input)
		valid  bool
	}{
		{"nothing", func(*Input) {}, true},
		{"model", func(in *Input) { in.Snapshot.Target.Model = "other" }, false},
		{"provider", func(in *Input) { in.Snapshot.Target.Provider = "other" }, false},
		{"window", func(in *Input) { in.Snapshot.Window.Tokens++ }, false},
		{"system", func(in *Input) { in.System += "!" }, false},
		{"memory", func(in *Input) { in.Memory = "note" }, false},
		{"tools", func(in *Input) { in.Tools = []llm.ToolDef{llm.NewToolDef("read", "", nil)} }, false},
		{"policy", func(in *Input) { in.Previous.Policy = 3 }, false},
		{"a kept turn", func(in *Input) {
			in.Messages = slices.Clone(in.Messages)
			in.Messages[2] = llm.UserText("another task")
		}, false},
		{"shorter history", func(in *Input) { in.Messages = in.Messages[:1] }, false},
		{"first turn out of range", func(in *Input) { in.Previous.Shape.FirstTurn = 1 << 40 }, false},
		{"first turn inside an exchange", func(in *Input) { in.Previous.Shape.FirstTurn = 1 }, false},
		{"excerpt out of range", func(in *Input) { in.Previous.Shape.Excerpts = []Excerpt{{Turn: 99}} }, false},
		{"excerpt of more than there is", func(in *Input) { in.Previous.Shape.Excerpts = []Excerpt{{Turn: 2, Head: 99}} }, false},
		{"excerpt of more than can be counted", func(in *Input) {
			in.Previous.Shape.Excerpts = []Excerpt{{Turn: 2, Head: math.MaxInt, Tail: math.MaxInt}}
		}, false},
		{"image out of range", func(in *Input) { in.Previous.Shape.OmittedImages = []ImageRef{{Turn: 2, Image: 1}} }, false},
		{"group that is none", func(in *Input) { in.Previous.Shape.LeftOut = []Range{{2, 3}} }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, first := trimmedSession(t)
			c.change(in)
			plan := mustMake(t, Policy2(), in)
			if got := plan.Report.Anchor != nil; got != c.valid {
				t.Errorf("anchored = %v, want %v", got, c.valid)
			}
			if c.valid && plan.Shape.FirstTurn != first.Shape.FirstTurn {
				t.Errorf("first turn %d, was %d", plan.Shape.FirstTurn, first.Shape.FirstTurn)
			}
		})
	}
}

// Where the engine counts more than the estimate, the plan gives way.
func TestEngineThatCountsMoreIsBelieved(t *testing.T) {
	in := window(4096)
	in.System = "You are drover."
	for i := range 8 {
		in.Messages = append(in.Messages, llm.UserText(fmt.Sprintf("task %d", i)), llm.AssistantText(prose(700)))
	}
	in.Messages = append(in.Messages, llm.UserText("go on"))
	first := mustMake(t, Policy2(), in)
	if first.Report.Trimmed() {
		t.Fatal("trimmed at once")
	}
	count := first.Report.InputBudget - 10
	if count <= first.Report.EstimatedAfter {
		t.Fatal("no room to count more")
	}
	in.Previous = first.Next(llm.Usage{PromptTokens: count})
	in.Messages = append(in.Messages, llm.AssistantText("done"), llm.UserText(prose(200)))
	second := mustMake(t, Policy2(), in)
	if second.Report.DroppedExchanges == 0 {
		t.Errorf("the engine counted %d, and nothing went: %+v", count, second.Report)
	}
}

// TestAnOpaqueCountProvesNothing: a thinking turn is replayed at one effort and
// not at the next, so what the engine counted with it is no minimum without it.
func TestAnOpaqueCountProvesNothing(t *testing.T) {
	in := &Input{
		Snapshot: llm.Snapshot{
			Target: llm.Target{Provider: "p", Model: "m"}, Profile: llm.DeepSeek, Effort: llm.Climb,
			Window: llm.Window{Tokens: 32768, Source: llm.Effective},
		},
		Messages: []llm.Message{
			llm.UserText("one"),
			{
				Role: llm.Assistant, Parts: []llm.Part{llm.Text("answer")}, Origin: llm.Target{Provider: "p", Model: "m"},
				Reasoning: &llm.Reasoning{Text: strings.Repeat("thinking about it ", 200), Field: "reasoning_content"},
			},
			llm.UserText("two"),
		},
	}
	first := mustMake(t, Policy2(), in)
	in.Previous = first.Next(llm.Usage{PromptTokens: 900})
	in.Messages = append(in.Messages, llm.AssistantText("answer"), llm.UserText("three"))
	in.Snapshot.Effort = llm.Graze
	if least := mustMake(t, Policy2(), in).ProvableMinimum(); least >= 900 {
		t.Errorf("provable minimum %d", least)
	}
}

// Nor is what it counted with a picture, once it is not sent pictures any more.
func TestACountWithAPictureProvesNothing(t *testing.T) {
	first := llm.UserText("what is this?")
	first.Parts = append(first.Parts, &llm.Image{Width: 640, Height: 480, SHA256: "00"})
	in := window(32768, first)
	in.Previous = mustMake(t, Policy2(), in).Next(llm.Usage{PromptTokens: 900})
	in.Messages = append(in.Messages, llm.AssistantText("a herd"), llm.UserText("where?"))
	in.Snapshot.Refusals = llm.Refusals{llm.RefusedImages}
	plan := mustMake(t, Policy2(), in)
	if least := plan.ProvableMinimum(); least >= 900 || plan.Report.Anchor != nil {
		t.Errorf("provable minimum %d, %+v", least, plan.Report)
	}
}

// A count without the thoughts that the next effort sends back is no anchor.
func TestACountWithoutThoughtsIsNoAnchorWithThem(t *testing.T) {
	thinking := llm.AssistantText("answer")
	thinking.Reasoning = &llm.Reasoning{Text: prose(2000), Field: "reasoning_content"}
	in := window(32768, llm.UserText("one"), thinking, llm.UserText("two"))
	in.Snapshot.Profile, in.Snapshot.Effort = llm.Qwen, llm.Graze
	in.Previous = mustMake(t, Policy2(), in).Next(llm.Usage{PromptTokens: 150})
	in.Messages = append(in.Messages, llm.AssistantText("answer"), llm.UserText("three"))
	if plan := mustMake(t, Policy2(), in); plan.Report.Anchor == nil {
		t.Error("no anchor at the same effort")
	}
	in.Snapshot.Effort = llm.Climb
	if plan := mustMake(t, Policy2(), in); plan.Report.Anchor != nil || plan.ProvableMinimum() == 150 {
		t.Errorf("%+v", plan.Report)
	}
}
