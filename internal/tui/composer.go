package tui

import (
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/drover-dev/drover/internal/llm"
)

// composer is where the person writes. It is a value; cursor is a byte offset
// between two characters.
type composer struct {
	text   string
	cursor int
	images []*llm.Image

	history []string
	recall  int    // which of history is shown, len(history) for none
	draft   string // what was written before history was looked at
}

const (
	// maxPrompt bounds what can be written, in bytes: more than any window holds.
	maxPrompt = 1 << 20
	// maxHistory is how many prompts are kept.
	maxHistory = 500
	// maxComposer is how many lines of it are shown.
	maxComposer = 8
)

func (c *composer) empty() bool { return strings.TrimSpace(c.text) == "" && len(c.images) == 0 }

// parts is what is written as the parts of a prompt.
func (c *composer) parts() []llm.Part {
	var parts []llm.Part
	for _, img := range c.images {
		parts = append(parts, img)
	}
	return append(parts, llm.Text(strings.TrimSpace(c.text)))
}

// insert writes text at the cursor. lost is how many bytes of it had no room.
func (c *composer) insert(text string) (lost int) {
	text = strings.ToValidUTF8(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"), "\uFFFD")
	if room, all := maxPrompt-len(c.text), len(text); all > room {
		text = text[:max(room, 0)]
		for !utf8.ValidString(text) {
			text = text[:len(text)-1]
		}
		lost = all - len(text)
	}
	c.text = c.text[:c.cursor] + text + c.text[c.cursor:]
	c.cursor += len(text)
	return lost
}

// set replaces everything that is written, as insert does.
func (c *composer) set(text string) (lost int) {
	c.text, c.cursor = "", 0
	return c.insert(text)
}

// clear forgets what is written, and its images.
func (c *composer) clear() { *c = composer{history: c.history, recall: len(c.history)} }

// remember keeps a prompt that was sent.
func (c *composer) remember(text string) {
	if text = strings.TrimSpace(text); text == "" || len(c.history) > 0 && c.history[len(c.history)-1] == text {
		return
	}
	c.history = append(c.history[:len(c.history):len(c.history)], text)
	if n := len(c.history) - maxHistory; n > 0 {
		c.history = c.history[n:]
	}
	c.recall = len(c.history)
}

func (c *composer) left() int {
	if c.cursor == 0 {
		return 0
	}
	// Clusters are found from the front, so begin with the line.
	start := strings.LastIndexByte(c.text[:c.cursor-1], '\n') + 1
	last := start
	for rest := c.text[start:c.cursor]; rest != ""; {
		text, tail, _, _ := uniseg.FirstGraphemeClusterInString(rest, -1)
		last = c.cursor - len(rest)
		_, rest = text, tail
	}
	return last
}

func (c *composer) right() int {
	if c.cursor == len(c.text) {
		return c.cursor
	}
	text, _, _, _ := uniseg.FirstGraphemeClusterInString(c.text[c.cursor:], -1)
	return c.cursor + len(text)
}

// word is where the word behind (or in front of) the cursor begins or ends.
func (c *composer) word(forward bool) int {
	at := c.cursor
	if forward {
		rest := strings.TrimLeft(c.text[at:], " \n\t")
		if i := strings.IndexAny(rest, " \n\t"); i >= 0 {
			return len(c.text) - len(rest) + i
		}
		return len(c.text)
	}
	head := strings.TrimRight(c.text[:at], " \n\t")
	return strings.LastIndexAny(head, " \n\t") + 1
}

// cut removes what is between two offsets.
func (c *composer) cut(from, to int) {
	c.text = c.text[:from] + c.text[to:]
	c.cursor = from
}

func (c *composer) lineStart() int { return strings.LastIndexByte(c.text[:c.cursor], '\n') + 1 }

func (c *composer) lineEnd() int {
	if i := strings.IndexByte(c.text[c.cursor:], '\n'); i >= 0 {
		return c.cursor + i
	}
	return len(c.text)
}

// key works on the text and reports whether it knows the key.
func (c *composer) key(name, text string) bool {
	switch name {
	case "left", "ctrl+b":
		c.cursor = c.left()
	case "right", "ctrl+f":
		c.cursor = c.right()
	case "home", "ctrl+a":
		c.cursor = c.lineStart()
	case "end", "ctrl+e":
		c.cursor = c.lineEnd()
	case "alt+left", "ctrl+left", "alt+b":
		c.cursor = c.word(false)
	case "alt+right", "ctrl+right", "alt+f":
		c.cursor = c.word(true)
	case "backspace", "ctrl+h", "shift+backspace":
		if c.text == "" && len(c.images) > 0 {
			c.images = c.images[: len(c.images)-1 : len(c.images)-1]
		}
		c.cut(c.left(), c.cursor)
	case "delete":
		to := c.right()
		c.cut(c.cursor, to)
	case "alt+backspace", "ctrl+w", "ctrl+backspace":
		c.cut(c.word(false), c.cursor)
	case "ctrl+u":
		c.cut(c.lineStart(), c.cursor)
	case "ctrl+k":
		c.cut(c.cursor, c.lineEnd())
	case "alt+enter", "ctrl+j", "shift+enter":
		c.insert("\n")
	default:
		if text == "" {
			return false
		}
		c.insert(text)
	}
	return true
}

// vertical moves the cursor a line up or down, or at the first or last line
// through the history. width is that of the text.
func (c *composer) vertical(down bool, width int) {
	lines, row, column := c.layout(width)
	target := row - 1
	if down {
		target = row + 1
	}
	if target < 0 || target >= len(lines) {
		c.fromHistory(down)
		return
	}
	at := lines[target].from
	for _, cell := range lines[target].cells {
		if column < cell.width {
			break
		}
		column -= cell.width
		at += cell.bytes
	}
	c.cursor = at
}

func (c *composer) fromHistory(down bool) {
	to := c.recall - 1
	if down {
		to = c.recall + 1
	}
	if to < 0 || to > len(c.history) {
		return
	}
	if c.recall == len(c.history) {
		c.draft = c.text
	}
	c.recall = to
	if to == len(c.history) {
		c.set(c.draft)
	} else {
		c.set(c.history[to])
	}
}

// written is a line of the composer as it is shown.
type written struct {
	cells []writtenCell
	from  int // where in the text it begins
}

type writtenCell struct {
	cell
	bytes int // of the text
}

// layout breaks the text into lines, and finds the cursor's.
func (c *composer) layout(width int) (lines []written, row, column int) {
	width = max(width, tabWidth)
	lines = []written{{}}
	col := 0
	for at := 0; ; {
		if at == c.cursor {
			row, column = len(lines)-1, col
		}
		if at >= len(c.text) {
			break
		}
		cl, size := cluster(c.text[at:], col)
		last := &lines[len(lines)-1]
		switch {
		case cl.text == "\n":
			lines = append(lines, written{from: at + size})
			col = 0
		case col+cl.width > width:
			lines = append(lines, written{from: at, cells: []writtenCell{{cl, size}}})
			if col = cl.width; at == c.cursor {
				row, column = len(lines)-1, 0
			}
		default:
			last.cells = append(last.cells, writtenCell{cl, size})
			col += cl.width
		}
		at += size
	}
	if column >= width { // behind the last column: the cursor stands on the next line
		row, column = row+1, 0
		if row == len(lines) {
			lines = append(lines, written{from: len(c.text)})
		}
	}
	return lines, row, column
}

const composerMark = "❯ "

// view gives at most height lines, and where in them the cursor is.
func (c *composer) view(width, height int, hint string) (lines []string, row, column int) {
	inner := width - 2
	all, row, column := c.layout(inner)
	first := 0
	if len(all) > height {
		first = min(max(0, row-height/2), len(all)-height)
		all = all[first : first+height]
	}
	for i, l := range all {
		mark := run{"  ", 0}
		if i+first == 0 {
			mark = run{composerMark, blue | bold}
		}
		list := cells(mark)
		for _, w := range l.cells {
			list = append(list, w.cell)
		}
		lines = append(lines, paint(list))
	}
	if c.text == "" && hint != "" {
		lines[0] = oneLine(width, run{composerMark, blue | bold}, run{hint, faint})
	}
	return lines, row - first, column + 2
}
