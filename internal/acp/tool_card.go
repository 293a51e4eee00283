package acp

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/drover-dev/drover/internal/brief"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

// card is how a tool call looks in the editor. It is made of the call alone, not
// of what the tool finds when it prepares it: so a call looks the same live and
// when the session is loaded again, where the files may be others.
type card struct {
	call      llm.ToolCall
	arguments string // of the call, as its tool reads them
	title     string
	kind      tool.Kind
	locations []location
}

// maxCommandTitle bounds a title that is a command or a pattern, in bytes.
const maxCommandTitle = 200

// describeCall makes the card of a call in a session that works in dir.
func describeCall(call llm.ToolCall, dir string) *card {
	c := &card{call: call, arguments: call.Arguments, title: line(call.Name), kind: tool.KindOther}
	// What is asked about is what will run: the tools get mended arguments.
	if mended, err := llm.RepairArguments(call.Arguments); err == nil {
		c.arguments = mended
	}
	args := parseObject(c.arguments)
	switch call.Name {
	case "read":
		c.kind = tool.KindRead
		if c.file(args, dir); len(c.locations) > 0 {
			var offset int
			if json.Unmarshal(args["offset"], &offset) == nil && offset > 1 {
				c.title += fmt.Sprintf(" from line %d", offset)
				c.locations[0].Line = offset
			}
		}
	case "write", "edit":
		c.kind = tool.KindEdit
		c.file(args, dir)
	case "glob", "grep":
		c.kind = tool.KindSearch
		c.words(args.textOr("pattern"))
	case "shell":
		c.kind = tool.KindExecute
		c.words(args.textOr("command"))
	case "remember", "forget":
		c.kind = tool.KindEdit
		if title := line(args.textOr("title")); title != "" {
			c.title = call.Name + ": " + title
		}
	case "todo":
		c.kind = tool.KindThink
		c.title = "Plan"
	}
	return c
}

// file names the file of the argument path: in the title as seen from the
// session's folder, in the location absolute.
func (c *card) file(args object, dir string) {
	path := args.textOr("path")
	if path == "" {
		return
	}
	if path = filepath.FromSlash(path); !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	path = filepath.Clean(path)
	c.title = line(path)
	if headFits(path, maxTitle) < len(path) {
		return // no file has such a name
	}
	c.locations = []location{{Path: path}}
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		c.title = line(filepath.ToSlash(rel))
	}
}

// words titles the card with a command or pattern.
func (c *card) words(text string) {
	text = line(text)
	if text == "" {
		return
	}
	if len(text) > maxCommandTitle {
		text = strings.ToValidUTF8(text[:maxCommandTitle], "") + "..."
	}
	c.title = text
}

// announce is the tool_call that makes the call known.
func (c *card) announce() toolCall {
	return toolCall{
		Kind: "tool_call", ID: c.call.ID, Title: c.title, Name: line(c.call.Name), ToolKind: string(c.kind),
		Status: statusPending, Locations: c.locations, RawInput: rawInput(c.arguments),
	}
}

// update is a tool_call_update with a status.
func (c *card) update(status string) toolCall {
	return toolCall{Kind: "tool_call_update", ID: c.call.ID, Status: status}
}

// rawInput gives the arguments as JSON, as a string where they are none, and
// leaves them out where they are too long.
func rawInput(arguments string) json.RawMessage {
	raw := []byte(arguments)
	if strings.TrimSpace(arguments) == "" {
		return nil
	}
	if !json.Valid(raw) {
		raw, _ = json.Marshal(clip(arguments, maxRawInput/2)) // a string always encodes
	}
	if len(raw) > maxRawInput {
		return nil
	}
	return raw
}

// intent shows what a call would do: the diff of a write.
func (c *card) intent(a *tool.Action) []any {
	if a == nil || a.Diff == nil {
		return nil
	}
	return []any{showDiff(a.Diff)}
}

// question shows what a person is asked about, as far as the title does not say
// it: a diff, a command of several lines or a long one, or why there is a
// question about what is free.
func (c *card) question(a *tool.Action) []any {
	switch {
	case a.Access == tool.AccessNone:
		return []any{blockContent{"content", textContent(line(a.Title))}}
	case a.Command != "" && strings.TrimSpace(a.Command) != c.title:
		return []any{blockContent{"content", textContent(fenced(clip(a.Command, maxField-64)))}}
	}
	return c.intent(a)
}

// replayed shows what a call gave when it was run, as far as the log tells it: of
// an edit the text that was replaced, and where.
func (c *card) replayed(result *llm.Message) []any {
	text := result.Text()
	if result.IsError || len(c.locations) == 0 {
		return c.result(text, nil)
	}
	diff := tool.LoggedDiff(c.call.Name, c.call.Arguments, text)
	if diff == nil {
		return c.result(text, nil)
	}
	diff.Path = c.locations[0].Path
	if diff.Created {
		return c.result(text, diff)
	}
	content := c.result(text, nil)
	if shown, ok := showDiff(diff).(diffContent); ok {
		content = append([]any{shown}, content...)
	}
	return content
}

// result shows what a call gave: its diff, or else its text.
func (c *card) result(text string, diff *tool.Diff) []any {
	if diff != nil {
		return []any{showDiff(diff)}
	}
	if text == "" {
		return nil
	}
	return []any{c.output(text)}
}

// output shows text of a tool as what it is: not Markdown.
func (c *card) output(text string) any {
	switch c.kind {
	case tool.KindRead, tool.KindSearch, tool.KindExecute:
		text = fenced(clip(text, maxField-64))
	default:
		text = clip(text, maxField)
	}
	return blockContent{"content", textContent(text)}
}

// fenced puts text into a code fence that is longer than any in it.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return fence + "\n" + text + fence
}

// showDiff shows a change. A change of a file that is too large for a line is
// told in words: half a file would be shown as if the rest were deleted.
func showDiff(d *tool.Diff) any {
	if headFits(d.Old, maxField) < len(d.Old) || headFits(d.New, maxField) < len(d.New) {
		return blockContent{"content", textContent(fmt.Sprintf(
			"%s: %s bytes before, %s bytes after; too large to show", line(d.Path), brief.Thousands(len(d.Old)), brief.Thousands(len(d.New))))}
	}
	shown := diffContent{Type: "diff", Path: d.Path, NewText: d.New}
	if !d.Created {
		shown.OldText = &d.Old
	}
	return shown
}

// planOf reads the plan entries of a call of the tool todo.
func planOf(arguments string) (plan, bool) {
	items, err := tool.ReadTodo(arguments)
	if err != nil {
		return plan{}, false
	}
	p := plan{Kind: "plan", Entries: make([]planEntry, len(items))}
	for i, item := range items {
		p.Entries[i] = planEntry{Content: line(item.Text), Priority: "medium", Status: string(item.Status)}
	}
	return p, true
}
