//go:build engines

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/engine/livetest"
)

// Two engines, in an order that is not that of the alphabet. Both have a model
// of the same name, so that only the provider tells them apart.
const (
	workshop  = "workshop" // llama-server
	attic     = "attic"    // Ollama
	bothModel = "plain:latest"
)

// What the scripted models say.
const (
	helloText = "Hello from the scripted model: no marker was seen."
	finalText = "The tool answered, so this is the final answer."
)

const (
	// editorLimit bounds one run of the client.
	editorLimit = 3 * time.Minute
	// cancelLimit is in what time a cancelled prompt must be answered. A starved
	// machine may be late once: of some tries the quickest counts.
	cancelLimit = 500 * time.Millisecond
	cancelTries = 3
)

// TestEditor drives drover acp with the official TypeScript SDK of the protocol
// (testdata/sdk/client.mjs) against a real llama-server and a real Ollama, and
// looks at what each of them got.
func TestEditor(t *testing.T) {
	e := newSDKClient(t)
	// One after the other, since they share the engines and their records.
	t.Run("switch", e.testSwitch)
	t.Run("permission", e.testPermission)
	t.Run("cancel", e.testCancel)
	t.Run("load", e.testLoad)
	t.Run("leave", e.testLeave)
}

// newSDKClient builds the binary and starts both engines.
func newSDKClient(t *testing.T) *sdkClient {
	t.Helper()
	e := &sdkClient{binary: filepath.Join(t.TempDir(), "drover"), chats: make(map[string]*recorder), urls: make(map[string]string)}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", e.binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// One slot: a request that went on after its end would hold up the next.
	e.chats[workshop], e.urls[workshop] = record(t, livetest.Llama(t, "plain", "--alias", bothModel, "-np", "1").URL)
	e.chats[attic], e.urls[attic] = record(t, livetest.Ollama(t).URL)
	return e
}

// testSwitch: two sessions start on one engine; one is switched to the model of
// the other engine, and its requests alone go there.
func (e *sdkClient) testSwitch(t *testing.T) {
	got := e.home(t).run(t, "",
		sdkStep{"name": "initialize", "do": "initialize"},
		sdkStep{"name": "new A", "do": "new", "as": "A", "cwd": t.TempDir()},
		sdkStep{"name": "new B", "do": "new", "as": "B", "cwd": t.TempDir()},
		sdkStep{"name": "switch A", "do": "set", "in": "A", "option": "model", "group": attic, "label": bothModel},
		// Setting what is set shows the rest.
		sdkStep{"name": "look at B", "do": "set", "in": "B", "option": "effort", "value": "climb"},
		sdkStep{"do": "together", "steps": []sdkStep{
			{"name": "prompt A", "do": "prompt", "in": "A", "text": "Hi."},
			{"name": "prompt B", "do": "prompt", "in": "B", "text": "Hi."},
		}},
		sdkStep{"name": "no such model", "do": "set", "in": "A", "option": "model", "value": `["attic","no such model"]`, "fails": true},
		sdkStep{"name": "no provider", "do": "set", "in": "A", "option": "model", "value": bothModel, "fails": true},
		sdkStep{"name": "no option", "do": "set", "in": "A", "option": "color", "value": "red", "fails": true},
		sdkStep{"name": "look at A", "do": "set", "in": "A", "option": "effort", "value": "climb"},
		sdkStep{"name": "prompt A again", "do": "prompt", "in": "A", "text": "Hi again."},
	)

	var agent struct {
		ProtocolVersion   int
		AgentInfo         struct{ Name string }
		AgentCapabilities struct{ LoadSession bool }
	}
	got.answer(t, "initialize", &agent)
	if agent.ProtocolVersion != 1 || agent.AgentInfo.Name != "drover" || !agent.AgentCapabilities.LoadSession {
		t.Errorf("initialize: %+v", agent)
	}
	for name, provider := range map[string]string{
		"new A": workshop, "new B": workshop, "switch A": attic, "look at B": workshop, "look at A": attic,
	} {
		got.wantModel(t, name, provider)
	}
	for _, name := range []string{"no such model", "no provider", "no option"} {
		f := got.one(t, "error", name)
		if f.Error.Code != -32602 || f.Error.Data.Code != "INVALID_PARAMS" {
			t.Errorf("%s: %+v", name, f.Error)
		}
	}
	a, b := got.session(t, "new A"), got.session(t, "new B")
	if a == b {
		t.Errorf("both sessions are %s", a)
	}
	got.wantHello(t, "prompt A", a)
	got.wantHello(t, "prompt B", b)
	got.wantHello(t, "prompt A again", a)
	e.wantChats(t, map[string]int{workshop: 1, attic: 2})
}

// testPermission: a write in the default mode is asked about, shown as a diff,
// and done where it is allowed.
func (e *sdkClient) testPermission(t *testing.T) {
	for _, c := range []struct {
		kind, status string
		chats        int
	}{
		{"allow_once", "completed", 2},
		{"reject_once", "failed", 2},
	} {
		t.Run(c.kind, func(t *testing.T) {
			dirs := map[string]string{workshop: t.TempDir(), attic: t.TempDir()}
			got := e.home(t).run(t, c.kind,
				sdkStep{"name": "initialize", "do": "initialize"},
				sdkStep{"name": "new " + workshop, "do": "new", "as": workshop, "cwd": dirs[workshop]},
				sdkStep{"name": "new " + attic, "do": "new", "as": attic, "cwd": dirs[attic]},
				sdkStep{"name": "switch", "do": "set", "in": attic, "option": "model", "group": attic, "label": bothModel},
				sdkStep{"do": "together", "steps": []sdkStep{
					{"name": workshop, "do": "prompt", "in": workshop, "text": "Please [[call]] it."},
					{"name": attic, "do": "prompt", "in": attic, "text": "Please [[call]] it."},
				}},
			)
			for provider, dir := range dirs {
				got.wantWrite(t, provider, dir, c.status)
			}
			e.wantChats(t, map[string]int{workshop: c.chats, attic: c.chats})
		})
	}
}

// testCancel: a turn that never ends is cancelled, and the next one works.
func (e *sdkClient) testCancel(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("# Sheep\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	steps := []sdkStep{
		{"name": "initialize", "do": "initialize"},
		{"name": "new " + workshop, "do": "new", "as": workshop, "cwd": dir},
		{"name": "new " + attic, "do": "new", "as": attic, "cwd": dir},
		{"name": "switch", "do": "set", "in": attic, "option": "model", "group": attic, "label": bothModel},
	}
	loopIn := func(provider string, try int) string { return fmt.Sprintf("loop %d in %s", try, provider) }
	for _, provider := range []string{workshop, attic} {
		for try := range cancelTries {
			steps = append(steps, sdkStep{"name": loopIn(provider, try), "do": "prompt", "in": provider, "text": "[[loop]]", "at": "agent_message_chunk", "then": "cancel"})
		}
		steps = append(steps, sdkStep{"name": "read in " + provider, "do": "prompt", "in": provider, "text": "[[read]]"})
	}
	got := e.home(t).run(t, "", steps...)
	for _, provider := range []string{workshop, attic} {
		var took []time.Duration
		for try := range cancelTries {
			loop := loopIn(provider, try)
			if reason := got.stopReason(t, loop); reason != "cancelled" {
				t.Errorf("%s: %s", loop, reason)
			}
			took = append(took, got.one(t, "cancel", loop).duration())
		}
		t.Logf("%s: cancelled in %v", provider, took)
		if slices.Min(took) > cancelLimit {
			t.Errorf("%s: cancelled in %v", provider, took)
		}
		read := "read in " + provider
		if text, _ := got.text(read); got.stopReason(t, read) != "end_turn" || text != finalText {
			t.Errorf("%s: %q", read, text)
		}
		var statuses []string
		for _, f := range got.updates(read, "tool_call", "tool_call_update") {
			statuses = append(statuses, f.Update.Status)
		}
		if want := []string{"pending", "in_progress", "completed"}; !slices.Equal(statuses, want) {
			t.Errorf("%s: the call is %q, want %q", read, statuses, want)
		}
	}
	e.wantChats(t, map[string]int{workshop: cancelTries + 2, attic: cancelTries + 2})
}

// testLoad: a new process goes on with the model of the last request of each
// session, not with one that was chosen and never used.
func (e *sdkClient) testLoad(t *testing.T) {
	dir := t.TempDir()
	h := e.home(t)
	before := h.run(t, "",
		sdkStep{"name": "initialize", "do": "initialize"},
		sdkStep{"name": "new A", "do": "new", "as": "A", "cwd": dir},
		sdkStep{"name": "switch A", "do": "set", "in": "A", "option": "model", "group": attic, "label": bothModel},
		sdkStep{"name": "prompt A", "do": "prompt", "in": "A", "text": "Hi."},
		sdkStep{"name": "unused in A", "do": "set", "in": "A", "option": "model", "group": attic, "label": "think:latest"},
		sdkStep{"name": "new B", "do": "new", "as": "B", "cwd": dir},
		sdkStep{"name": "prompt B", "do": "prompt", "in": "B", "text": "Hi."},
		sdkStep{"name": "unused in B", "do": "set", "in": "B", "option": "model", "group": attic, "label": bothModel},
		sdkStep{"name": "new C", "do": "new", "as": "C", "cwd": dir},
		sdkStep{"name": "unused in C", "do": "set", "in": "C", "option": "model", "group": attic, "label": bothModel},
	)
	e.wantChats(t, map[string]int{workshop: 1, attic: 1})
	ids := make(map[string]string)
	for _, name := range []string{"A", "B", "C"} {
		ids[name] = before.session(t, "new "+name)
	}

	after := h.run(t, "",
		sdkStep{"name": "initialize", "do": "initialize"},
		sdkStep{"name": "load A", "do": "load", "as": "A", "id": ids["A"], "cwd": dir},
		sdkStep{"name": "load B", "do": "load", "as": "B", "id": ids["B"], "cwd": dir},
		sdkStep{"name": "load C", "do": "load", "as": "C", "id": ids["C"], "cwd": dir},
		sdkStep{"name": "prompt A", "do": "prompt", "in": "A", "text": "Hi again."},
		sdkStep{"name": "prompt C", "do": "prompt", "in": "C", "text": "Hi."},
	)
	after.wantModel(t, "load A", attic)
	after.wantModel(t, "load B", workshop)
	after.wantModel(t, "load C", workshop)
	for name, want := range map[string][]string{"load A": {"Hi.", helloText}, "load B": {"Hi.", helloText}, "load C": nil} {
		var replayed []string
		for _, f := range after.updates(name, "user_message_chunk", "agent_message_chunk") {
			replayed = append(replayed, f.Update.text())
		}
		if !slices.Equal(replayed, want) {
			t.Errorf("%s: %q is shown again, want %q", name, replayed, want)
		}
	}
	after.wantHello(t, "prompt A", ids["A"])
	after.wantHello(t, "prompt C", ids["C"])
	e.wantChats(t, map[string]int{workshop: 1, attic: 1})
}

// testLeave: the editor goes away in the middle of a turn. What runs ends with
// drover.
func (e *sdkClient) testLeave(t *testing.T) {
	t.Run("request", func(t *testing.T) {
		inTime(t, func() time.Duration {
			got := e.home(t).run(t, "",
				sdkStep{"name": "initialize", "do": "initialize"},
				sdkStep{"name": "new", "do": "new", "as": "A", "cwd": t.TempDir()},
				sdkStep{"name": "loop", "do": "prompt", "in": "A", "text": "[[loop]]", "at": "agent_message_chunk", "then": "leave"},
			)
			e.wantChats(t, map[string]int{workshop: 1})
			return got.one(t, "exit", "").duration()
		})
	})
	t.Run("command", func(t *testing.T) {
		// The model calls "echo scripted; ls", and this is the ls that is found:
		// it has a child, and both take no notice of being asked to end.
		bin := t.TempDir()
		noted := filepath.Join(t.TempDir(), "pids")
		script := fmt.Sprintf("#!/bin/sh\ntrap '' HUP INT TERM\nsleep 600 &\necho $$ $! >'%s'\necho asleep\nexec sleep 600\n", noted)
		if err := os.WriteFile(filepath.Join(bin, "ls"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		inTime(t, func() time.Duration {
			h := e.home(t)
			h.path = bin + string(os.PathListSeparator) + h.path
			got := h.run(t, "allow_once",
				sdkStep{"name": "initialize", "do": "initialize"},
				sdkStep{"name": "new", "do": "new", "as": "A", "cwd": t.TempDir()},
				sdkStep{"name": "shell", "do": "prompt", "in": "A", "text": "[[shell]]", "at": "asleep", "then": "leave"},
			)
			if asked := got.one(t, "permission", "shell"); asked.ToolCall.Title != "echo scripted; ls" {
				t.Errorf("asked about %+v", asked.ToolCall)
			}
			pids, err := os.ReadFile(noted)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(strings.Fields(string(pids))); n != 2 {
				t.Fatalf("processes %q", pids)
			}
			untilGone(t, strings.Fields(string(pids)))
			e.wantChats(t, map[string]int{workshop: 1})
			return got.one(t, "exit", "").duration()
		})
	})
}

// sdkClient is what the runs of the client have in common.
type sdkClient struct {
	binary string
	chats  map[string]*recorder // by provider
	urls   map[string]string
}

// sdkHome is a place for the settings and sessions of one or more processes.
type sdkHome struct {
	*sdkClient
	dir, path string
}

func (e *sdkClient) home(t *testing.T) *sdkHome {
	t.Helper()
	h := &sdkHome{sdkClient: e, dir: t.TempDir(), path: os.Getenv("PATH")}
	settings := fmt.Sprintf("model = %q\n", workshop+"/"+bothModel)
	for _, engine := range []struct{ provider, preset string }{{workshop, "llamacpp"}, {attic, "ollama"}} {
		e.chats[engine.provider].take() // what a test before has left
		settings += fmt.Sprintf("\n[engines.%s]\npreset = %q\nurl = %q\n", engine.provider, engine.preset, e.urls[engine.provider])
	}
	if err := os.WriteFile(h.config(), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *sdkHome) config() string { return filepath.Join(h.dir, "drover.toml") }

func (h *sdkHome) environ() []string {
	return []string{
		"PATH=" + h.path,
		"HOME=" + h.dir,
		"XDG_CONFIG_HOME=" + filepath.Join(h.dir, "config"),
		"XDG_STATE_HOME=" + filepath.Join(h.dir, "state"),
		"XDG_CACHE_HOME=" + filepath.Join(h.dir, "cache"),
		"DROVER_CONFIG=" + h.config(),
		"GORACE=atexit_sleep_ms=0", // for GOFLAGS=-race, which the build above takes, too
	}
}

// sdkStep is one step of a scenario; see testdata/sdk/client.mjs.
type sdkStep map[string]any

// run runs the client with a scenario. permission is how it answers when it is
// asked, empty if nobody may ask.
func (h *sdkHome) run(t *testing.T, permission string, steps ...sdkStep) *sdkFacts {
	t.Helper()
	scenario, err := json.Marshal(map[string]any{"permission": permission, "steps": steps})
	if err != nil {
		t.Fatal(err)
	}
	sdk := filepath.Join(livetest.Dir(), "acp-sdk")
	if _, err := os.Stat(sdk); err != nil {
		t.Fatalf("%s is missing: run scripts/engines", sdk)
	}
	ctx, cancel := context.WithTimeout(t.Context(), editorLimit)
	defer cancel()
	client := exec.CommandContext(ctx, "node", "testdata/sdk/client.mjs", h.binary, "acp")
	client.Env = append(h.environ(), "DROVER_ACP_SDK="+sdk, "SCENARIO="+string(scenario))
	client.WaitDelay = 5 * time.Second
	var complaints strings.Builder
	client.Stderr = &complaints
	out, err := client.Output()
	got := new(sdkFacts)
	for line := range bytes.Lines(out) {
		f := new(sdkFact)
		if bad := json.Unmarshal(line, f); bad != nil {
			t.Fatalf("%v: %s", bad, line)
		}
		if f.Fact == "problem" {
			t.Errorf("problem: %s", line)
		}
		got.list = append(got.list, f)
	}
	if err != nil || complaints.Len() > 0 || t.Failed() {
		t.Fatalf("client: %v\n%s\n%s", err, complaints.String(), out)
	}
	got.one(t, "exit", "") // it has ended; testLeave measures how soon
	return got
}

// awaitChat waits until an engine has got a chat, and takes it.
func (e *sdkClient) awaitChat(t *testing.T, provider string) {
	t.Helper()
	deadline := time.NewTimer(acpxLimit)
	defer deadline.Stop()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for len(e.chats[provider].take()) == 0 {
		select {
		case <-poll.C:
		case <-deadline.C:
			t.Fatalf("%s got no chat", provider)
		}
	}
}

// wantChats checks how many chats each engine got since the last look, that each
// is for its model, and that the system text says the same.
func (e *sdkClient) wantChats(t *testing.T, want map[string]int) {
	t.Helper()
	for _, provider := range []string{workshop, attic} {
		chats := e.chats[provider].take()
		if len(chats) != want[provider] {
			t.Errorf("%s got %d chats, want %d", provider, len(chats), want[provider])
		}
		for _, body := range chats {
			var chat struct {
				Model    string
				Messages []struct {
					Role    string
					Content any
				}
			}
			if err := json.Unmarshal(body, &chat); err != nil || len(chat.Messages) == 0 {
				t.Fatalf("%s: %v: %s", provider, err, body)
			}
			system, _ := chat.Messages[0].Content.(string)
			if chat.Model != bothModel || chat.Messages[0].Role != "system" || !strings.Contains(system, "the model "+bothModel+" of "+provider+".") {
				t.Errorf("%s got a chat with the model %q and the system text %q", provider, chat.Model, system)
			}
		}
	}
}

// sdkFacts are what the client has told, in order.
type sdkFacts struct{ list []*sdkFact }

type sdkFact struct {
	Fact, Step, Session string
	MS                  float64
	Result              json.RawMessage // answer
	Error               struct {        // error
		Code    int
		Message string
		Data    struct{ Code, Details string }
	}
	Update   sdkUpdate                         // update
	ToolCall sdkUpdate                         // permission
	Options  []struct{ OptionID, Kind string } // permission
}

func (f *sdkFact) duration() time.Duration { return time.Duration(f.MS * float64(time.Millisecond)) }

type sdkUpdate struct {
	SessionUpdate, MessageID, ToolCallID, Title, Kind, Status string
	Locations                                                 []struct{ Path string }
	Content                                                   json.RawMessage
}

// text is what a chunk says.
func (u *sdkUpdate) text() string {
	var c struct{ Text string }
	if json.Unmarshal(u.Content, &c) != nil {
		return ""
	}
	return c.Text
}

// diffs are what a tool call shows.
func (u *sdkUpdate) diffs() (list []sdkDiff) {
	_ = json.Unmarshal(u.Content, &list) // none: an empty list
	return slices.DeleteFunc(list, func(d sdkDiff) bool { return d.Type != "diff" })
}

type sdkDiff struct {
	Type, Path, NewText string
	OldText             *string
}

// one is the only fact of its kind in a step.
func (g *sdkFacts) one(t *testing.T, kind, name string) *sdkFact {
	t.Helper()
	var found []*sdkFact
	for _, f := range g.list {
		if f.Fact == kind && f.Step == name {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s: %d facts of the kind %s, want one", name, len(found), kind)
	}
	return found[0]
}

// updates are those of some kinds in a step.
func (g *sdkFacts) updates(name string, kinds ...string) (list []*sdkFact) {
	for _, f := range g.list {
		if f.Fact == "update" && f.Step == name && slices.Contains(kinds, f.Update.SessionUpdate) {
			list = append(list, f)
		}
	}
	return list
}

func (g *sdkFacts) answer(t *testing.T, name string, result any) {
	t.Helper()
	if err := json.Unmarshal(g.one(t, "answer", name).Result, result); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func (g *sdkFacts) session(t *testing.T, name string) string {
	t.Helper()
	var r struct{ SessionID string }
	g.answer(t, name, &r)
	return r.SessionID
}

func (g *sdkFacts) stopReason(t *testing.T, name string) string {
	t.Helper()
	var r struct{ StopReason string }
	g.answer(t, name, &r)
	return r.StopReason
}

// text is what the model has said in a step, and in how many pieces.
func (g *sdkFacts) text(name string) (text string, pieces int) {
	for _, f := range g.updates(name, "agent_message_chunk") {
		text += f.Update.text()
		pieces++
	}
	return text, pieces
}

// wantHello checks the answer to a prompt without a marker: streamed, as one
// message of that session.
func (g *sdkFacts) wantHello(t *testing.T, name, session string) {
	t.Helper()
	text, pieces := g.text(name)
	if reason := g.stopReason(t, name); text != helloText || pieces < 2 || reason != "end_turn" {
		t.Errorf("%s: %q in %d pieces, %s", name, text, pieces, reason)
	}
	ids := make(map[string]bool)
	for _, f := range g.updates(name, "agent_message_chunk") {
		ids[f.Update.MessageID] = true
		if f.Session != session {
			t.Errorf("%s: a piece for the session %s, want %s", name, f.Session, session)
		}
	}
	if len(ids) != 1 || ids[""] {
		t.Errorf("%s: messages %v, want one", name, ids)
	}
}

// wantModel checks that an answer has the complete list of options, with the
// models of both engines by provider, and that provider's model as the current.
func (g *sdkFacts) wantModel(t *testing.T, name, provider string) {
	t.Helper()
	var r struct {
		ConfigOptions []struct {
			ID, Category, CurrentValue string
			Options                    []struct {
				Group   string
				Options []struct{ Value, Name string }
			}
		}
	}
	g.answer(t, name, &r)
	var ids, models []string
	for _, o := range r.ConfigOptions {
		ids = append(ids, o.ID)
		if o.ID != "model" {
			continue
		}
		for _, group := range o.Options {
			var values []string
			for _, v := range group.Options {
				values = append(values, group.Group+": "+v.Value)
			}
			slices.Sort(values) // Ollama lists its newest model first
			models = append(models, values...)
		}
		if want := fmt.Sprintf("[%q,%q]", provider, bothModel); o.CurrentValue != want || o.Category != "model" {
			t.Errorf("%s: the current value of the %s option is %s, want %s", name, o.Category, o.CurrentValue, want)
		}
	}
	if want := []string{"mode", "model", "effort"}; !slices.Equal(ids, want) {
		t.Errorf("%s: options %q, want %q", name, ids, want)
	}
	want := []string{
		`workshop: ["workshop","plain:latest"]`,
		`attic: ["attic","plain:latest"]`,
		`attic: ["attic","think:latest"]`,
	}
	if !slices.Equal(models, want) {
		t.Errorf("%s: models %q, want %q", name, models, want)
	}
}

// wantWrite checks a turn that wants to write a file: what is shown and asked,
// in which order, and the file.
func (g *sdkFacts) wantWrite(t *testing.T, name, dir, status string) {
	t.Helper()
	const content = "written by the scripted model\n"
	file := filepath.Join(dir, "drover-was-here.txt")
	shows := func(what string, u *sdkUpdate) {
		t.Helper()
		if d := u.diffs(); len(d) != 1 || d[0].Path != file || d[0].OldText != nil || d[0].NewText != content {
			t.Errorf("%s: %s shows %s", name, what, u.Content)
		}
	}
	asked := g.one(t, "permission", name)
	shows("the question", &asked.ToolCall)
	var kinds, course []string
	for _, o := range asked.Options {
		kinds = append(kinds, o.Kind)
	}
	slices.Sort(kinds)
	if want := []string{"allow_always", "allow_once", "reject_always", "reject_once"}; !slices.Equal(kinds, want) {
		t.Errorf("%s: the answers are %q, want %q", name, kinds, want)
	}
	for _, f := range g.list {
		switch {
		case f.Step != name:
		case f == asked:
			course = append(course, "permission")
		case strings.HasPrefix(f.Update.SessionUpdate, "tool_call"):
			course = append(course, f.Update.Status)
			if f.Update.ToolCallID != asked.ToolCall.ToolCallID {
				t.Errorf("%s: the call %s, and permission for %s", name, f.Update.ToolCallID, asked.ToolCall.ToolCallID)
			}
			if f.Update.Status == "pending" {
				shows("the announced call", &f.Update)
				if l := f.Update.Locations; f.Update.Kind != "edit" || len(l) != 1 || l[0].Path != file {
					t.Errorf("%s: the call is a %s in %v", name, f.Update.Kind, l)
				}
			}
			if f.Update.Status == "completed" {
				shows("the result", &f.Update)
			}
		}
	}
	want := []string{"pending", "permission", "in_progress", status}
	written := content
	if status == "failed" {
		want, written = slices.Delete(want, 2, 3), ""
	}
	if !slices.Equal(course, want) {
		t.Errorf("%s: %q, want %q", name, course, want)
	}
	if data, _ := os.ReadFile(file); string(data) != written {
		t.Errorf("%s: the file has %q", name, data)
	}
	if text, _ := g.text(name); text != finalText || g.stopReason(t, name) != "end_turn" {
		t.Errorf("%s: the answer is %q", name, text)
	}
}
