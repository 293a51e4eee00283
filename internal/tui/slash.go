package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/drover-dev/drover/internal/brief"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

// command runs a command that was typed.
func (s *screen) command(name, argument string) tea.Cmd {
	switch name {
	case "quit":
		return s.quit()
	case "help":
		s.transcript.add(&report{helpText()})
		s.transcript.showLast()
		return nil
	case "log":
		s.logOpen = !s.logOpen
		return nil
	case "copy":
		return s.copyAnswer()
	}
	b := s.bench
	if b == nil {
		s.say(noteWarning, "The session is not open yet.")
		return nil
	}
	switch name {
	case "model":
		return s.modelCommand(argument)
	case "effort":
		return s.effortCommand(argument)
	case "mode":
		if argument == "" {
			return s.openChooser(chooseMode)
		}
		m, err := tool.ParseMode(strings.ToLower(argument))
		if err != nil {
			s.fail(err)
			return nil
		}
		s.setMode(m)
	case "sessions":
		if argument == "" {
			return s.openChooser(chooseSession)
		}
		return s.switchSession(argument)
	case "new":
		return s.switchSession("")
	case "context":
		return s.report(func() (string, error) { return contextText(s.life, b) })
	case "tools":
		return s.report(func() (string, error) { return toolsText(s.life, b, s.desk.policy(), argument) })
	case "memory":
		return s.report(func() (string, error) { return brief.Notes(b.agent.Memory(), argument) })
	}
	return nil
}

// report shows a text that takes a moment.
func (s *screen) report(make func() (string, error)) tea.Cmd {
	s.transcript.following = true
	return func() tea.Msg {
		text, err := make()
		return reportMsg{text, err}
	}
}

func (s *screen) modelCommand(argument string) tea.Cmd {
	if argument == "" {
		return s.openChooser(chooseModel)
	}
	t, err := llm.ParseTarget(argument)
	if err == nil {
		err = s.desk.opts.Provided(t.Provider)
	}
	if err != nil {
		s.fail(err)
		return nil
	}
	return s.switchModel(t)
}

func (s *screen) switchModel(t llm.Target) tea.Cmd {
	s.switched = true
	return s.selectTarget(t)
}

func (s *screen) effortCommand(argument string) tea.Cmd {
	if argument == "" {
		return s.openChooser(chooseEffort)
	}
	e, err := llm.ParseEffort(strings.ToLower(argument))
	if err != nil {
		s.fail(err)
		return nil
	}
	s.setEffort(e)
	return nil
}

func (s *screen) setEffort(e llm.Effort) {
	s.bench.selector.SetEffort(e)
	s.snapshot.Effort = e
	s.say(noteInfo, fmt.Sprintf("effort %s (%s)", e, brief.Effort(e, s.snapshot, s.desk.policy())))
}

// switchSession opens another session. A turn has to end first: it belongs to the
// session that it was begun in.
func (s *screen) switchSession(id string) tea.Cmd {
	if s.turn != nil {
		s.say(noteWarning, "A turn runs in this session. Esc cancels it.")
		return nil
	}
	return s.openSession(id)
}

func (s *screen) copyAnswer() tea.Cmd {
	for _, e := range slices.Backward(s.transcript.items) {
		if a, ok := e.item.(*answer); ok {
			s.say(noteInfo, "copied, if the terminal allows it")
			return tea.SetClipboard(a.text.String())
		}
	}
	s.say(noteWarning, "There is no answer to copy.")
	return nil
}
