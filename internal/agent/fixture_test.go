package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/agent/agenttest"
	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/tool"
)

// fixture is one session on a scripted provider.
type fixture struct {
	t        *testing.T
	provider *llmtest.Provider
	selector *target.Selector
	log      *session.Log
	agent    *agent.Agent
	dir      string
}

func window(tokens int) llm.ModelInfo {
	return llm.ModelInfo{Window: llm.Window{Tokens: tokens, Source: llm.Effective}}
}

func newFixture(t *testing.T, p *llmtest.Provider, approver tool.Approver, opts agent.Options) *fixture {
	t.Helper()
	f := &fixture{t: t, provider: p, dir: t.TempDir()}
	registry := new(catalog.Registry)
	if _, err := registry.Register(p, "p"); err != nil {
		t.Fatal(err)
	}
	f.selector = target.NewSelector(registry, new(target.Store), llm.Graze)
	f.selector.Select(t.Context(), llm.Target{Provider: "p", Model: "m"})
	var err error
	if f.log, err = session.NewStore("").Create(f.dir, nil); err != nil {
		t.Fatal(err)
	}
	opts.Dir = f.dir
	f.agent = agent.New(f.selector, f.log, f.log.NewState(), approver, &opts)
	return f
}

// turn runs a turn to its end and returns its events.
func (f *fixture) turn(ctx context.Context, prompt string) []agent.Event {
	f.t.Helper()
	var events []agent.Event
	for ev := range f.agent.Turn(ctx, []llm.Part{llm.Text(prompt)}) {
		events = append(events, ev)
	}
	if _, ok := events[len(events)-1].(agent.End); !ok {
		f.t.Errorf("the last event is %T", events[len(events)-1])
	}
	return events
}

// check holds the log against what the provider was sent.
func (f *fixture) check() {
	f.t.Helper()
	agenttest.Check(f.t, f.log.Records(), f.provider.Requests())
}

func find[T agent.Event](events []agent.Event) []T {
	var found []T
	for _, ev := range events {
		if e, ok := ev.(T); ok {
			found = append(found, e)
		}
	}
	return found
}

func endOf(events []agent.Event) agent.End { return find[agent.End](events)[0] }

func text(events []agent.Event) string {
	var b strings.Builder
	for _, t := range find[agent.Text](events) {
		b.WriteString(string(t))
	}
	return b.String()
}

// answers gives the same decision to every question and records them.
type answers struct {
	decision tool.Decision
	err      error
	asked    []string
	wait     bool
}

func (a *answers) Approve(ctx context.Context, q *tool.Question) (tool.Decision, error) {
	a.asked = append(a.asked, q.Tool+" "+q.Action.Title)
	if a.wait {
		<-ctx.Done()
		return tool.Cancelled, nil
	}
	return a.decision, a.err
}

func edit(id string) llm.ToolCall {
	return llm.ToolCall{ID: id, Name: "edit", Arguments: `{"path":"new.txt","old":"","new":"hello\n"}`}
}
