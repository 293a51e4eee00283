package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
)

// Bounds of a plan.
const (
	maxTodoItems = 50
	maxTodoText  = 300 // bytes of one step
)

// TodoStatus says how far a step of a plan is. The values are those of the Agent
// Client Protocol.
type TodoStatus string

// The statuses.
const (
	TodoPending    TodoStatus = "pending"
	TodoInProgress TodoStatus = "in_progress"
	TodoCompleted  TodoStatus = "completed"
)

// TodoItem is one step of a plan.
type TodoItem struct {
	Text   string // one line
	Status TodoStatus
}

type todoTool struct{ def llm.ToolDef }

// Todo makes the tool that shows a person the model's plan. The plan is in the
// call's arguments and nowhere else: the conversation keeps it. Its schema is as
// small as it can be, since every request pays for it: steps are lines of a
// Markdown list of tasks, which models write of themselves, and members
// {"text", "status"} are read too.
func Todo() Tool { return &todoTool{def: todoDef()} }

func todoDef() llm.ToolDef {
	return llm.NewToolDef("todo", "Show your plan: all steps, [x] done, [>] now, [ ] later.",
		[]byte(`{"type":"object","properties":{"items":{"type":"array","items":{"type":"string"}}}}`))
}

func (t *todoTool) Def() llm.ToolDef { return t.def }

func (t *todoTool) Prepare(_ context.Context, text string) (*Action, error) {
	items, err := readTodo(text)
	if err != nil {
		return nil, err
	}
	done, current := 0, ""
	for _, item := range items {
		switch item.Status {
		case TodoCompleted:
			done++
		case TodoInProgress:
			if current == "" {
				current = ", now: " + item.Text
			}
		}
	}
	state := fmt.Sprintf("%d of %s done", done, plural(len(items), "step"))
	if len(items) == 0 {
		state = "no steps"
	}
	return &Action{
		Title: oneLine(state+current, maxTodoText), Kind: KindThink, Access: AccessNone, ReadOnly: true,
		Run: func(context.Context, func(string)) Result {
			return Result{Status: StatusOK, Text: "Plan shown: " + state + "."}
		},
	}, nil
}

// ReadTodo reads the plan out of the arguments of a call as a model wrote them,
// for those who show it: what the tool takes, and nothing else.
func ReadTodo(arguments string) ([]TodoItem, error) {
	object, err := llm.RepairArguments(arguments)
	if err != nil {
		return nil, err
	}
	return readTodo(llm.CoerceArguments(object, todoDef().Parameters))
}

func readTodo(text string) ([]TodoItem, error) {
	a := parseArguments(text, "items")
	raw, given := a.member("items")
	if !given {
		a.fail("argument %q is missing", "items")
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	elements, err := todoElements(raw)
	if err != nil {
		return nil, err
	}
	if len(elements) > maxTodoItems {
		return nil, fmt.Errorf("a plan has at most %d steps, not %d", maxTodoItems, len(elements))
	}
	items := make([]TodoItem, 0, len(elements))
	for i, e := range elements {
		item, err := readTodoItem(e)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i+1, err)
		}
		items = append(items, item)
	}
	return items, nil
}

// todoElements are the steps of a plan, also of one that is a text of lines.
func todoElements(raw json.RawMessage) ([]json.RawMessage, error) {
	var elements []json.RawMessage
	if json.Unmarshal(raw, &elements) == nil {
		return elements, nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil, fmt.Errorf("argument %q must be an array of steps, not %s", "items", cutText(string(raw), 50))
	}
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			quoted, _ := json.Marshal(line) // a string always encodes
			elements = append(elements, quoted)
		}
	}
	return elements, nil
}

// readTodoItem reads one step. Members that nobody asked for are passed over.
func readTodoItem(raw json.RawMessage) (TodoItem, error) {
	var step struct {
		Text, Content, Status string
	}
	if json.Unmarshal(raw, &step.Text) == nil {
		step.Text, step.Status = cutMark(step.Text)
	} else if err := json.Unmarshal(raw, &step); err != nil {
		return TodoItem{}, fmt.Errorf("want a text, not %s", cutText(string(raw), 50))
	}
	if step.Text == "" {
		step.Text = step.Content // as the protocol of editors calls it
	}
	item := TodoItem{Text: oneLine(strings.ToValidUTF8(step.Text, "\uFFFD"), maxTodoText)}
	if item.Text == "" {
		return item, errors.New("its text is missing")
	}
	switch strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(strings.TrimSpace(step.Status))) {
	case "", "pending", "todo", "open":
		item.Status = TodoPending
	case "in_progress", "doing", "now":
		item.Status = TodoInProgress
	case "completed", "complete", "done":
		item.Status = TodoCompleted
	default:
		return item, fmt.Errorf("its status is %s, want pending, in_progress or completed", cutText(step.Status, 50))
	}
	return item, nil
}

// cutMark takes the mark off a line of a list of tasks. A line without one is
// a step to come.
func cutMark(line string) (text, status string) {
	text = strings.TrimSpace(line)
	if rest := strings.TrimLeft(text, "-*+0123456789.) \t"); strings.HasPrefix(rest, "[") {
		text = rest
	}
	mark, rest, found := strings.Cut(text, "]")
	if !found || !strings.HasPrefix(mark, "[") {
		return strings.TrimPrefix(strings.TrimPrefix(text, "- "), "* "), ""
	}
	switch strings.ToLower(strings.TrimSpace(mark[1:])) {
	case "":
		status = string(TodoPending)
	case "x", "✓", "✔":
		status = string(TodoCompleted)
	case ">", "-", "~", "*", "/":
		status = string(TodoInProgress)
	default:
		return text, "" // a text that begins with a bracket
	}
	return strings.TrimSpace(rest), status
}
