package acp

import (
	"fmt"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/tool"
)

// The output of a running command reaches the client at most five times a
// second: as the newest part of it in a fence, or, for a client with
// _meta.terminal_output, as what a terminal of its own appends.

type terminalInfo struct {
	ID  string `json:"terminal_id"`
	CWD string `json:"cwd"`
}

type terminalOutput struct {
	ID   string `json:"terminal_id"`
	Data string `json:"data"`
}

type terminalExit struct {
	ID   string `json:"terminal_id"`
	Code *int   `json:"exit_code"`
	// Signal is always null: results do not name one.
	Signal *string `json:"signal"`
}

// maxTail bounds the output that is shown while a command runs, in bytes of JSON.
const maxTail = 32 << 10

func (t *turn) output(ev agent.CallOutput) {
	t.mu.Lock()
	defer t.mu.Unlock()
	oc := t.cards[ev.ID]
	if oc == nil || oc.finished || ev.Text == "" {
		return
	}
	oc.tail += ev.Text
	oc.tail = oc.tail[tailFits(oc.tail, maxTail):]
	oc.pending += ev.Text
	oc.pending = oc.pending[tailFits(oc.pending, maxField):]
	if oc.timer != nil {
		return // it will be sent
	}
	wait := outputInterval - time.Since(oc.sentAt)
	if wait <= 0 {
		oc.sendOutput()
		return
	}
	oc.timer = time.AfterFunc(wait, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if oc.timer != nil && !oc.finished {
			oc.timer = nil
			oc.sendOutput()
		}
	})
}

// sendOutput shows what there is; it needs the lock.
func (oc *openCard) sendOutput() {
	oc.sentAt = time.Now()
	update := oc.update(statusRunning)
	if oc.terminal {
		update.Meta = map[string]any{"terminal_output": terminalOutput{oc.call.ID, oc.pending}}
		oc.streamed = true
	} else {
		update.Content = []any{oc.card.output(oc.tail)}
	}
	oc.pending = ""
	oc.turn.c.update(update)
}

// finish shows the result of a call; it needs the lock. The content replaces
// what was shown before, so the diff or the output is sent again.
func (oc *openCard) finish(r tool.Result) {
	oc.finished = true
	if oc.timer != nil {
		oc.timer.Stop()
		oc.timer = nil
	}
	status := statusCompleted
	if r.Status != tool.StatusOK {
		status = statusFailed
	}
	update := oc.update(status)
	switch {
	case oc.terminal:
		oc.finishTerminal(&update, r)
	case oc.embedded && r.Status != tool.StatusUnknown:
		// The terminal stays. It is not named again: it was released.
	default:
		update.Content = oc.result(r.Text, oc.shownDiff(r))
	}
	oc.turn.c.update(update)
}

// shownDiff is the diff that stays on the card: what was really changed. Of a
// call that failed the reason is shown instead of the intent.
func (oc *openCard) shownDiff(r tool.Result) *tool.Diff {
	if r.Diff != nil || r.Status != tool.StatusOK || oc.action == nil {
		return r.Diff
	}
	return oc.action.Diff
}

// terminalContent is the client's terminal of the call, if it has one.
func (oc *openCard) terminalContent() []any {
	if !oc.terminal {
		return nil
	}
	return []any{terminalContent{"terminal", oc.call.ID}}
}

// finishTerminal ends the client's terminal: with the output that it has not got
// yet, or with the result where nothing was streamed.
func (oc *openCard) finishTerminal(update *toolCall, r tool.Result) {
	rest := oc.pending
	if !oc.streamed && rest == "" {
		rest = clip(r.Text, maxField)
	}
	update.Content = oc.terminalContent()
	exit := terminalExit{ID: oc.call.ID}
	// A result ends with a line that says how the command did; there is no code
	// where a signal or a limit ended it.
	var code int
	last := r.Text[strings.LastIndexByte(r.Text, '\n')+1:]
	if _, err := fmt.Sscanf(last, "[exit code %d", &code); err == nil {
		exit.Code = &code
	}
	meta := map[string]any{"terminal_exit": exit}
	if rest != "" {
		meta["terminal_output"] = terminalOutput{oc.call.ID, rest}
	}
	update.Meta = meta
}
