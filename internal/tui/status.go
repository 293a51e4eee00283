package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/brief"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

// meter is how full the window is, and how fast the engine was.
type meter struct {
	used       int
	window     llm.Window
	estimated  bool // by the plan, not counted by the engine
	rate       float64
	firstToken time.Duration
}

// From these shares of the window on, in percent, the meter changes its colour.
const (
	nearlyFull = 75
	almostOver = 90
)

func (m *meter) percent() int {
	if m.window.Tokens <= 0 {
		return 0
	}
	return 100 * m.used / m.window.Tokens
}

func (m *meter) style() style {
	switch p := m.percent(); {
	case p >= almostOver:
		return red | bold
	case p >= nearlyFull:
		return yellow
	}
	return green
}

func (m *meter) String() string {
	about := ""
	if m.estimated {
		about = "~"
	}
	if m.window.Tokens == 0 {
		return about + brief.Thousands(m.used)
	}
	return fmt.Sprintf("%s%s/%s %s %d%%", about, brief.Thousands(m.used), brief.Thousands(m.window.Tokens), m.window.Source, m.percent())
}

const meterBar = 8

func (m *meter) bar() string {
	full := min(meterBar, (m.percent()*meterBar+50)/100)
	return strings.Repeat("█", full) + strings.Repeat("░", meterBar-full)
}

// segment is a part of the status line. Where there is no room for all, those
// with the lowest rank go first.
type segment struct {
	runs []run
	rank int
}

// statusLine shows what the next request is made with, and the window.
func (s *screen) statusLine() string {
	var left, right []segment
	add := func(list *[]segment, rank int, runs ...run) { *list = append(*list, segment{runs, rank}) }
	if t := s.snapshot.Target; t.IsZero() {
		add(&left, 9, run{"no model", yellow})
	} else {
		add(&left, 9, run{shortTarget(t, max(16, s.width*2/5)), bold})
		if s.pending {
			add(&left, 5, run{"asking the engine", yellow})
		} else if s.meter.used == 0 {
			add(&left, 5, run{windowText(s.snapshot.Window), faint})
		}
	}
	if b := s.bench; b != nil && (!b.saved || b.unsaved.Load()) {
		add(&left, 8, run{"not saved", yellow})
	}
	if s.bench != nil {
		add(&left, 6, run{s.bench.selector.Effort().String(), 0})
	}
	mode := s.mode()
	modeStyle := style(0)
	if mode == tool.ModeFull {
		modeStyle = red
	}
	add(&left, 7, run{mode.String(), modeStyle})
	if mode != tool.ModeReadOnly && !s.desk.sandboxed && mode != tool.ModeFull {
		add(&left, 4, run{"no sandbox", yellow})
	}
	if s.meter.used > 0 {
		add(&right, 1, run{s.meter.bar(), s.meter.style()})
		add(&right, 8, run{s.meter.String(), s.meter.style()})
	}
	if s.bench != nil {
		if cost := s.desk.cost(s.bench, s.listings); cost != "" {
			add(&right, 4, run{cost, 0})
		}
	}
	if s.meter.rate > 0 {
		add(&right, 3, run{fmt.Sprintf("%.0f tok/s", s.meter.rate), faint})
	}
	if s.meter.firstToken > 0 {
		add(&right, 2, run{fmt.Sprintf("first %.1f s", s.meter.firstToken.Seconds()), faint})
	}
	return joinStatus(s.width, left, right)
}

// shortTarget is a target's name in at most width columns. The end of a model's
// name tells most.
func shortTarget(t llm.Target, width int) string {
	name := []rune(t.String())
	if len(name) <= width {
		return string(name)
	}
	head := t.Provider + "/…"
	if room := width - len([]rune(head)); room >= 8 {
		return head + string(name[len(name)-room:])
	}
	return "…" + string(name[len(name)-width+1:])
}

func joinStatus(width int, left, right []segment) string {
	for {
		l, r := joined(left, " · "), joined(right, " ")
		free := width - columns(l) - columns(r)
		if free >= 2 || len(right) == 0 && free >= 0 {
			return paint(append(append(l, blank(free)...), r...))
		}
		if !dropLowest(&left, &right) {
			return paint(cut(append(l, r...), width))
		}
	}
}

func joined(list []segment, gap string) []cell {
	var runs []run
	for i, seg := range list {
		if i > 0 {
			runs = append(runs, run{gap, faint})
		}
		runs = append(runs, seg.runs...)
	}
	return flat(cells(runs...))
}

func dropLowest(left, right *[]segment) bool {
	lowest, from, at := 9, (*[]segment)(nil), 0
	for _, list := range []*[]segment{left, right} {
		for i, seg := range *list {
			if seg.rank < lowest {
				lowest, from, at = seg.rank, list, i
			}
		}
	}
	if from == nil {
		return false
	}
	*from = append((*from)[:at:at], (*from)[at+1:]...)
	return true
}

// marks turn while something goes on.
var marks = [...]string{"◐", "◓", "◑", "◒"}

// ruleLine stands above the composer and says what goes on.
func (s *screen) ruleLine() string {
	var text []run
	mark := run{marks[s.frame%len(marks)] + " ", cyan}
	switch {
	case s.armed:
		text = []run{{"press Ctrl-C again to leave", yellow}}
	case s.turn != nil:
		text = []run{mark, {s.turn.state, cyan}, {" " + short(s.now().Sub(s.turn.started).Truncate(100*time.Millisecond)), faint}}
		if !s.turn.cancelling {
			text = append(text, run{" · Esc cancels", faint})
		}
	case s.pending:
		text = []run{mark, {"asking " + s.snapshot.Target.Provider + " about " + s.snapshot.Target.Model, cyan}}
	case s.looking && s.snapshot.Target.IsZero():
		text = []run{mark, {"looking for engines", cyan}}
	case s.bench == nil:
		text = []run{mark, {"opening the session", cyan}}
	}
	if s.eager {
		text = append(text, run{" · sends when it is known", faint})
	}
	line := []run{{"──", faint}}
	if text != nil {
		line = append(append(append(line, run{" ", 0}), text...), run{" ", 0})
	}
	end := ""
	if !s.shownPane().following {
		end = " scrolled up · Ctrl-End: to the end "
	}
	l, r := cut(flat(cells(line...)), s.width), cells(run{end, yellow})
	free := s.width - columns(l) - columns(r)
	if free < 0 {
		r, free = nil, s.width-columns(l)
	}
	l = append(l[:len(l):len(l)], cells(run{strings.Repeat("─", max(0, free)), faint})...)
	return paint(append(l, r...))
}
