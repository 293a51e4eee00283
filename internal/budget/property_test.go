package budget

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/drover-dev/drover/internal/history"
	"github.com/drover-dev/drover/internal/llm"
)

// genText draws texts of many kinds, from nothing to a few kilobytes.
func genText(most int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		n := rapid.IntRange(0, most).Draw(t, "bytes")
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			return prose(n)
		case 1:
			return mixed(n)[:n]
		case 2:
			return strings.Repeat("你好，世界 ", n/15+1)
		case 3:
			return strings.Repeat("👩‍👩‍👧‍👦🇩🇪e\u0301\r\n", n/40+1)
		case 4:
			return strings.Repeat("a1b2c3d4", n/8+1)
		case 5:
			return rapid.StringN(0, min(n, 60), -1).Draw(t, "text")
		}
		return string(rapid.SliceOfN(rapid.Byte(), 0, min(n, 60)).Draw(t, "raw"))
	})
}

// genMessages draws a valid conversation.
func genMessages(textBytes int) *rapid.Generator[[]llm.Message] {
	return rapid.Custom(func(t *rapid.T) []llm.Message {
		var out []llm.Message
		text := genText(textBytes)
		for range rapid.IntRange(1, 5).Draw(t, "exchanges") {
			out = append(out, genUser(t, text, false))
			for i := range rapid.IntRange(0, 5).Draw(t, "steps") {
				out = append(out, genStep(t, text, i)...)
			}
		}
		return out
	})
}

func genUser(t *rapid.T, text *rapid.Generator[string], continuation bool) llm.Message {
	m := llm.Message{Role: llm.User, Continuation: continuation, Parts: []llm.Part{llm.Text(text.Draw(t, "user"))}}
	for range rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2}).Draw(t, "images") {
		m.Parts = append(m.Parts, &llm.Image{Name: "p.png", Width: 640, Height: 480, SHA256: "00"})
	}
	return m
}

func genStep(t *rapid.T, text *rapid.Generator[string], step int) []llm.Message {
	switch rapid.IntRange(0, 5).Draw(t, "step") {
	case 0:
		return []llm.Message{llm.AssistantText(text.Draw(t, "answer"))}
	case 1:
		return []llm.Message{genUser(t, text, true)}
	}
	m := llm.AssistantText(rapid.SampledFrom([]string{"", "let me look"}).Draw(t, "aside"))
	if rapid.Bool().Draw(t, "thinks") {
		m.Reasoning = &llm.Reasoning{Text: "I should look"}
	}
	var results []llm.Message
	for i := range rapid.IntRange(1, 3).Draw(t, "calls") {
		id := fmt.Sprintf("c%d_%d", step, i)
		m.Calls = append(m.Calls, llm.ToolCall{ID: id, Name: rapid.SampledFrom([]string{"read", "grep"}).Draw(t, "tool"), Arguments: `{"path":"a.go"}`})
		results = append(results, llm.ToolText(id, text.Draw(t, "result")))
	}
	slices.Reverse(results) // order is free
	out := append([]llm.Message{m}, results...)
	if rapid.IntRange(0, 7).Draw(t, "pictures") == 0 {
		out = append(out, llm.Message{Role: llm.User, Continuation: true, Parts: []llm.Part{&llm.Image{Width: 64, Height: 64}}})
	}
	return out
}

func genInput() *rapid.Generator[*Input] {
	return rapid.Custom(func(t *rapid.T) *Input {
		in := window(rapid.IntRange(1200, 24_000).Draw(t, "window"), genMessages(6000).Draw(t, "messages")...)
		in.System = rapid.SampledFrom([]string{"", "You are drover.", prose(900)}).Draw(t, "system")
		in.Memory = rapid.SampledFrom([]string{"", "# Memory\n{\"title\":\"herd\"}"}).Draw(t, "memory")
		if rapid.Bool().Draw(t, "tools") {
			in.Tools = []llm.ToolDef{llm.NewToolDef("read", "Read a file.", []byte(`{"type":"object","properties":{"path":{"type":"string"}}}`)),
				llm.NewToolDef("grep", "Find lines.", []byte(`{"type": "object"}`))}
		}
		in.Snapshot.Profile = rapid.SampledFrom([]llm.Profile{llm.Generic, llm.Qwen}).Draw(t, "profile")
		in.RequestedOutput = rapid.SampledFrom([]int{0, 1, 512}).Draw(t, "output")
		return in
	})
}

func policies(t *rapid.T) *Policy {
	p, _ := PolicyByVersion(rapid.IntRange(1, 2).Draw(t, "policy"))
	return p
}

// frozen is a deep copy by way of text, to see whether an input was changed.
func frozen(v any) string { return fmt.Sprintf("%#v", v) }

// checkPlan asserts what every plan guarantees (a plain one: without Previous).
func checkPlan(t tb, p *Policy, in *Input, plan *Plan) {
	t.Helper()
	r := &plan.Report
	if r.EstimatedAfter > r.InputBudget {
		t.Fatalf("plan of %d tokens, budget %d", r.EstimatedAfter, r.InputBudget)
	}
	if again := EstimateRequest(p, &plan.Request); again.Total() != r.BreakdownAfter.Total() ||
		again.Exchanges != r.BreakdownAfter.Exchanges || again.ToolSchemas != r.BreakdownAfter.ToolSchemas {
		t.Fatalf("estimated again %+v, reported %+v", again, r.BreakdownAfter)
	}
	if r.Anchor == nil && r.EstimatedAfter != r.BreakdownAfter.Total() {
		t.Fatalf("after %d, by component %+v", r.EstimatedAfter, r.BreakdownAfter)
	}
	if plan.Request.MaxTokens != r.OutputReserve {
		t.Fatalf("max_tokens %d, reserve %d", plan.Request.MaxTokens, r.OutputReserve)
	}
	kept, err := history.Split(plan.Request.Messages)
	if err != nil {
		t.Fatal(err)
	}
	all, _ := history.Split(in.Messages)
	if len(kept) != r.RetainedExchanges || len(kept)+r.DroppedExchanges != len(all) {
		t.Fatalf("kept %d exchanges of %d, report says %d and %d", len(kept), len(all), r.RetainedExchanges, r.DroppedExchanges)
	}
	if len(plan.Request.Messages) != r.RetainedTurns || plan.Shape.FirstTurn != all[len(all)-len(kept)].Start {
		t.Fatalf("%d turns from %d, report says %d", len(plan.Request.Messages), plan.Shape.FirstTurn, r.RetainedTurns)
	}
	checkLinks(t, in.Messages, plan)
}

// checkLinks asserts that the emitted turns are the input's, in order and but for
// what the report says was shortened or left out.
func checkLinks(t tb, messages []llm.Message, plan *Plan) {
	t.Helper()
	gone := map[int]bool{}
	for _, g := range plan.Shape.LeftOut {
		for turn := g.Start; turn < g.End; turn++ {
			gone[turn] = true
		}
	}
	changed := map[int]bool{}
	for _, c := range plan.Report.Truncations {
		changed[c.Turn] = true
	}
	for _, c := range plan.Report.OmittedImages {
		changed[c.Turn] = true
	}
	emitted := plan.Request.Messages
	for turn := plan.Shape.FirstTurn; turn < len(messages); turn++ {
		if gone[turn] {
			continue
		}
		m, e := &messages[turn], &emitted[0]
		emitted = emitted[1:]
		if e.Role != m.Role || e.CallID != m.CallID || e.Continuation != m.Continuation || e.IsError != m.IsError ||
			!reflect.DeepEqual(e.Calls, m.Calls) || e.Reasoning != m.Reasoning {
			t.Fatalf("turn %d: frame changed", turn)
		}
		if text := e.Text(); text != m.Text() && !changed[turn] && !strings.Contains(text, "[drover: ") {
			t.Fatalf("turn %d: text changed and not reported", turn)
		}
		if utf8.ValidString(m.Text()) && !utf8.ValidString(e.Text()) {
			t.Fatalf("turn %d: cut inside a character", turn)
		}
	}
	if len(emitted) != 0 {
		t.Fatalf("%d messages too many", len(emitted))
	}
}

// Invariants 1 to 5 and 7 of a plan, for both policies.
func TestPlanInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, in := policies(t), genInput().Draw(t, "input")
		before := frozen(*in)
		plan, err := Make(p, in)
		if frozen(*in) != before {
			t.Fatal("the input was changed")
		}
		again, errAgain := Make(p, in)
		if err != nil {
			if errAgain == nil || err.Error() != errAgain.Error() {
				t.Fatalf("%v, then %v", err, errAgain)
			}
			return
		}
		a, _ := json.Marshal(plan)
		b, _ := json.Marshal(again)
		if string(a) != string(b) || !reflect.DeepEqual(plan, again) {
			t.Fatal("same input, other plan")
		}
		checkPlan(t, p, in, plan)
		r := &plan.Report
		if len(r.Truncations)+len(r.OmittedImages)+len(r.OmittedGroups) > 0 && r.RetainedExchanges > 1 {
			t.Fatalf("shortened while older exchanges are kept: %+v", r)
		}
		replanned := *in
		replanned.Messages = plan.Request.Messages
		if twice := mustMake(t, p, &replanned); !reflect.DeepEqual(twice.Request, plan.Request) || twice.Report.Trimmed() {
			t.Fatalf("planning the plan changed it: %+v", twice.Report)
		}
	})
}

// A remembered turn is used again only for one that costs and sends the same.
func TestSameTurn(t *testing.T) {
	picture := func(change func(*llm.Image)) llm.Message {
		img := llm.Image{Name: "a.png", Width: 10, Height: 20, SHA256: "ab", Data: []byte("x")}
		if change != nil {
			change(&img)
		}
		return llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text("look"), &img}}
	}
	thinks := func(text, details string) llm.Message {
		m := llm.AssistantText("yes", llm.ToolCall{ID: "a", Name: "read", Arguments: "{}", Extra: []byte("1")})
		m.Reasoning = &llm.Reasoning{Text: text, Details: []byte(details)}
		return m
	}
	call := func(c llm.ToolCall) llm.Message { return llm.AssistantText("", c) }
	without := thinks("a", "")
	without.Reasoning = nil
	for i, pair := range [][2]llm.Message{
		{picture(nil), picture(nil)},
		{thinks("a", "b"), thinks("a", "b")},
		{llm.ToolText("a", "b"), llm.ToolText("a", "b")},
	} {
		if !sameTurn(&pair[0], &pair[1]) {
			t.Errorf("pair %d differs", i)
		}
	}
	for i, pair := range [][2]llm.Message{
		{llm.UserText("a"), llm.UserText("b")},
		{llm.UserText("a"), llm.AssistantText("a")},
		{llm.UserText("a"), {Role: llm.User, Continuation: true, Parts: []llm.Part{llm.Text("a")}}},
		{llm.UserText("a"), {Role: llm.User}},
		{llm.ToolText("a", "b"), llm.ToolText("c", "b")},
		{picture(nil), picture(func(i *llm.Image) { i.Width++ })},
		{picture(nil), picture(func(i *llm.Image) { i.Name = "b" })},
		{picture(nil), picture(func(i *llm.Image) { i.SHA256 = "cd" })},
		{picture(func(i *llm.Image) { i.SHA256 = "" }), picture(func(i *llm.Image) { i.SHA256 = "" })},
		{picture(nil), {Role: llm.User, Parts: []llm.Part{llm.Text("look"), llm.Text("")}}},
		{thinks("a", "b"), thinks("a", "c")},
		{thinks("a", ""), without},
		{call(llm.ToolCall{ID: "a"}), call(llm.ToolCall{ID: "b"})},
		{call(llm.ToolCall{Arguments: "a"}), call(llm.ToolCall{Arguments: "b"})},
		{call(llm.ToolCall{Extra: []byte("a")}), call(llm.ToolCall{})},
	} {
		if sameTurn(&pair[0], &pair[1]) {
			t.Errorf("pair %d is the same", i)
		}
	}
}

// Remembered costs never change a plan, whatever was planned with them before.
func TestCostsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, in := policies(t), genInput().Draw(t, "input")
		costs := new(Costs)
		other := genInput().Draw(t, "other")
		for n := range in.Messages {
			step := *in
			step.Messages = in.Messages[:n+1]
			want, wantErr := Make(p, &step)
			step.Costs = costs
			if rapid.IntRange(0, 4).Draw(t, "disturb") == 0 {
				detour := *other
				detour.Costs = costs
				Make(p, &detour)
			}
			got, err := Make(p, &step)
			if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
				t.Fatalf("with costs %v, without %v", err, wantErr)
			}
			if err == nil && !reflect.DeepEqual(got, want) {
				t.Fatalf("with costs %+v, without %+v", got.Report, want.Report)
			}
		}
	})
}
