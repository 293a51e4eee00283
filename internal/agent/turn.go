package agent

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/tool"
)

// turn is one running turn. Its methods run in the turn's goroutine, except
// that emit may be called from any.
type turn struct {
	*Agent
	emit func(Event)

	around     *tool.Surroundings
	notSaved   bool // the person was told
	cutTold    bool // the person was told that the engine cut the prompt
	trim       *session.PlanNotice
	recoveries int // of requests that did not fit the engine's window
	maxOutput  int // a lower output ceiling than the effort's, 0 for none
}

// maxTitle bounds a title made from the first words of a prompt, in characters.
const maxTitle = 60

// errMaxTokens ends a turn whose answer reached its token limit.
var errMaxTokens = errors.New("the answer reached its token limit")

// errStopped ends a turn that the person stopped at a question.
var errStopped = errors.New("the turn was stopped at a question")

func (t *turn) run(ctx context.Context, parts []llm.Part) {
	t.append(&session.TurnStart{})
	t.append(&session.UserMessage{Parts: parts})
	t.title(parts)
	t.around = t.surroundings()
	var err error
	for more := true; more && err == nil; {
		more, err = t.step(ctx)
	}
	t.end(ctx, err)
}

// step makes one request and runs its calls. more says that the model wants to
// go on.
func (t *turn) step(ctx context.Context) (more bool, err error) {
	ans, err := t.ask(ctx)
	if err != nil {
		return false, err
	}
	if len(ans.calls) == 0 {
		if ans.finish == llm.FinishLength {
			return false, errMaxTokens
		}
		return false, nil
	}
	if ans.finish == llm.FinishLength {
		t.refuseCalls(ans.calls, "Not executed: the answer reached its token limit before it was complete.")
		return false, errMaxTokens
	}
	return true, t.runCalls(ctx, ans)
}

// end logs and tells how the turn ended.
func (t *turn) end(ctx context.Context, err error) {
	e := End{Reason: EndCompleted}
	rec := &session.TurnEnd{Reason: session.EndCompleted}
	switch {
	case err == nil:
	case errors.Is(err, errMaxTokens):
		e.Reason, rec.Reason = EndMaxTokens, session.EndMaxTokens
		rec.Message = err.Error()
		t.emit(Notice{Kind: NoticeInfo, Text: "The answer reached its limit of tokens. A higher effort allows a longer one (--effort, /effort)."})
	case errors.Is(err, errStopped), ctx.Err() != nil:
		e.Reason, rec.Reason = EndCancelled, session.EndCancelled
	default:
		e.Reason, rec.Reason, e.Err = EndError, session.EndError, err
		rec.Message, rec.Code = err.Error(), Code(err)
	}
	t.append(rec)
	t.emit(e)
}

// Code is the stable code of an error that ended a turn: the provider's, or
// CONTEXT_WINDOW_EXCEEDED when the plan found that nothing fits.
func Code(err error) llm.Code {
	if _, ok := errors.AsType[*budget.OverflowError](err); ok {
		return llm.CodeContextWindowExceeded
	}
	return llm.CodeOf(err)
}

// append logs a record and takes it into the state. A record that could not be
// saved is kept by the log and tried again; the person is told once, and once
// more when it is saved. A record that the log does not take at all is no part
// of the conversation.
func (t *turn) append(rec session.Record) error {
	t.mu.Lock()
	err := t.log.Append(rec)
	_, unsaved := errors.AsType[*session.UnsavedError](err)
	if err == nil || unsaved {
		t.state.Apply(rec)
	}
	t.mu.Unlock()
	switch {
	case err != nil && !t.notSaved:
		t.notSaved = true
		t.emit(Notice{Kind: NoticeStore, Text: "The session is not saved: " + err.Error()})
	case err == nil && t.notSaved:
		t.notSaved = false
		t.emit(Notice{Kind: NoticeStore, Text: "The session is saved again."})
	}
	return err
}

// title names the session after the first words of its first prompt.
func (t *turn) title(parts []llm.Part) {
	if t.Title() != "" {
		return
	}
	m := llm.Message{Parts: parts}
	line, _, _ := strings.Cut(strings.TrimSpace(m.Text()), "\n")
	line = strings.Join(strings.Fields(line), " ")
	if utf8.RuneCountInString(line) > maxTitle {
		runes := []rune(line)[:maxTitle]
		line = strings.TrimSpace(string(runes)) + "…"
	}
	if line != "" {
		t.append(&session.SessionInfo{Title: line})
	}
}

// snapshot takes the snapshot of a step and tells when it has changed.
func (t *turn) snapshot(ctx context.Context) (llm.Snapshot, error) {
	snap, err := t.selector.Wait(ctx)
	if err != nil {
		return snap, err
	}
	if snap.Target.IsZero() {
		return snap, llm.Errorf(llm.CodeNoAdapter, "no model is selected")
	}
	if l := t.limit; l.target == snap.Target && (snap.Window.Tokens == 0 || l.tokens < snap.Window.Tokens) {
		snap.Window.Tokens, snap.Window.Source = l.tokens, llm.Effective
		snap.Window.Evidence = []llm.Evidence{{Endpoint: "POST /v1/chat/completions", Field: "error"}}
	}
	if !snap.Equal(&t.toldModel) {
		t.toldModel = snap
		t.emit(Model{Snapshot: snap, Notes: t.selector.Info().Notes})
		if snap.Capabilities.Tools.Support == llm.Unsupported && t.saidNoTool != snap.Target {
			t.saidNoTool = snap.Target
			t.emit(Notice{Kind: NoticeInfo, Text: "The engine says that " + snap.Target.Model + " does not support tools: none are offered."})
		}
	}
	return snap, nil
}

func (t *turn) messages() ([]llm.Message, *budget.Previous) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state.Messages, t.state.Previous
}

// noteTrim tells once a turn what its requests leave out; a later step updates
// the notice.
func (t *turn) noteTrim(r *budget.Report) {
	if !r.Trimmed() {
		return
	}
	n := &session.PlanNotice{
		Text: r.Summary(), Exchanges: r.DroppedExchanges, Texts: len(r.Truncations),
		Images: len(r.OmittedImages), Groups: len(r.OmittedGroups), TokensRemoved: r.TokensRemoved,
	}
	if t.trim != nil && *t.trim == *n {
		return
	}
	kept := *n
	t.trim = &kept
	t.append(n)
	t.emit(Notice{Kind: NoticeTrim, Text: n.Text})
}

// sleep waits, at most until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
