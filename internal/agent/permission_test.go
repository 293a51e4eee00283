package agent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/memory"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/tool"
)

// permissionTable says what each mode does with a call of each tool: it runs,
// asks, or never runs. "once" means that no answer covers more than the one
// call. The arguments stand behind the bar; $OUT is a folder outside.
const permissionTable = `
tool               ask    edit   read-only  full   | arguments
read               runs   runs   runs       runs   | {"path":"a.txt"}
read      outside  asks   asks   asks       runs   | {"path":"$OUT/b.txt"}
glob               runs   runs   runs       runs   | {"pattern":"*.txt"}
glob      outside  asks   asks   asks       runs   | {"pattern":"$OUT/*.txt"}
grep               runs   runs   runs       runs   | {"pattern":"reed"}
grep      outside  asks   asks   asks       runs   | {"pattern":"reed","path":"$OUT"}
todo               runs   runs   runs       runs   | {"items":["[>] look"]}
write              asks   runs   never      runs   | {"path":"new.txt","content":"x"}
write     once     asks   asks   never      runs   | {"path":".git/hooks/pre-commit","content":"x"}
edit               asks   runs   never      runs   | {"path":"a.txt","old":"reed","new":"rush"}
edit      once     asks   asks   never      runs   | {"path":".git/config","old":"","new":"x"}
shell              asks   asks   never      runs   | {"command":"touch made"}
shell     once     asks   asks   never      runs   | {"command":"echo x > made"}
remember           asks   runs   never      runs   | {"title":"Pond","text":"deep"}
remember  once     asks   asks   never      runs   | {"title":"Sea","text":"deeper","global":true}
forget             asks   runs   never      runs   | {"title":"Old"}
far__look read     asks   asks   asks       runs   | {}
far__do            asks   asks   never      runs   | {}
`

// permissionCase is one call in one mode.
type permissionCase struct {
	name, tool, arguments, rule string
	mode                        tool.Mode
	once                        bool
}

func permissionCases(t *testing.T) (cases []permissionCase) {
	t.Helper()
	rows := strings.Split(strings.TrimSpace(permissionTable), "\n")
	modes := tool.Modes()
	for _, row := range rows[1:] {
		cells, arguments, ok := strings.Cut(row, "|")
		fields := strings.Fields(cells)
		if rules := len(fields) - len(modes); !ok || rules < 1 || rules > 2 {
			t.Fatalf("row %q", row)
		}
		note := ""
		if len(fields) > len(modes)+1 {
			note = fields[1]
		}
		for i, m := range modes {
			cases = append(cases, permissionCase{
				name: strings.TrimSpace(fields[0]+" "+note) + " in " + m.String(), tool: fields[0], arguments: strings.TrimSpace(arguments),
				rule: fields[len(fields)-len(modes)+i], mode: m, once: note == "once",
			})
		}
	}
	return cases
}

// farTool is a tool of an MCP server.
type farTool struct {
	name     string
	readOnly bool
	ran      *int
}

func (t farTool) Def() llm.ToolDef { return llm.NewToolDef(t.name, "", nil) }
func (t farTool) Server() string   { return "far" }
func (t farTool) Prepare(context.Context, string) (*tool.Action, error) {
	return &tool.Action{
		Title: t.name, Access: tool.AccessExternal, ReadOnly: t.readOnly, Scopes: []string{"tool " + t.name + " of far"},
		Run: func(context.Context, func(string)) tool.Result {
			*t.ran++
			return tool.Result{Text: "done"}
		},
	}, nil
}

// permissionFixture is a session whose model makes the call twice. changed
// reports whether the call had its effect; ok says that it has one.
func permissionFixture(t *testing.T, c *permissionCase, approver tool.Approver) (f *fixture, changed func() (yes, ok bool)) {
	t.Helper()
	outside, notes := t.TempDir(), memory.Open(t.TempDir())
	arguments := strings.ReplaceAll(c.arguments, "$OUT", filepath.ToSlash(outside))
	call := func(id string) llm.ToolCall { return llm.ToolCall{ID: id, Name: c.tool, Arguments: arguments} }
	p := &llmtest.Provider{Facts: window(32768), Script: []llmtest.Answer{
		llmtest.Call(call("1")), llmtest.Call(call("2")), llmtest.Say("done"),
	}}
	ran := 0
	opts := agent.Options{
		Gate: tool.NewGate(c.mode), Environ: os.Environ(), Memory: notes,
		Connect: func(*agent.Options) tool.Source {
			return &shelf{tools: []tool.Tool{farTool{"far__look", true, &ran}, farTool{"far__do", false, &ran}}}
		},
	}
	f = newFixture(t, p, approver, opts)
	for file, text := range map[string]string{
		filepath.Join(f.dir, "a.txt"):                       "reed\n",
		filepath.Join(f.dir, ".git", "HEAD"):                "ref: refs/heads/main\n",
		filepath.Join(f.dir, ".drover", "memory", "old.md"): "---\ntitle: Old\n---\ntext\n",
		filepath.Join(outside, "b.txt"):                     "reed\n",
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	there := func(names ...string) bool {
		_, err := os.Stat(filepath.Join(append([]string{f.dir}, names...)...))
		return err == nil
	}
	noted := func(title string) bool {
		_, err := f.agent.Memory().Get(title)
		return err == nil
	}
	return f, func() (yes, ok bool) {
		switch {
		case strings.Contains(arguments, "new.txt"):
			return there("new.txt"), true
		case strings.Contains(arguments, "pre-commit"):
			return there(".git", "hooks", "pre-commit"), true
		case strings.Contains(arguments, ".git/config"):
			return there(".git", "config"), true
		case c.tool == "edit":
			text, err := os.ReadFile(filepath.Join(f.dir, "a.txt"))
			return err == nil && string(text) == "rush\n", true
		case c.tool == "shell":
			return there("made"), true
		case strings.Contains(arguments, "Pond"):
			return noted("Pond"), true
		case strings.Contains(arguments, "Sea"):
			return noted("Sea"), true
		case c.tool == "forget":
			return !noted("Old"), true
		case strings.HasPrefix(c.tool, "far__"):
			return ran > 0, true
		}
		return false, false
	}
}

// TestPermissionTable runs every tool in every mode with every answer: nothing
// runs without the approval that the table asks for.
func TestPermissionTable(t *testing.T) {
	decisions := []tool.Decision{tool.RejectOnce, tool.RejectAlways, tool.AllowOnce, tool.AllowAlways, tool.Cancelled}
	tools := make(map[string]bool)
	for _, c := range permissionCases(t) {
		tools[c.tool] = true
		for _, d := range decisions {
			t.Run(fmt.Sprintf("%s, %s", c.name, d), func(t *testing.T) {
				t.Parallel()
				checkPermission(t, &c, &answers{decision: d})
			})
		}
		t.Run(c.name+", nobody to ask", func(t *testing.T) {
			t.Parallel()
			checkPermission(t, &c, nil)
		})
	}
	f, _ := permissionFixture(t, &permissionCase{tool: "todo", arguments: "{}"}, nil)
	f.turn(t.Context(), "go")
	for _, d := range f.provider.Requests()[0].Tools {
		if !tools[d.Name] {
			t.Errorf("the tool %s is not in the table", d.Name)
		}
	}
}

func checkPermission(t *testing.T, c *permissionCase, a *answers) {
	var approver tool.Approver
	decision := tool.RejectOnce
	if a != nil {
		approver, decision = a, a.decision
	}
	f, changed := permissionFixture(t, c, approver)
	events := f.turn(t.Context(), "go")

	// What the two calls may do, and how often a person is asked.
	allowed := c.rule == "runs" || c.rule == "asks" && decision.Allowed()
	asked := 0
	if c.rule == "asks" && a != nil {
		asked = 2
		if decision == tool.Cancelled || !c.once && (decision == tool.AllowAlways || decision == tool.RejectAlways) {
			asked = 1
		}
		if decision.Allowed() && (c.tool == "edit" || c.tool == "forget") {
			asked = 1 // what was replaced or removed is gone
		}
	}
	if a != nil && len(a.asked) != asked {
		t.Errorf("asked %q, want %d questions", a.asked, asked)
	}
	finished := find[agent.CallFinished](events)
	if len(finished) == 0 {
		t.Fatal("no result")
	}
	first := finished[0].Result
	if ran := first.Status == tool.StatusOK; ran != allowed {
		t.Errorf("result %+v, allowed %v", first, allowed)
	}
	if yes, ok := changed(); ok && yes != allowed {
		t.Errorf("the call took effect: %v, allowed %v", yes, allowed)
	}
	if started := len(find[agent.CallStarted](events)) > 0; started != allowed {
		t.Errorf("started %v, allowed %v", started, allowed)
	}
	if !allowed && first.Status != tool.StatusDenied && first.Status != tool.StatusNotExecuted {
		t.Errorf("refused with %+v", first)
	}
	wantEnd := agent.EndCompleted
	if c.rule == "asks" && decision == tool.Cancelled {
		wantEnd = agent.EndCancelled
	}
	if end := endOf(events); end.Reason != wantEnd {
		t.Errorf("ended %s (%v), want %s", end.Reason, end.Err, wantEnd)
	}
	checkStarts(t, f.log, allowed)
	f.check()
}

// checkStarts: the log says of no call that it may have run unless it was
// allowed.
func checkStarts(t *testing.T, log *session.Log, allowed bool) {
	t.Helper()
	for rec, err := range log.Records() {
		if err != nil {
			t.Fatal(err)
		}
		switch rec := rec.(type) {
		case *session.ToolCall:
			if rec.Started && !allowed {
				t.Errorf("the log says that %s started", rec.Name)
			}
		case *session.PermissionDecision:
			if rec.Allowed != allowed {
				t.Errorf("the log says of the question: allowed %v", rec.Allowed)
			}
		}
	}
}

// TestFullIsNeverADefault: neither a session nor an unnamed mode is free.
func TestFullIsNeverADefault(t *testing.T) {
	if m, err := tool.ParseMode(""); m != tool.ModeAsk || err != nil {
		t.Errorf("the empty mode is %v, %v", m, err)
	}
	if m := *new(tool.Mode); m != tool.ModeAsk {
		t.Errorf("the zero mode is %v", m)
	}
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Call(edit("1")), llmtest.Say("done")}}
	f := newFixture(t, p, nil, agent.Options{})
	events := f.turn(t.Context(), "go")
	if r := find[agent.CallFinished](events)[0].Result; r.Status != tool.StatusDenied {
		t.Errorf("a session without a gate ran a write: %+v", r)
	}
}

// lateAllow allows the first call when it is too late, since the turn was
// cancelled meanwhile, and refuses the others.
type lateAllow struct {
	cancel context.CancelFunc
	asked  int
}

func (l *lateAllow) Approve(context.Context, *tool.Question) (tool.Decision, error) {
	if l.asked++; l.asked > 1 {
		return tool.RejectOnce, nil
	}
	l.cancel()
	return tool.AllowAlways, nil
}

// TestALateAllowRunsNothing, and gives no permission either.
func TestALateAllowRunsNothing(t *testing.T) {
	for _, c := range permissionCases(t) {
		if c.rule != "asks" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			late := &lateAllow{cancel: cancel}
			f, changed := permissionFixture(t, &c, late)
			events := f.turn(ctx, "go")
			if end := endOf(events); end.Reason != agent.EndCancelled {
				t.Errorf("ended %+v", end)
			}
			if yes, _ := changed(); yes || len(find[agent.CallStarted](events)) > 0 {
				t.Error("the call ran")
			}
			checkStarts(t, f.log, false)
			again := f.turn(t.Context(), "again") // the second call of the script
			if late.asked != 2 || len(find[agent.CallStarted](again)) > 0 {
				t.Errorf("the late answer is remembered: %d questions", late.asked)
			}
		})
	}
}

func TestAlwaysHoldsForTheSession(t *testing.T) {
	again := llm.ToolCall{ID: "2", Name: "edit", Arguments: `{"path":"other.txt","old":"","new":"x"}`}
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Call(edit("1")), llmtest.Call(again), llmtest.Say("done")}}
	a := &answers{decision: tool.AllowAlways}
	f := newFixture(t, p, a, agent.Options{})
	events := f.turn(t.Context(), "go")
	if len(a.asked) != 1 || endOf(events).Reason != agent.EndCompleted {
		t.Errorf("asked %v, ended %+v", a.asked, endOf(events))
	}
	if _, err := os.Stat(filepath.Join(f.dir, "other.txt")); err != nil {
		t.Error(err)
	}
	f.check()
}
