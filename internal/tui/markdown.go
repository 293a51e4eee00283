package tui

import (
	"fmt"
	"html"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown parses with goldmark and renders for a terminal. Link reference
// definitions are left as they stand: they would change text that is on the
// screen already. The extensions of goldmark are not used, since their
// initialisation would cost every start of the program; tables are in table.go.
var markdown = parser.NewParser(
	parser.WithBlockParsers(parser.DefaultBlockParsers()...),
	parser.WithInlineParsers(parser.DefaultInlineParsers()...),
	parser.WithParagraphTransformers(util.Prioritized(tables{}, 200)),
)

// renderMarkdown gives the lines of a text of Markdown, each at most width
// columns wide.
func renderMarkdown(source string, width int) []string {
	if !strings.HasSuffix(source, "\n") {
		source += "\n" // goldmark loses the name of a language that ends the text
	}
	r := &renderer{source: []byte(source)}
	r.children(markdown.Parse(text.NewReader(r.source)), margin{width: width}, true)
	return r.out
}

// renderer writes blocks as lines.
type renderer struct {
	source []byte
	out    []string
}

// margin is what stands left of a block: first before its first line, rest
// before the others. What is left for the block is width columns.
type margin struct {
	first, rest []cell
	width       int
}

// in makes the margin of a block inside. Where too little would be left, it stays
// as it was.
func (m margin) in(first, rest string, s style) margin {
	head, tail := cells(run{first, s}), cells(run{rest, s})
	n := columns(head)
	if m.width-n < minInner {
		return m
	}
	return margin{
		first: append(m.first[:len(m.first):len(m.first)], head...),
		rest:  append(m.rest[:len(m.rest):len(m.rest)], tail...),
		width: m.width - n,
	}
}

// after is the margin of what follows the first line.
func (m margin) after() margin { return margin{m.rest, m.rest, m.width} }

// lines writes lines of cells behind a margin.
func (r *renderer) lines(m margin, lines [][]cell) {
	for i, l := range lines {
		prefix := m.rest
		if i == 0 {
			prefix = m.first
		}
		if len(l) == 0 {
			prefix = trimRight(prefix)
		}
		r.out = append(r.out, paint(append(prefix[:len(prefix):len(prefix)], l...)))
	}
}

// children writes the blocks in a block, with empty lines between them if they
// are loose.
func (r *renderer) children(parent ast.Node, m margin, loose bool) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n != parent.FirstChild() && loose {
			r.lines(m, [][]cell{nil})
		}
		r.block(n, m)
		m = m.after()
	}
}

func (r *renderer) block(n ast.Node, m margin) {
	switch n := n.(type) {
	case *ast.Heading:
		s := bold
		if n.Level <= 2 {
			s |= cyan
		}
		r.inline(n, m, s)
	case *ast.List:
		r.list(n, m)
	case *ast.Blockquote:
		if n.FirstChild() == nil {
			r.lines(m, [][]cell{cells(run{"▌", faint})})
			return
		}
		r.children(n, m.in("▌ ", "▌ ", faint), true)
	case *ast.FencedCodeBlock:
		info := ""
		if n.Info != nil {
			info = strings.TrimSpace(string(n.Info.Value(r.source)))
		}
		r.code(n, info, m)
	case *ast.CodeBlock:
		r.code(n, "", m)
	case *ast.HTMLBlock:
		var b strings.Builder
		b.WriteString(r.linesOf(n))
		if n.HasClosure() {
			b.Write(n.ClosureLine.Value(r.source))
		}
		r.lines(m, wrap(cells(run{strings.TrimRight(b.String(), "\n"), faint}), m.width))
	case *ast.ThematicBreak:
		r.lines(m, [][]cell{cells(run{strings.Repeat("─", min(m.width, 40)), faint})})
	case *table:
		r.table(n, m)
	default: // paragraphs, and whatever else holds text
		r.inline(n, m, 0)
	}
}

func (r *renderer) list(n *ast.List, m margin) {
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if n.IsOrdered() {
			mark = fmt.Sprintf("%d%c ", number, n.Marker)
			number++
		}
		if item != n.FirstChild() && !n.IsTight {
			r.lines(m, [][]cell{nil})
		}
		inner := m.in(mark, spaces[:min(len([]rune(mark)), len(spaces))], cyan)
		if item.FirstChild() == nil {
			r.lines(inner, [][]cell{nil})
		} else {
			r.children(item, inner, !n.IsTight)
		}
		m = m.after()
	}
}

// code writes a block of code two columns further in, behind the name of its
// language.
func (r *renderer) code(n ast.Node, language string, m margin) {
	if language != "" {
		r.language(language, m)
		m = m.after()
	}
	r.lines(codeMargin(m), chop(cells(run{strings.TrimSuffix(r.linesOf(n), "\n"), 0}), codeMargin(m).width))
}

// language writes what stands behind the opening fence, all of it: a fence that
// was not meant as one has the words of a sentence there.
func (r *renderer) language(info string, m margin) {
	r.lines(m, wrap(cells(run{info, faint}), m.width))
}

func codeMargin(m margin) margin { return m.in("  ", "  ", 0) }

// linesOf is the raw text of a block.
func (r *renderer) linesOf(n ast.Node) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		b.Write(line.Value(r.source))
	}
	return b.String()
}

func (r *renderer) inline(n ast.Node, m margin, s style) {
	r.lines(m, wrap(cells(r.runs(n, s, nil)...), m.width))
}

// runs collects the text of the inline nodes in a node.
func (r *renderer) runs(parent ast.Node, s style, list []run) []run {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			list = append(list, run{literal(n.Segment.Value(r.source), n.IsRaw()), s})
			if n.HardLineBreak() || n.SoftLineBreak() {
				list = append(list, run{"\n", s})
			}
		case *ast.String:
			list = append(list, run{literal(n.Value, n.IsRaw() || n.IsCode()), s})
		case *ast.CodeSpan:
			list = append(list, run{r.codeSpan(n), s.with(yellow)})
		case *ast.Emphasis:
			with := italic
			if n.Level >= 2 {
				with = bold
			}
			list = r.runs(n, s|with, list)
		case *ast.Link:
			list = r.link(r.runs(n, s|underline, nil), string(n.Destination), s, list)
		case *ast.Image:
			list = append(list, run{"[image: ", s | faint})
			list = r.link(r.runs(n, s, nil), string(n.Destination), s, list)
			list = append(list, run{"]", s | faint})
		case *ast.AutoLink:
			list = append(list, run{string(n.Label(r.source)), s | underline})
		case *ast.RawHTML:
			for i := range n.Segments.Len() {
				segment := n.Segments.At(i)
				list = append(list, run{string(segment.Value(r.source)), s | faint})
			}
		default:
			list = r.runs(n, s, list)
		}
	}
	return list
}

// link writes a link's text, and where it leads unless the text says it.
func (r *renderer) link(label []run, destination string, s style, list []run) []run {
	var text strings.Builder
	for _, l := range label {
		text.WriteString(l.text)
	}
	list = append(list, label...)
	destination = literal([]byte(destination), false)
	if destination != "" && destination != text.String() {
		list = append(list, run{" (" + destination + ")", s | faint})
	}
	return list
}

func (r *renderer) codeSpan(n *ast.CodeSpan) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(r.source))
		}
	}
	code := strings.ReplaceAll(b.String(), "\n", " ")
	if inTable(n) {
		code = strings.ReplaceAll(code, `\|`, "|")
	}
	return code
}

// literal is what a piece of the source means: with its escapes and entities
// resolved, unless it is raw.
func literal(source []byte, raw bool) string {
	s := string(source)
	if raw || !strings.ContainsAny(s, `\&`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && util.IsPunct(s[i+1]):
			i++
			b.WriteByte(s[i])
		case s[i] == '&':
			if end := strings.IndexByte(s[i:min(len(s), i+maxEntity)], ';'); end > 0 {
				b.WriteString(html.UnescapeString(s[i : i+end+1]))
				i += end
				continue
			}
			b.WriteByte('&')
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// maxEntity is how long an entity is at most: the longest name has 33 bytes.
const maxEntity = 34
