package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/drover-dev/drover/internal/tool"
)

// ask is a question on the screen. The card of its call shows what would happen.
type ask struct {
	question
	entry   *entry // the card, nil if it is not there
	ready   bool   // it takes keys
	seen    int    // how many keys had been pressed when it was looked at last
	at      int    // the answer that is marked, -1 for none: Enter alone answers nothing
	answers []permission
}

// permission is one answer on offer.
type permission struct {
	key      string
	text     string
	decision tool.Decision
}

// permissions are the answers to a question. Those that cover more say what.
func permissions(scopes []string) []permission {
	once := permission{"y", "allow once", tool.AllowOnce}
	reject := permission{"n", "reject", tool.RejectOnce}
	if len(scopes) == 0 {
		return []permission{once, reject}
	}
	covered := strings.Join(scopes, ", ")
	return []permission{
		once, {"a", "always allow in this session: " + covered, tool.AllowAlways},
		reject, {"x", "always reject in this session: " + covered, tool.RejectAlways},
	}
}

// ask shows a question. It takes keys when nobody has typed for a moment.
func (s *screen) ask(q question) tea.Cmd {
	a := &ask{question: q, seen: s.presses, at: -1, answers: permissions(q.Action.Scopes)}
	if e := s.turn.cards[q.CallID]; e != nil {
		a.entry = e
		e.item.(*card).asking = true
		e.touch()
	}
	s.asks = append(s.asks, a)
	s.transcript.following = true
	s.turn.setState("waiting for your answer")
	return s.armLater(a)
}

func (s *screen) armLater(a *ask) tea.Cmd {
	wait := quiet
	if !s.composer.empty() {
		wait = longQuiet
	}
	return tea.Tick(wait, func(_ time.Time) tea.Msg { return armMsg{a} })
}

func (s *screen) arm(a *ask) tea.Cmd {
	if a.ready {
		return nil
	}
	if a.seen != s.presses {
		a.seen = s.presses
		return s.armLater(a)
	}
	a.ready = true
	s.chooser, s.completion = nil, completion{}
	return nil
}

// asked is the question that is to be answered, nil for none.
func (s *screen) asked() *ask {
	if len(s.asks) == 0 {
		return nil
	}
	return s.asks[0]
}

// answerKey works on a key for a question and reports whether it was for it.
func (s *screen) answerKey(name, text string) bool {
	a := s.asked()
	switch name {
	case "up", "shift+tab":
		a.at = (max(a.at, 0) + len(a.answers) - 1) % len(a.answers)
		return true
	case "down", "tab":
		a.at = (a.at + 1) % len(a.answers)
		return true
	case "enter":
		if a.at >= 0 {
			s.decide(a, a.answers[a.at].decision)
		}
		return true
	}
	for _, p := range a.answers {
		if p.key == name || strings.EqualFold(p.key, text) { // Caps Lock may be on
			s.decide(a, p.decision)
			return true
		}
	}
	return text != "" // other letters go nowhere
}

func (s *screen) decide(a *ask, d tool.Decision) {
	a.answer <- d
	s.note(s.now(), noteInfo, a.Tool+" "+a.Action.Title+": "+strings.ReplaceAll(d.String(), "_", " "))
	s.withdraw(a.CallID)
	s.turn.setState("planning")
}

// withdraw takes a question off the screen.
func (s *screen) withdraw(id string) {
	for i, a := range s.asks {
		if a.CallID != id {
			continue
		}
		s.asks = append(s.asks[:i:i], s.asks[i+1:]...)
		if a.entry != nil {
			a.entry.item.(*card).asking = false
			a.entry.touch()
		}
		return
	}
}

// inOneLine shows the answers on offer where there is no room for more.
func (a *ask) inOneLine(width int) []string {
	runs := []run{{"?", yellow | bold}}
	for i, p := range a.answers {
		s := bold
		if i == a.at {
			s |= cyan
		}
		short, _, _ := strings.Cut(p.text, ":")
		if width < minWidth*2 {
			short, _, _ = strings.Cut(short, " ")
		}
		runs = append(runs, run{" " + p.key, s}, run{" " + short, 0})
	}
	return []string{oneLine(width, runs...)}
}

// view shows the answers on offer.
func (a *ask) view(width int) []string {
	what := a.Tool + " wants to do this"
	switch {
	case a.Action.Command != "":
		what = a.Tool + " wants to run this command"
	case a.Action.Diff != nil:
		what = a.Tool + " wants to make this change"
	case a.entry == nil || a.Action.Access == tool.AccessNone:
		what = a.Action.Title
	}
	s := yellow | bold
	if !a.ready {
		s = faint
	}
	lines := paragraph(width, run{"? ", s}, run{"  ", 0}, run{what, s})
	for i, p := range a.answers {
		mark, s := "  ", style(0)
		if i == a.at {
			mark, s = "▸ ", bold|cyan
		}
		lines = append(lines, paragraph(width, run{mark + p.key + "  ", s}, run{"     ", 0}, run{p.text, s})...)
	}
	return lines
}
