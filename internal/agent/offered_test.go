package agent_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/memory"
	"github.com/drover-dev/drover/internal/tool"
)

func TestTheSystemTurnStaysTheSameWithinATurn(t *testing.T) {
	p := &llmtest.Provider{Facts: window(32768), Script: []llmtest.Answer{
		llmtest.Call(llm.ToolCall{ID: "1", Name: "shell", Arguments: `{"command":"git init -q . && echo rule > AGENTS.md"}`}),
		llmtest.Say("done"),
	}}
	f := newFixture(t, p, nil, agent.Options{Gate: tool.NewGate(tool.ModeFull), Environ: os.Environ()})
	f.turn(t.Context(), "go")
	reqs := p.Requests()
	if reqs[0].System != reqs[1].System {
		t.Errorf("the system turn changed:\n%s\n---\n%s", reqs[0].System, reqs[1].System)
	}
	f.turn(t.Context(), "again")
	if got := p.Requests()[2].System; !strings.Contains(got, "rule") {
		t.Errorf("the next turn does not see the new instructions:\n%s", got)
	}
	f.check()
}

func TestToolsAreNotOfferedWhereTheyAreUnsupported(t *testing.T) {
	facts := window(8192)
	facts.Capabilities.Tools.Support = llm.Unsupported
	p := &llmtest.Provider{Facts: facts}
	f := newFixture(t, p, nil, agent.Options{})
	events := f.turn(t.Context(), "go")
	if n := len(p.Requests()[0].Tools); n != 0 {
		t.Errorf("%d tools sent", n)
	}
	if len(find[agent.Notice](events)) != 1 {
		t.Errorf("notices %v", find[agent.Notice](events))
	}
	f.check()
}

func TestSmallWindowsGetFewerTools(t *testing.T) {
	for size, want := range map[int]string{
		11_999: "[edit grep read shell]",
		12_000: "[edit forget glob grep read remember shell todo write]",
	} {
		p := &llmtest.Provider{Facts: window(size)}
		f := newFixture(t, p, nil, agent.Options{Memory: memory.Open("")})
		f.turn(t.Context(), "go")
		var names []string
		for _, d := range p.Requests()[0].Tools {
			names = append(names, d.Name)
		}
		if got := fmt.Sprint(names); got != want {
			t.Errorf("window %d: %s", size, got)
		}
	}
}

// TestWhatEveryRequestCosts holds the fixed part of a request small: local
// windows are.
func TestWhatEveryRequestCosts(t *testing.T) {
	for _, tt := range []struct{ window, tools, together int }{
		{8192, 850, 1250},
		{32768, 1450, 1850},
	} {
		p := &llmtest.Provider{Facts: window(tt.window)}
		f := newFixture(t, p, nil, agent.Options{Memory: memory.Open("")})
		r := find[agent.Planned](f.turn(t.Context(), "go"))[0].Report
		b := r.BreakdownAfter
		t.Logf("window %d: system %d, tools %d, of them", tt.window, b.System, b.ToolSchemas)
		policy, _ := budget.PolicyByVersion(budget.DefaultVersion)
		for _, d := range p.Requests()[0].Tools {
			t.Logf("%10s %4d", d.Name, budget.EstimateTool(policy, &d))
		}
		if b.ToolSchemas >= tt.tools || b.System+b.ToolSchemas >= tt.together {
			t.Errorf("window %d: system %d and tools %d tokens, want tools under %d and both under %d",
				tt.window, b.System, b.ToolSchemas, tt.tools, tt.together)
		}
	}
}

func TestToolsAreTurnedOffAndOn(t *testing.T) {
	p := &llmtest.Provider{Facts: window(8192)}
	f := newFixture(t, p, nil, agent.Options{ToolsOff: []string{"grep"}})
	if err := f.agent.SetTool("shell", false); err != nil {
		t.Fatal(err)
	}
	if err := f.agent.SetTool("grep", true); err != nil {
		t.Fatal(err)
	}
	if err := f.agent.SetTool("teleport", false); err == nil || !strings.Contains(err.Error(), "edit, glob, grep") {
		t.Errorf("%v", err)
	}
	f.turn(t.Context(), "go")
	var names []string
	for _, d := range p.Requests()[0].Tools {
		names = append(names, d.Name)
	}
	if got := fmt.Sprint(names); got != "[edit grep read]" {
		t.Errorf("offered %s", got)
	}
}
