package tui

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// run is a piece of text in one style.
type run struct {
	text  string
	style style
}

// cell is one character as a person sees it: a grapheme cluster.
type cell struct {
	text  string
	width int // in columns: 0, 1 or 2
	style style
}

// tabWidth is how far apart tab stops are.
const tabWidth = 4

const spaces = "                                                                                "

// cells cuts text into what stands in the columns of the screen. It is the only
// way to the screen, and takes out what could change the terminal or the reading
// of a line: control characters, and characters that turn the direction of text
// or show nothing. A line end stays, as a cell of its own.
func cells(runs ...run) []cell {
	var text string
	if len(runs) == 1 {
		text = runs[0].text
	} else {
		var b strings.Builder
		for _, r := range runs {
			b.WriteString(r.text)
		}
		text = b.String()
	}
	list := make([]cell, 0, len(text))
	column, end, at := 0, 0, 0
	var current style
	next := 0 // the next run
	for at < len(text) {
		for at >= end && next < len(runs) {
			end += len(runs[next].text)
			current = runs[next].style
			next++
		}
		c, size := cluster(text[at:], column)
		c.style = current
		at += size
		if column += c.width; c.text == "\n" {
			column = 0
		}
		list = append(list, c)
	}
	return list
}

// cluster reads the first cell of a text that is not empty.
func cluster(s string, column int) (c cell, size int) {
	b := s[0]
	if b < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		switch {
		case b == '\n':
			return cell{text: "\n"}, 1
		case b == '\t':
			n := tabWidth - column%tabWidth
			return cell{text: spaces[:n], width: n}, 1
		case b == '\r' && len(s) > 1 && s[1] == '\n':
			return cell{text: "\n"}, 2
		case b < ' ' || b == 0x7f:
			return cell{text: "\uFFFD", width: 1}, 1
		}
		return cell{text: s[:1], width: 1}, 1
	}
	text, _, width, _ := uniseg.FirstGraphemeClusterInString(s, -1)
	size = len(text)
	r, n := utf8.DecodeRuneInString(text)
	switch {
	case r == '\n':
		return cell{text: "\n"}, size
	case r == '\t':
		stop := tabWidth - column%tabWidth
		return cell{text: spaces[:stop], width: stop}, size
	case r == utf8.RuneError && n == 1, hidden(r):
		return cell{text: "\uFFFD", width: 1}, n
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r == utf8.RuneError || hidden(r) }) {
		return cell{text: text[:n], width: uniseg.StringWidth(text[:n])}, n
	}
	return cell{text: text, width: width}, size
}

// hidden reports whether a character changes the terminal or the reading of a
// line. What joins emoji stays.
func hidden(r rune) bool {
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) && r != '\u200d' || r == '\u2028' || r == '\u2029'
}

func (c *cell) space() bool { return c.text != "" && c.text[0] == ' ' }

// columns is how wide cells are.
func columns(list []cell) int {
	n := 0
	for i := range list {
		n += list[i].width
	}
	return n
}

// paint gives the text of cells with the sequences for their styles.
func paint(list []cell) string {
	var b strings.Builder
	appendCells(&b, list)
	return b.String()
}

func appendCells(b *strings.Builder, list []cell) {
	var on style
	for i := range list {
		if s := list[i].style; s != on {
			if on != 0 {
				b.WriteString(resetSGR)
			}
			b.WriteString(s.start())
			on = s
		}
		b.WriteString(list[i].text)
	}
	if on != 0 {
		b.WriteString(resetSGR)
	}
}

// wrap breaks cells into lines of at most width columns, between words where it
// can. The spaces at a break are left out.
func wrap(list []cell, width int) [][]cell {
	width = max(width, 2) // a character may take two
	var lines [][]cell
	start, column, gap, words := 0, 0, -1, false
	next := func(from int) { start, column, gap, words = from, 0, -1, false }
	for i := 0; i < len(list); {
		c := &list[i]
		switch {
		case c.text == "\n":
			lines = append(lines, list[start:i])
			i++
			next(i)
			continue
		case column+c.width <= width:
		case c.space() && words:
			lines = append(lines, list[start:i])
			for i < len(list) && list[i].space() {
				i++
			}
			next(i)
			continue
		case gap >= 0:
			lines = append(lines, trimRight(list[start:gap]))
			i = gap + 1
			next(i)
			continue
		case i > start:
			lines = append(lines, list[start:i])
			next(i)
			continue
		default: // a tab in a line that is narrower
			c.text, c.width = " ", 1
		}
		if !c.space() {
			words = true
		} else if words {
			gap = i
		}
		column += c.width
		i++
	}
	return append(lines, list[start:])
}

func trimRight(list []cell) []cell {
	for len(list) > 0 && list[len(list)-1].space() {
		list = list[:len(list)-1]
	}
	return list
}

// chop breaks cells into lines of at most width columns wherever that is, as is
// right for code and output.
func chop(list []cell, width int) [][]cell {
	width = max(width, tabWidth)
	var lines [][]cell
	start, column := 0, 0
	for i := range list {
		c := &list[i]
		switch {
		case c.text == "\n":
			lines = append(lines, list[start:i])
			start, column = i+1, 0
		case column+c.width > width:
			lines = append(lines, list[start:i])
			start, column = i, c.width
		default:
			column += c.width
		}
	}
	return append(lines, list[start:])
}

// fit makes cells exactly width columns wide: what is too much is cut, which a
// dot shows, and what is missing is filled with spaces.
func fit(list []cell, width int) []cell {
	n := columns(list)
	if n > width {
		list = cut(list, width)
		n = columns(list)
	}
	if n < width {
		list = append(list[:len(list):len(list)], cell{text: strings.Repeat(" ", width-n), width: width - n})
	}
	return list
}

// cut shortens cells to at most width columns and marks that.
func cut(list []cell, width int) []cell {
	if columns(list) <= width {
		return list
	}
	n, i := 0, 0
	for i < len(list) && n+list[i].width <= width-1 {
		n += list[i].width
		i++
	}
	list = list[:i:i]
	if width > 0 {
		last := style(0)
		if i > 0 {
			last = list[i-1].style
		}
		list = append(list, cell{text: "…", width: 1, style: last})
	}
	return list
}

// oneLine makes runs one line of at most width columns.
func oneLine(width int, runs ...run) string {
	return paint(cut(flat(cells(runs...)), width))
}

// flat makes cells one line.
func flat(list []cell) []cell {
	for i := range list {
		if list[i].text == "\n" {
			list[i].text, list[i].width = " ", 1
		}
	}
	return list
}

// paragraph wraps runs behind a prefix for the first line and one for the rest.
func paragraph(width int, first, rest run, runs ...run) []string {
	head, tail := cells(first), cells(rest)
	indent := max(columns(head), columns(tail))
	if width-indent < minInner {
		head, tail, indent = nil, nil, 0
	}
	var out []string
	for i, l := range wrap(cells(runs...), width-indent) {
		prefix := tail
		if i == 0 {
			prefix = head
		}
		out = append(out, paint(append(prefix[:len(prefix):len(prefix)], l...)))
	}
	return out
}

// minInner is how many columns text needs; where an indent would leave less it
// is left out.
const minInner = 8

// withoutSequences takes the escape sequences out of a program's output, and of a
// line that was written over with a carriage return what was written over.
func withoutSequences(s string) string {
	if !strings.ContainsAny(s, "\x1b\r\b") {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	out, line := make([]byte, 0, len(s)), 0
	for i := 0; i < len(s); {
		switch s[i] {
		case 0x1b:
			i += sequence(s[i:])
			continue
		case '\r':
			out = out[:line]
		case '\b':
		case '\n':
			out = append(out, '\n')
			line = len(out)
		default:
			out = append(out, s[i])
		}
		i++
	}
	return string(out)
}

// sequence is the length of the escape sequence that s begins with.
func sequence(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[':
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 || s[i] > 0x7e {
				return i
			}
		}
		return len(s)
	case ']', 'P', '_', '^', 'X':
		for i := 2; i < len(s); i++ {
			if s[i] == 0x07 {
				return i + 1
			}
			if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
			if s[i] == '\n' {
				return i
			}
		}
		return len(s)
	}
	if s[1] < utf8.RuneSelf {
		return 2
	}
	return 1
}
