package tool

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
)

// maxLineNumbers is how many places an error about several matches names.
const maxLineNumbers = 10

type editTool struct {
	w   *Workspace
	def llm.ToolDef
}

// Edit makes the tool that replaces an exact text in a file.
func Edit(w *Workspace) Tool {
	return &editTool{w: w, def: llm.NewToolDef("edit",
		"Replace exact text in a file. old must match once unless all is true; empty old creates the file.",
		[]byte(`{"type":"object","properties":{"path":{"type":"string"},"old":{"type":"string"},
			"new":{"type":"string"},"all":{"type":"boolean"}},"required":["path","old","new"]}`))}
}

func (t *editTool) Def() llm.ToolDef { return t.def }

func (t *editTool) Prepare(ctx context.Context, text string) (*Action, error) {
	a := parseArguments(text, "path", "old", "new", "all")
	r := replacement{old: a.text("old"), new: a.text("new"), all: a.flag("all")}
	path := a.text("path")
	if err := a.err(); err != nil {
		return nil, err
	}
	p, err := t.w.locateForWriting(path)
	if err != nil {
		return nil, err
	}
	change, line, _, err := t.change(ctx, p, r)
	if err != nil {
		return nil, err
	}
	action := t.w.changeAction(p, change, line)
	action.Run = runner(func(ctx context.Context) (Result, error) { return t.edit(ctx, p, r) })
	return action, nil
}

// change works out what the replacement does to the file as it is now.
func (t *editTool) change(ctx context.Context, p place, r replacement) (change *Diff, line, n int, err error) {
	name := t.w.display(p.abs)
	file, err := t.w.load(ctx, p)
	if err != nil {
		return nil, 0, 0, err
	}
	change = &Diff{Path: p.abs, Old: file.text, Created: !file.exists}
	switch {
	case r.old == "" && strings.TrimPrefix(file.text, bom) != "":
		return nil, 0, 0, fmt.Errorf("%s exists: give as old the text to replace", name)
	case r.old == "":
		change.New = file.text + r.new // keeps a byte order mark
		return change, 1, 0, nil
	case !file.exists:
		return nil, 0, 0, t.w.missing(ctx, p)
	}
	change.New, line, n, err = r.apply(ctx, file.text)
	if err != nil {
		return nil, 0, 0, fmt.Errorf("%s: %w", name, err)
	}
	return change, line, n, nil
}

// edit applies the replacement to the file as it is now. Unlike write it may
// differ from what was prepared: an edit before it in the same answer may have
// changed another part, and the same text is still replaced by the same text.
func (t *editTool) edit(ctx context.Context, p place, r replacement) (Result, error) {
	name := t.w.display(p.abs)
	change, line, n, err := t.change(ctx, p, r)
	if err != nil {
		return Result{}, err
	}
	if err := t.w.store(ctx, p, change.New); err != nil {
		return Result{}, fmt.Errorf("%s: %w", name, err)
	}
	text := ""
	switch {
	case change.Created:
		text = createdText(name, change.New)
	case n > 1:
		text = fmt.Sprintf("Edited %s: replaced %d matches, the first at line %d (%s).", name, n, line, change.stat())
	default:
		text = fmt.Sprintf("Edited %s at line %d (%s).", name, line, change.stat())
	}
	return Result{Status: StatusOK, Text: text, Diff: change}, nil
}

// replacement is one exact replacement.
type replacement struct {
	old, new string
	all      bool
}

// apply gives the text with the replacement made, the line of the first match
// and the number of matches. Line ends do not matter for matching: an old with
// "\n" matches CR LF, and what is put in gets the line ends of its place.
func (r replacement) apply(ctx context.Context, text string) (result string, line, n int, err error) {
	if r.old == r.new {
		return "", 0, 0, errors.New("old and new are the same text")
	}
	find := lineEndFinder(text, r.old)
	starts, ends := find.all(ctx)
	switch {
	case ctx.Err() != nil:
		return "", 0, 0, errEditStopped
	case len(starts) == 0:
		return "", 0, 0, noMatch(ctx, text, r.old)
	case len(starts) > 1 && !r.all:
		return "", 0, 0, manyMatches(text, starts)
	}
	if size := len(text) + len(starts)*(len(r.new)-len(r.old)); size > maxResultBytes {
		return "", 0, 0, fmt.Errorf("the file would come to have %s, more than %s: use the shell",
			byteSize(int64(size)), byteSize(maxResultBytes))
	}
	unix, dos := r.new, r.new
	if find.loose {
		unix, dos = withLineEnds(r.new, "\n"), withLineEnds(r.new, crlf)
	}
	var b strings.Builder
	at, lineEnd := 0, lineEnds{text: text, next: -1}
	for i, start := range starts {
		if i%editPoll == 0 && ctx.Err() != nil {
			return "", 0, 0, errEditStopped
		}
		b.WriteString(text[at:start])
		if lineEnd.at(start) == crlf {
			b.WriteString(dos)
		} else {
			b.WriteString(unix)
		}
		at = ends[i]
	}
	b.WriteString(text[at:])
	if result = b.String(); result == text {
		return "", 0, 0, errors.New("nothing would change but line ends, which edit keeps")
	}
	return result, 1 + strings.Count(text[:starts[0]], "\n"), len(starts), nil
}

const (
	// maxResultBytes bounds a file after a replacement: one that may be changed, and
	// the longest text that a call can put into it.
	maxResultBytes = maxEditBytes + maxArguments
	// editPoll is how many matches are worked on before an edit may be stopped.
	editPoll = 1000
)

var errEditStopped = errors.New("the edit was stopped")

// finder finds old in a text. When loose, both are compared with "\n" line ends,
// and removed holds where the text had a "\r" before one, in the offsets of the
// text without them.
type finder struct {
	text, old string
	loose     bool
	removed   []int
}

// lineEndFinder chooses how to compare: as the bytes are, if they match or if
// neither side has a CR LF that could be in the way.
func lineEndFinder(text, old string) *finder {
	exact := &finder{text: text, old: old}
	if !strings.Contains(text, crlf) && !strings.Contains(old, crlf) {
		return exact
	}
	if strings.Contains(old, crlf) && strings.Contains(text, old) {
		return exact
	}
	f := &finder{text: toLF(text), old: toLF(old), loose: true}
	for at, i := 0, 0; ; {
		j := strings.Index(text[at:], crlf)
		if j < 0 {
			return f
		}
		f.removed = append(f.removed, at+j-i)
		at += j + 1
		i++
	}
}

// all gives the matches from left to right, none inside another, as offsets of
// the original text.
func (f *finder) all(ctx context.Context) (starts, ends []int) {
	k := 0
	original := func(i int) int {
		for k < len(f.removed) && f.removed[k] < i {
			k++
		}
		return i + k
	}
	for at := 0; ; {
		i := strings.Index(f.text[at:], f.old)
		if i < 0 || len(starts)%editPoll == 0 && ctx.Err() != nil {
			return starts, ends
		}
		at += i
		starts = append(starts, original(at))
		at += len(f.old)
		ends = append(ends, original(at))
	}
}

// lineEnds tells the line ends of a text, from its start on.
type lineEnds struct {
	text string
	next int // the last line end that was looked up
}

// at is the line end in use at an offset, which is none before the last one: the
// next line end, else the last of all.
func (l *lineEnds) at(offset int) string {
	if l.next < offset {
		if i := strings.IndexByte(l.text[offset:], '\n'); i >= 0 {
			l.next = offset + i
		} else {
			l.next = len(l.text)
		}
	}
	i := l.next
	if i == len(l.text) {
		i = strings.LastIndexByte(l.text, '\n')
	}
	if i > 0 && l.text[i-1] == '\r' {
		return crlf
	}
	return "\n"
}

func withLineEnds(text, end string) string { return strings.ReplaceAll(toLF(text), "\n", end) }

func manyMatches(text string, starts []int) error {
	var lines []string
	line, at := 1, 0
	for i, start := range starts {
		if i == maxLineNumbers {
			lines = append(lines, "...")
			break
		}
		line += strings.Count(text[at:start], "\n")
		at = start
		lines = append(lines, fmt.Sprint(line))
	}
	return fmt.Errorf("old matches %d times, at lines %s: add text around it until it is unique, or set all",
		len(starts), strings.Join(lines, ", "))
}
