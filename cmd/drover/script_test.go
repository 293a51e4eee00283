package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/drover-dev/drover/internal/engine"
	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/practice"
	"github.com/drover-dev/drover/internal/session"
)

func TestMain(m *testing.M) {
	if isSandboxExec(os.Args) {
		os.Exit(sandboxExec(os.Args, os.Stderr))
	}
	testscript.Main(m, map[string]func(){
		"drover":    func() { os.Exit(runProcess()) },
		"mcpserver": serveMCP,
	})
}

// engines are the fake engines of one script, by name.
type engines struct {
	mu     sync.Mutex
	byName map[string]*enginetest.Server
}

type enginesKey struct{}

// TestScripts runs the conversations of testdata/script over the binary.
//
// Each script has an empty home. It may start fake engines:
//
//	engine NAME PRESET [window=N] [model=ID] [key=K] [tools] [thinking] [none]
//	    starts one; its URL is $NAME
//	script NAME [text=T | call=TOOL:ARGS | cut=T | reject=STATUS:MESSAGE]...
//	    scripts its answers to the chats that follow, in order
//	fault NAME PATTERN KIND
//	    hang, stall, html, 404, 401, 500, reset, malformed, oversized or loading (once)
//	chats NAME N
//	    checks how many chat requests it got
//	ended REASON
//	    checks how the newest session's last turn ended
//
// and the practice engine of drover demo is at $PRACTICE. The condition quiet
// holds when no engine of the person's own listens at a default port.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			s := httptest.NewServer(practice.Handler())
			env.Defer(s.Close)
			env.Setenv("PRACTICE", s.URL)
			env.Values[enginesKey{}] = &engines{byName: make(map[string]*enginetest.Server)}
			return emptyHome(env)
		},
		Condition: func(name string) (bool, error) {
			if name != "quiet" {
				return false, fmt.Errorf("unknown condition %s", name)
			}
			return len(engine.Discover(t.Context(), nil).Found) == 0, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"engine": startEngine, "script": scriptEngine, "fault": faultEngine, "chats": countChats, "expand": expandFile, "ended": endedAs,
		},
	})
}

// emptyHome gives a script a home in which nothing is, and no proxy.
func emptyHome(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	for _, v := range []string{"HOME", "USERPROFILE"} {
		env.Setenv(v, home)
	}
	env.Setenv("GORACE", "atexit_sleep_ms=0")
	for _, v := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "DROVER_CONFIG", "HTTP_PROXY", "http_proxy"} {
		env.Setenv(v, "")
	}
	return os.MkdirAll(home, 0o700)
}

func enginesOf(ts *testscript.TestScript) *engines { return ts.Value(enginesKey{}).(*engines) }

func (e *engines) get(ts *testscript.TestScript, name string) *enginetest.Server {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.byName[name]
	if s == nil {
		ts.Fatalf("no engine %s", name)
	}
	return s
}

func startEngine(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: engine NAME PRESET [SETTING...]")
	}
	opts := &enginetest.Options{Preset: args[1]}
	m := enginetest.Model{ID: "brook-7b"}
	for _, a := range args[2:] {
		key, value, _ := strings.Cut(a, "=")
		switch key {
		case "window":
			n, err := strconv.Atoi(value)
			ts.Check(err)
			m.Window = n
		case "model":
			m.ID = value
		case "key":
			opts.Key = value
		case "tools":
			m.Tools = true
		case "thinking":
			m.Thinking = true
		case "none":
			opts.NoModels = true
		default:
			ts.Fatalf("engine: unknown setting %s", a)
		}
	}
	if !opts.NoModels {
		opts.Models = []enginetest.Model{m}
	}
	e := enginesOf(ts)
	s := enginetest.New(scriptTB{ts: ts}, opts)
	ts.Defer(s.Close)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.byName[args[0]] = s
	ts.Setenv(args[0], s.URL)
}

func scriptEngine(ts *testscript.TestScript, _ bool, args []string) {
	s := enginesOf(ts).get(ts, args[0])
	for i, a := range args[1:] {
		key, value, _ := strings.Cut(a, "=")
		switch key {
		case "text":
			s.Script(enginetest.Answer{Text: value, Chunk: 5})
		case "long": // far more than a pipe holds
			s.Script(enginetest.Answer{Text: strings.Repeat("word ", 100_000), Chunk: 50})
		case "cut":
			s.Script(enginetest.Answer{Text: value, Cut: true})
		case "length":
			s.Script(enginetest.Answer{Text: value, Finish: "length"})
		case "call":
			name, arguments, _ := strings.Cut(value, ":")
			s.Script(enginetest.Answer{Calls: []enginetest.Call{{ID: fmt.Sprint("call-", i), Name: name, Arguments: arguments}}})
		case "reject":
			status, message, _ := strings.Cut(value, ":")
			n, err := strconv.Atoi(status)
			ts.Check(err)
			s.Script(enginetest.Answer{Status: n, Body: fmt.Sprintf(`{"error":{"message":%q}}`, message)})
		default:
			ts.Fatalf("script: unknown answer %s", a)
		}
	}
}

func faultEngine(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: fault NAME PATTERN KIND")
	}
	faults := map[string]enginetest.Fault{
		"hang":      {Hang: true},
		"reset":     {Reset: true},
		"html":      enginetest.HTML(200),
		"404":       enginetest.Refuse(404, "not here", "not_found"),
		"401":       enginetest.Refuse(401, "invalid key", "authentication_error"),
		"500":       enginetest.Refuse(500, "out of memory", "server_error"),
		"malformed": enginetest.Body(`{"data": [`),
		"oversized": {Pad: 4 << 20},
		"stall":     {Stall: true},
		"loading":   once(enginetest.Loading()),
	}
	f, ok := faults[args[2]]
	if !ok {
		ts.Fatalf("fault: unknown kind %s", args[2])
	}
	enginesOf(ts).get(ts, args[0]).Fault(args[1], f)
}

// once makes a fault that heals by itself.
func once(f enginetest.Fault) enginetest.Fault {
	f.Times = 1
	return f
}

func countChats(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	if got := len(enginesOf(ts).get(ts, args[0]).Chats()); got != want {
		ts.Fatalf("engine %s got %d chats, want %d", args[0], got, want)
	}
}

// endedAs checks how the newest session's last turn ended.
func endedAs(ts *testscript.TestScript, _ bool, args []string) {
	store := session.NewStore(filepath.Join(ts.Getenv("HOME"), ".local", "state", "drover", "sessions"))
	list, err := store.List(nil)
	ts.Check(err)
	if len(list) == 0 {
		ts.Fatalf("no session was saved")
	}
	state, err := store.Read(list[0].ID)
	ts.Check(err)
	if state.End == nil || string(state.End.Reason) != args[0] {
		ts.Fatalf("the last turn ended with %+v, want %s", state.End, args[0])
	}
}

// scriptTB lets a fake engine live as long as a script.
type scriptTB struct {
	testing.TB
	ts *testscript.TestScript
}

func (scriptTB) Helper()                         {}
func (scriptTB) Cleanup(func())                  {} // the script closes its engines itself
func (tb scriptTB) Fatalf(f string, args ...any) { tb.ts.Fatalf(f, args...) }
func (tb scriptTB) Fatal(args ...any)            { tb.ts.Fatalf("%s", fmt.Sprintln(args...)) }
func (tb scriptTB) Errorf(f string, args ...any) { tb.ts.Fatalf(f, args...) }
func (tb scriptTB) Error(args ...any)            { tb.ts.Fatalf("%s", fmt.Sprintln(args...)) }
func (tb scriptTB) Logf(f string, args ...any)   { tb.ts.Logf(f, args...) }

// expand replaces the variables of the script's environment in files.
func expandFile(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		text := os.Expand(ts.ReadFile(name), ts.Getenv)
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}
