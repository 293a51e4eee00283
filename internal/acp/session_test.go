package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// The end of input ends running turns and Serve within a second.
func TestEndOfInputEndsEverything(t *testing.T) {
	took := llmtest.Quickest(time.Second, func() time.Duration { return endInTheMiddle(t) })
	if took > time.Second {
		t.Errorf("took %v", took)
	}
}

// endInTheMiddle ends the input while an answer and a command are under way, and
// measures how long the server takes to return.
func endInTheMiddle(t *testing.T) time.Duration {
	t.Helper()
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
	took := time.Since(start)
	if err := e.Returned(); err != nil {
		t.Error(err)
	}
	// What was under way is in the logs, and both can be opened again.
	e = f.open(plain)
	for _, s := range []string{first, second} {
		// The end has a limit, behind which a session may take a moment to be closed.
		for patience := time.Now().Add(acptest.Patience); ; {
			err := e.Start("session/load", object{"sessionId": s, "cwd": f.dir, "mcpServers": []any{}}).Wait(nil)
			if err == nil {
				break
			}
			if !strings.Contains(err.Error(), "in use") || time.Now().After(patience) {
				t.Fatal(err)
			}
		}
	}
	if got := e.Text(first, "agent_message_chunk"); got != "One" {
		t.Errorf("replayed %q", got)
	}
	return took
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

// refusing knows what it lists, and refuses the model "bad" all the same.
type refusing struct{ *llmtest.Provider }

func (p refusing) Describe(ctx context.Context, t llm.Target) (llm.ModelInfo, error) {
	if t.Model == "bad" {
		return llm.ModelInfo{}, llm.Errorf(llm.CodeUnknownModel, "no model bad")
	}
	return p.Provider.Describe(ctx, t)
}

// A model that its provider refuses is not selected, and nothing has changed.
func TestRefusedModelChangesNothing(t *testing.T) {
	f := newFixture(t)
	if _, err := f.opts.Registry.Register(refusing{echo("a", "m", "bad")}, "a"); err != nil {
		t.Fatal(err)
	}
	e := f.open(plain)
	before := f.session(e)
	s := before.SessionID
	for method, params := range map[string]object{
		"session/set_config_option": {"sessionId": s, "configId": "model", "value": `["a","bad"]`},
		"session/set_model":         {"sessionId": s, "modelId": "a/bad"},
		"session/prompt":            promptOf(s, "/model a/bad"),
	} {
		if err := e.Refused(method, params); err.Code != -32602 || !strings.Contains(err.Message, "no model bad") {
			t.Errorf("%s: %v", method, err)
		}
	}
	var after opened
	e.Call("session/set_config_option", object{"sessionId": s, "configId": "effort", "value": "climb"}, &after)
	if got := after.option("model").CurrentValue; got != before.option("model").CurrentValue {
		t.Errorf("the model is %s", got)
	}
	if ask(t, e, s, "hello"); e.Text(s, "agent_message_chunk") != "a/m says hello." {
		t.Errorf("said %q", e.Text(s, "agent_message_chunk"))
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

// TestAnEngineFoundOfflineIsForgotten: it may come back with another window.
func TestAnEngineFoundOfflineIsForgotten(t *testing.T) {
	p := echo("a", "m")
	p.ListErr = &llm.Error{Code: llm.CodeTransport, Message: "connection refused", Unreached: true}
	f := newFixture(t, p)
	f.opts.Target = llm.Target{Provider: "a", Model: "m"}
	f.opts.Targets.Put(&llm.ModelInfo{Provider: "a", ID: "m", Window: llm.Window{Tokens: 1111, Source: llm.Effective}})
	f.session(f.open(plain))
	if known, _ := f.opts.Targets.Get(f.opts.Target); known.Window.Tokens == 1111 {
		t.Errorf("a session begins with %+v", known.Window)
	}
}

// TestASessionBeginsWithWhatIsKnown of its model, by another session of the
// process; choosing the model asks again.
func TestASessionBeginsWithWhatIsKnown(t *testing.T) {
	p := echo("a", "m")
	f := newFixture(t, p)
	f.opts.Target = llm.Target{Provider: "a", Model: "m"}
	f.opts.Targets.Put(&llm.ModelInfo{Provider: "a", ID: "m", Window: llm.Window{Tokens: 16384, Source: llm.Effective}})
	e := f.open(plain)
	s := f.session(e)
	ask(t, e, s.SessionID, "one")
	e.Call("session/set_config_option", object{"sessionId": s.SessionID, "configId": "model", "value": `["a","m"]`}, nil)
	ask(t, e, s.SessionID, "two")
	for i, want := range []int{16384, 32768} {
		if got := p.Requests()[i].Snapshot.Window.Tokens; got != want {
			t.Errorf("prompt %d was planned for %d, want %d", i, got, want)
		}
	}
}

// TestTheConfiguredEngineComesLater: its model was refused when the session was
// opened, and answers when it is there.
func TestTheConfiguredEngineComesLater(t *testing.T) {
	f := newFixture(t)
	up := false
	f.opts.Ready = func(context.Context) error {
		if up {
			f.register(echo("late", "m"))
		}
		return nil
	}
	f.opts.Target = llm.Target{Provider: "late", Model: "m"}
	e := f.open(plain)
	s := f.session(e)
	failed := e.Refused("session/prompt", promptOf(s.SessionID, "hello"))
	if failed.Data.Code != "NO_MODEL" || !strings.Contains(failed.Message, "late/m") {
		t.Errorf("%v", failed)
	}
	up = true
	if reason := ask(t, e, s.SessionID, "hello"); reason != "end_turn" {
		t.Error(reason)
	}
}
