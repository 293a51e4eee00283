package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

// Tools are those with which a model writes and removes notes. A nil store has
// none. Their schemas are as small as they can be: every request pays for them.
func (s *Store) Tools() []tool.Tool {
	if s == nil {
		return nil
	}
	return []tool.Tool{
		&notesTool{prepare: s.remember, def: llm.NewToolDef("remember",
			"Keep a note for later; global: for all projects.",
			[]byte(`{"type":"object","properties":{"title":{"type":"string"},"text":{"type":"string"},
				"summary":{"type":"string"},"global":{"type":"boolean"}},"required":["title","text"]}`))},
		&notesTool{prepare: s.forget, def: llm.NewToolDef("forget", "Remove a note.",
			[]byte(`{"type":"object","properties":{"title":{"type":"string"}}}`))},
	}
}

type notesTool struct {
	def     llm.ToolDef
	prepare func(arguments string) (*tool.Action, error)
}

func (t *notesTool) Def() llm.ToolDef { return t.def }

func (t *notesTool) Prepare(_ context.Context, arguments string) (*tool.Action, error) {
	return t.prepare(arguments)
}

func (s *Store) remember(arguments string) (*tool.Action, error) {
	var a struct {
		Title, Text, Summary string
		Global               bool
	}
	if err := decode(arguments, &a, "title, text, summary, global"); err != nil {
		return nil, err
	}
	n := Note{Title: a.Title, Text: a.Text, Summary: a.Summary, Scope: Project}
	if a.Global {
		n.Scope = Global
	}
	if strings.TrimSpace(a.Text) == "" {
		return nil, errors.New(`argument "text" is missing`)
	}
	c, err := s.prepare(n)
	if err != nil {
		return nil, err
	}
	done := "Kept"
	if c.old != "" {
		done = "Replaced"
	}
	return s.action(c, done+" %s. Later turns are shown it."), nil
}

func (s *Store) forget(arguments string) (*tool.Action, error) {
	var a struct{ Title string }
	if err := decode(arguments, &a, "title"); err != nil {
		return nil, err
	}
	if strings.TrimSpace(a.Title) == "" {
		return nil, errors.New(`argument "title" is missing`)
	}
	n, err := s.Get(a.Title)
	if err != nil {
		return nil, fmt.Errorf("there is no note %q%s", a.Title, s.titles())
	}
	c, err := s.prepareRemoval(n)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name(&n), err)
	}
	return s.action(c, "Removed %s."), nil
}

// maxTitles is how many titles an error names.
const maxTitles = 20

func (s *Store) titles() string {
	notes, _ := s.List()
	if len(notes) == 0 {
		return ": there are none"
	}
	var list []string
	for i := range notes[:min(len(notes), maxTitles)] {
		list = append(list, fmt.Sprintf("%q", notes[i].Title))
	}
	if more := len(notes) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("%d more", more))
	}
	return " (there are: " + strings.Join(list, ", ") + ")"
}

// action shows a change and makes it. A global note speaks to every later
// session, whatever folder it is in: it is as good as a command, so that mode
// edit asks too, and no answer covers more than the one call.
func (s *Store) action(c *change, done string) *tool.Action {
	name := s.name(&c.note)
	a := &tool.Action{
		Title: name, Kind: tool.KindEdit, Access: tool.AccessWrite, Scopes: []string{"notes of the project"},
		Locations: []tool.Location{{Path: c.note.Path}},
		Diff:      &tool.Diff{Path: c.note.Path, Old: c.old, New: c.new, Created: c.old == ""},
	}
	if c.note.Scope == Global || !s.inside(c.folder) {
		a.Access, a.Scopes = tool.AccessExecute, nil
	}
	a.Run = func(ctx context.Context, _ func(string)) tool.Result {
		if err := ctx.Err(); err != nil {
			return tool.Failed("Not done: " + err.Error())
		}
		if err := s.apply(c); err != nil {
			return tool.Failed(fmt.Sprintf("%s: %v", name, err))
		}
		return tool.Result{Status: tool.StatusOK, Text: fmt.Sprintf(done, name), Diff: a.Diff}
	}
	return a
}

// maxArguments bounds the arguments of one call, in bytes: escapes of JSON make
// a text up to six times longer.
const maxArguments = 8 * MaxText

// decode reads arguments strictly. known names the members for the model.
func decode(arguments string, into any, known string) error {
	if len(arguments) > maxArguments {
		return fmt.Errorf("the arguments are longer than %d bytes", maxArguments)
	}
	dec := json.NewDecoder(strings.NewReader(arguments))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if _, more := dec.Token(); err == nil && more != io.EOF {
		err = errors.New("there is something behind them")
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("argument %q must be a %s, not a %s", strings.ToLower(wrong.Field), wrong.Type, wrong.Value)
	}
	if err != nil {
		return fmt.Errorf("the arguments must be one JSON object with %s: %s", known, strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}
