package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/brief"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

// events takes in what happened in a turn since the last frame.
func (s *screen) events(list batch) tea.Cmd {
	var cmds []tea.Cmd
	for _, ev := range list {
		if s.turn == nil {
			// Nothing of a turn comes behind its end.
			continue
		}
		cmds = append(cmds, s.event(ev.what, ev.at))
	}
	return tea.Batch(cmds...)
}

func (s *screen) event(what any, at time.Time) tea.Cmd {
	t := s.turn
	switch ev := what.(type) {
	case agent.Model:
		if ev.Snapshot.Target == s.bench.selector.Target() { // else it is chosen already what comes next
			s.snapshot = ev.Snapshot
		}
		s.note(at, noteInfo, fmt.Sprintf("model %s, %s, effort %s", ev.Snapshot.Target, windowText(ev.Snapshot.Window), ev.Snapshot.Effort))
		for _, n := range ev.Notes {
			s.note(at, noteWarning, n)
		}
	case agent.Planned:
		s.planned(ev, at)
	case agent.Waiting:
		t.setState(fmt.Sprintf("the engine reads the prompt, %s", short(ev.Elapsed)))
	case agent.Text:
		t.piece(at)
		s.text(string(ev), at)
	case agent.Reasoning:
		t.piece(at)
		s.reason(string(ev), at)
	case agent.CallDelta:
		t.piece(at)
		t.setState("writing a call of " + ev.Name)
	case agent.CallPending:
		s.closeParts(at)
		t.cards[ev.Call.ID] = s.transcript.add(newCard(ev.Call, ev.Action))
		t.cards[ev.Call.ID].details = s.details
	case agent.CallStarted, agent.CallOutput, agent.CallFinished:
		s.call(what, at)
	case agent.Steered:
		s.closeParts(at)
		if len(t.steering) > 0 {
			t.steering = t.steering[1:]
		}
		s.transcript.add(&prompt{text: promptText(ev.Parts), images: imageNames(ev.Parts), steers: true})
	case agent.Notice:
		s.notice(ev, at)
	case agent.Retrying:
		s.closeParts(at)
		text := fmt.Sprintf("%s; trying again in %s", strings.TrimSuffix(ev.Err.Message, "."), short(ev.Wait))
		s.retrying(text, ev.Attempt)
		s.note(at, noteWarning, text)
	case agent.Usage:
		s.usage(ev, at)
	case agent.End:
		return s.endTurn(ev, at)
	case question:
		return s.ask(ev)
	case withdrawn:
		s.withdraw(ev.callID)
	}
	return nil
}

// retrying shows that a request is sent again: one line, however often.
func (s *screen) retrying(text string, attempt int) {
	t := s.turn
	t.setState("waiting to try again")
	if attempt > 1 {
		text += fmt.Sprintf(" (%d tries)", attempt)
	}
	items := s.transcript.items
	if last := len(items) - 1; last >= 0 && items[last] == t.retry {
		t.retry.item = &note{text: text, kind: noteWarning}
		t.retry.touch()
		return
	}
	t.retry = s.say(noteWarning, text)
}

func (t *turn) setState(text string) {
	if !t.cancelling {
		t.state = text
	}
}

// piece notes when the answer to a request came.
func (t *turn) piece(at time.Time) {
	if t.first.IsZero() {
		t.first = at
	}
	t.last = at
}

func (s *screen) planned(ev agent.Planned, at time.Time) {
	r := &ev.Report
	s.turn.sent, s.turn.first, s.turn.last = at, time.Time{}, time.Time{}
	s.turn.setState("waiting for the engine")
	s.meter.used, s.meter.estimated = r.EstimatedAfter, true
	s.meter.window = llm.Window{Tokens: r.WindowTokens, Source: r.WindowSource}
	text := fmt.Sprintf("planned %s of %s tokens, %s kept for the answer", brief.Thousands(r.EstimatedAfter), brief.Thousands(r.WindowTokens), brief.Thousands(r.OutputReserve))
	s.note(at, noteInfo, text)
}

func (s *screen) text(text string, at time.Time) {
	t := s.turn
	t.setState("answering")
	s.closeThought(at)
	if t.answer == nil {
		t.answer = s.transcript.add(&answer{})
	}
	t.answer.item.(*answer).append(text)
	t.answer.touch()
}

func (s *screen) reason(text string, at time.Time) {
	t := s.turn
	t.setState("thinking")
	t.answer = nil
	if t.thought == nil {
		t.thought, t.thinking = s.transcript.add(&thought{}), at
		t.thought.details = s.details
	}
	t.thought.item.(*thought).text.WriteString(text)
	t.thought.touch()
}

func (s *screen) closeThought(at time.Time) {
	t := s.turn
	if t.thought == nil {
		return
	}
	th := t.thought.item.(*thought)
	th.ended, th.took = true, at.Sub(t.thinking)
	t.thought.touch()
	t.thought = nil
}

// closeParts ends what is being streamed.
func (s *screen) closeParts(at time.Time) {
	s.closeThought(at)
	s.turn.answer = nil
}

func (s *screen) call(what any, at time.Time) {
	t := s.turn
	change := func(id string, f func(*card)) {
		if e := t.cards[id]; e != nil {
			f(e.item.(*card))
			e.touch()
		}
	}
	switch ev := what.(type) {
	case agent.CallStarted:
		change(ev.ID, func(c *card) {
			c.state, c.started = cardRunning, at
			t.setState("running " + c.call.Name)
		})
	case agent.CallOutput:
		change(ev.ID, func(c *card) { c.progress(ev.Text) })
	case agent.CallFinished:
		change(ev.ID, func(c *card) { c.finish(ev.Result, at) })
		s.withdraw(ev.ID)
		t.setState("planning")
		if ev.Result.Status != tool.StatusOK {
			first, _, _ := strings.Cut(ev.Result.Text, "\n")
			s.note(at, noteWarning, fmt.Sprintf("%s: %s: %s", ev.Name, ev.Result.Status, first))
		}
	}
}

func (s *screen) notice(n agent.Notice, at time.Time) {
	t := s.turn
	switch n.Kind {
	case agent.NoticeTrim:
		// One line under the prompt of the turn, which later steps update.
		t.prompt.item.(*prompt).trim = n.Text
		t.prompt.touch()
		s.note(at, noteWarning, n.Text)
		return
	case agent.NoticeStore:
		if t.store == n.Text {
			return
		}
		t.store = n.Text
		s.say(noteWarning, n.Text)
	default:
		s.closeParts(at)
		s.say(noteInfo, n.Text)
	}
	s.note(at, noteInfo, n.Text)
}

func (s *screen) usage(ev agent.Usage, at time.Time) {
	t := s.turn
	u := &ev.Usage
	s.meter.used = u.PromptTokens + u.CompletionTokens
	s.meter.estimated = u.Estimated
	s.bench.spent.Add(ev.Target, u)
	if u.Estimated {
		s.meter.used = max(s.meter.used, ev.Estimate)
	}
	if ev.Window.Tokens > 0 {
		s.meter.window = ev.Window
	}
	if !t.first.IsZero() && !t.sent.IsZero() {
		s.meter.firstToken = t.first.Sub(t.sent)
	}
	switch took := t.last.Sub(t.first); {
	case u.Timings != nil && u.Timings.PredictedMS > 0:
		s.meter.rate = float64(u.Timings.PredictedN) / u.Timings.PredictedMS * 1000
	case took > 50*time.Millisecond && u.CompletionTokens > 1:
		s.meter.rate = float64(u.CompletionTokens-1) / took.Seconds()
	}
	counted := "counted"
	if u.Estimated {
		counted = "not counted by the engine, about"
	}
	text := fmt.Sprintf("%s %s prompt tokens (planned %s), %s generated, first after %s",
		counted, brief.Thousands(u.PromptTokens), brief.Thousands(ev.Estimate), brief.Thousands(u.CompletionTokens), short(s.meter.firstToken))
	if cost := s.desk.cost(s.bench, s.listings); cost != "" {
		text += ", " + cost + " so far"
	}
	s.note(at, noteInfo, text)
}
