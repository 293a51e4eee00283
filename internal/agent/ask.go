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
	t.maxOutput = 0 // a lower one was for the request before
	for {
		snap, err := t.snapshot(ctx)
		if err != nil {
			return nil, err
		}
		plan, err := t.plan(&snap, "")
		if err != nil {
			return nil, err
		}
		t.sent = plan
		ans, err := t.stream(ctx, plan)
		if err == nil {
			if err := t.answered(ctx, snap, plan, ans); err != nil {
				return nil, err
			}
			return ans, nil
		}
		if t.printedCall(ctx, &snap, ans, err) {
			continue
		}
		if ans.started || ctx.Err() != nil {
			t.logAnswer(&snap, ans, true)
			return nil, partial(ctx, ans, err)
		}
		if again, err := t.recover(ctx, &snap, plan, err, &attempts); !again {
			return nil, err
		}
	}
}

// partial words the error of an answer that broke off behind some text.
func partial(ctx context.Context, ans *answer, err error) error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || ctx.Err() != nil || ans.text.Len() == 0 || printedText(err) != "" {
		return err
	}
	broken := *e
	broken.Message = e.Message + " (the part that had arrived is kept; send \"continue\" to go on from it)"
	return &broken
}

// noteMark begins every message that the host itself puts into a conversation.
const noteMark = "[drover: "

// IsNote reports whether a user message is one that the host wrote, not the
// person: a note to the model in the middle of a turn, or nothing but images that
// tools returned. What a person says in the middle of a turn is none.
func IsNote(m *llm.Message) bool {
	text := m.Text()
	return m.Role == llm.User && m.Continuation && (text == "" || strings.HasPrefix(text, noteMark))
}

// printedNote is what the host tells a model that printed a call as text.
const printedNote = noteMark + "your last answer contained a tool call written as text. It was not run and not kept. " +
	"Call tools only through the tool interface.]"

// printedCall handles an answer that printed a tool call as text. Such a call is
// never run. The answer stays in the log and out of the conversation, and the
// model is asked once more in a turn, with a note.
func (t *turn) printedCall(ctx context.Context, snap *llm.Snapshot, ans *answer, err error) (again bool) {
	text := printedText(err)
	if text == "" || ctx.Err() != nil {
		return false
	}
	ans.text.WriteString(text)
	rec := answerRecord(snap, ans)
	rec.Discarded = true
	t.append(rec)
	if t.printed {
		ans.started = false // nothing of it is kept
		ans.text.Reset()
		return false
	}
	t.printed = true
	t.emit(Notice{Kind: NoticeInfo, Text: "The model printed a tool call as text. It was not run; the model is asked once more."})
	return t.gate(&session.UserMessage{Parts: []llm.Part{llm.Text(printedNote)}, Continuation: true}) == nil
}

// printedText is the markup of a call that was printed as text, "" for any
// other error.
func printedText(err error) string {
	var p interface {
		error
		PrintedCall() string
	}
	if errors.As(err, &p) {
		return p.PrintedCall()
	}
	return ""
}

// plan decides what the request holds, and logs header and plan. aside, if not
// empty, is said behind the conversation in this request alone.
func (t *turn) plan(snap *llm.Snapshot, aside string) (*budget.Plan, error) {
	tools := t.offered(snap).Defs()
	messages, previous := t.history()
	if aside != "" {
		messages = append(messages, session.Aside(aside))
	}
	notes, omitted := t.notes(t.remember, snap)
	plan, err := t.fit(&budget.Input{
		Snapshot: *snap, System: systemTurn(snap, t.around), Memory: notes, OmittedNotes: omitted,
		Tools: tools, Messages: messages, RequestedOutput: t.maxOutput, Previous: previous, Costs: &t.costs,
	})
	if err != nil {
		return nil, err
	}
	if wide := plan.Request.Snapshot.Window.Tokens; wide > snap.Window.Tokens {
		t.mu.Lock()
		t.widened = snap.Target
		t.mu.Unlock()
		t.once("widened "+snap.Target.String(), fmt.Sprintf(
			"The request needs more than the %d tokens that an engine surely gives a model that is not loaded; %d are assumed.",
			snap.Window.Tokens, wide))
		*snap = plan.Request.Snapshot
	}
	header := &session.RequestHeader{
		Snapshot: plan.Request.Snapshot, Temperature: plan.Request.Snapshot.Temperature(),
		System: plan.Request.System, Memory: notes, Tools: session.NewTools(tools),
	}
	t.mu.Lock()
	changed := !t.headed || !header.Equal(t.state.Header)
	t.mu.Unlock()
	if changed {
		if err := t.gate(header); err != nil {
			return nil, err
		}
		t.headed = true
	}
	rec := &session.RequestPlan{
		MaxTokens: plan.Request.MaxTokens, Policy: t.opts.Policy.Version,
		PreviousUsed: previous != nil, Aside: aside, Report: plan.Report,
	}
	if aside == "" {
		next := plan.Pending()
		rec.Next = &next
	}
	if err := t.gate(rec); err != nil || aside != "" {
		return plan, err
	}
	t.emit(Planned{Report: plan.Report})
	t.logPlan(&plan.Report)
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
		ans.calls = llm.UniqueIDs(ev, t.usedID())
	case llm.Usage:
		ans.usage = &ev
	case llm.Finish:
		ans.finish, ans.detail = ev.Reason, ev.Reasoning
	}
}

// usedID tells which call ids the whole conversation has, also the parts that no
// request holds any more.
func (t *turn) usedID() func(id string) bool {
	messages, _ := t.history()
	used := make(map[string]bool)
	for i := range messages {
		for _, c := range messages[i].Calls {
			used[c.ID] = true
		}
	}
	return func(id string) bool { return used[id] }
}

// answered logs a complete answer and looks at what the engine counted. An answer
// that the log does not take is no part of the conversation, and nothing of it runs.
func (t *turn) answered(ctx context.Context, snap llm.Snapshot, plan *budget.Plan, ans *answer) error {
	if ans.usage == nil {
		ans.usage = &llm.Usage{
			PromptTokens:     plan.Report.EstimatedAfter,
			CompletionTokens: budget.EstimateText(t.opts.Policy, ans.text.String()+ans.reasoning.String()),
			Estimated:        true,
		}
	} else if ans.usage.PromptTokens == 0 {
		ans.usage.PromptTokens, ans.usage.Estimated = plan.Report.EstimatedAfter, true
	}
	if err := t.logAnswer(&snap, ans, false); err != nil {
		return err
	}
	t.sawImages(&plan.Request)
	t.confirm(ctx, &snap)
	t.emit(Usage{Target: snap.Target, Usage: *ans.usage, Estimate: plan.Report.EstimatedAfter, Window: snap.Window})
	t.noteCut(&snap, plan, ans.usage)
	if ans.text.Len() == 0 && len(ans.calls) == 0 {
		t.emit(Notice{Kind: NoticeInfo, Text: "The model only thought and did not answer. A higher effort leaves it more room (--effort, /effort)."})
	}
	return nil
}

// confirm asks about the model again after its first answer: only now has the
// engine surely loaded it, and tells the window that it really uses. One that was
// gone meanwhile may have come back with another.
func (t *turn) confirm(ctx context.Context, snap *llm.Snapshot) {
	known := snap.Window.Source == llm.Effective || t.confirmed == snap.Target
	if known && !t.lost || t.selector.Target() != snap.Target {
		return
	}
	t.confirmed, t.lost = snap.Target, false
	t.selector.Reprobe(ctx)
	if fresh, err := t.current(ctx); err == nil && fresh.Target == snap.Target {
		t.tellModel(&fresh)
		*snap = fresh
	}
}

func (t *turn) logAnswer(snap *llm.Snapshot, ans *answer, interrupted bool) error {
	rec := answerRecord(snap, ans)
	rec.Interrupted = interrupted
	if interrupted {
		rec.Calls = nil
	}
	return t.gate(rec)
}

func answerRecord(snap *llm.Snapshot, ans *answer) *session.AssistantMessage {
	rec := &session.AssistantMessage{
		Target: snap.Target, Text: ans.text.String(), Calls: ans.calls, Finish: ans.finish,
		Usage: ans.usage, Timing: ans.timing, Reasoning: ans.detail,
	}
	if rec.Reasoning == nil && ans.reasoning.Len() > 0 {
		rec.Reasoning = &llm.Reasoning{Text: ans.reasoning.String()}
	}
	return rec
}

// roundWindow divides every size that people and engines give a window.
const roundWindow = 512

// counted is what an engine counted for a prompt, and the estimate of it, without
// what the engine counted before: that is what is held against it.
type counted struct {
	target           llm.Target
	tokens, estimate int
}

// noteCut tells once a turn that the engine cut the prompt silently: it counted
// fewer tokens than the request must have, exactly a full window, or the same
// round number as for a smaller prompt before.
func (t *turn) noteCut(snap *llm.Snapshot, plan *budget.Plan, u *llm.Usage) {
	if u.Estimated || u.PromptTokens == 0 {
		return
	}
	before := t.counted
	t.counted = counted{snap.Target, u.PromptTokens, plan.Report.BreakdownAfter.Total()}
	why := ""
	switch least := plan.ProvableMinimum(); {
	case t.cutTold:
		return
	case u.PromptTokens < least:
		why = fmt.Sprintf("The engine counted %d prompt tokens for a request that has at least %d", u.PromptTokens, least)
	case u.PromptTokens == snap.Window.Tokens:
		why = fmt.Sprintf("The engine counted %d prompt tokens, exactly its window", u.PromptTokens)
	case u.PromptTokens%roundWindow == 0 && before.target == snap.Target && before.tokens == u.PromptTokens && before.estimate < t.counted.estimate:
		why = fmt.Sprintf("The engine counted %d prompt tokens again for a longer request", u.PromptTokens)
	default:
		return
	}
	t.cutTold = true
	t.emit(Notice{Kind: NoticeInfo, Text: why + ": it cut the prompt without saying so. " +
		"Raise its context (OLLAMA_CONTEXT_LENGTH or num_ctx for Ollama, -c for llama-server, the slider of LM Studio)."})
}
