package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/target"
)

// slowPrefill is the cause of a first-byte timeout.
type slowPrefill struct{}

func (slowPrefill) Error() string    { return "no answer began" }
func (slowPrefill) Prefilling() bool { return true }

func TestRetries(t *testing.T) {
	busy := llm.Errorf(llm.CodeServer, "busy")
	tests := []struct {
		name     string
		script   []llmtest.Answer
		requests int
		end      agent.EndReason
		took     time.Duration // at most; jitter is a tenth
	}{
		{"once", []llmtest.Answer{llmtest.Fail(busy), llmtest.Say("ok")}, 2, agent.EndCompleted, 550 * time.Millisecond},
		{"too often", slices.Repeat([]llmtest.Answer{llmtest.Fail(busy)}, 9), 6, agent.EndError, 17100 * time.Millisecond},
		{"nobody listens", slices.Repeat([]llmtest.Answer{llmtest.Fail(&llm.Error{Code: llm.CodeTransport, Message: "refused", Unreached: true})}, 9), 3, agent.EndError, 1650 * time.Millisecond},
		{"in a long prefill", []llmtest.Answer{llmtest.Fail(&llm.Error{Code: llm.CodeTimeout, Message: "slow", Cause: slowPrefill{}}), llmtest.Say("ok")}, 1, agent.EndError, 0},
		{"not after output", []llmtest.Answer{{Events: []llm.Event{llm.TextDelta("half")}, Err: busy}, llmtest.Say("ok")}, 1, agent.EndError, 0},
		{"not when it is permanent", []llmtest.Answer{llmtest.Fail(&llm.Error{Code: llm.CodeServer, Message: "failed to load model", Permanent: true}), llmtest.Say("ok")}, 1, agent.EndError, 0},
		{"not for a bad request", []llmtest.Answer{llmtest.Fail(llm.Errorf(llm.CodeInvalidRequest, "no")), llmtest.Say("ok")}, 1, agent.EndError, 0},
		{"empty once", []llmtest.Answer{llmtest.Fail(llm.Errorf(llm.CodeEmptyResponse, "nothing")), llmtest.Say("ok")}, 2, agent.EndCompleted, 550 * time.Millisecond},
		{"empty twice", slices.Repeat([]llmtest.Answer{llmtest.Fail(llm.Errorf(llm.CodeEmptyResponse, "nothing"))}, 3), 2, agent.EndError, 550 * time.Millisecond},
		{"asked to wait", []llmtest.Answer{llmtest.Fail(&llm.Error{Code: llm.CodeRateLimit, Message: "slow", RetryAfter: 30 * time.Second}), llmtest.Say("ok")}, 2, agent.EndCompleted, 30 * time.Second},
		{"asked to wait too long", []llmtest.Answer{llmtest.Fail(&llm.Error{Code: llm.CodeRateLimit, Message: "slow", RetryAfter: time.Hour}), llmtest.Say("ok")}, 1, agent.EndError, 0},
		{"loading", append(slices.Repeat([]llmtest.Answer{llmtest.Fail(&llm.Error{Code: llm.CodeServer, Message: "loading", Loading: true})}, 20), llmtest.Say("ok")), 21, agent.EndCompleted, 40 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &llmtest.Provider{Facts: window(8192), Script: tt.script}
				f := newFixture(t, p, nil, agent.Options{})
				start := time.Now()
				end := endOf(f.turn(t.Context(), "go"))
				if end.Reason != tt.end || len(p.Requests()) != tt.requests {
					t.Errorf("ended %+v after %d requests, want %s after %d", end, len(p.Requests()), tt.end, tt.requests)
				}
				if took := time.Since(start); took > tt.took || took < tt.took*8/10 {
					t.Errorf("took %v, want about %v", took, tt.took)
				}
				f.check()
			})
		})
	}
}

func TestAPartialAnswerIsKept(t *testing.T) {
	broken := llmtest.Answer{Events: []llm.Event{llm.TextDelta("The first half")}, Err: llm.Errorf(llm.CodeStreamClosed, "closed")}
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{broken, llmtest.Say("on")}}
	f := newFixture(t, p, nil, agent.Options{})
	end := endOf(f.turn(t.Context(), "go"))
	if end.Reason != agent.EndError || !strings.Contains(end.Err.Error(), "continue") {
		t.Errorf("ended %+v", end)
	}
	f.turn(t.Context(), "continue")
	reqs := p.Requests()
	if got := reqs[1].Messages; len(got) != 3 || got[1].Text() != "The first half" {
		t.Errorf("the second request holds %+v", got)
	}
	f.check()
}

func TestARefusedOptionIsLeftOut(t *testing.T) {
	refused := &llm.Error{Code: llm.CodeUnsupportedOption, Message: "no temperature", Option: llm.RefusedSampling}
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Fail(refused), llmtest.Say("ok"), llmtest.Say("ok")}}
	f := newFixture(t, p, nil, agent.Options{})
	if end := endOf(f.turn(t.Context(), "go")); end.Reason != agent.EndCompleted {
		t.Errorf("ended %+v", end)
	}
	f.turn(t.Context(), "again")
	for i, req := range p.Requests() {
		if sent := req.Snapshot.Temperature() != nil; sent != (i == 0) {
			t.Errorf("request %d: temperature sent %v", i, sent)
		}
	}
	f.check()
}

// Each option is left out once. An engine that goes on refusing ends the turn with
// its last word, also one that refuses something new each time.
func TestRefusalsEnd(t *testing.T) {
	refusal := func(o llm.Refusal) llmtest.Answer {
		return llmtest.Fail(&llm.Error{Code: llm.CodeUnsupportedOption, Message: "no " + string(o), Option: o})
	}
	for _, tt := range []struct {
		name     string
		answer   func(n int) llmtest.Answer
		requests int
		code     llm.Code
		says     string
	}{
		{"the same", func(int) llmtest.Answer { return refusal(llm.RefusedSampling) }, 2, llm.CodeUnsupportedOption, "no temperature"},
		{"then something else", func(n int) llmtest.Answer {
			return []llmtest.Answer{refusal(llm.RefusedSampling), llmtest.Fail(llm.Errorf(llm.CodeInvalidRequest, "no at all"))}[n]
		}, 2, llm.CodeInvalidRequest, "no at all"},
		{"always a new one", func(n int) llmtest.Answer {
			return refusal(llm.RefusedEffortValue(string(rune('a' + n))))
		}, 9, llm.CodeUnsupportedOption, "no reasoning_effort=i"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &llmtest.Provider{Facts: window(8192)}
			p.Answer = func(n int, _ *llm.Request) llmtest.Answer { return tt.answer(min(n, 20)) }
			f := newFixture(t, p, nil, agent.Options{})
			events := f.turn(t.Context(), "go")
			end, told := endOf(events), 0
			for _, n := range find[agent.Notice](events) {
				if strings.Contains(n.Text, "left out from now on") {
					told++
				}
			}
			if agent.Code(end.Err) != tt.code || !strings.Contains(fmt.Sprint(end.Err), tt.says) || len(p.Requests()) != tt.requests || told != tt.requests-1 {
				t.Errorf("ended %+v after %d requests, told %d times", end, len(p.Requests()), told)
			}
			f.check()
		})
	}
}

func TestTheEnginesWindowIsBelieved(t *testing.T) {
	over := &llm.Error{Code: llm.CodeContextWindowExceeded, Message: "too long", Window: 4096, PromptTokens: 5000}
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Fail(over), llmtest.Say("ok"), llmtest.Say("ok")}}
	f := newFixture(t, p, nil, agent.Options{})
	if end := endOf(f.turn(t.Context(), "go")); end.Reason != agent.EndCompleted {
		t.Fatalf("ended %+v", end)
	}
	f.turn(t.Context(), "again")
	for i, want := range []int{8192, 4096, 4096} {
		if got := p.Requests()[i].Snapshot.Window.Tokens; got != want {
			t.Errorf("request %d was planned for %d, want %d", i, got, want)
		}
	}
	f.check()

	twice := &llmtest.Provider{Facts: window(8192), Script: slices.Repeat([]llmtest.Answer{llmtest.Fail(over)}, 5)}
	f = newFixture(t, twice, nil, agent.Options{})
	if end := endOf(f.turn(t.Context(), "go")); end.Reason != agent.EndError || len(twice.Requests()) != 2 {
		t.Errorf("ended %+v after %d requests: no loops", end, len(twice.Requests()))
	}
}

func TestASilentCutIsTold(t *testing.T) {
	count := func(n int) llmtest.Answer {
		return llmtest.Answer{Events: []llm.Event{
			llm.TextDelta("ok"), llm.Usage{PromptTokens: n, CompletionTokens: 1}, llm.Finish{Reason: llm.FinishStop},
		}}
	}
	prompt := strings.Repeat("word after word ", 200) // 600 words
	for _, tt := range []struct {
		name   string
		counts []int // one a turn, whose prompts add up
		told   int   // the turn that tells, from 1, 0 for none
		says   string
	}{
		{"fewer than the words", []int{12}, 1, "12 prompt tokens for a request that has at least"},
		{"fewer than before", []int{3000, 2500}, 2, "at least 3000"},
		{"the window", []int{8192}, 1, "exactly its window"},
		{"the same round number again", []int{2048, 2048}, 2, "2048 prompt tokens again"},
		{"the same number, not round", []int{2050, 2050}, 0, ""},
		{"a round number once", []int{1024, 2048}, 0, ""},
		{"no count", []int{0}, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &llmtest.Provider{Facts: window(8192)}
			p.Answer = func(n int, _ *llm.Request) llmtest.Answer { return count(tt.counts[n]) }
			f := newFixture(t, p, nil, agent.Options{})
			for i := range tt.counts {
				var told []string
				for _, n := range find[agent.Notice](f.turn(t.Context(), prompt)) {
					if strings.Contains(n.Text, "cut the prompt") {
						told = append(told, n.Text)
					}
				}
				if (len(told) == 1 && strings.Contains(told[0], tt.says)) != (tt.told == i+1) || len(told) > 1 {
					t.Errorf("turn %d: told %q", i+1, told)
				}
			}
		})
	}
}

// What a request costs is known twice, by the estimate alone and with the engine's
// count of the one before. A count that stands still is held against one of them.
func TestACutIsSeenAlsoWhereLittleWasAdded(t *testing.T) {
	p := &llmtest.Provider{Facts: window(16384)}
	p.Answer = func(int, *llm.Request) llmtest.Answer {
		return llmtest.Answer{Events: []llm.Event{
			llm.TextDelta("ok"), llm.Usage{PromptTokens: 2048, CompletionTokens: 1}, llm.Finish{Reason: llm.FinishStop},
		}}
	}
	f := newFixture(t, p, nil, agent.Options{})
	for i, prompt := range []string{strings.Repeat("word after word ", 1100), "and now?"} {
		told := 0
		for _, n := range find[agent.Notice](f.turn(t.Context(), prompt)) {
			if strings.Contains(n.Text, "cut the prompt") {
				told++
			}
		}
		if told != i {
			t.Errorf("turn %d: told %d times", i+1, told)
		}
	}
}

// An engine that counts only its answer, or says that the prompt has no tokens,
// leaves the prompt to the estimate: a meter at zero would be a lie.
func TestAPromptThatWasNotCountedIsEstimated(t *testing.T) {
	for _, u := range []llm.Usage{{CompletionTokens: 5, Estimated: true}, {CompletionTokens: 5}} {
		p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{{Events: []llm.Event{
			llm.TextDelta("ok"), u, llm.Finish{Reason: llm.FinishStop},
		}}}}
		f := newFixture(t, p, nil, agent.Options{})
		got := find[agent.Usage](f.turn(t.Context(), "go"))
		if len(got) != 1 || got[0].Usage.PromptTokens != got[0].Estimate || got[0].Estimate == 0 || !got[0].Usage.Estimated || got[0].Usage.CompletionTokens != 5 {
			t.Errorf("after %+v: %+v", u, got)
		}
	}
}

func TestALearntWindowHoldsWhileTheClaimIsRepeated(t *testing.T) {
	over := &llm.Error{Code: llm.CodeContextWindowExceeded, Message: "too long", Window: 4096, PromptTokens: 5000}
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Fail(over), llmtest.Say("ok")}}
	f := newFixture(t, p, nil, agent.Options{})
	f.turn(t.Context(), "go")
	plan, err := f.agent.Preview(t.Context(), []llm.Part{llm.Text("next")})
	if err != nil || plan.Report.WindowTokens != 4096 {
		t.Errorf("preview for %d, %v", plan.Report.WindowTokens, err)
	}
	p.Facts = window(65536) // raised, as the hint says
	f.selector.Select(t.Context(), llm.Target{Provider: "p", Model: "m"})
	f.turn(t.Context(), "next")
	if got := p.Requests()[2].Snapshot.Window.Tokens; got != 65536 {
		t.Errorf("planned for %d", got)
	}
	f.check()
}

func TestOnlyTheOutputIsTooLong(t *testing.T) {
	for _, tt := range []struct{ prompt, maxTokens, window int }{
		{7500, 8192 - 7500 - 64, 8192}, // room for an answer
		{8100, 0, 0},                   // none: the whole is planned smaller
	} {
		over := &llm.Error{Code: llm.CodeContextWindowExceeded, Message: "too long", Window: 8192, PromptTokens: tt.prompt}
		p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Fail(over), llmtest.Say("ok")}}
		f := newFixture(t, p, nil, agent.Options{})
		if end := endOf(f.turn(t.Context(), "go")); end.Reason != agent.EndCompleted {
			t.Fatalf("ended %+v", end)
		}
		second := p.Requests()[1]
		if tt.maxTokens > 0 && second.MaxTokens != tt.maxTokens {
			t.Errorf("prompt %d: max_tokens %d, want %d", tt.prompt, second.MaxTokens, tt.maxTokens)
		}
		if tt.window == 0 && second.Snapshot.Window.Tokens >= 8192 {
			t.Errorf("prompt %d: planned for %d again", tt.prompt, second.Snapshot.Window.Tokens)
		}
		f.check()
	}
}

func TestAnAssumedWindowIsWidenedOnce(t *testing.T) {
	facts := llm.ModelInfo{Window: llm.Window{Tokens: 4096, Source: llm.Assumed, Declared: 32768}}
	p := &llmtest.Provider{Facts: facts}
	long := strings.Repeat("word ", 1400)
	f := newFixture(t, p, nil, agent.Options{})
	f.selector.SetEffort(llm.Summit)
	plan, err := f.agent.Preview(t.Context(), []llm.Part{llm.Text(long)})
	if err != nil || plan.Report.WindowTokens != 4096 {
		t.Fatalf("preview %+v, %v", plan, err)
	}
	if err := os.WriteFile(filepath.Join(f.dir, "AGENTS.md"), []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	// Looking at the next request (the context meter, /context) is not telling.
	for range 2 {
		plan, err = f.agent.Preview(t.Context(), []llm.Part{llm.Text("")})
		if err != nil || plan.Report.WindowTokens != 8192 {
			t.Errorf("preview %+v, %v", plan, err)
		}
	}
	told := 0
	for range 2 {
		for _, n := range find[agent.Notice](f.turn(t.Context(), "go")) {
			if strings.Contains(n.Text, "more than the 4096 tokens") && strings.Contains(n.Text, "8192 are assumed") {
				told++
			}
		}
	}
	for _, req := range p.Requests() {
		if req.Snapshot.Window.Tokens != 8192 {
			t.Errorf("planned for %d", req.Snapshot.Window.Tokens)
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	f.check()
}

func TestTheWindowIsConfirmedAfterTheFirstAnswer(t *testing.T) {
	p := &llmtest.Provider{Facts: llm.ModelInfo{Window: llm.Window{Tokens: 4096, Source: llm.Assumed, Declared: 32768}}}
	p.Answer = func(int, *llm.Request) llmtest.Answer {
		p.Facts = window(512) // the engine loads it smaller, and cuts
		return llmtest.Answer{Events: []llm.Event{
			llm.TextDelta("ok"), llm.Usage{PromptTokens: 512, CompletionTokens: 1}, llm.Finish{Reason: llm.FinishStop},
		}}
	}
	f := newFixture(t, p, nil, agent.Options{ToolsOff: []string{"read", "edit", "grep", "shell"}})
	events := f.turn(t.Context(), "go")
	cut := 0
	for _, n := range find[agent.Notice](events) {
		if strings.Contains(n.Text, "exactly its window: it cut the prompt") {
			cut++
		}
	}
	if models := find[agent.Model](events); cut != 1 || len(models) != 2 || models[1].Snapshot.Window.Tokens != 512 {
		t.Errorf("told %d times, models %+v", cut, models)
	}
}

func TestAnEngineThatIsGoneIsForgotten(t *testing.T) {
	gone := &llm.Error{Code: llm.CodeTransport, Message: "refused", Unreached: true}
	synctest.Test(t, func(t *testing.T) {
		p := &llmtest.Provider{Facts: window(8192), Script: slices.Repeat([]llmtest.Answer{llmtest.Fail(gone)}, 3)}
		registry := new(catalog.Registry)
		if _, err := registry.Register(p, "p"); err != nil {
			t.Fatal(err)
		}
		store := new(target.Store)
		sel := target.NewSelector(registry, store, 0)
		sel.Select(t.Context(), llm.Target{Provider: "p", Model: "m"})
		log, err := session.NewStore("").Create(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for range agent.New(sel, log, log.NewState(), nil, nil).Turn(t.Context(), []llm.Part{llm.Text("go")}) {
		}
		if known, ok := store.Get(llm.Target{Provider: "p", Model: "m"}); ok {
			t.Errorf("the store still holds %+v", known)
		}
	})
}

// TestAnEngineThatWasGoneIsAskedAgain: it may have come back with another window,
// in the same turn or only for the next.
func TestAnEngineThatWasGoneIsAskedAgain(t *testing.T) {
	gone := llmtest.Fail(&llm.Error{Code: llm.CodeTransport, Message: "refused", Unreached: true})
	for _, script := range [][]llmtest.Answer{
		{llmtest.Say("one"), gone, llmtest.Say("two"), llmtest.Say("three")},
		{llmtest.Say("one"), gone, gone, gone, llmtest.Say("two"), llmtest.Say("three")},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &llmtest.Provider{Facts: window(8192), Script: script}
			f := newFixture(t, p, nil, agent.Options{})
			f.turn(t.Context(), "go")
			asked := f.selector.Revision()
			p.Facts = window(16384)
			for endOf(f.turn(t.Context(), "on")).Reason != agent.EndCompleted {
			}
			events := f.turn(t.Context(), "and on")
			requests := p.Requests()
			if got := requests[len(requests)-1].Snapshot.Window.Tokens; got != 16384 {
				t.Errorf("planned for %d", got)
			}
			if n := f.selector.Revision() - asked; n != 1 {
				t.Errorf("asked %d times about the model", n)
			}
			if models := find[agent.Model](events); len(models) != 0 {
				t.Errorf("told again: %+v", models)
			}
		})
	}
}

// TestNoLoopOfWindows: an engine that names a smaller window each time is asked
// twice.
func TestNoLoopOfWindows(t *testing.T) {
	p := &llmtest.Provider{Facts: window(32768)}
	p.Answer = func(n int, _ *llm.Request) llmtest.Answer {
		return llmtest.Fail(&llm.Error{Code: llm.CodeContextWindowExceeded, Message: "too long", Window: 16384 >> n, PromptTokens: 20000})
	}
	f := newFixture(t, p, nil, agent.Options{})
	if end := endOf(f.turn(t.Context(), "go")); agent.Code(end.Err) != llm.CodeContextWindowExceeded || len(p.Requests()) != 2 {
		t.Errorf("ended %+v after %d requests", end, len(p.Requests()))
	}
	f.check()
}

// TestALowerOutputIsForOneRequest: the next step is planned from the engine's
// count and needs no lower limit.
func TestALowerOutputIsForOneRequest(t *testing.T) {
	over := &llm.Error{Code: llm.CodeContextWindowExceeded, Message: "too long", Window: 32768, PromptTokens: 32404}
	look := llmtest.Call(llm.ToolCall{ID: "1", Name: "glob", Arguments: `{"pattern":"*"}`})
	p := &llmtest.Provider{Facts: window(32768), Script: []llmtest.Answer{llmtest.Fail(over), look, llmtest.Say("done")}}
	f := newFixture(t, p, nil, agent.Options{})
	f.turn(t.Context(), "go")
	var limits []int
	for _, r := range p.Requests() {
		limits = append(limits, r.MaxTokens)
	}
	if len(limits) != 3 || limits[1] != 300 || limits[2] != limits[0] {
		t.Errorf("max_tokens %v", limits)
	}
	f.check()
}
