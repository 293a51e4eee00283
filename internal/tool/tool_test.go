package tool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
)

func TestWireSize(t *testing.T) {
	w := &Workspace{Dir: t.TempDir()}
	for _, set := range []struct {
		name  string
		tools []Tool
		want  string
		max   int
	}{
		{"all", Builtin(w), "edit glob grep read shell todo write", 2350},
		{"small", Small(w), "edit grep read shell", 1450},
	} {
		names, sum := "", 0
		for _, d := range NewSet(set.tools...).Defs() {
			t.Logf("%4d bytes  %s", len(d.Wire), d.Wire)
			names, sum = names+d.Name+" ", sum+len(d.Wire)
			var schema struct {
				Properties map[string]struct{ Description string }
			}
			if err := json.Unmarshal([]byte(d.Parameters), &schema); err != nil || len(schema.Properties) == 0 {
				t.Errorf("%s: parameters %s: %v", d.Name, d.Parameters, err)
			}
			if len(d.Description) > 199 {
				t.Errorf("%s: the description has %d bytes", d.Name, len(d.Description))
			}
		}
		t.Logf("%s: %d bytes", set.name, sum)
		if strings.TrimSpace(names) != set.want || sum > set.max {
			t.Errorf("%s: %s with %d bytes, want %s and at most %d", set.name, names, sum, set.want, set.max)
		}
	}
}

type fakeTool func() (*Action, error)

func (fakeTool) Def() llm.ToolDef                                   { return llm.NewToolDef("fake", "", nil) }
func (f fakeTool) Prepare(context.Context, string) (*Action, error) { return f() }

func TestPrepareSurvives(t *testing.T) {
	for name, f := range map[string]fakeTool{
		"panic":     func() (*Action, error) { panic("ouch") },
		"nothing":   func() (*Action, error) { return nil, nil },
		"no Run":    func() (*Action, error) { return &Action{}, nil },
		"its error": func() (*Action, error) { return nil, errors.New("ouch") },
	} {
		if a, err := Prepare(t.Context(), f, "{}"); err == nil || a != nil {
			t.Errorf("%s: %v, %v", name, a, err)
		}
	}
}

func TestRunAlwaysAnswers(t *testing.T) {
	gives := func(r Result) func(context.Context, func(string)) Result {
		return func(context.Context, func(string)) Result { return r }
	}
	for _, c := range []struct {
		name   string
		a      Action
		status Status
		text   string
	}{
		{"nothing at all", Action{Run: gives(Result{})}, StatusOK, "[done, no output]"},
		{"no text", Action{Run: gives(Result{Status: StatusError})}, StatusError, "[error, no output]"},
		{"no UTF-8", Action{Run: gives(Result{Text: "a\xff"})}, StatusOK, "a\uFFFD"},
		{"panic", Action{Run: func(context.Context, func(string)) Result { panic("ouch") }}, StatusUnknown, "The tool failed: ouch"},
		{"panic while reading", Action{ReadOnly: true, Run: func(context.Context, func(string)) Result { panic(errors.New("ouch")) }},
			StatusError, "The tool failed: ouch"},
		{"no Run", Action{ReadOnly: true}, StatusError, "The tool failed: runtime error: invalid memory address or nil pointer dereference"},
		{"progress to nobody", Action{Run: func(_ context.Context, progress func(string)) Result {
			progress("x")
			return Result{Text: "y"}
		}}, StatusOK, "y"},
	} {
		if r := Run(t.Context(), &c.a, nil); r.Status != c.status || r.Text != c.text {
			t.Errorf("%s: %s %q", c.name, r.Status, r.Text)
		}
	}
}

func TestSearchPanicReachesRun(t *testing.T) {
	a := &Action{ReadOnly: true, Run: func(ctx context.Context, _ func(string)) Result {
		searchFiles(ctx, []walked{{path: "tool_test.go"}}, nil) // no expression: the search panics
		return Result{}
	}}
	if r := Run(t.Context(), a, nil); r.Status != StatusError || !strings.Contains(r.Text, "failed") {
		t.Errorf("%s %q", r.Status, r.Text)
	}
}

// call prepares and runs one call.
func call(t testing.TB, impl Tool, arguments any) Result {
	t.Helper()
	text, ok := arguments.(string)
	if !ok {
		data, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		text = string(data)
	}
	a, err := Prepare(t.Context(), impl, text)
	if err != nil {
		return Failed("refused: " + err.Error())
	}
	return Run(t.Context(), a, nil)
}

type m = map[string]any
