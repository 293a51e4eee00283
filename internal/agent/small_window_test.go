package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/agent/agenttest"
	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/engine"
	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/history"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/openai"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/target"
)

// The small-window task: one prompt that makes the model read 40 files of 4 KB,
// one a round, then a second prompt, in a window that holds a few of the files.
// No agent that we measured finished it with every request inside the window,
// calls and results together, and the person told.
const (
	taskRounds = 40
	taskFile   = 4 << 10 // bytes
	taskPrompt = "Read every file of this folder and tell me which one speaks of herons."
	taskSecond = "And which one did you read last?"
)

// smallWindow is one variant of the task.
type smallWindow struct {
	name     string
	preset   engine.Preset
	model    enginetest.Model
	overflow enginetest.Overflow
	window   int // that every request has to stay in
	weight   int // how many times the usual the engine counts, 0 for once
	cut      bool
}

func smallWindows() []smallWindow {
	named := func(name string, preset engine.Preset, m enginetest.Model, window int) smallWindow {
		m.ID, m.Tools = "brook-7b", true
		return smallWindow{name: name, preset: preset, model: m, overflow: enginetest.Reject, window: window}
	}
	list := []smallWindow{
		named("llama.cpp, 4,096", engine.LlamaCpp, enginetest.Model{Window: 4096}, 4096),
		named("llama.cpp, 8,192", engine.LlamaCpp, enginetest.Model{Window: 8192}, 8192),
		named("llama.cpp, 32,768", engine.LlamaCpp, enginetest.Model{Window: 32768}, 32768),
		named("Ollama, loaded", engine.Ollama, enginetest.Model{Window: 8192, Declared: 131072}, 8192),
		named("Ollama, not loaded", engine.Ollama, enginetest.Model{Window: 8192, Declared: 131072, Unloaded: true}, 8192),
		named("LM Studio", engine.LMStudio, enginetest.Model{Window: 8192, Declared: 131072}, 8192),
		named("vLLM", engine.VLLM, enginetest.Model{Window: 8192}, 8192),
		named("SGLang", engine.SGLang, enginetest.Model{Window: 8192}, 8192),
		named("oMLX", engine.OMLX, enginetest.Model{Window: 8192}, 8192),
		named("vMLX", engine.VMLX, enginetest.Model{Window: 8192}, 8192),
		named("nothing published", engine.Custom, enginetest.Model{}, 8192),
	}
	// A vocabulary that no estimate is made for, and an engine that cuts.
	cutting := named("cuts silently", engine.Ollama, enginetest.Model{Window: 8192, Declared: 131072}, 8192)
	cutting.overflow, cutting.weight, cutting.cut = enginetest.CutSilently, 9, true
	return append(list, cutting)
}

// taskAnswer plays the model: a file a round, then an answer.
func taskAnswer(n int) enginetest.Answer {
	if n >= taskRounds {
		return enginetest.Answer{Text: fmt.Sprintf("File %02d speaks of herons.", taskRounds)}
	}
	return enginetest.Answer{Calls: []enginetest.Call{{
		ID: fmt.Sprint("call_", n), Name: "read", Arguments: fmt.Sprintf(`{"path":"file%02d.txt"}`, n+1),
	}}}
}

// runTask runs both prompts and returns the events of each.
func runTask(t *testing.T, v smallWindow) (srv *enginetest.Server, log *session.Log, turns [2][]agent.Event) {
	t.Helper()
	n := 0
	srv = enginetest.New(t, &enginetest.Options{
		Preset: string(v.preset), Models: []enginetest.Model{v.model}, Overflow: v.overflow,
		CountTokens: func(body []byte) int { return max(1, v.weight) * enginetest.CountTokens(body) },
		Answer:      func(*enginetest.Chat) enginetest.Answer { n++; return taskAnswer(n - 1) },
	})
	ep, err := engine.ParseEndpoint(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New("lab", ep, v.preset, nil)
	t.Cleanup(e.Close)
	registry := new(catalog.Registry)
	if _, err := registry.Register(e, "lab"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for i := range taskRounds {
		line := fmt.Sprintf("File %02d tells of rivers, of mills beside them and of the people who mend both. ", i+1)
		text := strings.Repeat(line, taskFile/len(line)+1)[:taskFile]
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%02d.txt", i+1)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sel := target.NewSelector(registry, new(target.Store), llm.Climb)
	sel.Select(t.Context(), llm.Target{Provider: "lab", Model: v.model.ID})
	if log, err = session.NewStore("").Create(dir, nil); err != nil {
		t.Fatal(err)
	}
	a := agent.New(sel, log, log.NewState(), nil, &agent.Options{Dir: dir})
	for i, prompt := range []string{taskPrompt, taskSecond} {
		for ev := range a.Turn(t.Context(), []llm.Part{llm.Text(prompt)}) {
			turns[i] = append(turns[i], ev)
		}
	}
	return srv, log, turns
}

func TestSmallWindowTask(t *testing.T) {
	for _, v := range smallWindows() {
		t.Run(v.name, func(t *testing.T) {
			srv, log, turns := runTask(t, v)
			for i, events := range turns {
				if end := endOf(events); end.Reason != agent.EndCompleted {
					t.Fatalf("prompt %d ended %s: %v", i+1, end.Reason, end.Err)
				}
			}
			checkTaskRequests(t, v, srv.Chats())
			checkTaskNotices(t, v, turns)
			var bodies [][]byte
			for _, c := range srv.Chats() {
				bodies = append(bodies, c.Body)
			}
			agenttest.CheckBodies(t, log.Records(), bodies)
		})
	}
}

// checkTaskRequests holds each request against what the task is about.
func checkTaskRequests(t *testing.T, v smallWindow, chats []enginetest.Chat) {
	t.Helper()
	if want := taskRounds + 2; len(chats) != want {
		t.Errorf("%d requests, want %d: no extra model calls, none sent twice", len(chats), want)
	}
	largest := 0
	for i, c := range chats {
		largest = max(largest, c.PromptTokens)
		if over := c.PromptTokens + c.MaxTokens - v.window; over > 0 && !v.cut {
			t.Errorf("request %d: prompt %d and output %d are %d over the window", i, c.PromptTokens, c.MaxTokens, over)
		}
		req, err := openai.DecodeRequest(c.Body)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if _, err := history.Split(req.Messages); err != nil {
			t.Errorf("request %d: %v", i, err)
		}
		task := taskPrompt
		if i == taskRounds+1 {
			task = taskSecond
		}
		if !strings.Contains(string(c.Body), task) {
			t.Errorf("request %d does not hold its task", i)
		}
	}
	last := string(chats[len(chats)-1].Body)
	for _, left := range []string{fmt.Sprintf("File %02d speaks of herons", taskRounds), fmt.Sprintf("File %02d tells of rivers", taskRounds)} {
		if !strings.Contains(last, left) {
			t.Errorf("the second prompt does not see %q", left)
		}
	}
	t.Logf("%d requests, the largest prompt %d tokens", len(chats), largest)
}

// checkTaskNotices: the person is told of every trim, and of a silent cut.
func checkTaskNotices(t *testing.T, v smallWindow, turns [2][]agent.Event) {
	t.Helper()
	cut := 0
	for i, events := range turns {
		needed, said := "", ""
		for _, p := range find[agent.Planned](events) {
			if p.Report.Trimmed() {
				needed = p.Report.Summary()
			}
		}
		for _, n := range find[agent.Notice](events) {
			if n.Kind == agent.NoticeTrim {
				if n.Text == said {
					t.Errorf("turn %d: told twice: %s", i+1, said)
				}
				said = n.Text
			}
			if strings.Contains(n.Text, "cut the prompt") && i == 0 {
				cut++
			}
		}
		if said != needed {
			t.Errorf("turn %d: trimmed %q, told %q", i+1, needed, said)
		}
	}
	if v.cut && cut != 1 {
		t.Errorf("a silent cut was told %d times", cut)
	}
	if !v.cut && cut != 0 {
		t.Errorf("a cut was told that was none")
	}
}
