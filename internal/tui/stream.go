package tui

import (
	"strings"

	"github.com/yuin/goldmark/text"
)

// stream is a text of Markdown that grows at its end. Blocks that are finished
// are rendered once; what can still change is rendered again, and of a fenced
// block of code only its last line.
type stream struct {
	text  strings.Builder
	width int
	lines []string // rendered so far, up to tail
	tail  int      // where in the text the part begins that is not finished
	fence *fence   // the block of code that tail is in
	shown []string // lines and the tail
	at    int      // how much of the text shown holds, -1 for none
}

// fence is a fenced block of code that is open.
type fence struct {
	mark   byte
	length int
	indent int
	empty  bool // no line of it was rendered yet
}

func (s *stream) append(t string) { s.text.WriteString(t) }

// render gives the lines at a width.
func (s *stream) render(width int) []string {
	if s.width != width {
		s.width, s.lines, s.tail, s.fence, s.at = width, nil, 0, nil, -1
	}
	if s.at == s.text.Len() && s.shown != nil {
		return s.shown
	}
	s.at = s.text.Len()
	source := s.text.String()
	for s.advance(source) {
	}
	s.shown = append(s.lines[:len(s.lines):len(s.lines)], s.rest(source[s.tail:])...)
	return s.shown
}

// advance moves the tail behind one more finished part.
func (s *stream) advance(source string) bool {
	rest := source[s.tail:]
	if s.fence != nil {
		return s.codeLine(rest)
	}
	blank := 0 // empty lines in front belong to nothing
	for {
		end := strings.IndexByte(rest[blank:], '\n')
		if end < 0 || strings.TrimSpace(rest[blank:blank+end]) != "" {
			break
		}
		blank += end + 1
	}
	s.tail += blank
	rest = rest[blank:]
	if line, _, whole := strings.Cut(rest, "\n"); whole {
		if f, language, ok := openFence(line); ok {
			s.separate()
			s.tail += len(line) + 1
			s.fence = f
			if language != "" {
				r := &renderer{}
				r.language(language, margin{width: s.width})
				s.lines = append(s.lines, r.out...)
			}
			return true
		}
	}
	return s.blocks(rest)
}

// blocks renders all blocks of the rest but the last, which may still change.
func (s *stream) blocks(rest string) bool {
	r := &renderer{source: []byte(rest)}
	doc := markdown.Parse(text.NewReader(r.source))
	last := doc.LastChild()
	if last == nil || last == doc.FirstChild() {
		return false
	}
	from := last.Pos()
	if from <= 0 || from > len(rest) {
		return false
	}
	from = strings.LastIndexByte(rest[:from], '\n') + 1
	if from == 0 {
		return false
	}
	s.separate()
	s.lines = append(s.lines, renderMarkdown(rest[:from], s.width)...)
	s.tail += from
	return true
}

// separate puts an empty line between blocks.
func (s *stream) separate() {
	if len(s.lines) > 0 {
		s.lines = append(s.lines, "")
	}
}

// codeLine renders one complete line of the open block of code, or closes it.
func (s *stream) codeLine(rest string) bool {
	line, _, whole := strings.Cut(rest, "\n")
	if !whole {
		return false
	}
	s.tail += len(line) + 1
	if s.fence.closes(line) {
		if s.fence.empty {
			s.lines = append(s.lines, "")
		}
		s.fence = nil
		return true
	}
	s.fence.empty = false
	s.lines = append(s.lines, s.code(line)...)
	return true
}

func (s *stream) code(line string) []string {
	line = strings.TrimSuffix(line, "\r")
	for n := s.fence.indent; n > 0 && strings.HasPrefix(line, " "); n-- {
		line = line[1:]
	}
	m := codeMargin(margin{width: s.width})
	r := &renderer{}
	r.lines(m, chop(cells(run{line, 0}), m.width))
	return r.out
}

// rest renders what is not finished.
func (s *stream) rest(tail string) []string {
	if s.fence != nil {
		if tail == "" || s.fence.closes(tail) {
			return nil
		}
		return s.code(tail)
	}
	if strings.TrimSpace(tail) == "" {
		return nil
	}
	lines := renderMarkdown(tail, s.width)
	if len(s.lines) > 0 && len(lines) > 0 {
		lines = append([]string{""}, lines...)
	}
	return lines
}

// openFence reads a line that opens a fenced block of code at the top level.
func openFence(line string) (f *fence, language string, ok bool) {
	line = strings.TrimRight(line, "\r")
	text := strings.TrimLeft(line, " ")
	indent := len(line) - len(text)
	if indent > 3 || len(text) < 3 || text[0] != '`' && text[0] != '~' {
		return nil, "", false
	}
	mark := text[0]
	info := strings.TrimLeft(text, string(mark))
	length := len(text) - len(info)
	if length < 3 || mark == '`' && strings.ContainsRune(info, '`') {
		return nil, "", false
	}
	return &fence{mark: mark, length: length, indent: indent, empty: true}, strings.TrimSpace(info), true
}

// closes reports whether a line closes the block.
func (f *fence) closes(line string) bool {
	line = strings.TrimRight(line, " \t\r")
	text := strings.TrimLeft(line, " ")
	return len(line)-len(text) <= 3 && len(text) >= f.length && strings.Trim(text, string(f.mark)) == ""
}
