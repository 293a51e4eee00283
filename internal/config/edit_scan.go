package config

import (
	"bytes"
	"slices"

	"github.com/pelletier/go-toml/v2/unstable"
)

// expression is a table's header or a key with its value, and where it stands.
// Positions are in bytes.
type expression struct {
	path   []string // whole, that of the table included
	header bool
	// start is the beginning of its first line, lineEnd the one behind its last.
	start, lineEnd int
	// value and end enclose the value of a key.
	value, end int
	// table is the index of a key's header, -1 above the first one; last that of
	// the last expression in the section of a header.
	table, last int
}

// scan finds the expressions of a valid document, in order.
func scan(text []byte) []expression {
	var found []expression
	header := -1
	var p unstable.Parser
	p.Reset(text)
	for p.NextExpression() {
		n := p.Expression()
		if n.Kind != unstable.KeyValue && n.Kind != unstable.Table && n.Kind != unstable.ArrayTable {
			continue
		}
		e := expression{table: header, last: len(found)}
		first, last := -1, 0
		for it := n.Key(); it.Next(); {
			k := it.Node()
			if first < 0 {
				first = int(k.Raw.Offset)
			}
			last = int(k.Raw.Offset + k.Raw.Length)
			e.path = append(e.path, string(k.Data))
		}
		if n.Kind == unstable.KeyValue {
			e.value, e.end = int(n.Value().Raw.Offset), int(n.Raw.Offset+n.Raw.Length)
			last = e.end
			if header >= 0 {
				e.path = append(slices.Clone(found[header].path), e.path...)
				found[header].last = e.last
			}
		} else {
			e.header, header = true, len(found)
		}
		e.start = bytes.LastIndexByte(text[:first], '\n') + 1
		e.lineEnd = lineEnd(text, last)
		found = append(found, e)
	}
	return found
}

// sectionOf is what belongs to the table with the header i: comments directly
// above it, unless the file begins with them, its keys, and comments directly
// below those.
func sectionOf(text []byte, all []expression, i int) (start, end int) {
	floor := 0
	if i > 0 {
		floor = all[i-1].lineEnd
	}
	if start = commentAbove(text, all[i].start, floor); start == 0 {
		start = all[i].start
	}
	next, end := sectionEnd(text, all, i), all[all[i].last].lineEnd
	for end < next && isComment(text, end) {
		end = lineEnd(text, end)
	}
	return start, end
}

// sectionEnd is where the next table begins, with the comments above it.
func sectionEnd(text []byte, all []expression, i int) int {
	last := all[i].last
	if last+1 == len(all) {
		return len(text)
	}
	return commentAbove(text, all[last+1].start, all[last].lineEnd)
}

// commentAbove is the beginning of the comment lines directly above a line, not
// before floor.
func commentAbove(text []byte, line, floor int) int {
	for line > floor {
		above := bytes.LastIndexByte(text[:line-1], '\n') + 1
		if above < floor || !isComment(text, above) {
			break
		}
		line = above
	}
	return line
}

func isComment(text []byte, line int) bool {
	return bytes.HasPrefix(bytes.TrimLeft(text[line:lineEnd(text, line)], " \t"), []byte("#"))
}

func isBlank(text []byte, line int) bool {
	return len(bytes.TrimSpace(text[line:lineEnd(text, line)])) == 0
}

// lineEnd is the position behind the line break that follows.
func lineEnd(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

// splice replaces a part of a text in a copy of it.
func splice(text []byte, start, end int, by string) []byte {
	return slices.Concat(text[:start], []byte(by), text[end:])
}

// cut takes lines out, and the blank lines below them or, at the end of the text,
// above them.
func cut(text []byte, start, end int) []byte {
	for end < len(text) && isBlank(text, end) {
		end = lineEnd(text, end)
	}
	if end == len(text) {
		for start > 0 {
			above := bytes.LastIndexByte(text[:start-1], '\n') + 1
			if !isBlank(text, above) {
				break
			}
			start = above
		}
	}
	return splice(text, start, end, "")
}
