package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/mcp"
	"github.com/drover-dev/drover/internal/tool"
)

func TestToolsOfServersOnStdio(t *testing.T) {
	h := connect(t, nil, child(t, "zulu", "good"), child(t, "alpha", "banner"), child(t, "loud", "loud"))
	want := []string{"die", "echo", "env", "fail", "grow", "hang", "long", "mixed", "same"}
	got := names(h)
	for i, name := range got {
		server := []string{"zulu", "alpha", "loud"}[i/len(want)]
		if name != server+"__"+want[i%len(want)] {
			t.Errorf("%d: %s", i, name)
		}
	}
	if len(got) != 3*len(want) || len(h.Notices()) != 0 {
		t.Fatalf("%q", got)
	}
	def := find(t, h, "zulu__echo").Def()
	if def.Description != "The tool <echo> & more" || !strings.Contains(def.Parameters, `"maximum":9007199254740991`) {
		t.Errorf("%+v", def)
	}
	// Arguments pass as they are: numbers, order, white space.
	const arguments = `{"z": 12345678901234567890, "a": 1.50}`
	if r := call(t, h, "zulu__echo", arguments); r.Status != tool.StatusOK || r.Text != `{"z":12345678901234567890,"a":1.50}` {
		t.Errorf("%+v", r)
	}
}

func TestActionsSayWhatTheyAre(t *testing.T) {
	h := connect(t, nil, child(t, "files", "good"))
	tests := []struct {
		name                  string
		readOnly              bool
		ask, readOnlyMode, ok tool.Verdict
	}{
		{"files__echo", true, tool.Ask, tool.Ask, tool.Allow},
		{"files__fail", false, tool.Ask, tool.Deny, tool.Allow},
	}
	for _, tt := range tests {
		a := prepare(t, h, tt.name, `{"n":1}`)
		if a.Access != tool.AccessExternal || a.ReadOnly != tt.readOnly {
			t.Errorf("%s: %+v", tt.name, a)
		}
		scope := strings.Replace(tt.name, "__", ": ", 1)
		if !slices.Equal(a.Scopes, []string{scope}) || a.Title != scope+` {"n":1}` {
			t.Errorf("%q %q", a.Scopes, a.Title)
		}
		q := &tool.Question{Tool: tt.name, Action: a}
		for mode, want := range map[tool.Mode]tool.Verdict{
			tool.ModeAsk: tt.ask, tool.ModeEdit: tt.ask, tool.ModeReadOnly: tt.readOnlyMode, tool.ModeFull: tt.ok,
		} {
			if v, _ := tool.NewGate(mode).Check(q); v != want {
				t.Errorf("%s in mode %s: %d, want %d", tt.name, mode, v, want)
			}
		}
		g := tool.NewGate(tool.ModeAsk)
		g.Remember(q, tool.AllowAlways)
		if v, _ := g.Check(q); v != tool.Allow {
			t.Errorf("%s is asked about again", tt.name)
		}
	}
	if _, err := find(t, h, "files__echo").Prepare(t.Context(), `[1]`); err == nil {
		t.Error("a list is no arguments")
	}
	if s, ok := find(t, h, "files__echo").(interface{ Server() string }); !ok || s.Server() != "files" {
		t.Error("the tool does not name its server")
	}
}

func TestFailingServersAreNamedAndLeftOut(t *testing.T) {
	// The mute one needs all the time that there is. On a starved machine that may
	// be too little for the others: then there is more of it.
	var problems []string
	for _, limit := range []time.Duration{5 * time.Second, 30 * time.Second} {
		if problems = failingServers(t, limit); len(problems) == 0 {
			break
		}
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// failingServers starts a server among others that fail, and says what is wrong.
func failingServers(t *testing.T, limit time.Duration) (problems []string) {
	t.Helper()
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	const secret = "hunter2-secret"
	start := time.Now()
	h := connect(t, &mcp.Options{StartTimeout: limit},
		child(t, "good", "good"),
		child(t, "mute", "mute"),
		child(t, "broken", "broken", "TEST_SECRET="+secret),
		tool.ServerSpec{Name: "missing", Command: "no-such-program-anywhere"},
		tool.ServerSpec{Name: "nowhere", URL: "http://127.0.0.1:1/mcp?key=" + secret, Headers: map[string]string{"Authorization": "Bearer " + secret}},
		tool.ServerSpec{Name: "odd", URL: "ftp://example.org"},
	)
	if d := time.Since(start); d > limit+7*time.Second {
		wrong("it took %s", d)
	}
	if n := len(h.Tools()); n != 9 {
		wrong("%d tools", n)
	}
	list := h.Notices()
	all := strings.Join(list, "\n")
	for _, want := range []string{
		"The MCP server broken is left out: it ended (exit status 3), saying: no such database: [hidden].",
		`The MCP server missing is left out: the program "no-such-program-anywhere" was not found.`,
		fmt.Sprintf("The MCP server mute is left out: it did not answer in time (%s).", limit),
		"The MCP server nowhere is left out: it cannot be reached: ",
		"The MCP server odd is left out: its url is not http://HOST or https://HOST.",
	} {
		if !strings.Contains(all, want) {
			wrong("no notice %q in\n%s", want, all)
		}
	}
	if len(list) != 5 || strings.Contains(all, secret) {
		wrong("%s", all)
	}
	if len(h.Notices()) != 0 {
		wrong("notices are given twice")
	}
	return problems
}

func TestToolsDoesNotWait(t *testing.T) {
	took := llmtest.Quickest(2*time.Second, func() time.Duration {
		h := mcp.Connect(t.Context(), []tool.ServerSpec{child(t, "mute", "mute")}, &mcp.Options{Dir: t.TempDir(), Environ: os.Environ()})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		h.Wait(ctx)
		if len(h.Tools()) != 0 {
			t.Error("tools of a server that says nothing")
		}
		start := time.Now()
		_ = h.Close()
		d := time.Since(start)
		if n := h.Notices(); len(n) != 0 {
			t.Errorf("a hub that is closed says %q", n)
		}
		return d
	})
	if took > 2*time.Second {
		t.Errorf("closing a server that starts took %s", took)
	}
}

func TestEnvironment(t *testing.T) {
	h := connect(t, &mcp.Options{Environ: []string{"LAB_API_KEY=sk-1234567", "PLAIN=yes", "CHANGED=old"}},
		child(t, "s", "good", "CHANGED=new", "OWN_TOKEN=given"))
	r := call(t, h, "s__env", `{}`)
	lines := strings.Split(r.Text, "\n")
	for want, there := range map[string]bool{
		"LAB_API_KEY=sk-1234567": false, "PLAIN=yes": true, "CHANGED=old": false, "CHANGED=new": true, "OWN_TOKEN=given": true,
	} {
		if slices.Contains(lines, want) != there {
			t.Errorf("%s: want %v", want, there)
		}
	}
}

func TestResults(t *testing.T) {
	spill := t.TempDir()
	h := connect(t, &mcp.Options{SpillDir: spill}, child(t, "s", "good"))
	if r := call(t, h, "s__fail", `{}`); r.Status != tool.StatusError || r.Text != "the disk is full" {
		t.Errorf("%+v", r)
	}
	r := call(t, h, "s__mixed", `{}`)
	want := `first
[image s__mixed-1: image/png, 3x2]
[image left out: image/tiff, 4 bytes, is no picture that can be shown]
[audio left out: audio/wav, 4 bytes]
[resource file:///a.txt; a.txt; text/plain]
[resource db://row]
row text
[resource db://blob left out: application/zip, 2 bytes]
{"rows":[1,2]}`
	if r.Text != want || len(r.Images) != 1 || r.Images[0].Width != 3 || r.Images[0].Name != "s__mixed-1" {
		t.Errorf("%s\n%+v", r.Text, r.Images)
	}
	if r := call(t, h, "s__same", `{}`); r.Text != `{ "a": 12345678901234567 }` {
		t.Errorf("%s", r.Text)
	}

	// Up to the limit a text is verbatim, above it its ends are, and all is kept.
	const limit = 256 << 10
	if r := call(t, h, "s__long", fmt.Sprintf(`{"n":%d}`, limit)); len(r.Text) != limit || strings.Contains(r.Text, "left out") {
		t.Errorf("%d bytes", len(r.Text))
	}
	r = call(t, h, "s__long", fmt.Sprintf(`{"n":%d}`, limit+1000))
	m := regexp.MustCompile(`\[\.\.\. 1000 bytes left out; all of it is in (.*) \.\.\.\]`).FindStringSubmatch(r.Text)
	if m == nil || !strings.HasPrefix(r.Text, "<start>") || !strings.HasSuffix(r.Text, "<end>") || len(r.Text) > limit+500 {
		t.Fatalf("%d bytes, %.100q", len(r.Text), r.Text)
	}
	if data, err := os.ReadFile(m[1]); err != nil || len(data) != limit+1000 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

func TestCancel(t *testing.T) {
	h := connect(t, nil, child(t, "s", "good"))
	a := prepare(t, h, "s__hang", `{}`)
	took := llmtest.Quickest(time.Second, func() time.Duration {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var stopped time.Time
		r := tool.Run(ctx, a, func(text string) {
			if text == "hanging\n" { // it runs
				stopped = time.Now()
				cancel()
			}
		})
		d := time.Since(stopped)
		if stopped.IsZero() || r.Status != tool.StatusUnknown || !strings.Contains(r.Text, "was stopped") {
			t.Fatalf("%+v", r)
		}
		return d
	})
	if t.Logf("from cancel to result: %s", took); took > time.Second {
		t.Errorf("it took %s", took)
	}
	if r := call(t, h, "s__echo", `{}`); r.Text != "{}" { // the server is as before
		t.Errorf("%+v", r)
	}
}

func TestCallTimeout(t *testing.T) {
	h := connect(t, &mcp.Options{CallTimeout: 300 * time.Millisecond}, child(t, "s", "good"))
	if r := call(t, h, "s__hang", `{}`); r.Status != tool.StatusUnknown || !strings.Contains(r.Text, "given up after 300ms") {
		t.Errorf("%+v", r)
	}
}

func TestServerThatDies(t *testing.T) {
	file := pidFile(t)
	h := connect(t, nil, child(t, "s", "good", "TEST_PID_FILE="+file, "TEST_SECRET=tell-nobody"))
	r := call(t, h, "s__die", `{}`)
	want := "The MCP server s ended while the call ran: it ended (exit status 7), saying: panic: out of cheese, key [hidden]. " +
		"What the call has done is not known. The next call starts the server again."
	if r.Status != tool.StatusUnknown || r.Text != want {
		t.Errorf("%s: %s", r.Status, r.Text)
	}
	if len(h.Tools()) != 9 {
		t.Errorf("its tools are gone: %q", names(h))
	}
	// Calls side by side start it once.
	a := prepare(t, h, "s__echo", `{"n":2}`)
	results := make(chan tool.Result)
	for range 4 {
		go func() { results <- tool.Run(t.Context(), a, nil) }()
	}
	for range 4 {
		if r := <-results; r.Status != tool.StatusOK || r.Text != `{"n":2}` {
			t.Errorf("%+v", r)
		}
	}
	if list := pids(t, file); len(list) != 2 {
		t.Errorf("started as %v", list)
	}
	notices := h.Notices()
	if len(notices) != 1 || !strings.Contains(notices[0], "The MCP server s is gone: it ended (exit status 7)") ||
		strings.Contains(notices[0], "tell-nobody") {
		t.Errorf("%q", notices)
	}
}

func TestListChanges(t *testing.T) {
	changed := make(chan struct{}, 10)
	h := connect(t, &mcp.Options{Changed: func() { changed <- struct{}{} }}, child(t, "s", "good"))
	<-changed // it has started
	before := names(h)
	if r := call(t, h, "s__grow", `{}`); r.Text != "grown" {
		t.Fatalf("%+v", r)
	}
	<-changed
	h.Wait(t.Context())
	after := names(h)
	if len(after) != len(before)+1 || !slices.Contains(after, "s__grown_tool") {
		t.Fatalf("%q", after)
	}
	if r := call(t, h, "s__grown_tool", `{}`); r.Text != "I am new" {
		t.Errorf("%+v", r)
	}
}

func TestManyTools(t *testing.T) {
	h := connect(t, nil, child(t, "crowd", "many"), child(t, "s", "good"))
	list := names(h)
	if len(list) != 209 || !slices.Equal(list, names(h)) {
		t.Fatalf("%d tools", len(list))
	}
	if r := call(t, h, "crowd__tool_137", `{}`); r.Text != "this is 137" {
		t.Errorf("%+v", r)
	}
	if set := tool.NewSet(h.Tools()...); len(set.Defs()) != 209 {
		t.Errorf("%d in the set", len(set.Defs()))
	}
}

func TestCloseEndsProcesses(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("processes are looked at by signals")
	}
	file := pidFile(t)
	h := connect(t, nil, child(t, "polite", "good", "TEST_PID_FILE="+file), child(t, "stubborn", "stubborn", "TEST_PID_FILE="+file))
	a := prepare(t, h, "polite__hang", `{}`)
	running, result := make(chan struct{}), make(chan tool.Result)
	go func() { result <- tool.Run(t.Context(), a, func(string) { close(running) }) }()
	<-running
	list := pids(t, file)
	if len(list) != 2 {
		t.Fatalf("%v", list)
	}
	start := time.Now()
	_ = h.Close()
	// By itself the stubborn one ends after a minute.
	if d := time.Since(start); d < 400*time.Millisecond || d > 20*time.Second {
		t.Errorf("closing took %s: the stubborn one has 500ms", d)
	}
	untilGone(t, list...)
	if r := <-result; r.Status == tool.StatusOK {
		t.Errorf("%+v", r)
	}
	if r := tool.Run(t.Context(), a, nil); r.Status != tool.StatusError || !strings.Contains(r.Text, "the session is closed") {
		t.Errorf("%+v", r)
	}
	_ = h.Close() // twice is no harm
}

// A launcher between drover and the server, as npx is one, hides no process.
func TestCloseEndsChildrenOfChildren(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs sh")
	}
	file := pidFile(t)
	for _, kind := range []string{"good", "stubborn"} {
		spec := child(t, "s", kind, "TEST_PID_FILE="+file)
		spec.Args = append([]string{"-c", `"$0" "$@"; true`, spec.Command}, spec.Args...)
		spec.Command = "sh"
		h := connect(t, nil, spec)
		find(t, h, "s__echo")
		_ = h.Close()
	}
	list := pids(t, file)
	if len(list) != 2 {
		t.Errorf("%v", list)
	}
	untilGone(t, list...)
}

func TestEndingCloses(t *testing.T) {
	children := tool.NewChildren()
	file := pidFile(t)
	h := connect(t, &mcp.Options{Children: children}, child(t, "s", "good", "TEST_PID_FILE="+file))
	children.End()
	_ = h.Close()
	untilGone(t, pids(t, file)...)
}

func TestDefsAreValid(t *testing.T) {
	h := connect(t, nil, child(t, "größe / of things__and more, with a very long name", "good"))
	for _, name := range names(h) {
		if !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(name) {
			t.Errorf("%q", name)
		}
	}
	for _, impl := range h.Tools() {
		if d := impl.Def(); !json.Valid([]byte(d.Wire)) {
			t.Errorf("%s", d.Wire)
		}
	}
}

// TestCutOff: a server that is left because of what it writes is not said to have
// ended by itself.
func TestCutOff(t *testing.T) {
	for kind, want := range map[string]string{"nonsense": "no message", "endless": "more than 32 MiB"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h := connect(t, &mcp.Options{StartTimeout: 10 * time.Minute}, child(t, "bad", kind), child(t, "turns", "spouting"))
			notices := strings.Join(h.Notices(), "\n")
			if !strings.Contains(notices, "bad is left out: drover ended the connection") || !strings.Contains(notices, want) {
				t.Errorf("%q", notices)
			}
			r := call(t, h, "turns__"+kind, `{}`)
			notices = strings.Join(h.Notices(), "\n")
			for _, text := range []string{r.Text, notices} {
				if !strings.Contains(text, "drover ended the connection") || !strings.Contains(text, want) || strings.Contains(text, "broken pipe") {
					t.Errorf("%q", text)
				}
			}
			if r.Status != tool.StatusUnknown {
				t.Errorf("%+v", r)
			}
		})
	}
}
