package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/session"
)

// answer is what a model said to one request.
type answer struct {
	text      strings.Builder
	reasoning strings.Builder
	detail    *llm.Reasoning
	calls     []llm.ToolCall
	usage     *llm.Usage
	finish    llm.FinishReason
	started   bool // something was shown
	timing    session.Timing
}

// prefillNotice is how long a request may be silent before the person is told
// that the engine is still computing the prompt.
const prefillNotice = 10 * time.Second

// ask plans, logs and sends requests until one is answered or no retry is left.
// It logs the answer.
func (t *turn) ask(ctx context.Context) (*answer, error) {
	var attempts retries
	for {
		snap, err := t.snapshot(ctx)
		if err != nil {
			return nil, err
		}
		plan, err := t.plan(&snap)
		if err != nil {
			return nil, err
		}
		ans, err := t.stream(ctx, plan)
		if err == nil {
			t.answered(ctx, &snap, plan, ans)
			return ans, nil
		}
		if ans.started || ctx.Err() != nil {
			t.logAnswer(&snap, plan, ans, true)
			return nil, partial(ctx, ans, err)
		}
		if again, err := t.recover(ctx, &snap, err, &attempts); !again {
			return nil, err
		}
	}
}

// partial words the error of an answer that broke off.
func partial(ctx context.Context, ans *answer, err error) error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || ctx.Err() != nil || !ans.started {
		return err
	}
	broken := *e
	broken.Message = e.Message + " (the part that had arrived is kept; send \"continue\" to go on from it)"
	return &broken
}

// plan decides what the request holds, and logs header and plan.
func (t *turn) plan(snap *llm.Snapshot) (*budget.Plan, error) {
	tools := t.offered(snap).Defs()
	messages, previous := t.messages()
	in := &budget.Input{
		Snapshot: *snap, System: systemTurn(snap, t.around), Tools: tools, Messages: messages,
		RequestedOutput: t.maxOutput, Previous: previous, Costs: &t.costs,
	}
	plan, err := budget.Make(t.opts.Policy, in)
	if err != nil && snap.Window.Source == llm.Assumed && snap.Window.Declared > snap.Window.Tokens {
		// The assumption is the lowest default of the engines; try the next.
		wider := min(snap.Window.Declared, 2*snap.Window.Tokens)
		in.Snapshot.Window.Tokens = wider
		if p, e := budget.Make(t.opts.Policy, in); e == nil {
			plan, err = p, nil
			*snap = in.Snapshot
			t.emit(Notice{Kind: NoticeInfo, Text: fmt.Sprintf(
				"The request needs more than the %d tokens that an engine surely gives a model that is not loaded; %d are assumed. If the engine cuts the prompt, raise its context.",
				wider/2, wider)})
		}
	}
	if err != nil {
		return nil, err
	}
	header := &session.RequestHeader{
		Snapshot: plan.Request.Snapshot, Temperature: plan.Request.Snapshot.Temperature(),
		System: plan.Request.System, Tools: session.NewTools(tools),
	}
	t.mu.Lock()
	changed := !t.headed || !header.Equal(t.state.Header)
	t.mu.Unlock()
	if changed {
		t.append(header)
		t.headed = true
	}
	next := plan.Pending()
	t.append(&session.RequestPlan{
		MaxTokens: plan.Request.MaxTokens, Policy: t.opts.Policy.Version,
		PreviousUsed: previous != nil, Report: plan.Report, Next: &next,
	})
	t.emit(Planned{Report: plan.Report})
	t.noteTrim(&plan.Report)
	return plan, nil
}

// stream sends the request and collects the answer. The answer is never nil.
func (t *turn) stream(ctx context.Context, plan *budget.Plan) (*answer, error) {
	ans := new(answer)
	provider, err := t.selector.Provider(plan.Request.Snapshot.Target)
	if err != nil {
		return ans, err
	}
	start := t.opts.Now()
	stop := t.watchPrefill(ctx, start)
	defer stop()
	for ev, err := range provider.Stream(ctx, &plan.Request) {
		if !ans.started {
			stop()
			ans.timing.FirstMS = t.opts.Now().Sub(start).Milliseconds()
		}
		if err != nil {
			return ans, err
		}
		t.take(ans, ev)
	}
	ans.timing.TotalMS = t.opts.Now().Sub(start).Milliseconds()
	if ans.finish == "" {
		return ans, llm.Errorf(llm.CodeStreamClosed, "the engine closed the connection before the answer was complete")
	}
	return ans, nil
}

// watchPrefill tells every prefillNotice that the engine is silent, until stop
// is called. stop returns when nothing more will be told.
func (t *turn) watchPrefill(ctx context.Context, start time.Time) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for sleep(ctx, prefillNotice) == nil {
			t.emit(Waiting{Elapsed: t.opts.Now().Sub(start)})
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// take adds one event to the answer and passes it on.
func (t *turn) take(ans *answer, ev llm.Event) {
	switch ev := ev.(type) {
	case llm.TextDelta:
		ans.started = true
		ans.text.WriteString(string(ev))
		t.emit(Text(ev))
	case llm.ReasoningDelta:
		ans.started = true
		ans.reasoning.WriteString(string(ev))
		t.emit(Reasoning(ev))
	case llm.ToolCallDelta:
		ans.started = true
		t.emit(CallDelta(ev))
	case llm.ToolCalls:
		ans.started = true
		ans.calls = ev
	case llm.Usage:
		ans.usage = &ev
	case llm.Finish:
		ans.finish, ans.detail = ev.Reason, ev.Reasoning
	}
}

// answered logs a complete answer and looks at what the engine counted.
func (t *turn) answered(ctx context.Context, snap *llm.Snapshot, plan *budget.Plan, ans *answer) {
	if ans.usage == nil {
		ans.usage = &llm.Usage{
			PromptTokens:     plan.Report.EstimatedAfter,
			CompletionTokens: budget.EstimateText(t.opts.Policy, ans.text.String()+ans.reasoning.String()),
			Estimated:        true,
		}
	}
	t.logAnswer(snap, plan, ans, false)
	t.emit(Usage{Usage: *ans.usage, Estimate: plan.Report.EstimatedAfter, Window: snap.Window})
	t.noteCut(snap, plan, ans.usage)
	if ans.text.Len() == 0 && len(ans.calls) == 0 {
		t.emit(Notice{Kind: NoticeInfo, Text: "The model only thought and did not answer. A higher effort leaves it more room (--effort, /effort)."})
	}
	if snap.Window.Source != llm.Effective && t.confirmed != snap.Target {
		// Only now has the engine surely loaded the model.
		t.confirmed = snap.Target
		if t.selector.Target() == snap.Target {
			t.selector.Reprobe(ctx)
		}
	}
}

func (t *turn) logAnswer(snap *llm.Snapshot, plan *budget.Plan, ans *answer, interrupted bool) {
	rec := &session.AssistantMessage{
		Target: snap.Target, Text: ans.text.String(), Finish: ans.finish,
		Usage: ans.usage, Timing: ans.timing, Interrupted: interrupted,
	}
	if !interrupted {
		rec.Calls = ans.calls
	}
	if ans.reasoning.Len() > 0 {
		rec.Reasoning = &llm.Reasoning{Text: ans.reasoning.String()}
		if ans.detail != nil {
			rec.Reasoning = ans.detail
		}
	}
	t.append(rec)
}

// noteCut tells once a turn when the engine counted fewer tokens than the
// request must have, or exactly a full window: it cut the prompt silently.
func (t *turn) noteCut(snap *llm.Snapshot, plan *budget.Plan, u *llm.Usage) {
	if u.Estimated || u.PromptTokens == 0 || t.cutTold {
		return
	}
	if u.PromptTokens >= plan.ProvableMinimum() && u.PromptTokens != snap.Window.Tokens {
		return
	}
	t.cutTold = true
	t.emit(Notice{Kind: NoticeInfo, Text: fmt.Sprintf(
		"The engine counted %d prompt tokens for a request that has at least %d: it cut the prompt without saying so. "+
			"Raise its context (OLLAMA_CONTEXT_LENGTH or num_ctx for Ollama, -c for llama-server, the slider of LM Studio).",
		u.PromptTokens, max(plan.ProvableMinimum(), u.PromptTokens))})
}
