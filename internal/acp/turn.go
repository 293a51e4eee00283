package acp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

// turn shows one turn to the client. Its methods are called by the goroutine
// that runs the turn, except that a timer sends the output of a running tool.
type turn struct {
	c      *conversation
	w      *workbench
	client *client

	kind      string // of the message that is being streamed, "" for none
	messageID string
	trim      string // the newest trim notice
	store     string // the newest notice about saving that was said
	waited    bool   // the person knows that the engine computes the prompt
	used      usageUpdate
	usedCost  float64 // of used

	mu    sync.Mutex // guards what follows, because of the timer
	cards map[string]*openCard
	order []*openCard
	added chan struct{} // closed and replaced when a card is added
}

// openCard is a tool call of the turn.
type openCard struct {
	*card
	turn     *turn
	action   *tool.Action
	running  bool
	finished bool

	embedded bool   // runs in a terminal of the client
	terminal bool   // shown as a terminal of the client
	streamed bool   // output was sent to the terminal
	tail     string // the newest output, bounded
	pending  string // output that the terminal has not got yet
	sentAt   time.Time
	timer    *time.Timer
}

func newTurn(c *conversation, w *workbench) *turn {
	return &turn{c: c, w: w, client: c.srv.client.Load(), cards: make(map[string]*openCard), added: make(chan struct{})}
}

// run runs the turn and shows its events. When it returns, nothing more of the
// turn is sent.
func (t *turn) run(ctx context.Context, parts []llm.Part) agent.End {
	t.w.setTurn(t)
	defer t.w.setTurn(nil)
	defer t.closeCards()
	end := agent.End{Reason: agent.EndError}
	if ctx.Err() != nil {
		end.Reason = agent.EndCancelled
	}
	for ev := range t.w.agent.Turn(ctx, parts) {
		if e, ok := ev.(agent.End); ok {
			end = e
			continue
		}
		t.show(ev)
	}
	t.closeCards()    // before what follows the calls
	if t.trim != "" { // once, with the figures of the last step
		t.c.say("info", t.trim)
	}
	return end
}

func (t *turn) show(ev agent.Event) {
	switch ev := ev.(type) {
	case agent.Model:
		for _, note := range ev.Notes {
			t.say("info", note)
		}
		t.c.sendOptions(t.w) // what is known of the model may have changed
	case agent.Planned:
		t.waited = false
		t.usage(ev.Report.EstimatedAfter, llm.Window{Tokens: ev.Report.WindowTokens, Source: ev.Report.WindowSource})
	case agent.Waiting:
		if ev.Elapsed >= waitingNotice && !t.waited {
			t.waited = true
			t.say("info", fmt.Sprintf("The engine has been computing the prompt for %d s.", int(ev.Elapsed.Seconds())))
		}
	case agent.Text:
		t.stream(messageChunk, string(ev))
	case agent.Reasoning:
		t.stream(thoughtChunk, string(ev))
	case agent.CallPending:
		t.pending(ev)
	case agent.CallStarted:
		t.started(ev.ID)
	case agent.CallOutput:
		t.output(ev)
	case agent.CallFinished:
		t.finished(ev)
	case agent.Notice:
		t.notice(ev)
	case agent.Retrying:
		t.say("warning", fmt.Sprintf("%v. Trying again in %v (%d).", ev.Err, ev.Wait.Round(100*time.Millisecond), ev.Attempt))
	case agent.Usage:
		used := ev.Usage.PromptTokens + ev.Usage.CompletionTokens
		if ev.Usage.Estimated {
			used = max(used, ev.Estimate)
		}
		t.w.spend(ev.Target, &ev.Usage)
		t.usage(used, ev.Window)
	}
}

// stream sends a piece of the answer or of its thoughts, cut where it is too
// long for a line.
func (t *turn) stream(kind, text string) {
	if t.kind != kind {
		t.kind, t.messageID = kind, t.c.messageID()
	}
	for text != "" {
		n := headFits(text, maxField)
		t.c.update(chunk{kind, textContent(text[:n]), t.messageID})
		text = text[n:]
	}
}

// say interrupts the message that is being streamed.
func (t *turn) say(severity, text string) {
	t.kind = ""
	t.c.say(severity, text)
}

func (t *turn) notice(n agent.Notice) {
	switch n.Kind {
	case agent.NoticeTrim:
		t.trim = n.Text
	case agent.NoticeStore:
		if t.store != n.Text {
			t.store = n.Text
			t.say("warning", n.Text)
		}
	default:
		t.say("info", n.Text)
	}
}

// usage sends how full the window is, when that has changed. Without a window
// there is nothing to compare with.
func (t *turn) usage(used int, window llm.Window) {
	if window.Source == llm.Fallback || window.Tokens <= 0 || used <= 0 {
		return
	}
	u := usageUpdate{Kind: "usage_update", Used: min(used, window.Tokens), Size: window.Tokens}
	amount, known := t.c.cost(t.w)
	if u == t.used && amount == t.usedCost {
		return
	}
	t.used, t.usedCost = u, amount
	if known {
		u.Cost = &cost{amount, "USD"}
	}
	t.c.update(u)
}

// pending shows a call before anybody is asked about it.
func (t *turn) pending(ev agent.CallPending) {
	t.kind = "" // what the model says after a call is a new message
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cards[ev.Call.ID] != nil {
		return
	}
	oc := &openCard{card: describeCall(ev.Call, t.w.dir), turn: t, action: ev.Action}
	oc.terminal = oc.kind == tool.KindExecute && t.client.terminalOutput && !t.c.srv.terminals()
	t.cards[ev.Call.ID] = oc
	t.order = append(t.order, oc)
	update := oc.announce()
	update.Content = oc.intent(ev.Action)
	if oc.terminal {
		update.Content = oc.terminalContent()
		update.Meta = map[string]any{"terminal_info": terminalInfo{oc.call.ID, t.w.dir}}
	}
	t.c.update(update)
	close(t.added)
	t.added = make(chan struct{})
}

// shown waits until the call is on the client's screen: the agent asks about it
// while the event that announces it is still on its way through here.
func (t *turn) shown(ctx context.Context, id string) (*openCard, error) {
	for {
		t.mu.Lock()
		oc, added := t.cards[id], t.added
		t.mu.Unlock()
		if oc != nil {
			return oc, nil
		}
		select {
		case <-added:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (t *turn) started(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if oc := t.cards[id]; oc != nil && !oc.finished {
		oc.running = true
		t.c.update(oc.update(statusRunning))
	}
}

func (t *turn) finished(ev agent.CallFinished) {
	t.kind = ""
	t.mu.Lock()
	defer t.mu.Unlock()
	oc := t.cards[ev.ID]
	if oc == nil || oc.finished {
		return
	}
	oc.finish(ev.Result)
	if ev.Name == "todo" && ev.Result.Status == tool.StatusOK {
		if p, ok := planOf(oc.call.Arguments); ok {
			t.c.update(p)
		}
	}
}

// closeCards marks the calls failed that the turn left open.
func (t *turn) closeCards() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, oc := range t.order {
		if !oc.finished {
			oc.finish(tool.Result{Status: tool.StatusUnknown, Text: oc.tail})
		}
	}
}

// afterTurn does what follows a turn, before its answer: the title of a new
// session, and options that have changed.
func (c *conversation) afterTurn(w *workbench) {
	c.sendTitle(w)
	c.sendOptions(w)
}

// sendTitle sends the session's title when it has changed.
func (c *conversation) sendTitle(w *workbench) {
	title := w.agent.Title()
	w.mu.Lock()
	changed := title != w.title
	w.title = title
	w.mu.Unlock()
	if changed {
		c.sendInfo(w, title)
	}
}

// sendInfo sends what session/list says of the session too.
func (c *conversation) sendInfo(w *workbench, title string) {
	c.update(infoUpdate{Kind: "session_info_update", Title: line(title), UpdatedAt: timestamp(w.agent.Updated())})
}

// writeTitle lets the model write the title, where that is asked for, behind the
// answer to the first prompt.
func (c *conversation) writeTitle(w *workbench) {
	// Closing the agent ends the request.
	if !w.agent.WriteTitle(context.Background()) {
		return
	}
	c.post(func() {
		if c.workbench() == w {
			c.sendTitle(w)
		}
	})
}
