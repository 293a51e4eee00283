package tui

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// tables makes tables of the paragraphs that are written as such. The rules are
// those of GitHub.
type tables struct{}

var (
	kindTable = ast.NewNodeKind("Table")
	kindRow   = ast.NewNodeKind("TableRow")
	kindCell  = ast.NewNodeKind("TableCell")
)

// table is a block of rows, the first of which is the header.
type table struct {
	ast.BaseBlock
	align []byte // of each column: 'l', 'c' or 'r'
}

type tableRow struct{ ast.BaseBlock }

type tableCell struct{ ast.BaseBlock }

func (*table) Kind() ast.NodeKind     { return kindTable }
func (*tableRow) Kind() ast.NodeKind  { return kindRow }
func (*tableCell) Kind() ast.NodeKind { return kindCell }

// Dump implements [ast.Node].
func (t *table) Dump(source []byte, level int) { ast.DumpHelper(t, source, level, nil, nil) }

// Dump implements [ast.Node].
func (t *tableRow) Dump(source []byte, level int) { ast.DumpHelper(t, source, level, nil, nil) }

// Dump implements [ast.Node].
func (t *tableCell) Dump(source []byte, level int) { ast.DumpHelper(t, source, level, nil, nil) }

func inTable(n ast.Node) bool {
	for p := n.Parent(); p != nil; p = p.Parent() {
		if p.Kind() == kindCell {
			return true
		}
	}
	return false
}

// Transform implements [parser.ParagraphTransformer].
func (tables) Transform(p *ast.Paragraph, reader text.Reader, _ parser.Context) {
	source, lines := reader.Source(), p.Lines()
	for i := 1; i < lines.Len(); i++ {
		delimiter := lines.At(i)
		align := alignments(delimiter.Value(source))
		if align == nil {
			continue
		}
		head := splitRow(lines.At(i-1), source)
		if len(head) != len(align) {
			return
		}
		t := &table{align: align}
		t.SetPos(p.Pos())
		t.AppendChild(t, newRow(head, len(align)))
		for j := i + 1; j < lines.Len(); j++ {
			t.AppendChild(t, newRow(splitRow(lines.At(j), source), len(align)))
		}
		p.Parent().InsertAfter(p.Parent(), p, t)
		p.Lines().SetSliced(0, i-1)
		if p.Lines().Len() == 0 {
			p.Parent().RemoveChild(p.Parent(), p)
		} else {
			last := p.Lines().At(i - 2)
			last = last.TrimRightSpace(source)
			p.Lines().Set(i-2, last)
		}
		return
	}
}

// alignments reads a delimiter row, nil if the line is none.
func alignments(line []byte) []byte {
	line = bytes.TrimSpace(line)
	if !bytes.ContainsRune(line, '-') || !bytes.ContainsRune(line, '|') && !bytes.ContainsRune(line, ':') {
		return nil
	}
	line = bytes.TrimSuffix(bytes.TrimPrefix(line, []byte("|")), []byte("|"))
	var align []byte
	for column := range bytes.SplitSeq(line, []byte("|")) {
		column = bytes.TrimSpace(column)
		left, right := bytes.HasPrefix(column, []byte(":")), bytes.HasSuffix(column, []byte(":"))
		dashes := bytes.TrimSuffix(bytes.TrimPrefix(column, []byte(":")), []byte(":"))
		if len(dashes) == 0 || len(bytes.Trim(dashes, "-")) > 0 {
			return nil
		}
		switch {
		case left && right:
			align = append(align, 'c')
		case right:
			align = append(align, 'r')
		default:
			align = append(align, 'l')
		}
	}
	return align
}

// splitRow cuts a row at the bars that are not escaped.
func splitRow(segment text.Segment, source []byte) []text.Segment {
	segment = segment.TrimLeftSpace(source)
	segment = segment.TrimRightSpace(source)
	line := segment.Value(source)
	from, end := 0, len(line)
	if end > 0 && line[0] == '|' {
		from = 1
	}
	if end > from && line[end-1] == '|' && (end < 2 || line[end-2] != '\\') {
		end--
	}
	var parts []text.Segment
	add := func(from, to int) {
		s := text.NewSegment(segment.Start+from, segment.Start+to)
		s = s.TrimLeftSpace(source)
		parts = append(parts, s.TrimRightSpace(source))
	}
	start := from
	for i := from; i < end; i++ {
		switch {
		case line[i] == '\\':
			i++
		case line[i] == '|':
			add(start, i)
			start = i + 1
		}
	}
	add(start, end)
	return parts
}

// newRow makes a row of n cells. What a row has too much goes into its last cell,
// so that nothing is lost.
func newRow(parts []text.Segment, n int) *tableRow {
	row := &tableRow{}
	for i := range n {
		c := &tableCell{}
		if i < len(parts) {
			s := parts[i]
			if i == n-1 {
				s.Stop = parts[len(parts)-1].Stop
			}
			if s.Len() > 0 {
				c.Lines().Append(s)
			}
		}
		row.AppendChild(row, c)
	}
	return row
}

// tableGap stands between two columns.
const tableGap = " │ "

// minColumn is the least a column of a table is shown in; a table that has not
// even that is shown as a list of its cells.
const minColumn = 6

// table writes a table, with its cells wrapped where it is too wide.
func (r *renderer) table(t *table, m margin) {
	var rows [][][]cell
	widths := make([]int, len(t.align))
	for row := t.FirstChild(); row != nil; row = row.NextSibling() {
		var list [][]cell
		s := style(0)
		if row == t.FirstChild() {
			s = bold
		}
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			content := cells(r.runs(c, s, nil)...)
			widths[len(list)] = max(widths[len(list)], columns(content))
			list = append(list, content)
		}
		rows = append(rows, list)
	}
	room := m.width - (len(widths)-1)*3
	if room < minColumn*len(widths) {
		r.tableAsList(rows, m)
		return
	}
	shrink(widths, room)
	for i, row := range rows {
		r.row(row, widths, t.align, m)
		m = m.after()
		if i > 0 {
			continue
		}
		var rule []string
		for _, w := range widths {
			rule = append(rule, strings.Repeat("─", w))
		}
		r.lines(m, [][]cell{cells(run{strings.Join(rule, "─┼─"), faint})})
	}
}

// shrink makes the widest columns narrower until all have room.
func shrink(widths []int, room int) {
	total := 0
	for i := range widths {
		widths[i] = max(widths[i], 1)
		total += widths[i]
	}
	for total > room {
		widest, second := 0, 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		for i, w := range widths {
			if i != widest {
				second = max(second, w)
			}
		}
		n := min(total-room, max(1, widths[widest]-max(second, minColumn)))
		widths[widest] -= n
		total -= n
	}
}

func (r *renderer) row(row [][]cell, widths []int, align []byte, m margin) {
	wrapped := make([][][]cell, len(row))
	height := 1
	for i, content := range row {
		wrapped[i] = wrap(content, widths[i])
		height = max(height, len(wrapped[i]))
	}
	gap := cells(run{tableGap, faint})
	lines := make([][]cell, height)
	for y := range lines {
		for i := range row {
			var content []cell
			if y < len(wrapped[i]) {
				content = wrapped[i][y]
			}
			if i > 0 {
				lines[y] = append(lines[y], gap...)
			}
			lines[y] = append(lines[y], aligned(content, widths[i], align[i])...)
		}
		lines[y] = trimRight(lines[y])
	}
	r.lines(m, lines)
}

func aligned(content []cell, width int, align byte) []cell {
	free := width - columns(content)
	if free <= 0 {
		return content
	}
	left := 0
	switch align {
	case 'r':
		left = free
	case 'c':
		left = free / 2
	}
	return fit(append(blank(left), content...), width)
}

func blank(n int) []cell {
	if n <= 0 {
		return nil
	}
	return []cell{{text: strings.Repeat(" ", n), width: n}}
}

// tableAsList writes a table that is too wide for the screen, one cell a line.
func (r *renderer) tableAsList(rows [][][]cell, m margin) {
	for _, row := range rows {
		mark := "• "
		for _, content := range row {
			inner := m.in(mark, "  ", cyan)
			r.lines(inner, wrap(content, inner.width))
			mark, m = "  ", m.after()
		}
	}
}
