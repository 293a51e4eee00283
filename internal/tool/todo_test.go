package tool

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func planText(items []TodoItem) string {
	var list []string
	for _, i := range items {
		list = append(list, string(i.Status)+" "+i.Text)
	}
	return strings.Join(list, "; ")
}

func TestTodo(t *testing.T) {
	many := "[" + strings.Repeat(`"x",`, maxTodoItems) + `"x"]`
	for _, tt := range []struct{ arguments, plan, result, problem string }{
		{`{"items":["[x] read","[>] write","[ ] test"]}`, "completed read; in_progress write; pending test", "Plan shown: 1 of 3 steps done.", ""},
		{`{"items":["read"]}`, "pending read", "Plan shown: 0 of 1 step done.", ""},
		{`{"items":["- [X] a","2. [ ] b","* c","- d","[-] e"]}`, "completed a; pending b; pending c; pending d; in_progress e", "Plan shown: 1 of 5 steps done.", ""},
		{`{"items":["[1] footnote","3 [ ] boxes","[] x","5 of 6 files"]}`, "pending [1] footnote; pending boxes; pending x; pending 5 of 6 files", "Plan shown: 0 of 4 steps done.", ""},
		{`{"items":"- [x] a\n\n- [ ] b\n"}`, "completed a; pending b", "Plan shown: 1 of 2 steps done.", ""},
		{`{"items":[{"text":"a","status":"completed"},{"content":"b","status":"in-progress","id":1},{"text":"c"}]}`, "completed a; in_progress b; pending c", "Plan shown: 1 of 3 steps done.", ""},
		{`{"items":"[\"[x] a\"]"}`, "completed a", "Plan shown: 1 of 1 step done.", ""},
		{`{"items":[]}`, "", "Plan shown: no steps.", ""},
		{`{}`, "", "", `argument "items" is missing`},
		{`{"todos":[]}`, "", "", `unknown argument "todos"`},
		{`{"items":7}`, "", "", "must be an array"},
		{`{"items":[7]}`, "", "", "step 1: want a text, not 7"},
		{`{"items":["a",""]}`, "", "", "step 2: its text is missing"},
		{`{"items":[{"text":"a","status":"odd"}]}`, "", "", "step 1: its status is odd"},
		{`{"items":` + many + `}`, "", "", "at most 50 steps, not 51"},
		{`{"items":["a`, "", "", ""},
	} {
		items, err := ReadTodo(tt.arguments)
		if tt.result == "" {
			if err == nil || !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("%.60s: %v, want %s", tt.arguments, err, tt.problem)
			}
			continue
		}
		if got := planText(items); err != nil || got != tt.plan {
			t.Errorf("%s: %s %v, want %s", tt.arguments, got, err, tt.plan)
		}
	}
	a, err := Prepare(t.Context(), Todo(), `{"items":["[x] read","[>] write\nit"]}`)
	if err != nil || a.Title != "1 of 2 steps done, now: write it" || a.Kind != KindThink || a.Access != AccessNone || !a.ReadOnly {
		t.Errorf("%+v %v", a, err)
	}
	for _, mode := range Modes() {
		if v, _ := NewGate(mode).Check(&Question{Tool: "todo", Action: a}); v != Allow {
			t.Errorf("mode %s: %v", mode, v)
		}
	}
}

// What the tool takes, ReadTodo reads: what a person is shown is what the model
// was told is shown.
func TestTodoAndItsReaderAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		step := rapid.OneOf(rapid.StringMatching(`(- )?(\[[x >]?\])? ?[a-z]{0,4}`), rapid.String())
		var list []string
		for _, s := range rapid.SliceOfN(step, 0, 6).Draw(t, "steps") {
			list = append(list, fmt.Sprintf("%q", strings.ToValidUTF8(s, "?")))
		}
		arguments := `{"items":[` + strings.Join(list, ",") + `]}`
		items, err := ReadTodo(arguments)
		_, prepareErr := Prepare(t.Context(), Todo(), arguments)
		if (err == nil) != (prepareErr == nil) {
			t.Fatalf("%s: %v, %v", arguments, err, prepareErr)
		}
		for _, item := range items {
			if item.Text == "" || len(item.Text) > maxTodoText+3 || strings.ContainsAny(item.Text, "\n\r") || item.Status == "" {
				t.Fatalf("%+v", item)
			}
		}
	})
}
