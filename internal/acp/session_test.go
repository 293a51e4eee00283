package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-dev/drover/internal/acp/acptest"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
)

// echo is a provider that says which model answers.
func echo(route string, ids ...string) *llmtest.Provider {
	return &llmtest.Provider{Route: route, List: models(ids...), Answer: func(n int, req *llm.Request) llmtest.Answer {
		last := req.Messages[len(req.Messages)-1]
		if !strings.Contains(req.System, req.Snapshot.Target.Model) {
			return llmtest.Fail(errors.New("prompt and routing disagree"))
		}
		return llmtest.Say(fmt.Sprintf("%s says %s.", req.Snapshot.Target, last.Text()))
	}}
}

// Many sessions, each on its own model, at once: none sees another's.
func TestSessionsDoNotTouchEachOther(t *testing.T) {
	const sessions = 50
	ids := make([]string, sessions)
	for i := range ids {
		ids[i] = fmt.Sprintf("model-%02d", i)
	}
	f := newFixture(t, echo("a", ids...), echo("b", ids...))
	e := f.open(plain)
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			s := f.session(e).SessionID
			target := llm.Target{Provider: string("ab"[i%2]), Model: ids[i]}
			value, _ := json.Marshal([]string{target.Provider, target.Model})
			var state opened
			e.Call("session/set_config_option", object{"sessionId": s, "configId": "model", "value": string(value)}, &state)
			if got := state.option("model").CurrentValue; got != string(value) {
				t.Errorf("session %d has %s", i, got)
			}
			if reason := ask(t, e, s, fmt.Sprint(i)); reason != "end_turn" {
				t.Errorf("session %d: %s", i, reason)
			}
			want := fmt.Sprintf("%s says %d.", target, i)
			if got := e.Text(s, "agent_message_chunk"); got != want {
				t.Errorf("session %d: %q, want %q", i, got, want)
			}
		})
	}
	wg.Wait()
}

// A slow session holds up no other.
func TestSessionsRunAtOnce(t *testing.T) {
	f := newFixture(t, hanging("slow"), echo("quick", "m"))
	e := f.open(plain)
	slow, quick := f.session(e).SessionID, f.session(e).SessionID
	e.Call("session/set_config_option", object{"sessionId": quick, "configId": "model", "value": `["quick","m"]`}, nil)
	first := e.Start("session/prompt", promptOf(slow, "go"))
	awaitText(e, slow, "One")
	if reason := ask(t, e, quick, "hello"); reason != "end_turn" || first.Answered() {
		t.Errorf("%s; the slow one answered: %v", reason, first.Answered())
	}
	e.Notify("session/cancel", object{"sessionId": slow})
	if err := first.Wait(nil); err != nil {
		t.Error(err)
	}
}

// A selection during a turn takes effect at the next step, for the system turn
// and the routing together.
func TestSelectionDuringATurnHoldsFromTheNextStep(t *testing.T) {
	selected := make(chan struct{})
	a := &llmtest.Provider{Route: "a", List: models("m"), Answer: func(n int, req *llm.Request) llmtest.Answer {
		answer := llmtest.Call(llm.ToolCall{ID: fmt.Sprint("c", n), Name: "read", Arguments: `{"path":"x"}`})
		answer.Wait = func(ctx context.Context) { <-selected }
		return answer
	}}
	b := echo("b", "k")
	f := newFixture(t, a, b)
	e := f.open(plain)
	s := f.session(e).SessionID
	prompt := e.Start("session/prompt", promptOf(s, "go"))
	e.Await("the request", func() bool { return len(a.Requests()) > 0 })
	e.Call("session/set_config_option", object{"sessionId": s, "configId": "model", "value": `["b","k"]`}, nil)
	close(selected)
	if err := prompt.Wait(nil); err != nil {
		t.Fatal(err)
	}
	if got := e.Text(s, "agent_message_chunk"); !strings.HasPrefix(got, "b/k says") {
		t.Errorf("said %q", got)
	}
	if len(a.Requests()) != 1 || len(b.Requests()) != 1 {
		t.Errorf("%d and %d requests", len(a.Requests()), len(b.Requests()))
	}
}

// A provider whose list hangs delays the session by the bound of a list, and
// costs its own group.
func TestHangingProviderCostsItsOwnGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		f := newFixture(t, echo("a", "m"), &llmtest.Provider{Route: "hung", Hold: hold}, echo("b", "k"))
		e := f.open(plain)
		start := time.Now()
		s := f.session(e)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("session/new took %v", took)
		}
		want := []string{`["a","m"]`, `["b","k"]`}
		if got := s.option("model").values(); !slices.Equal(got, want) {
			t.Errorf("values %q", got)
		}
		// mode and effort need no catalogue.
		start = time.Now()
		e.Call("session/set_config_option", object{"sessionId": s.SessionID, "configId": "effort", "value": "graze"}, nil)
		e.Call("session/set_mode", object{"sessionId": s.SessionID, "modeId": "full"}, nil)
		if took := time.Since(start); took != 0 {
			t.Errorf("mode and effort took %v", took)
		}
		if reason := ask(t, e, s.SessionID, "hi"); reason != "end_turn" {
			t.Error(reason)
		}
		e.Close()
		close(hold)
	})
}

// The engine does not say what the model can do: after the bound the selection
// is answered all the same.
func TestProbeOfASelectionIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		slow := &slowProbe{Provider: echo("b", "k"), hold: hold}
		f := newFixture(t, echo("a", "m"))
		if _, err := f.opts.Registry.Register(slow, "b"); err != nil {
			t.Fatal(err)
		}
		e := f.open(plain)
		s := f.session(e).SessionID
		start := time.Now()
		var state opened
		e.Call("session/set_config_option", object{"sessionId": s, "configId": "model", "value": `["b","k"]`}, &state)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("took %v", took)
		}
		if got := state.option("model").CurrentValue; got != `["b","k"]` {
			t.Errorf("current %s", got)
		}
		e.Close()
		close(hold)
	})
}

// slowProbe is a provider that describes nothing until it is let go.
type slowProbe struct {
	*llmtest.Provider
	hold chan struct{}
}

func (p *slowProbe) Describe(ctx context.Context, t llm.Target) (llm.ModelInfo, error) {
	<-p.hold // whatever the context says
	return llm.ModelInfo{}, nil
}

// An engine that is started after the session was opened is found by a prompt.
func TestEngineThatComesLater(t *testing.T) {
	f := newFixture(t)
	up := make(chan struct{})
	var once sync.Once
	f.opts.Ready = func(ctx context.Context) error {
		select {
		case <-up:
			once.Do(func() { f.register(echo("late", "m")) })
			return nil
		default:
			return errors.New("nothing listens on 127.0.0.1:11434")
		}
	}
	e := f.open(`{"session":{"notices":{}}}`)
	s := f.session(e)
	if s.option("model") != nil {
		t.Fatal("a model option without models")
	}
	failed := e.Refused("session/prompt", promptOf(s.SessionID, "hello"))
	if failed.Code != -32603 || failed.Data.Code != "NO_MODEL" || !strings.Contains(failed.Message, "11434") {
		t.Errorf("%v", failed)
	}
	close(up)
	if reason := ask(t, e, s.SessionID, "hello"); reason != "end_turn" {
		t.Error(reason)
	}
	update := e.AwaitUpdate(s.SessionID, "config_option_update")
	if !strings.Contains(string(update.Body), `[\"late\",\"m\"]`) {
		t.Errorf("options %s", update.Body)
	}
}

// A prompt that is cancelled while a model is looked for for it is cancelled, and
// no failure.
func TestCancelWhileAModelIsLookedFor(t *testing.T) {
	f := newFixture(t)
	looking := make(chan struct{}, 1)
	calls := 0
	f.opts.Ready = func(ctx context.Context) error {
		if calls++; calls == 1 { // for session/new
			return nil
		}
		looking <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	e := f.open(plain)
	s := f.session(e).SessionID
	prompt := e.Start("session/prompt", promptOf(s, "hello"))
	<-looking
	e.Notify("session/cancel", object{"sessionId": s})
	var got stop
	if err := prompt.Wait(&got); err != nil || got.StopReason != "cancelled" {
		t.Errorf("%v, %+v", err, got)
	}
}

func TestBrokenConfigurationIsAnAnswer(t *testing.T) {
	f := newFixture(t, echo("a", "m"))
	f.opts.ConfigError = errors.New("config.toml:3: unknown key \"modle\"")
	e := f.open(plain)
	failed := e.Refused("session/new", object{"cwd": f.dir, "mcpServers": []any{}})
	if failed.Code != -32603 || failed.Data.Code != "INVALID_CONFIGURATION" || !strings.Contains(failed.Message, "modle") {
		t.Errorf("%v", failed)
	}
}

// The end of input ends running turns and Serve.
func TestEndOfInputEndsEverything(t *testing.T) {
	p := &llmtest.Provider{Route: "a", List: models("m"), Answer: func(n int, req *llm.Request) llmtest.Answer {
		if n == 0 {
			return llmtest.Hang("One")
		}
		return llmtest.Call(llm.ToolCall{ID: fmt.Sprint("c", n), Name: "shell", Arguments: `{"command":"sleep 60"}`})
	}}
	f := newFixture(t, p)
	e := f.open(plain)
	first, second := f.session(e).SessionID, f.session(e).SessionID
	e.Start("session/prompt", promptOf(first, "hang"))
	awaitText(e, first, "One")
	e.Start("session/prompt", promptOf(second, "run"))
	e.Await("the command", func() bool { return len(e.Updates(second, "tool_call")) > 0 })
	start := time.Now()
	e.Close()
	if took := time.Since(start); took > time.Second {
		t.Errorf("took %v", took)
	}
	if err := e.Returned(); err != nil {
		t.Error(err)
	}
	// What was under way is in the logs, and both can be opened again.
	e = f.open(plain)
	for _, s := range []string{first, second} {
		e.Call("session/load", object{"sessionId": s, "cwd": f.dir, "mcpServers": []any{}}, nil)
	}
	if got := e.Text(first, "agent_message_chunk"); got != "One" {
		t.Errorf("replayed %q", got)
	}
}

// What a client sends behind a load, without waiting, comes after it.
func TestPromptRightBehindLoad(t *testing.T) {
	f := newFixture(t, echo("a", "m"))
	e := f.open(plain)
	s := f.session(e).SessionID
	ask(t, e, s, "one")
	e.Close()

	e = f.open(plain)
	load := e.Prepare("session/load", object{"sessionId": s, "cwd": f.dir, "mcpServers": []any{}})
	prompt := e.Prepare("session/prompt", promptOf(s, "two"))
	e.Write(load.Line + prompt.Line)
	loaded, loadedAt := load.Answer()
	answer, answeredAt := prompt.Answer()
	if loaded.Error != nil || answer.Error != nil || answeredAt < loadedAt {
		t.Fatalf("%s at %d, %s at %d", loaded.Raw, loadedAt, answer.Raw, answeredAt)
	}
	if got := e.Text(s, "agent_message_chunk"); got != "a/m says one.a/m says two." {
		t.Errorf("said %q", got)
	}
	// The replay is over before the answer.
	for _, u := range e.Updates(s, "user_message_chunk") {
		if u.Place > loadedAt {
			t.Error("replay after the answer to session/load")
		}
	}
	// Behind a load that fails there is no session.
	load = e.Prepare("session/load", object{"sessionId": "01k00000000000000000000000", "cwd": f.dir})
	prompt = e.Prepare("session/prompt", promptOf("01k00000000000000000000000", "two"))
	e.Write(load.Line + prompt.Line)
	for _, r := range []*acptest.Request{load, prompt} {
		if m, _ := r.Answer(); m.Error == nil || m.Error.Code != -32002 {
			t.Errorf("%s", m.Raw)
		}
	}
}

// Close and load in one write: the load waits for the log to be free.
func TestLoadRightBehindClose(t *testing.T) {
	f := newFixture(t, hanging("a"))
	e := f.open(plain)
	s := f.session(e).SessionID
	prompt := e.Start("session/prompt", promptOf(s, "go"))
	awaitText(e, s, "One")
	closing := e.Prepare("session/close", object{"sessionId": s})
	load := e.Prepare("session/load", object{"sessionId": s, "cwd": f.dir})
	e.Write(closing.Line + load.Line)
	var got stop
	if err := prompt.Wait(&got); err != nil || got.StopReason != "cancelled" {
		t.Errorf("%v, %+v", err, got)
	}
	if err := closing.Wait(nil); err != nil {
		t.Error(err)
	}
	if err := load.Wait(nil); err != nil {
		t.Error(err)
	}
}

// A load that fails does not stand in the way of the one behind it, in one write
// or not, and leaves nothing: the log is free, and a third one opens it.
func TestLoadRightBehindOneThatFails(t *testing.T) {
	f := newFixture(t, echo("a", "m"))
	e := f.open(plain)
	s := f.session(e).SessionID
	ask(t, e, s, "one")
	e.Call("session/close", object{"sessionId": s}, nil)
	wrong := e.Prepare("session/load", object{"sessionId": s, "cwd": t.TempDir()})
	missing := e.Prepare("session/resume", object{"sessionId": s, "cwd": filepath.Join(f.dir, "no")})
	mode := e.Prepare("session/set_mode", object{"sessionId": s, "modeId": "edit"})
	right := e.Prepare("session/load", object{"sessionId": s, "cwd": f.dir})
	prompt := e.Prepare("session/prompt", promptOf(s, "two"))
	e.Write(wrong.Line + missing.Line + mode.Line + right.Line + prompt.Line)
	for _, r := range []*acptest.Request{wrong, missing, mode} {
		if m, _ := r.Answer(); m.Error == nil {
			t.Errorf("%s", m.Raw)
		}
	}
	var got stop
	if err := errors.Join(right.Wait(nil), prompt.Wait(&got)); err != nil || got.StopReason != "end_turn" {
		t.Fatalf("%v, %+v", err, got)
	}
	if reason := ask(t, e, s, "three"); reason != "end_turn" {
		t.Error(reason)
	}
	e.Call("session/close", object{"sessionId": s}, nil)
	for range 2 { // with nothing behind it, it is over at once
		if err := e.Refused("session/load", object{"sessionId": s, "cwd": t.TempDir()}); err.Code != -32602 {
			t.Error(err)
		}
		if err := e.Refused("session/close", object{"sessionId": s}); err.Code != -32002 {
			t.Error(err)
		}
	}
	e.Call("session/load", object{"sessionId": s, "cwd": f.dir}, nil)
}

// Loading a session that is open shows it again.
func TestLoadOfAnOpenSession(t *testing.T) {
	f := newFixture(t, echo("a", "m"))
	e := f.open(plain)
	s := f.session(e).SessionID
	ask(t, e, s, "one")
	more := t.TempDir()
	for _, dirs := range [][]string{nil, {more}} {
		e.Call("session/load", object{"sessionId": s, "cwd": f.dir, "additionalDirectories": dirs}, nil)
	}
	if got := e.Text(s, "user_message_chunk"); got != "oneone" {
		t.Errorf("replayed %q", got)
	}
	if reason := ask(t, e, s, "two"); reason != "end_turn" {
		t.Error(reason)
	}
}

// An open session has one folder; a client that names another is told, and nothing
// has changed.
func TestLoadOfAnOpenSessionInAnotherFolder(t *testing.T) {
	f := newFixture(t, echo("a", "m"))
	e := f.open(plain)
	s := f.session(e).SessionID
	err := e.Refused("session/load", object{"sessionId": s, "cwd": t.TempDir()})
	if err.Code != -32602 || !strings.Contains(err.Message, f.dir) {
		t.Error(err)
	}
	if reason := ask(t, e, s, "one"); reason != "end_turn" {
		t.Error(reason)
	}
}

// A load during a turn waits for its end: what is shown again is not mixed with
// what is said.
func TestLoadDuringATurn(t *testing.T) {
	f := newFixture(t, hanging("a"))
	e := f.open(plain)
	s := f.session(e).SessionID
	prompt := e.Start("session/prompt", promptOf(s, "go"))
	awaitText(e, s, "One")
	load := e.Start("session/load", object{"sessionId": s, "cwd": f.dir})
	for range 20 { // what does not wait overtakes it
		e.Call("session/list", object{}, nil)
	}
	e.Notify("session/cancel", object{"sessionId": s})
	ended, endedAt := prompt.Answer()
	loaded, loadedAt := load.Answer()
	if ended.Error != nil || loaded.Error != nil || endedAt > loadedAt {
		t.Fatalf("%s\n%s", ended.Raw, loaded.Raw)
	}
	for _, u := range e.Updates(s, "user_message_chunk") {
		if u.Place < endedAt {
			t.Errorf("shown again before the turn had ended: %s", u.Body)
		}
	}
}

// Another process has the session: the person is told what to do.
func TestSessionThatIsInUse(t *testing.T) {
	f := newFixture(t, echo("a", "m"))
	s := f.session(f.open(plain)).SessionID
	other := f.open(plain)
	for method, params := range map[string]object{
		"session/load": {"sessionId": s, "cwd": f.dir}, "session/delete": {"sessionId": s},
	} {
		err := other.Refused(method, params)
		if err.Code != -32603 || err.Data.Code != "SESSION_STORAGE" || !strings.Contains(err.Message, "Close it there") {
			t.Errorf("%s: %v", method, err)
		}
	}
}

func TestSessionsWithoutAFolderLiveInMemory(t *testing.T) {
	f := newFixture(t, echo("a", "m"))
	f.opts.Sessions = nil
	e := f.open(`{"session":{"notices":{}}}`)
	s := f.session(e).SessionID
	if body := string(e.AwaitUpdate(s, "notice").Body); !strings.Contains(body, "not saved") && len(e.Updates(s, "notice")) < 2 {
		e.Await("the second notice", func() bool { return len(e.Updates(s, "notice")) > 1 })
	}
	ask(t, e, s, "one")
	e.Call("session/load", object{"sessionId": s, "cwd": f.dir}, nil)
	if got := e.Text(s, "user_message_chunk"); got != "one" {
		t.Errorf("replayed %q", got)
	}
}

// A prompt of tens of megabytes on one line is answered, and the next one, too.
func TestHugePrompt(t *testing.T) {
	f := newFixture(t, echo("a", "m"))
	e := f.open(plain)
	s := f.session(e).SessionID
	blob := strings.Repeat("A", 13<<20)
	failed := e.Refused("session/prompt", object{"sessionId": s, "prompt": []object{{"type": "image", "mimeType": "image/png", "data": blob}}})
	if failed.Code != -32602 || !strings.Contains(failed.Message, "not a PNG") {
		t.Errorf("%v", failed)
	}
	if reason := ask(t, e, s, "hello"); reason != "end_turn" {
		t.Error(reason)
	}
}

// Files go through the editor when it offers both directions.
func TestFilesThroughTheEditor(t *testing.T) {
	p := &llmtest.Provider{Route: "a", List: models("m"), Script: []llmtest.Answer{
		llmtest.Call(llm.ToolCall{ID: "c1", Name: "read", Arguments: `{"path":"x.txt"}`}),
		llmtest.Call(llm.ToolCall{ID: "c2", Name: "edit", Arguments: `{"path":"x.txt","old":"buffer","new":"edited"}`}),
		llmtest.Call(llm.ToolCall{ID: "c3", Name: "write", Arguments: `{"path":"new.txt","content":"new\n"}`}),
		llmtest.Say("Done."),
	}}
	f := newFixture(t, p)
	path := filepath.Join(f.dir, "x.txt")
	if err := os.WriteFile(path, []byte("on disk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := f.open(`{"fs":{"readTextFile":true,"writeTextFile":true}}`)
	var mu sync.Mutex
	buffers := map[string]string{path: "unsaved buffer\n"}
	e.Serve = func(method string, params json.RawMessage) (any, *acptest.Error) {
		mu.Lock()
		defer mu.Unlock()
		var p struct{ Path, Content string }
		if err := json.Unmarshal(params, &p); err != nil {
			t.Error(err)
		}
		if method == "fs/write_text_file" {
			buffers[p.Path] = p.Content
			return object{}, nil
		}
		text, ok := buffers[p.Path]
		if !ok {
			return nil, &acptest.Error{Code: -32603, Message: "cannot open"}
		}
		return object{"content": text}, nil
	}
	s := f.session(e).SessionID
	if reason := ask(t, e, s, "edit it"); reason != "end_turn" {
		t.Fatal(reason)
	}
	mu.Lock()
	defer mu.Unlock()
	if buffers[path] != "unsaved edited\n" || buffers[filepath.Join(f.dir, "new.txt")] != "new\n" {
		t.Errorf("buffers %q; calls %s %s %s", buffers, lastStatus(e, s, "c1"), lastStatus(e, s, "c2"), lastStatus(e, s, "c3"))
	}
	if data, _ := os.ReadFile(path); string(data) != "on disk\n" {
		t.Errorf("the disk was written: %q", data)
	}
}

// A file that the editor does not know is as it is on disk. One that it gives no
// text of is not taken for an empty one.
func TestFilesThatTheEditorDoesNotGive(t *testing.T) {
	tests := []struct {
		name string
		read func() (any, *acptest.Error)
		want string // on disk, afterwards
	}{
		{"not found", func() (any, *acptest.Error) { return nil, &acptest.Error{Code: -32002, Message: "Resource not found"} }, "on the disk\n"},
		{"no content", func() (any, *acptest.Error) { return object{}, nil }, "on disk\n"},
		{"null", func() (any, *acptest.Error) { return object{"content": nil}, nil }, "on disk\n"},
		{"broken", func() (any, *acptest.Error) { return nil, &acptest.Error{Code: -32603, Message: "no"} }, "on disk\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, &llmtest.Provider{Route: "a", List: models("m"), Script: []llmtest.Answer{
				llmtest.Call(llm.ToolCall{ID: "c1", Name: "read", Arguments: `{"path":"x.txt"}`}),
				llmtest.Call(llm.ToolCall{ID: "c2", Name: "edit", Arguments: `{"path":"x.txt","old":"disk","new":"the disk"}`}),
				llmtest.Call(llm.ToolCall{ID: "c3", Name: "write", Arguments: `{"path":"x.txt","content":"on the disk\n"}`}),
				llmtest.Say("Done."),
			}})
			path := filepath.Join(f.dir, "x.txt")
			if err := os.WriteFile(path, []byte("on disk\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			e := f.open(`{"fs":{"readTextFile":true,"writeTextFile":true}}`)
			e.Serve = func(string, json.RawMessage) (any, *acptest.Error) { return tt.read() }
			s := f.session(e).SessionID
			if reason := ask(t, e, s, "edit it"); reason != "end_turn" {
				t.Fatal(reason)
			}
			status := "failed"
			if tt.want != "on disk\n" {
				status = "completed"
			}
			for _, id := range []string{"c1", "c2"} {
				if got := lastStatus(e, s, id); got != status {
					t.Errorf("%s is %s", id, got)
				}
			}
			if data, _ := os.ReadFile(path); string(data) != tt.want {
				t.Errorf("on disk is %q", data)
			}
		})
	}
}

// Image and resource reach the model.
func TestEveryBlockReachesTheModel(t *testing.T) {
	p := echo("a", "m")
	f := newFixture(t, p)
	e := f.open(plain)
	s := f.session(e).SessionID
	e.Call("session/prompt", object{"sessionId": s, "prompt": []object{
		{"type": "text", "text": "look"},
		{"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
		{"type": "resource", "resource": object{"uri": "file:///a.go", "mimeType": "text/plain", "text": "package a"}},
	}}, nil)
	m := p.Requests()[0].Messages[0]
	if len(m.Images()) != 1 || !strings.Contains(m.Text(), "look") || !strings.Contains(m.Text(), "package a") {
		t.Errorf("the model saw %q and %d images", m.Text(), len(m.Images()))
	}
}

// Clients that break on configOptions get modes alone.
func TestModesOnly(t *testing.T) {
	f := newFixture(t, echo("a", "m"))
	e := f.connect()
	e.Call("initialize", object{"protocolVersion": 1, "clientInfo": object{"name": "JetBrains GoLand", "version": "2026.1"}}, nil)
	s := f.session(e)
	if s.ConfigOptions != nil || s.Modes.CurrentModeID != "ask" {
		t.Errorf("%+v", s)
	}
	ask(t, e, s.SessionID, "hello")
	if got := e.Updates(s.SessionID, "config_option_update"); len(got) > 0 {
		t.Errorf("config_option_update %s", got[0].Body)
	}
}

func TestSlashCommandsAreAnsweredHere(t *testing.T) {
	p := echo("a", "m")
	f := newFixture(t, p)
	e := f.open(plain)
	s := f.session(e).SessionID
	for _, tt := range []struct{ command, want string }{
		{"/model", "Model: a/m"},
		{"/effort", "Effort: Climb ("},
		{"/effort summit", "Effort: Summit ("},
		{"/context", "| **total** |"},
		{"/tools", "| read |"},
	} {
		before := len(e.Text(s, "agent_message_chunk"))
		if reason := ask(t, e, s, tt.command); reason != "end_turn" {
			t.Errorf("%s: %s", tt.command, reason)
		}
		if got := e.Text(s, "agent_message_chunk")[before:]; !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q", tt.command, got)
		}
	}
	for _, command := range []string{"/model nowhere/x", "/effort gallop"} {
		e.Refused("session/prompt", promptOf(s, command))
	}
	if n := len(p.Requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// A mistake in the program costs one turn: its prompt is answered, its calls are
// closed, and the session and all others go on.
func TestPanicCostsOneTurn(t *testing.T) {
	p := &llmtest.Provider{Route: "a", List: models("m"), Answer: func(n int, req *llm.Request) llmtest.Answer {
		switch last := req.Messages[len(req.Messages)-1]; {
		case last.Role == llm.Tool && n == 1:
			panic("a mistake")
		case last.Text() == "break":
			return llmtest.Call(llm.ToolCall{ID: "c1", Name: "read", Arguments: `{"path":"x"}`})
		}
		return llmtest.Say("Fine.")
	}}
	f := newFixture(t, p)
	e := f.open(plain)
	a, b := f.session(e).SessionID, f.session(e).SessionID
	if err := e.Refused("session/prompt", promptOf(a, "break")); err.Code != -32603 || err.Data.Code != "UNKNOWN" || !strings.Contains(err.Data.Details, "--log-file") {
		t.Errorf("%v", err)
	}
	for _, s := range []string{a, b, a} {
		if reason := ask(t, e, s, "How are you?"); reason != "end_turn" {
			t.Error(reason)
		}
	}
}
