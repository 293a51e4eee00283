package tool

import (
	"context"
	"fmt"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
)

type writeTool struct {
	w   *Workspace
	def llm.ToolDef
}

// Write makes the tool that creates a text file or replaces all of it.
func Write(w *Workspace) Tool {
	return &writeTool{w: w, def: llm.NewToolDef("write",
		"Create a file or replace all of it; makes missing folders. To change a part use edit.",
		[]byte(`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},
			"required":["path","content"]}`))}
}

func (t *writeTool) Def() llm.ToolDef { return t.def }

func (t *writeTool) Prepare(ctx context.Context, text string) (*Action, error) {
	a := parseArguments(text, "path", "content")
	path, content := a.text("path"), a.text("content")
	if err := a.err(); err != nil {
		return nil, err
	}
	p, err := t.w.locateForWriting(path)
	if err != nil {
		return nil, err
	}
	before, err := t.w.load(ctx, p)
	if err != nil {
		return nil, err
	}
	content, note := inStyleOf(before.text, content)
	change := &Diff{Path: p.abs, Old: before.text, New: content, Created: !before.exists}
	action := t.w.changeAction(p, change, 0)
	action.Run = runner(func(ctx context.Context) (Result, error) { return t.write(ctx, p, change, note) })
	return action, nil
}

// changeAction is the action of a change of one file, without its Run.
func (w *Workspace) changeAction(p place, change *Diff, line int) *Action {
	action := &Action{Title: w.display(p.abs), Kind: KindEdit, Diff: change,
		Locations: []Location{{Path: p.abs, Line: line}}}
	action.Access, action.Scopes = p.writeAccess()
	return action
}

// write does what was shown. Somebody may have changed the file since: what a
// person did not see is not overwritten.
func (t *writeTool) write(ctx context.Context, p place, change *Diff, note string) (Result, error) {
	name := t.w.display(p.abs)
	now, err := t.w.load(ctx, p)
	if err != nil {
		return Result{}, err
	}
	if now.exists == change.Created || now.text != change.Old {
		return Result{}, fmt.Errorf("%s was changed since this call was prepared: read it again", name)
	}
	if err := t.w.store(ctx, p, change.New); err != nil {
		return Result{}, fmt.Errorf("%s: %w", name, err)
	}
	text := createdText(name, change.New)
	if !change.Created {
		text = fmt.Sprintf("Replaced %s, %s (%s).", name, plural(countLines(change.New), "line"), change.stat())
	}
	return Result{Status: StatusOK, Text: text + note, Diff: change}, nil
}

// inStyleOf gives a new content of a file the line ends and the byte order mark
// of the old one: read does not show them, so a model cannot keep them.
func inStyleOf(old, content string) (styled, note string) {
	if allCRLF(old) && !strings.Contains(content, "\r") && strings.Contains(content, "\n") {
		content, note = toCRLF(content), " Lines still end with CRLF."
	}
	if strings.HasPrefix(old, bom) && !strings.HasPrefix(content, bom) {
		content = bom + content
	}
	return content, note
}

// bom is the byte order mark of UTF-8.
const bom = "\ufeff"
