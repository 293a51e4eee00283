package tui

import (
	"fmt"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/drover-dev/drover/internal/brief"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

// key takes in a key. What is in front takes it first.
func (s *screen) key(msg tea.KeyPressMsg) tea.Cmd {
	name := msg.Keystroke()
	if name == "ctrl+c" {
		return s.interrupt()
	}
	s.armed = false
	if a := s.asked(); a != nil && a.ready {
		if name != "esc" && s.answerKey(name, msg.Text) {
			return nil
		}
		cmd, _ := s.globalKey(name) // what the question hides takes no key
		return cmd
	}
	if s.chooser != nil {
		if cmd, done := s.chooserKey(name, msg.Text); done {
			return cmd
		}
	}
	if len(s.completion.choices) > 0 && s.completionKey(name) {
		return s.afterTyping()
	}
	if cmd, done := s.globalKey(name); done {
		return cmd
	}
	switch name {
	case "enter":
		return s.enter()
	case "ctrl+s":
		return s.sendNow()
	case "up", "down":
		s.composer.vertical(name == "down", s.width-2)
		s.completion = completion{}
		return nil
	}
	if s.composer.key(name, msg.Text) {
		return s.afterTyping()
	}
	return nil
}

// globalKey knows the keys that do not write.
func (s *screen) globalKey(name string) (cmd tea.Cmd, done bool) {
	page := max(1, s.shownPane().height-2)
	switch name {
	case "esc":
		s.escape()
	case "ctrl+d":
		if !s.composer.empty() || s.turn != nil {
			return nil, false
		}
		return s.quit(), true
	case "pgup":
		s.shownPane().scroll(-page)
	case "pgdown":
		s.shownPane().scroll(page)
	case "ctrl+home":
		s.shownPane().toTop()
	case "ctrl+end":
		s.shownPane().following = true
	case "ctrl+r":
		s.details = !s.details
		s.transcript.setDetails(s.details)
	case "ctrl+l":
		s.logOpen = !s.logOpen
	case "ctrl+o":
		return s.openChooser(chooseModel), true
	case "ctrl+t":
		return s.openChooser(chooseEffort), true
	case "shift+tab":
		s.setMode((s.mode() + 1) % tool.Mode(len(tool.Modes())))
	case "ctrl+z":
		return tea.Suspend, true
	default:
		return nil, false
	}
	return nil, true
}

// interrupt is Ctrl-C: it cancels or clears, and when it comes again, leaves.
func (s *screen) interrupt() tea.Cmd {
	if s.armed {
		return s.quit()
	}
	s.armed = true
	s.leaving++
	switch {
	case s.chooser != nil:
		s.chooser = nil
	case s.turn != nil:
		s.cancelTurn()
	default:
		s.composer.clear()
		s.completion, s.eager = completion{}, false
	}
	n := s.leaving
	return tea.Tick(leaveTime, func(_ time.Time) tea.Msg { return disarmMsg(n) })
}

// escape closes what is open, else it cancels the turn.
func (s *screen) escape() {
	switch {
	case len(s.completion.choices) > 0:
		s.completion = completion{}
	case s.logOpen:
		s.logOpen = false
	case s.turn != nil:
		s.cancelTurn()
	case s.eager:
		s.eager = false
	default:
		s.transcript.following = true
	}
}

func (s *screen) setMode(m tool.Mode) {
	s.desk.gate.SetMode(m)
	s.note(s.now(), noteInfo, "mode "+m.String()+": "+brief.Mode(m))
}

func (s *screen) wheel(msg tea.MouseWheelMsg) {
	const lines = 3
	switch msg.Button {
	case tea.MouseWheelUp:
		s.shownPane().scroll(-lines)
	case tea.MouseWheelDown:
		s.shownPane().scroll(lines)
	}
}

// click opens and folds the item that is clicked.
func (s *screen) click(msg tea.MouseClickMsg) {
	pane := s.shownPane()
	if msg.Button != tea.MouseLeft || msg.Y >= pane.height {
		return
	}
	if e := pane.itemAt(msg.Y); e != nil {
		e.details = !e.details
		e.touch()
	}
}

// paste writes what was pasted, or attaches the image that it names.
func (s *screen) paste(text string) tea.Cmd {
	if s.chooser != nil {
		s.chooser.key("", text)
		return nil
	}
	if s.bench != nil {
		if path, ok := imageFile(text, s.bench.dir); ok {
			return s.readImage(path, text)
		}
	}
	s.written(s.composer.insert(text))
	return s.afterTyping()
}

// written tells how much of a text the composer had no room for.
func (s *screen) written(lost int) {
	if lost > 0 {
		s.say(noteWarning, fmt.Sprintf("A prompt holds %d MiB: %s bytes of the text are left out. A pipe into drover run may bring more.",
			maxPrompt>>20, brief.Thousands(lost)))
	}
}

// readImage reads an image; what is no image is written as it was pasted.
func (s *screen) readImage(path, pasted string) tea.Cmd {
	return func() tea.Msg {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			return insertMsg(pasted)
		}
		img, err := openImage(path, info.Size())
		return imageMsg{img, err}
	}
}

func (s *screen) attach(a attached) {
	if a.err != nil {
		s.fail(a.err)
		return
	}
	s.composer.images = append(s.composer.images[:len(s.composer.images):len(s.composer.images)], a.image)
	if s.snapshot.Capabilities.Vision.Support == llm.Unsupported {
		s.say(noteWarning, "the engine says that "+s.snapshot.Target.Model+" does not see images")
	}
}

// enter sends what is written, or queues it while a turn runs.
func (s *screen) enter() tea.Cmd {
	if s.composer.empty() {
		return nil
	}
	if name, argument, ok := readCommand(s.composer.text); ok {
		s.composer.remember(s.composer.text)
		images := s.composer.images // for the prompt that comes, say to a model that sees them
		s.composer.clear()
		s.composer.images = images
		s.completion = completion{}
		return s.command(name, argument)
	}
	if s.turn != nil {
		s.queued = append(s.queued, s.take())
		return nil
	}
	return s.submit()
}

// take empties the composer.
func (s *screen) take() queued {
	q := queued{s.composer.parts(), promptText(s.composer.parts())}
	s.composer.remember(s.composer.text)
	s.composer.clear()
	s.completion = completion{}
	return q
}

// submit sends what is written, once the model is known.
func (s *screen) submit() tea.Cmd {
	switch {
	case s.bench == nil || s.pending || s.looking && !s.found:
		s.eager = true
		return nil
	case s.bench.selector.Target().IsZero():
		s.noModelYet()
		return nil
	}
	if s.composer.empty() {
		return nil
	}
	return s.startTurn(s.take().parts)
}

// noModelYet says why nothing is sent; what is written stays.
func (s *screen) noModelYet() {
	s.eager = false
	s.say(noteWarning, "There is no model to send this to yet. Start an engine, or choose a model with /model PROVIDER/MODEL.")
}

// sendNow gives what is written, or else what is queued, to the running turn.
func (s *screen) sendNow() tea.Cmd {
	if s.turn == nil {
		return s.enter()
	}
	var q queued
	switch {
	case !s.composer.empty():
		q = s.take()
	case len(s.queued) > 0:
		q = s.queued[0]
		s.queued = s.queued[1:]
	default:
		return nil
	}
	if s.turn.cancelling || !s.bench.agent.Steer(q.parts) {
		s.queued = append(s.queued, q)
		return nil
	}
	s.turn.steering = append(s.turn.steering, q)
	return nil
}
