package acp_test

import (
	"os/exec"
	"testing"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/tool"
)

// stuck is a server that runs below drover, and whose end takes longer than the
// whole process has for its own.
type stuck struct{ over chan struct{} }

func (stuck) Tools() []tool.Tool { return nil }
func (stuck) Notices() []string  { return nil }
func (s stuck) Close() error     { <-s.over; return nil }

// TestNothingIsLeftBehind: when there is no time to end something in peace, it is
// ended all the same.
func TestNothingIsLeftBehind(t *testing.T) {
	f := newFixture(t, &llmtest.Provider{Route: "a", List: models("m")})
	over := make(chan struct{})
	defer close(over)
	deaf := exec.Command("/bin/sh", "-c", "trap '' HUP INT TERM; while :; do sleep 0.01; done")
	tool.OwnGroup(deaf)
	f.opts.Agent.Connect = func(o *agent.Options) tool.Source {
		if err := o.Children.Start(deaf); err != nil {
			t.Error(err)
		}
		return stuck{over}
	}
	e := f.open(plain)
	e.Call("session/new", object{"cwd": f.dir, "mcpServers": []any{}}, nil)
	e.Close()
	if err := deaf.Wait(); err == nil || deaf.ProcessState.String() != "signal: killed" {
		t.Errorf("%v", err)
	}
}
