package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/tool"
)

// Calls that cannot be prepared, again and again, are no progress either.
func TestNoProgressOfCallsThatCannotRun(t *testing.T) {
	for _, c := range []llm.ToolCall{{Name: "teleport", Arguments: "{}"}, {Name: "read", Arguments: `{"path": oops`}} {
		p := &llmtest.Provider{Facts: window(32768)}
		p.Answer = func(n int, _ *llm.Request) llmtest.Answer {
			if n == 20 {
				return llmtest.Say("done")
			}
			c.ID = fmt.Sprint(n)
			return llmtest.Call(c)
		}
		f := newFixture(t, p, nil, agent.Options{})
		end := endOf(f.turn(t.Context(), "go"))
		if end.Reason != agent.EndError || agent.Code(end.Err) != llm.CodeNoProgress || len(p.Requests()) != 3 {
			t.Errorf("%s: ended %+v after %d requests", c.Name, end, len(p.Requests()))
		}
		f.check()
	}
}

func TestNoProgress(t *testing.T) {
	again := func(n int, _ *llm.Request) llmtest.Answer {
		// Spaces and order of members do not make another call.
		arguments := []string{`{"path":"f.txt","limit":5}`, `{ "limit": 5, "path": "f.txt" }`}[n%2]
		return llmtest.Call(llm.ToolCall{ID: fmt.Sprint(n), Name: "read", Arguments: arguments})
	}
	for _, tt := range []struct {
		name     string
		approver *answers
		requests int
		code     llm.Code
		end      agent.EndReason
	}{
		{"nobody to ask", nil, 3, llm.CodeNoProgress, agent.EndError},
		{"stop", &answers{decision: tool.RejectOnce}, 3, llm.CodeNoProgress, agent.EndError},
		{"cancel", &answers{decision: tool.Cancelled}, 3, "", agent.EndCancelled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &llmtest.Provider{Facts: window(32768), Answer: again}
			var approver tool.Approver
			if tt.approver != nil {
				approver = tt.approver
			}
			f := newFixture(t, p, approver, agent.Options{})
			if err := os.WriteFile(filepath.Join(f.dir, "f.txt"), []byte("x\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			end := endOf(f.turn(t.Context(), "go"))
			if end.Reason != tt.end || tt.code != "" && agent.Code(end.Err) != tt.code || len(p.Requests()) != tt.requests {
				t.Errorf("ended %+v after %d requests", end, len(p.Requests()))
			}
			f.check()
		})
	}
	t.Run("go on", func(t *testing.T) {
		a := &answers{decision: tool.AllowOnce}
		p := &llmtest.Provider{Facts: window(32768)}
		p.Answer = func(n int, req *llm.Request) llmtest.Answer {
			if n == 8 {
				return llmtest.Say("done")
			}
			return again(n, req)
		}
		f := newFixture(t, p, a, agent.Options{})
		end := endOf(f.turn(t.Context(), "go"))
		if end.Reason != agent.EndCompleted || len(a.asked) != 3 {
			t.Errorf("ended %+v, asked %v", end, a.asked)
		}
	})
	t.Run("a change starts the count again", func(t *testing.T) {
		p := &llmtest.Provider{Facts: window(32768)}
		p.Answer = func(n int, req *llm.Request) llmtest.Answer {
			switch {
			case n == 12:
				return llmtest.Say("done")
			case n%3 == 2:
				return llmtest.Call(llm.ToolCall{ID: fmt.Sprint(n), Name: "write", Arguments: fmt.Sprintf(`{"path":"f.txt","content":"%d"}`, n)})
			}
			return again(n, req)
		}
		f := newFixture(t, p, nil, agent.Options{Gate: tool.NewGate(tool.ModeEdit)})
		if end := endOf(f.turn(t.Context(), "go")); end.Reason != agent.EndCompleted {
			t.Errorf("ended %+v", end)
		}
	})
}

// TestWhatCountsAsProgress: between two looks at a file the model does something
// else. Whether the third look is run tells whether that was progress.
func TestWhatCountsAsProgress(t *testing.T) {
	const looks = 6
	shell := func(format string) func(n int) llm.ToolCall {
		return func(n int) llm.ToolCall {
			command := format
			if n > 0 {
				command += fmt.Sprint(" # ", n)
			}
			return llm.ToolCall{Name: "shell", Arguments: arguments(t, map[string]any{"command": command})}
		}
	}
	same := func(c llm.ToolCall) func(int) llm.ToolCall { return func(int) llm.ToolCall { return c } }
	for _, tt := range []struct {
		name    string
		between func(n int) llm.ToolCall // n counts from 1
		mode    tool.Mode
		stops   string // the tool that is stopped, "" for none
	}{
		{"a command", shell("echo"), tool.ModeFull, ""},
		{"a command that fails", shell("exit 3"), tool.ModeFull, ""},
		{"the same command", func(int) llm.ToolCall { return shell("echo same")(0) }, tool.ModeFull, "shell"},
		{"a write", func(n int) llm.ToolCall {
			return llm.ToolCall{Name: "write", Arguments: fmt.Sprintf(`{"path":"g.txt","content":"%d"}`, n)}
		}, tool.ModeEdit, ""},
		{"a write that fails", func(n int) llm.ToolCall {
			return llm.ToolCall{Name: "write", Arguments: fmt.Sprintf(`{"path":"f.txt/%d","content":"x"}`, n)}
		}, tool.ModeEdit, "read"},
		{"a write that is denied", func(n int) llm.ToolCall {
			return llm.ToolCall{Name: "write", Arguments: fmt.Sprintf(`{"path":"g.txt","content":"%d"}`, n)}
		}, tool.ModeAsk, "read"},
		{"another read", func(n int) llm.ToolCall {
			return llm.ToolCall{Name: "read", Arguments: fmt.Sprintf(`{"path":"f.txt","limit":%d}`, n)}
		}, tool.ModeFull, "read"},
		{"a far tool that reads", same(llm.ToolCall{Name: "far__look", Arguments: "{}"}), tool.ModeFull, "read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &llmtest.Provider{Facts: window(65536)}
			p.Answer = func(n int, _ *llm.Request) llmtest.Answer {
				c := llm.ToolCall{Name: "read", Arguments: `{"path":"f.txt"}`}
				switch {
				case n == 2*looks:
					return llmtest.Say("done")
				case n%2 == 1:
					c = tt.between(n/2 + 1)
				}
				c.ID = fmt.Sprint(n)
				return llmtest.Call(c)
			}
			ran := 0
			f := newFixture(t, p, nil, agent.Options{
				Gate: tool.NewGate(tt.mode), Environ: os.Environ(),
				Connect: func(*agent.Options) tool.Source {
					return &shelf{tools: []tool.Tool{farTool{"far__look", true, &ran}}}
				},
			})
			if err := os.WriteFile(filepath.Join(f.dir, "f.txt"), []byte("x\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			end := endOf(f.turn(t.Context(), "go"))
			if tt.stops == "" {
				if end.Reason != agent.EndCompleted {
					t.Errorf("ended %+v", end)
				}
			} else if agent.Code(end.Err) != llm.CodeNoProgress || !strings.Contains(end.Err.Error(), "("+tt.stops+" ") {
				t.Errorf("ended %+v, want %s to be stopped", end, tt.stops)
			}
			f.check()
		})
	}
}

// TestALookThatIsGoneMayBeRepeated: results that the window has no room for any
// more are no reason to stop who asks for them again.
func TestALookThatIsGoneMayBeRepeated(t *testing.T) {
	const rounds = 5
	p := &llmtest.Provider{Facts: window(8192)}
	p.Answer = func(n int, _ *llm.Request) llmtest.Answer {
		file := n % 5
		if n == 5*rounds {
			return llmtest.Say("done")
		}
		return llmtest.Call(llm.ToolCall{ID: fmt.Sprint(n), Name: "read", Arguments: fmt.Sprintf(`{"path":"%d.txt"}`, file)})
	}
	f := newFixture(t, p, nil, agent.Options{})
	for n := range 5 {
		if err := os.WriteFile(filepath.Join(f.dir, fmt.Sprint(n, ".txt")), []byte(strings.Repeat(fmt.Sprint("reeds ", n, "\n"), 500)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if end := endOf(f.turn(t.Context(), "go")); end.Reason != agent.EndCompleted || len(p.Requests()) != 5*rounds+1 {
		t.Errorf("ended %+v after %d requests", end, len(p.Requests()))
	}
	f.check()
}
