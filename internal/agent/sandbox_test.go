package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/tool"
)

// approveWith calls a function before it allows.
type approveWith func()

func (f approveWith) Approve(context.Context, *tool.Question) (tool.Decision, error) {
	f()
	return tool.AllowOnce, nil
}

// TestSandboxFollowsTheMode: commands are confined unless the mode is full, and
// the mode at the time when the command starts is what counts.
func TestSandboxFollowsTheMode(t *testing.T) {
	self := filepath.Join(t.TempDir(), "self")
	script := "#!/bin/sh\necho confined: $1\nwhile [ \"$1\" != -- ]; do shift; done; shift\nexec \"$@\"\n"
	if err := os.WriteFile(self, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	sandbox := &tool.Sandbox{Self: self}
	if state := sandbox.State(); !state.Active() {
		t.Skipf("not tested: %s", state)
	}
	for _, tt := range []struct {
		name         string
		sandbox      *tool.Sandbox
		before, then tool.Mode
		want         string
	}{
		{"ask", sandbox, tool.ModeAsk, tool.ModeAsk, "confined: sandbox-exec\nmoo\n[exit code 0]"},
		{"edit", sandbox, tool.ModeEdit, tool.ModeEdit, "confined: sandbox-exec\nmoo\n[exit code 0]"},
		{"full", sandbox, tool.ModeFull, tool.ModeFull, "moo\n[exit code 0]"},
		{"read-only", sandbox, tool.ModeReadOnly, tool.ModeReadOnly, "Denied. The session's mode is read-only"},
		{"full at the question", sandbox, tool.ModeAsk, tool.ModeFull, "moo\n[exit code 0]"},
		{"edit at the question", sandbox, tool.ModeAsk, tool.ModeEdit, "confined: sandbox-exec\nmoo\n[exit code 0]"},
		{"off", nil, tool.ModeAsk, tool.ModeAsk, "moo\n[exit code 0]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			gate := tool.NewGate(tt.before)
			p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{
				llmtest.Call(llm.ToolCall{ID: "1", Name: "shell", Arguments: `{"command":"echo moo"}`}), llmtest.Say("done"),
			}}
			f := newFixture(t, p, approveWith(func() { gate.SetMode(tt.then) }),
				agent.Options{Gate: gate, Sandbox: tt.sandbox, Environ: os.Environ()})
			events := f.turn(t.Context(), "go")
			i := slices.IndexFunc(events, func(ev agent.Event) bool { _, ok := ev.(agent.CallFinished); return ok })
			if i < 0 {
				t.Fatal("no call finished")
			}
			if got := events[i].(agent.CallFinished).Result.Text; !strings.HasPrefix(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
			f.check()
		})
	}
}
