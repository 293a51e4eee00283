package agent_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/tool"
)

// checkOut puts the sources of this module into a folder, as a git repository
// with one commit.
func checkOut(t *testing.T, dir string) (files int) {
	t.Helper()
	root := filepath.Join("..", "..")
	for _, name := range []string{"go.mod", "go.sum", "README.md", "docs", "internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, name), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || d.Name() == "fuzz" {
				return err
			}
			files++
			rel, _ := filepath.Rel(root, path)
			to := filepath.Join(dir, rel)
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(to, data, 0o600)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "-A"},
		{"-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "all"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return files
}

func arguments(t *testing.T, v map[string]any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestWorkInARepository does a small change in the sources of drover itself, as
// a model would: find, look, plan, change, check. What the tools say is true, it
// stands in the log and in the next request byte for byte, and the diff is the
// change.
func TestWorkInARepository(t *testing.T) {
	const file = "internal/history/history.go"
	const before, after = "func (e *InvalidError) Error() string {\n", "func (e *InvalidError) Error() string {\n\t// A reader of logs looks for the prefix.\n"
	var calls []llm.ToolCall
	call := func(name string, args map[string]any) {
		calls = append(calls, llm.ToolCall{ID: fmt.Sprint("c", len(calls)), Name: name, Arguments: arguments(t, args)})
	}
	call("grep", map[string]any{"pattern": `^func \(e \*InvalidError\) Error`, "path": "internal"})
	call("read", map[string]any{"path": file, "offset": 1, "limit": 12})
	call("todo", map[string]any{"items": []string{"[x] find", "[>] change", "[ ] check"}})
	call("edit", map[string]any{"path": file, "old": before, "new": after})
	call("shell", map[string]any{"command": "git diff --stat && gofmt -l internal/history && go vet ./internal/history && echo vetted"})
	call("glob", map[string]any{"pattern": "docs/decisions/*.md"})
	call("write", map[string]any{"path": "docs/notes.txt", "content": "one\r\ntwo\r\n"})
	call("shell", map[string]any{"command": "git status --porcelain"})

	p := &llmtest.Provider{Facts: window(65536)}
	p.Answer = func(n int, _ *llm.Request) llmtest.Answer {
		if n < len(calls) {
			return llmtest.Call(calls[n])
		}
		return llmtest.Say("done")
	}
	f := newFixture(t, p, nil, agent.Options{Gate: tool.NewGate(tool.ModeFull), Environ: os.Environ()})
	if n := checkOut(t, f.dir); n < 400 {
		t.Fatalf("the repository has %d files", n)
	}
	original, err := os.ReadFile(filepath.Join(f.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	events := f.turn(t.Context(), "say in the code why the error has its prefix")
	if end := endOf(events); end.Reason != agent.EndCompleted {
		t.Fatalf("ended %+v", end)
	}
	finished := find[agent.CallFinished](events)
	if len(finished) != len(calls) {
		t.Fatalf("%d results", len(finished))
	}
	for i, c := range finished {
		if c.Result.Status != tool.StatusOK {
			t.Errorf("%s: %+v", calls[i].Name, c.Result)
		}
	}
	head := strings.Join(strings.SplitAfter(string(original), "\n")[:12], "")
	for i, want := range []string{
		`(?m)^internal/history/history\.go:\d+: func \(e \*InvalidError\) Error\(\) string \{$`,
		regexp.QuoteMeta(head),
		`^Plan shown: 1 of 3 steps done\.$`,
		`(?m)internal/history/history\.go`,
		`(?s)history\.go \| 1 \+\n.*1 insertion.*\nvetted\n`,
		`(?m)^docs/decisions/0001-package-cut\.md$`,
		`docs/notes\.txt`,
		`(?m)^ M internal/history/history\.go\n\?\? docs/notes\.txt$`,
	} {
		if !regexp.MustCompile(want).MatchString(finished[i].Result.Text) {
			t.Errorf("%s said %q, want %s", calls[i].Name, finished[i].Result.Text, want)
		}
	}
	checkVerbatim(t, f, finished)

	changed, _ := os.ReadFile(filepath.Join(f.dir, file))
	if want := strings.Replace(string(original), before, after, 1); string(changed) != want {
		t.Error("the file is not the original with the change")
	}
	if written, _ := os.ReadFile(filepath.Join(f.dir, "docs", "notes.txt")); string(written) != "one\r\ntwo\r\n" {
		t.Errorf("written %q", written)
	}
	for _, pending := range find[agent.CallPending](events) {
		if d := pending.Action.Diff; pending.Call.Name == "edit" && (d == nil || d.Old != string(original) || d.New != string(changed) || d.Created) {
			t.Errorf("the diff of the edit is not the change")
		}
	}
	f.check()
}

// checkVerbatim: what a tool said is in the log and in the request that follows,
// byte for byte.
func checkVerbatim(t *testing.T, f *fixture, finished []agent.CallFinished) {
	t.Helper()
	logged := make(map[string]string)
	for rec, err := range f.log.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := rec.(*session.ToolResult); ok {
			logged[r.ID] = r.Text
		}
	}
	requests := f.provider.Requests()
	for i, c := range finished {
		if logged[c.ID] != c.Result.Text {
			t.Errorf("the log has %q of %s, the tool said %q", logged[c.ID], c.Name, c.Result.Text)
		}
		messages := requests[i+1].Messages
		if last := messages[len(messages)-1]; last.CallID != c.ID || last.Text() != c.Result.Text {
			t.Errorf("the request after %s holds %q", c.Name, last.Text())
		}
	}
}
