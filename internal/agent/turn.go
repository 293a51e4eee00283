package agent

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/memory"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/tool"
)

// turn is one running turn. Its methods run in the turn's goroutine, except
// that emit may be called from any.
type turn struct {
	*Agent
	emit func(Event)

	around    *tool.Surroundings
	remember  *memory.Digest
	notSaved  bool // the person was told
	cutTold   bool // the person was told that the engine cut the prompt
	printed   bool // the model was told that it printed a call as text
	trim      *session.PlanNotice
	maxOutput int          // a lower output ceiling than the effort's, 0 for none
	sent      *budget.Plan // the last request
	seen      outcomes
}

// errMaxTokens ends a turn whose answer reached its token limit.
var errMaxTokens = errors.New("the answer reached its token limit")

// errClosed fails a turn of a session that is closed.
var errClosed = errors.New("the session is closed")

// errStopped ends a turn that the person stopped at a question.
var errStopped = errors.New("the turn was stopped at a question")

func (t *turn) run(ctx context.Context, parts []llm.Part) {
	t.mu.Lock()
	closed := t.closed
	t.steerable = !closed
	t.mu.Unlock()
	if closed {
		t.emit(End{Reason: EndError, Err: errClosed})
		return
	}
	err := t.start(parts)
	for more := true; more && err == nil; {
		if more, err = t.step(ctx); err == nil {
			var steered bool
			steered, err = t.steer(!more)
			more = more || steered
		}
	}
	t.end(ctx, err)
}

// start logs the user's message and looks at the surroundings.
func (t *turn) start(parts []llm.Part) error {
	t.append(&session.TurnStart{})
	if err := t.gate(&session.UserMessage{Parts: t.scaled(parts)}); err != nil {
		return err
	}
	t.title(parts)
	t.around = t.surroundings()
	for _, problem := range t.around.Problems {
		t.once("problem "+problem, problem)
	}
	t.remember = t.memory.Digest()
	for _, problem := range t.remember.Problems {
		t.once("note "+problem.String(), "A memory note is left out: "+problem.String()+".")
	}
	return nil
}

// once gives a notice unless this session has given it before.
func (t *turn) once(key, text string) {
	if !t.told[key] {
		t.told[key] = true
		t.emit(Notice{Kind: NoticeInfo, Text: text})
	}
}

// step makes one request and runs its calls. more says that the model wants to
// go on.
func (t *turn) step(ctx context.Context) (more bool, err error) {
	t.awaitServers(ctx)
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
		t.refuseRest(newCalls(ans.calls), "Not executed: the answer reached its token limit before it was complete.")
		return false, errMaxTokens
	}
	return true, t.runCalls(ctx, ans)
}

// end logs and tells how the turn ended.
func (t *turn) end(ctx context.Context, err error) {
	e := End{Reason: EndCompleted, Unsent: t.unsteered()}
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

// Code is the stable code of an error that ended a turn: the provider's, or for
// a plan that failed CONTEXT_WINDOW_EXCEEDED where nothing fits and
// INVALID_REQUEST where the conversation itself is no valid one.
func Code(err error) llm.Code {
	overflow, ok := errors.AsType[*budget.OverflowError](err)
	switch {
	case !ok:
		return llm.CodeOf(err)
	case overflow.Component == budget.InvalidHistory, overflow.Component == budget.ModelMismatch:
		return llm.CodeInvalidRequest
	}
	return llm.CodeContextWindowExceeded
}

// append logs a record and takes it into the state. A record that could not be
// saved is kept by the log and tried again; the person is told once, and once
// more when it is saved. A record that the log does not take at all is no part
// of the conversation.
func (t *turn) append(rec session.Record) error {
	t.mu.Lock()
	before := t.log.Unsaved() // an earlier turn may have told it
	err := t.log.Append(rec)
	_, unsaved := errors.AsType[*session.UnsavedError](err)
	if err == nil || unsaved {
		t.state.Apply(rec)
	}
	t.mu.Unlock()
	switch {
	case err != nil && !t.notSaved:
		t.notSaved = true
		t.emit(Notice{Kind: NoticeStore, Text: sentence(err.Error())})
	case err == nil && (t.notSaved || before != nil):
		t.notSaved = false
		t.emit(Notice{Kind: NoticeStore, Text: "The session is saved again."})
	}
	return err
}

// gate appends a record that a request depends on. The error means that it is no
// part of the session, so that the turn cannot go on; a record that waits to be
// saved is one.
func (t *turn) gate(rec session.Record) error {
	err := t.append(rec)
	if _, unsaved := errors.AsType[*session.UnsavedError](err); unsaved {
		return nil
	}
	return err
}

// snapshot takes the snapshot of a step and tells when it has changed.
func (t *turn) snapshot(ctx context.Context) (llm.Snapshot, error) {
	snap, err := t.current(ctx)
	if err == nil {
		t.tellModel(&snap)
	}
	return snap, err
}

// tellModel tells which model a step uses and what that means for the person.
func (t *turn) tellModel(snap *llm.Snapshot) {
	if snap.Equal(&t.toldModel) {
		return
	}
	t.toldModel = *snap
	about := t.selector.Info()
	if about.Target() != snap.Target { // another model was chosen meanwhile
		about.Notes = nil
	}
	t.emit(Model{Snapshot: *snap, Notes: about.Notes})
	model := snap.Target.String()
	switch {
	case snap.Capabilities.Tools.Support == llm.Unsupported:
		t.once("no tools "+model, "The engine says that "+snap.Target.Model+" does not support tools: none are offered.")
	default:
		t.tellTools(snap)
	}
	if snap.Capabilities.Vision.Support != llm.Supported && t.newestHasImages() {
		t.once("images "+model, "It is not proven that "+snap.Target.Model+" sees images. They are sent all the same.")
	}
}

// tellTools tells when a window has no room for all tools, and when it has after
// all: an engine may say only after its first answer how large it is.
func (t *turn) tellTools(snap *llm.Snapshot) {
	if len(t.small) == len(t.full) {
		return
	}
	text := "The window has room for all tools."
	if snap.Window.Tokens < smallWindow {
		set, without := t.offeredWithout(snap)
		text = "The window is small: of the tools only " + toolNames(set) + " are offered."
		if snap.Window.Source == llm.Fallback {
			text = "How large the window is, nobody said: of the tools only " + toolNames(set) + " are offered."
		}
		if len(without) > 0 {
			text += " There is no room for those of " + strings.Join(without, ", ") + "."
		}
	} else if t.toolsTold[snap.Target] == "" {
		return // as one expects
	}
	if t.toolsTold[snap.Target] != text {
		t.toolsTold[snap.Target] = text
		t.emit(Notice{Kind: NoticeInfo, Text: text})
	}
}

func (t *turn) newestHasImages() bool {
	messages, _ := t.history()
	return len(messages) > 0 && len(messages[len(messages)-1].Images()) > 0
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

// logPlan writes what a request leaves out to the activity log.
func (t *turn) logPlan(r *budget.Report) {
	log := t.opts.Logger
	log.Debug("agent: plan", "policy", r.PolicyVersion, "window", r.WindowTokens, "source", r.WindowSource,
		"output", r.OutputReserve, "input", r.InputBudget, "before", r.EstimatedBefore, "after", r.EstimatedAfter)
	if !r.Trimmed() {
		return
	}
	log.Info("agent: trim", "summary", r.Summary())
	for _, x := range r.Truncations {
		log.Info("agent: text shortened", "turn", x.Turn, "component", x.Component, "tokens", x.TokensBefore, "kept", x.TokensAfter)
	}
	for _, g := range r.OmittedGroups {
		log.Info("agent: round of tools left out", "turn", g.Turn, "tools", strings.Join(g.Tools, ","), "tokens", g.Tokens)
	}
	for _, i := range r.OmittedImages {
		log.Info("agent: image left out", "turn", i.Turn, "image", i.Image, "tokens", i.Tokens)
	}
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
