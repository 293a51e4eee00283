package brief

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/memory"
	"github.com/drover-dev/drover/internal/tool"
)

func policy(t *testing.T) *budget.Policy {
	t.Helper()
	p, ok := budget.PolicyByVersion(budget.DefaultVersion)
	if !ok {
		t.Fatal("no policy")
	}
	return p
}

func input(window int) *budget.Input {
	return &budget.Input{
		Snapshot: llm.Snapshot{Target: llm.Target{Provider: "p", Model: "m"}, Window: llm.Window{Tokens: window, Source: llm.Effective}, Effort: llm.Climb},
		System:   "You are drover.", Messages: []llm.Message{llm.UserText("hello")},
		Tools: []llm.ToolDef{llm.NewToolDef("a|b", "One\nline | two", nil)},
	}
}

func TestEverythingHasAMeaning(t *testing.T) {
	for _, m := range tool.Modes() {
		if Mode(m) == "" {
			t.Errorf("mode %s has no meaning", m)
		}
	}
	for _, e := range llm.Efforts() {
		if text := Effort(e, input(32768).Snapshot, policy(t)); strings.HasPrefix(text, ":") || !strings.Contains(text, " tokens, temperature 0.") {
			t.Errorf("effort %s: %q", e, text)
		}
	}
	if got := Effort(llm.Summit, input(8192).Snapshot, policy(t)); !strings.Contains(got, "up to 4,096 tokens") {
		t.Errorf("in a small window: %q", got)
	}
}

func TestContext(t *testing.T) {
	plan, err := budget.Make(policy(t), input(32768))
	text, e := Context(plan, err, nil)
	if e != nil || !strings.Contains(text, "Window: 32,768 tokens (effective)") || !strings.Contains(text, "| kept for the answer | 4,096 |") || strings.Contains(text, "refuses") {
		t.Errorf("%v\n%s", e, text)
	}
	if text, _ = Context(plan, nil, llm.Refusals{llm.RefusedSampling}); !strings.Contains(text, "The engine refuses, so it is left out: ") {
		t.Errorf("refusals are not told:\n%s", text)
	}
	plan, err = budget.Make(policy(t), input(600))
	if text, e = Context(plan, err, nil); err == nil || e != nil || !strings.Contains(text, "| tools | ") || !strings.Contains(text, err.Error()) {
		t.Errorf("what does not fit: %v\n%s", e, text)
	}
	gone := errors.New("the engine is gone")
	if text, e = Context(nil, gone, nil); text != "" || !errors.Is(e, gone) {
		t.Errorf("another error: %q, %v", text, e)
	}
}

// An anchored plan may cost more by the parts than there is room for: what it was
// judged by is told too.
func TestContextTellsTheEnginesCount(t *testing.T) {
	in := input(32768)
	first, err := budget.Make(policy(t), in)
	if err != nil {
		t.Fatal(err)
	}
	in.Previous = first.Next(llm.Usage{PromptTokens: 1234})
	in.Messages = append(in.Messages, llm.AssistantText("hello"), llm.UserText("go on"))
	plan, err := budget.Make(policy(t), in)
	if err != nil || plan.Report.Anchor == nil {
		t.Fatalf("no anchor: %v", err)
	}
	want := fmt.Sprintf("The engine counted 1,234 tokens for the request before; with what came since that is about %s.", Thousands(plan.Report.EstimatedAfter))
	if text, err := Context(plan, nil, nil); err != nil || !strings.Contains(text, want) {
		t.Errorf("%v, want %q in\n%s", err, want, text)
	}
}

func TestTools(t *testing.T) {
	in := input(32768)
	plan, err := budget.Make(policy(t), in)
	if err != nil {
		t.Fatal(err)
	}
	if text := Tools(plan, policy(t)); !strings.Contains(text, `| a\|b | `) || !strings.Contains(text, `| One line \| two |`) {
		t.Errorf("%s", text)
	}
	plan.Request.Tools = nil
	if text := Tools(plan, policy(t)); !strings.Contains(text, "No tools") {
		t.Errorf("%s", text)
	}
	for argument, want := range map[string]struct {
		name string
		on   bool
	}{"on grep": {"grep", true}, "off  mcp:files ": {"mcp:files", false}} {
		if name, on, err := ToolSwitch(argument); name != want.name || on != want.on || err != nil {
			t.Errorf("%q: %s, %v, %v", argument, name, on, err)
		}
	}
	for _, argument := range []string{"grep", "off", "on "} {
		if _, _, err := ToolSwitch(argument); err == nil || !strings.Contains(err.Error(), "/tools off NAME") {
			t.Errorf("%q: %v", argument, err)
		}
	}
}

func TestNotes(t *testing.T) {
	store := memory.Open(t.TempDir())
	if text, err := Notes(store, ""); err != nil || !strings.Contains(text, "no notes") {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := Notes(store, "Pond"); err == nil || !strings.HasPrefix(err.Error(), "/memory: ") {
		t.Errorf("%v", err)
	}
	if text, err := Notes(nil, ""); err != nil || !strings.Contains(text, "no notes") {
		t.Errorf("without a store: %q, %v", text, err)
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -999: "-999"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

// TestCost: only what providers counted is summed, and only models with a price.
func TestCost(t *testing.T) {
	paid, free := llm.Target{Provider: "a", Model: "paid"}, llm.Target{Provider: "a", Model: "free"}
	prices := func(t llm.Target) llm.Prices {
		if t == paid {
			return llm.Prices{Input: 1, Output: 10, Cached: 0.5}
		}
		return llm.Prices{}
	}
	var s Spent
	if _, known := s.Cost(prices); known {
		t.Error("nothing was used, and it has a cost")
	}
	s.Add(free, &llm.Usage{PromptTokens: 1000})
	s.Add(paid, &llm.Usage{PromptTokens: 1_000_000, Estimated: true})
	if amount, known := s.Cost(prices); known {
		t.Errorf("no price is known, and it costs %v", amount)
	}
	s.Add(paid, &llm.Usage{PromptTokens: 1000, CompletionTokens: 100})
	s.Add(paid, &llm.Usage{PromptTokens: 1000, CachedTokens: 1000})
	if amount, known := s.Cost(prices); !known || math.Abs(amount-0.0025) > 1e-12 {
		t.Errorf("it costs %v, %v", amount, known)
	}
	for amount, want := range map[float64]string{0: "$0.0000", 0.00001: "<$0.0001", 0.0025: "$0.0025", 1: "$1.00", 12.345: "$12.35"} {
		if got := Dollars(amount); got != want {
			t.Errorf("%v is written %s, want %s", amount, got, want)
		}
	}
}

// TestOutcome: people read words, each of its own.
func TestOutcome(t *testing.T) {
	seen := make(map[string]bool)
	for _, s := range []tool.Status{tool.StatusOK, tool.StatusError, tool.StatusDenied, tool.StatusNotExecuted, tool.StatusUnknown} {
		words := Outcome(s)
		if words == "" || seen[words] || strings.ToLower(words) != words {
			t.Errorf("%s: %q", s, words)
		}
		seen[words] = true
	}
}
