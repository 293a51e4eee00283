package tui

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/brief"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

// card is a call of a tool.
type card struct {
	call     llm.ToolCall
	action   *tool.Action // nil where there is none, or it is long past
	state    cardState
	asking   bool // a person is asked about it
	output   string
	started  time.Time
	duration time.Duration
	result   tool.Result
}

type cardState uint8

const (
	cardWaiting cardState = iota
	cardRunning
	cardDone
)

// What a card shows.
const (
	maxTail       = 64 << 10 // bytes of running output that are kept
	foldedOutput  = 6        // lines of output
	foldedDiff    = 16       // lines of a diff
	askedDiff     = 200      // lines of a diff that a person is asked about
	openLines     = 20_000   // lines when it is open
	maxArguments  = 8 << 10  // bytes of arguments, for tools of others
	maxDiffedSize = 1 << 20  // bytes of a file whose diff is shown
)

func newCard(call llm.ToolCall, action *tool.Action) *card { return &card{call: call, action: action} }

func (c *card) replay(text string, failed bool) {
	c.state = cardDone
	c.result = tool.Result{Status: tool.StatusOK, Text: text}
	if failed {
		c.result.Status = tool.StatusError
	}
}

func (c *card) progress(text string) {
	c.output += text
	if n := len(c.output) - maxTail; n > 0 {
		c.output = c.output[n:]
	}
}

func (c *card) finish(r tool.Result, at time.Time) {
	c.state, c.result, c.asking = cardDone, r, false
	if !c.started.IsZero() {
		c.duration = at.Sub(c.started)
	}
}

// title is the command, the path or what else the call is about.
func (c *card) title() string {
	if c.action != nil {
		return c.action.Title
	}
	var args map[string]any
	if json.Unmarshal([]byte(c.call.Arguments), &args) == nil {
		for _, key := range []string{"path", "command", "pattern", "title"} {
			if text, ok := args[key].(string); ok {
				return text
			}
		}
		if c.call.Name == "todo" {
			return ""
		}
	}
	return c.call.Arguments
}

func (c *card) lines(width int, details bool) []string {
	mark, s := c.mark()
	title, rest, _ := strings.Cut(c.title(), "\n")
	if strings.TrimSpace(rest) != "" {
		title += " …"
	}
	runs := []run{{mark + " ", s}, {c.call.Name, bold}, {"  " + title, 0}}
	if tail := c.status(); tail != "" {
		room := width - columns(cells(run{tail, 0})) - 2
		if room < width/2 {
			room = width / 2
		}
		head := cut(cells(runs...), room)
		lines := []string{paint(cut(append(head[:len(head):len(head)], cells(run{"  " + tail, faint})...), width))}
		return append(lines, c.body(width, details)...)
	}
	return append([]string{oneLine(width, runs...)}, c.body(width, details)...)
}

func (c *card) mark() (string, style) {
	switch {
	case c.asking:
		return "?", yellow | bold
	case c.state == cardWaiting:
		return "○", faint
	case c.state == cardRunning:
		return "◐", cyan
	}
	switch c.result.Status {
	case tool.StatusOK:
		return "✓", green
	case tool.StatusDenied:
		return "⊘", yellow
	case tool.StatusUnknown:
		return "?", red
	}
	return "✗", red
}

// status is what stands behind the title.
func (c *card) status() string {
	var parts []string
	if c.state == cardDone {
		if c.result.Status != tool.StatusOK {
			parts = append(parts, brief.Outcome(c.result.Status))
		}
		if d := c.diff(); d != nil && len(d.Old)+len(d.New) <= maxDiffedSize {
			added, removed := d.Lines()
			parts = append(parts, fmt.Sprintf("+%d -%d", added, removed))
		}
		if n := len(c.result.Images); n > 0 {
			parts = append(parts, plural(n, "image"))
		}
	}
	if c.duration >= 100*time.Millisecond {
		parts = append(parts, short(c.duration))
	}
	return strings.Join(parts, ", ")
}

// diff is what the call changes or has changed.
func (c *card) diff() *tool.Diff {
	if c.state == cardDone {
		if c.result.Diff != nil || c.result.Status != tool.StatusOK || c.action == nil {
			return c.result.Diff
		}
	}
	if c.action == nil {
		return nil
	}
	return c.action.Diff
}

func (c *card) body(width int, details bool) []string {
	if c.call.Name == "todo" && c.state == cardDone && c.result.Status == tool.StatusOK {
		return c.plan(width)
	}
	if d := c.diff(); d != nil && (c.state != cardDone || c.result.Status == tool.StatusOK) {
		limit := foldedDiff
		if c.asking {
			limit = askedDiff
		}
		if details {
			limit = openLines
		}
		return diffLines(d, width, limit)
	}
	if c.asking {
		return c.questionBody(width)
	}
	text, s := c.result.Text, faint
	if c.state != cardDone {
		text = c.output
	} else if c.result.Status != tool.StatusOK {
		s = red
	}
	kind := tool.KindOther
	if c.action != nil {
		kind = c.action.Kind
	} else if c.call.Name == "shell" {
		kind = tool.KindExecute
	}
	folded := foldedOutput
	if c.state == cardDone && c.result.Status == tool.StatusOK && kind != tool.KindExecute {
		folded = 0
	}
	return outputLines(text, width, s, folded, details)
}

// questionBody shows everything that the call would do.
func (c *card) questionBody(width int) []string {
	text := ""
	switch {
	case c.action == nil:
	case c.action.Command != "":
		text = c.action.Command
	case c.action.Access == tool.AccessExternal:
		text = c.call.Arguments
		if len(text) > maxArguments {
			text = text[:maxArguments] + fmt.Sprintf("\n[%d more bytes that are not shown]", len(text)-maxArguments)
		}
	}
	if text == "" && c.action != nil {
		text = c.action.Title // in the card's title it may be cut
	}
	return block(text, width, bold)
}

// block is text that is shown as it is, two columns further in.
func block(text string, width int, s style) []string {
	var lines []string
	for _, l := range chop(cells(run{strings.TrimRight(text, "\n"), s}), width-2) {
		lines = append(lines, "  "+paint(l))
	}
	return lines
}

// outputLines shows the end of a text, or all of it when it is open.
func outputLines(text string, width int, s style, folded int, details bool) []string {
	text = strings.TrimRight(withoutSequences(text), "\n ")
	if text == "" {
		return nil
	}
	if details {
		folded = openLines
	}
	total := strings.Count(text, "\n") + 1
	if folded == 0 {
		return nil
	}
	if total > folded {
		at := len(text)
		for range folded {
			at = strings.LastIndexByte(text[:at], '\n')
		}
		text = text[at+1:]
	}
	lines := block(text, width, s)
	hidden := total - folded
	if extra := len(lines) - folded; extra > 0 && !details {
		lines, hidden = lines[extra:], max(hidden, 0)+extra
	}
	if hidden > 0 {
		more := oneLine(width, run{fmt.Sprintf("  … %s before (Ctrl-R opens)", plural(hidden, "line")), faint})
		lines = append([]string{more}, lines...)
	}
	return lines
}

// diffLines shows a change with colours.
func diffLines(d *tool.Diff, width, limit int) []string {
	if len(d.Old)+len(d.New) > maxDiffedSize {
		return []string{oneLine(width, run{fmt.Sprintf("  %s bytes before, %s after; too large to show",
			brief.Thousands(len(d.Old)), brief.Thousands(len(d.New))), faint})}
	}
	_, text, _ := strings.Cut(d.Unified("file"), "+++ b/file\n")
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	var lines []string
	for i, l := range all {
		if len(lines) >= limit {
			more := fmt.Sprintf("  … %s more", plural(len(all)-i, "line"))
			if limit < openLines {
				more += " (Ctrl-R opens)"
			}
			return append(lines, oneLine(width, run{more, faint}))
		}
		s := style(0)
		switch {
		case strings.HasPrefix(l, "+"):
			s = green
		case strings.HasPrefix(l, "-"):
			s = red
		case strings.HasPrefix(l, "@@"), strings.HasPrefix(l, "\\"):
			s = cyan | faint
		}
		lines = append(lines, block(l, width, s)...)
	}
	return lines
}

// plan shows the steps of the tool todo.
func (c *card) plan(width int) []string {
	items, err := tool.ReadTodo(c.call.Arguments)
	if err != nil {
		return nil
	}
	var lines []string
	for _, i := range items {
		mark, s := "☐ ", style(0)
		switch i.Status {
		case tool.TodoCompleted:
			mark, s = "☑ ", faint
		case tool.TodoInProgress:
			mark, s = "▶ ", cyan
		}
		lines = append(lines, paragraph(width, run{"  " + mark, s}, run{"    ", 0}, run{i.Text, s})...)
	}
	return lines
}
