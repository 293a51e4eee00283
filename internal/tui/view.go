package tui

import (
	tea "charm.land/bubbletea/v2"

	"strings"
)

// View implements [tea.Model].
func (s *screen) View() tea.View {
	lines, cursor := s.frameLines()
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	v.MouseMode = tea.MouseModeCellMotion
	v.WindowTitle = "drover"
	v.Cursor = cursor
	return v
}

// frameLines gives the lines of the screen, exactly as many as it has.
func (s *screen) frameLines() ([]string, *tea.Cursor) {
	bottom, row, column := s.bottom()
	pane := s.shownPane()
	rest := s.height - len(bottom)
	pane.resize(s.width, max(1, rest))
	lines := append(pane.view()[:rest], bottom...)
	if row < 0 {
		return lines, nil
	}
	return lines, tea.NewCursor(min(column, s.width-1), s.height-len(bottom)+row)
}

// shownPane is what fills the screen above the composer.
func (s *screen) shownPane() *transcript {
	if s.logOpen {
		return &s.log
	}
	return &s.transcript
}

// lowScreen is how many lines the rule, what is written and the status take.
const lowScreen = 3

// bottom gives the lines from the rule on, and where in them the cursor is; row
// is negative for none.
func (s *screen) bottom() (lines []string, row, column int) {
	row = -1
	for _, q := range s.waiting() {
		lines = append(lines, oneLine(s.width, run{"⋯ ", faint}, run{q, faint}))
	}
	lines = append(lines, s.ruleLine())
	switch a := s.asked(); {
	case a != nil && a.ready:
		answers := a.view(s.width)
		if len(answers) > max(1, s.height-2) {
			answers = a.inOneLine(s.width)
		}
		lines = append(lines, answers...)
	case s.chooser != nil:
		lines = append(lines, s.chooser.view(s.width, max(2, min(max(4, s.height/2), s.height-2)))...)
	default:
		if a != nil {
			lines = append(lines, oneLine(s.width, run{"? a question waits until you stop typing", yellow}))
		}
		text, r, c := s.composer.view(s.width, max(1, min(maxComposer, s.height-2)), s.hint())
		if len(s.completion.choices) > 0 {
			lines = append(lines, s.completion.view(s.width, max(1, min(maxChoices, s.height-2-len(text))))...)
		}
		if len(s.composer.images) > 0 {
			var runs []run
			for _, img := range s.composer.images {
				runs = append(runs, run{"[image " + imageName(img) + "]", cyan}, run{" " + sizeText(img) + "  ", faint})
			}
			lines = append(lines, oneLine(s.width, runs...))
		}
		row, column = len(lines)+r, c
		lines = append(lines, text...)
	}
	if s.height > 1 {
		lines = append(lines, s.statusLine())
	}
	// What is written counts more than what is above it; a line of that is left where
	// there is any room.
	room := s.height
	if room > lowScreen {
		room--
	}
	if over := len(lines) - room; over > 0 {
		lines, row = lines[over:], row-over
	}
	return lines, row, column
}

// waiting are the prompts that wait, one line each.
func (s *screen) waiting() []string {
	var list []string
	if s.turn != nil {
		for _, q := range s.turn.steering {
			list = append(list, "with the next request: "+q.text)
		}
	}
	for _, q := range s.queued {
		list = append(list, "queued: "+q.text)
	}
	return list
}

// hint stands where nothing is written.
func (s *screen) hint() string {
	switch {
	case s.turn != nil:
		return "Enter queues, Ctrl-S sends now"
	case s.logOpen:
		return "activity log; Ctrl-L closes it"
	}
	return ""
}
