package budget

import (
	"errors"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/history"
	"github.com/drover-dev/drover/internal/llm"
)

// window makes an input with an effective window and an output of 1,024.
func window(tokens int, messages ...llm.Message) *Input {
	return &Input{
		Snapshot: llm.Snapshot{
			Target: llm.Target{Provider: "lab", Model: "acme-1"},
			Window: llm.Window{Tokens: tokens, Source: llm.Effective},
			Effort: llm.Graze,
		},
		Messages: messages,
	}
}

func mustMake(t tb, p *Policy, in *Input) *Plan {
	t.Helper()
	plan, err := Make(p, in)
	if err != nil {
		t.Fatalf("Make: %v", err)
	}
	return plan
}

func mustOverflow(t tb, p *Policy, in *Input, want Component) *OverflowError {
	t.Helper()
	_, err := Make(p, in)
	var overflow *OverflowError
	if !errors.As(err, &overflow) || overflow.Component != want {
		t.Fatalf("Make: %v, want an overflow of %s", err, want)
	}
	if f := overflow.Report.Failure; f == nil || f.Component != want || f.Suggestion == "" {
		t.Fatalf("failure in report: %+v", f)
	}
	return overflow
}

// round is an assistant turn with one call, and its result.
func round(id, tool, arguments, result string) []llm.Message {
	return []llm.Message{
		llm.AssistantText("", llm.ToolCall{ID: id, Name: tool, Arguments: arguments}),
		llm.ToolText(id, result),
	}
}

func prose(bytes int) string {
	const text = "The drover walks behind the herd and counts the heads at every gate. "
	return strings.Repeat(text, bytes/len(text)+1)[:bytes]
}

func TestProseResultIsCutClosely(t *testing.T) {
	messages := append([]llm.Message{llm.UserText("please read notes.txt and tell me what it says")},
		round("c1", "read", `{"path":"notes.txt"}`, prose(10_000))...)
	plan := mustMake(t, Policy1(), window(4096, messages...))
	r := &plan.Report
	if 100*r.EstimatedAfter < 95*r.InputBudget || r.EstimatedAfter > r.InputBudget {
		t.Errorf("after %d of %d", r.EstimatedAfter, r.InputBudget)
	}
	if plan.Request.Messages[0].Text() != messages[0].Text() {
		t.Errorf("the user's text was changed")
	}
	if len(r.Truncations) != 1 || r.Truncations[0].Component != "toolResult" || r.Truncations[0].Turn != 2 {
		t.Errorf("truncations: %+v", r.Truncations)
	}
	if b := EstimateRequest(Policy1(), &plan.Request); b.Total() != r.EstimatedAfter {
		t.Errorf("estimated again %d, reported %d", b.Total(), r.EstimatedAfter)
	}
	if _, err := history.Split(plan.Request.Messages); err != nil {
		t.Error(err)
	}
}

// tb is what the tests need of a *testing.T, *testing.B or *rapid.T.
type tb interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func TestFailures(t *testing.T) {
	big := llm.NewToolDef("files__big", strings.Repeat("x", 5000), nil)
	small := llm.NewToolDef("read", "Read a file.", nil)
	for _, c := range []struct {
		name   string
		want   Component
		change func(*Input)
		says   []string
	}{
		{"another model", ModelMismatch, func(in *Input) { in.Model = "acme-2" }, []string{`"acme-2"`, `"acme-1"`, "request 96", "newest exchange 13"}},
		{"orphan result", InvalidHistory, func(in *Input) { in.Messages = append(in.Messages, llm.ToolText("c9", "")) }, []string{"turn 1", "system 18"}},
		{"reserves fill the window", InputCapacity, func(in *Input) { in.Snapshot.Window.Tokens = 512 }, []string{"output 256", "safety 256", "num_ctx"}},
		{"tools", SystemAndToolSchemas, func(in *Input) { in.Tools = []llm.ToolDef{small, big} },
			[]string{"the largest files__big", "/tools off files__big", "[tools] off", "system 18", "newest exchange 13"}},
		{"newest", NewestExchange, func(in *Input) {
			in.Messages = append(in.Messages, round("c1", "write", strings.Repeat("x", 5000), "ok")...)
		}, []string{"newest exchange 5", "larger window", "shorter prompt"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := window(4096, llm.UserText("hello"))
			in.System = "You are drover."
			c.change(in)
			overflow := mustOverflow(t, Policy1(), in, c.want)
			for _, s := range c.says {
				if !strings.Contains(overflow.Error(), s) {
					t.Errorf("%q is missing in %s", s, overflow)
				}
			}
			var invalid *history.InvalidError
			if errors.As(error(overflow), &invalid) != (c.want == InvalidHistory) {
				t.Errorf("cause: %v", overflow.Cause)
			}
			if overflow.Report.EstimatedAfter != 0 || overflow.Report.Trimmed() {
				t.Errorf("a failed plan reports a result: %+v", overflow.Report)
			}
		})
	}
}

// A lower effort is named only where one makes room: not at the least, not where
// half of the window bounds the output at any effort, and not for a fixed output.
func TestEffortIsNamedWhereItHelps(t *testing.T) {
	for _, c := range []struct {
		name           string
		window, output int
		effort         llm.Effort
		want           bool
	}{
		{"it helps", 8192, 0, llm.Climb, true},
		{"the least", 2600, 0, llm.Graze, false},
		{"half of the window", 2048, 0, llm.Summit, false},
		{"a fixed output", 8192, 4096, llm.Climb, false},
	} {
		in := window(c.window, llm.UserText("hello"))
		in.System, in.RequestedOutput, in.Snapshot.Effort = prose(30_000), c.output, c.effort
		e := mustOverflow(t, Policy2(), in, SystemAndToolSchemas)
		if 2*e.Report.OutputReserve <= e.Report.InputBudget {
			t.Fatalf("%s: the output is small: %+v", c.name, e.Report)
		}
		if got := strings.Contains(e.Suggestion, "lower the effort"); got != c.want {
			t.Errorf("%s: %s", c.name, e.Suggestion)
		}
	}
}

// A fixed part that equals the budget is not what fails: there is no room for the
// newest exchange. One token less, and it is.
func TestFixedPartEqualToTheBudget(t *testing.T) {
	in := window(4096, llm.UserText("hello"))
	in.System, in.RequestedOutput = prose(500), 1
	fixed := mustMake(t, Policy2(), in).Report.BreakdownBefore.Fixed()
	in.Snapshot.Window.Tokens = fixed + 1 + 256
	mustOverflow(t, Policy2(), in, NewestExchange)
	in.Snapshot.Window.Tokens--
	mustOverflow(t, Policy2(), in, SystemAndToolSchemas)
}

// A total that equals the budget fits; one token more does not.
func TestTotalEqualToTheBudgetFits(t *testing.T) {
	for _, p := range []*Policy{Policy1(), Policy2()} {
		in := window(4096, llm.UserText("old"), llm.UserText("new"))
		in.RequestedOutput = 1
		whole := mustMake(t, p, in).Report.EstimatedAfter
		in.Snapshot.Window.Tokens = whole + 1 + 256 // less than 5,120, so the safety reserve is its minimum
		if r := mustMake(t, p, in).Report; r.InputBudget != whole || r.Trimmed() {
			t.Errorf("policy %d: %+v", p.Version, r)
		}
		in.Snapshot.Window.Tokens--
		if r := mustMake(t, p, in).Report; r.DroppedExchanges != 1 {
			t.Errorf("policy %d, one less: %+v", p.Version, r)
		}
	}
}

func TestRequestIsReadyToEncode(t *testing.T) {
	in := window(8192, llm.Message{Role: llm.System, Parts: []llm.Part{llm.Text("house rules")}}, llm.UserText("hello"))
	in.System, in.Memory = "You are drover.", "# Memory"
	in.Tools = []llm.ToolDef{llm.NewToolDef("read", "", nil), llm.NewToolDef("glob", "", nil)}
	plan := mustMake(t, Policy2(), in)
	r := &plan.Request
	if r.System != "You are drover.\n\nhouse rules\n\n# Memory" || len(r.Messages) != 1 || r.MaxTokens != 1024 || r.Snapshot.Target.Model != "acme-1" {
		t.Errorf("%+v", r)
	}
	if len(r.Tools) != 2 || r.Tools[0].Name != "glob" || in.Tools[0].Name != "read" {
		t.Errorf("tools %v", r.Tools)
	}
	if b := plan.Report.BreakdownAfter; b.ToolSchemas == 0 || b.Memory == 0 {
		t.Errorf("%+v", b)
	}
	in.Snapshot.Capabilities.Tools.Support = llm.Unsupported
	plan = mustMake(t, Policy2(), in)
	if len(plan.Request.Tools) != 0 || plan.Report.BreakdownAfter.ToolSchemas != 0 {
		t.Errorf("tools for a model without: %v", plan.Request.Tools)
	}
}

// A first turn with a picture is sent with the picture, whatever came in its way.
func TestFirstTurnKeepsItsImage(t *testing.T) {
	first := llm.UserText("what is this?")
	first.Parts = append(first.Parts, &llm.Image{Name: "a.png", Width: 1200, Height: 900, Data: make([]byte, 400<<10)})
	for _, p := range []*Policy{Policy1(), Policy2()} {
		plan := mustMake(t, p, window(8192, first))
		if len(plan.Request.Messages[0].Images()) != 1 || plan.Report.Trimmed() {
			t.Errorf("policy %d: %+v", p.Version, plan.Report)
		}
	}
}

// Pictures of the running turn give way oldest first, each behind a marker that
// nothing shortens.
func TestManyImages(t *testing.T) {
	messages := []llm.Message{llm.UserText("look at these")}
	for i := range 45 {
		messages = append(messages, llm.Message{Role: llm.User, Continuation: true, Parts: []llm.Part{
			llm.Text("next"), &llm.Image{Name: "shot\n.png", Width: 1920, Height: 1080, SHA256: string(rune('a' + i))}}})
	}
	for _, p := range []*Policy{Policy1(), Policy2()} {
		plan := mustMake(t, p, window(32768, messages...))
		checkPlan(t, p, window(32768, messages...), plan)
		omitted := plan.Report.OmittedImages
		if n := len(omitted); n < 30 || n == 45 || omitted[0].Turn != 1 || omitted[n-1].Turn != n || omitted[0].Tokens != 3392 {
			t.Fatalf("policy %d omitted %+v", p.Version, omitted)
		}
		if text := plan.Request.Messages[1].Text(); text != "next\n[image 1 left out: shot.png, 1920x1080, about 3392 tokens]" {
			t.Errorf("marker: %q", text)
		}
		if len(plan.Request.Messages[45].Images()) != 1 || len(plan.Report.Truncations) != 0 {
			t.Errorf("the newest image went, or a text: %+v", plan.Report.Truncations)
		}
	}
}

// Tool results are cut in the plan however large they are.
func TestHugeResultIsNeverSentWhole(t *testing.T) {
	for _, p := range []*Policy{Policy1(), Policy2()} {
		messages := append([]llm.Message{llm.UserText("dump it")}, round("c1", "shell", `{"command":"cat dump"}`, mixed(30<<20))...)
		in := window(131072, messages...)
		plan := mustMake(t, p, in)
		checkPlan(t, p, in, plan)
		if r := plan.Report; len(r.Truncations) != 1 || r.Truncations[0].BytesAfter > 600_000 || 100*r.EstimatedAfter < 99*r.InputBudget {
			t.Errorf("policy %d: %+v", p.Version, r)
		}
	}
}

func TestProvableMinimum(t *testing.T) {
	in := window(8192, llm.UserText("one two three"), llm.AssistantText("four-five: 6 sev7en"))
	in.System = "zero and"
	in.Messages = append(in.Messages, llm.UserText("nine"))
	first := mustMake(t, Policy2(), in)
	if got := first.ProvableMinimum(); got != 10/2 {
		t.Errorf("minimum %d of ten words", got)
	}
	in.Messages = append(in.Messages, llm.AssistantText("ten"), llm.UserText("eleven"))
	for _, c := range []struct {
		usage llm.Usage
		want  int
	}{{llm.Usage{PromptTokens: 70}, 70}, {llm.Usage{PromptTokens: 70, Estimated: true}, 6}, {llm.Usage{}, 6}, {llm.Usage{PromptTokens: 2}, 6}} {
		in.Previous = first.Next(c.usage)
		if got := mustMake(t, Policy2(), in).ProvableMinimum(); got != c.want {
			t.Errorf("after %+v: minimum %d, want %d", c.usage, got, c.want)
		}
		if got := mustMake(t, Policy1(), in).ProvableMinimum(); got != c.want {
			t.Errorf("policy 1 after %+v: minimum %d, want %d", c.usage, got, c.want)
		}
	}
	in.Previous = first.Next(llm.Usage{PromptTokens: 70})
	in.System = "another"
	if got := mustMake(t, Policy2(), in).ProvableMinimum(); got != 5 {
		t.Errorf("with another system turn: minimum %d", got)
	}
}

func TestSelectNotes(t *testing.T) {
	lines := []string{`{"title":"a"}`, prose(3000), `{"title":"c"}` + "\n"}
	digest, omitted := SelectNotes(Policy2(), "# Memory", lines, 100)
	if digest != "# Memory\n{\"title\":\"a\"}\n{\"title\":\"c\"}" || len(omitted) != 1 || omitted[0] != 1 {
		t.Errorf("%q, omitted %v", digest, omitted)
	}
	limit := EstimateText(Policy2(), digest)
	if again, _ := SelectNotes(Policy2(), "# Memory", lines, limit); again != digest {
		t.Errorf("at the limit: %q", again)
	}
	if less, omitted := SelectNotes(Policy2(), "# Memory", lines, limit-1); less == digest || len(omitted) != 2 {
		t.Errorf("one less: %q", less)
	}
	if none, omitted := SelectNotes(Policy2(), "# Memory", lines, 3); none != "" || len(omitted) != 3 {
		t.Errorf("no room: %q", none)
	}
	in := window(8192, llm.UserText("hello"))
	in.OmittedNotes = []string{"b"}
	if r := mustMake(t, Policy2(), in).Report; len(r.OmittedNotes) != 1 || r.Trimmed() || r.Summary() != "" {
		t.Errorf("%+v", r)
	}
}

func TestSummary(t *testing.T) {
	r := Report{WindowTokens: 8192, DroppedExchanges: 1, TokensRemoved: 5000}
	if got, want := r.Summary(), "to fit the window of 8192 tokens: 1 earlier exchange dropped (about 5000 tokens)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.DroppedExchanges = 3
	r.Truncations, r.OmittedImages, r.OmittedGroups = make([]Truncation, 2), make([]OmittedImage, 1), make([]OmittedGroup, 4)
	if got, want := r.Summary(), "to fit the window of 8192 tokens: 3 earlier exchanges dropped, 4 tool rounds left out, 2 texts shortened, 1 image left out (about 5000 tokens)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// FuzzPlan reads a conversation from bytes and plans it for any window. Nothing
// may panic, and a plan must hold what plans promise.
func FuzzPlan(f *testing.F) {
	f.Add([]byte("u0c5r9a3u1"), 4096, 2)
	f.Add([]byte("u9i0c9r9c9r9c9r9s2c9r9a9"), 1500, 2)
	f.Add([]byte("u9i9a9u9"), 900, 1)
	f.Fuzz(func(t *testing.T, script []byte, tokens, version int) {
		p, ok := PolicyByVersion(version)
		if !ok || len(script) > 400 {
			return
		}
		in := window(tokens, scripted(script)...)
		plan, err := Make(p, in)
		var overflow *OverflowError
		if err != nil {
			if !errors.As(err, &overflow) || overflow.Error() == "" {
				t.Fatal(err)
			}
			return
		}
		checkPlan(t, p, in, plan)
		in.Previous = plan.Next(llm.Usage{PromptTokens: plan.Report.EstimatedAfter / 2})
		in.Messages = append(in.Messages, llm.UserText("go on"))
		if next, err := Make(p, in); err == nil {
			checkPlan(t, p, in, next)
		}
	})
}

// scripted makes a turn of every two bytes: its kind and the size of its text.
func scripted(script []byte) []llm.Message {
	var out []llm.Message
	for i := 0; i+1 < len(script); i += 2 {
		text := mixed(int(script[i+1]) * 37)[:int(script[i+1])*37]
		switch script[i] {
		case 'u':
			out = append(out, llm.UserText(text))
		case 's':
			out = append(out, llm.Message{Role: llm.User, Continuation: true, Parts: []llm.Part{llm.Text(text), llm.Text("!")}})
		case 'i':
			out = append(out, llm.Message{Role: llm.User, Continuation: true, Parts: []llm.Part{&llm.Image{Width: int(script[i+1]), Height: 99}}})
		case 'c':
			out = append(out, llm.AssistantText("", llm.ToolCall{ID: "c", Name: "read", Arguments: text[:len(text)/20]}))
		case 'r':
			out = append(out, llm.ToolText("c", text))
		default:
			out = append(out, llm.AssistantText(text))
		}
	}
	return out
}
