package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/llm"
)

// prompt is what the person said, and below it what did not fit.
type prompt struct {
	text   string
	images []string
	steers bool   // into a running turn
	trim   string // what this turn's requests leave out, "" for nothing
}

func (p *prompt) lines(width int, _ bool) []string {
	mark := "❯ "
	if p.steers {
		mark = "↳ "
	}
	var runs []run
	for _, name := range p.images {
		runs = append(runs, run{"[image " + name + "]", cyan}, run{" ", 0})
	}
	runs = append(runs, run{p.text, bold})
	lines := paragraph(width, run{mark, blue | bold}, run{"  ", 0}, runs...)
	if p.trim != "" {
		lines = append(lines, paragraph(width, run{"  ✂ ", yellow}, run{"    ", 0}, run{p.trim, yellow})...)
	}
	return lines
}

// answer is what the model said.
type answer struct{ stream }

func (a *answer) lines(width int, _ bool) []string { return a.render(min(width, proseWidth)) }

// proseWidth is how wide prose gets at most: longer lines are hard to read.
const proseWidth = 120

// thought is what the model thought, folded into one line.
type thought struct {
	text  strings.Builder
	took  time.Duration // since its beginning
	ended bool
}

func (t *thought) lines(width int, details bool) []string {
	words := plural(len(strings.Fields(t.text.String())), "word")
	what := "thinking…"
	if t.ended {
		what = "thought"
		if t.took >= 100*time.Millisecond {
			what += " for " + short(t.took)
		}
	}
	if !details {
		return []string{oneLine(width, run{"▸ " + what, magenta}, run{", " + words + " (Ctrl-R opens)", faint})}
	}
	lines := []string{oneLine(width, run{"▾ " + what, magenta}, run{", " + words, faint})}
	text := strings.TrimSpace(t.text.String())
	return append(lines, paragraph(min(width, proseWidth), run{"  ", 0}, run{"  ", 0}, run{text, faint | italic})...)
}

// note is something that drover says.
type note struct {
	text string
	kind noteKind
}

type noteKind uint8

const (
	noteInfo noteKind = iota
	noteWarning
	noteError
)

// maxIndent is how far in a line of a note may stand.
const maxIndent = 16

func (n *note) lines(width int, _ bool) []string {
	mark, style := "· ", faint
	switch n.kind {
	case noteWarning:
		mark, style = "! ", yellow
	case noteError:
		mark, style = "✗ ", red
	}
	first, rest, more := strings.Cut(strings.TrimRight(n.text, "\n"), "\n")
	lines := paragraph(width, run{mark, style | bold}, run{"  ", 0}, run{first, style})
	if more {
		for l := range strings.SplitSeq(rest, "\n") {
			text := strings.TrimLeft(l, " ")
			indent := spaces[:2+min(len(l)-len(text), maxIndent)]
			lines = append(lines, paragraph(width, run{indent, 0}, run{indent, 0}, run{text, 0})...)
		}
	}
	return lines
}

// report is an answer of a command: Markdown.
type report struct{ source string }

func (r *report) lines(width int, _ bool) []string {
	return renderMarkdown(r.source, min(width, proseWidth))
}

// welcome is the first thing that is shown.
type welcome struct{ dir, session string }

func (w *welcome) lines(width int, _ bool) []string {
	lines := []string{oneLine(width, run{"drover", bold | cyan}, run{"  " + w.dir, faint})}
	if w.session != "" {
		lines = append(lines, oneLine(width, run{"session " + w.session, faint}))
	}
	return append(lines, oneLine(width, run{"/help shows keys and commands", faint}))
}

// replay puts the messages of a session that goes on into the transcript.
func (t *transcript) replay(messages []llm.Message, trim string) {
	var newest *prompt
	cards := make(map[string]*entry)
	for i := range messages {
		m := &messages[i]
		switch m.Role {
		case llm.User:
			if agent.IsNote(m) {
				continue
			}
			p := &prompt{text: m.Text(), images: imageNames(m.Parts), steers: m.Continuation}
			t.add(p)
			if !m.Continuation {
				newest = p
			}
		case llm.Assistant:
			if m.Reasoning != nil && m.Reasoning.Text != "" {
				th := &thought{ended: true}
				th.text.WriteString(m.Reasoning.Text)
				t.add(th)
			}
			if text := m.Text(); text != "" {
				a := &answer{}
				a.append(text)
				t.add(a)
			}
			for _, call := range m.Calls {
				cards[call.ID] = t.add(newCard(call, nil))
			}
		case llm.Tool:
			if e := cards[m.CallID]; e != nil {
				e.item.(*card).replay(m.Text(), m.IsError)
			}
		}
	}
	if newest != nil {
		newest.trim = trim
	}
}

func imageNames(parts []llm.Part) []string {
	var names []string
	for _, p := range parts {
		if img, ok := p.(*llm.Image); ok {
			names = append(names, imageName(img))
		}
	}
	return names
}

func imageName(img *llm.Image) string {
	if img.Name != "" {
		return img.Name
	}
	return img.MediaType
}

// promptText is the text of a prompt's parts.
func promptText(parts []llm.Part) string {
	m := llm.Message{Parts: parts}
	return m.Text()
}

// sizeText says how large an image is.
func sizeText(img *llm.Image) string {
	if img.Width == 0 {
		return fmt.Sprintf("%s, %d KB", img.MediaType, len(img.Data)>>10)
	}
	return fmt.Sprintf("%d × %d", img.Width, img.Height)
}
