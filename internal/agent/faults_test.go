package agent_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/agent/agenttest"
	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/engine"
	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/tool"
)

// chatPath is what the faults of these tests are armed for: the engine's answers
// about its models stay right.
const chatPath = "POST /v1/chat/completions"

// wired is a session on a real engine client in front of a fake engine, on pipes
// and in virtual time.
type wired struct {
	t     *testing.T
	srv   *enginetest.Server
	log   *session.Log
	agent *agent.Agent
}

func newWired(t *testing.T, preset engine.Preset, fake enginetest.Options, host string) *wired {
	t.Helper()
	fake.Preset, fake.InMemory = string(preset), true
	w := &wired{t: t, srv: enginetest.New(t, &fake)}
	url := strings.Replace(w.srv.URL, "127.0.0.1", host, 1)
	ep, err := engine.ParseEndpoint(url)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New("lab", ep, preset, &engine.Options{Dial: enginetest.Dialer(w.srv)})
	t.Cleanup(e.Close)
	registry := new(catalog.Registry)
	if _, err := registry.Register(e, "lab"); err != nil {
		t.Fatal(err)
	}
	sel := target.NewSelector(registry, new(target.Store), llm.Climb)
	t.Cleanup(sel.Close)
	sel.Select(t.Context(), llm.Target{Provider: "lab", Model: "brook-7b"})
	if w.log, err = session.NewStore("").Create(t.TempDir(), nil); err != nil {
		t.Fatal(err)
	}
	w.agent = agent.New(sel, w.log, w.log.NewState(), nil, nil)
	return w
}

func model(window int) enginetest.Options {
	return enginetest.Options{Models: []enginetest.Model{{ID: "brook-7b", Window: window}}}
}

// turn runs a turn. Each retry has to be in the log when it is told.
func (w *wired) turn(ctx context.Context, prompt string) (events []agent.Event, took time.Duration) {
	w.t.Helper()
	start := time.Now()
	for ev := range w.agent.Turn(ctx, words(prompt)) {
		events = append(events, ev)
		if _, ok := ev.(agent.Retrying); ok {
			if logged := w.logged(); logged != len(find[agent.Retrying](events)) {
				w.t.Errorf("%d retries in the log before the wait of number %d", logged, len(find[agent.Retrying](events)))
			}
		}
	}
	return events, time.Since(start)
}

func (w *wired) logged() (retries int) {
	w.t.Helper()
	for rec, err := range w.log.Records() {
		if err != nil {
			w.t.Fatal(err)
		}
		if _, ok := rec.(*session.Retry); ok {
			retries++
		}
	}
	return retries
}

// chatBodies are the bodies of all chat requests, those that met a fault too.
func (w *wired) chatBodies() (bodies [][]byte) {
	for _, r := range w.srv.Requests() {
		if r.Method+" "+r.Path == chatPath {
			bodies = append(bodies, r.Body)
		}
	}
	return bodies
}

func (w *wired) check() {
	w.t.Helper()
	agenttest.CheckBodies(w.t, w.log.Records(), w.chatBodies())
}

// near reports whether a time is the wanted one with a tenth of jitter.
func near(got, want time.Duration) bool {
	return got >= want-want/10 && got <= want+want/10+10*time.Millisecond
}

func TestFaultsOfAnEngine(t *testing.T) {
	const loopback, elsewhere = "127.0.0.1", "10.1.2.3"
	after := func(seconds string) http.Header { return http.Header{"Retry-After": {seconds}} }
	busy := enginetest.Refuse(500, "the slots are busy", "server_error")
	times := func(n int, f enginetest.Fault) enginetest.Fault { f.Times = n; return f }
	tests := []struct {
		name     string
		host     string
		fault    enginetest.Fault
		requests int
		code     llm.Code // "" for a turn that completes
		says     string   // the error, or the first retry
		took     time.Duration
		partial  bool
	}{
		{"busy twice", loopback, times(2, busy), 3, "", "busy", 1500 * time.Millisecond, false},
		{"always busy", loopback, busy, 6, llm.CodeServer, "busy", 15500 * time.Millisecond, false},
		{"loading for 40 s", loopback, times(20, enginetest.Loading()), 21, "", "oading", 40 * time.Second, false},
		{"loading for ever", loopback, enginetest.Loading(), 151, llm.CodeServer, "oading", 300 * time.Second, false},
		{"asks to wait", elsewhere, enginetest.Fault{Times: 1, Status: 429, Header: after("30"), Body: `{"error":{"message":"slow down"}}`}, 2, "", "slow down", 30 * time.Second, false},
		{"asks to wait for an hour", elsewhere, enginetest.Fault{Status: 429, Header: after("3600"), Body: `{"error":{"message":"slow down"}}`}, 1, llm.CodeRateLimit, "1h0m0s", 0, false},
		{"no money", elsewhere, enginetest.Refuse(429, "You exceeded your current quota, check your billing", "insufficient_quota"), 1, llm.CodeQuota, "quota", 0, false},
		{"wrong key", loopback, enginetest.Refuse(401, "Invalid API Key", "authentication_error"), 1, llm.CodeAuth, "", 0, false},
		{"a template that fails", loopback, enginetest.Refuse(500, "Value is not callable: jinja template rendering failed", "server_error"), 1, llm.CodeInvalidRequest, "jinja", 0, false},
		{"a web page", loopback, enginetest.HTML(200), 1, llm.CodeMalformedResponse, "", 0, false},
		{"another origin", loopback, enginetest.Redirect(307, "http://evil.example/v1/chat/completions"), 1, "HTTP_307", "", 0, false},
		{"a reset", loopback, enginetest.Fault{Times: 1, Reset: true}, 2, "", "", 500 * time.Millisecond, false},
		{"resets", loopback, enginetest.Fault{Reset: true}, 6, llm.CodeTransport, "local:8080", 15500 * time.Millisecond, false},
		{"nothing in it", loopback, times(1, enginetest.Body("data: [DONE]\n\n")), 2, "", "", 500 * time.Millisecond, false},
		{"nothing in it twice", loopback, enginetest.Body("data: [DONE]\n\n"), 2, llm.CodeEmptyResponse, "", 500 * time.Millisecond, false},
		{"no first byte on loopback", loopback, enginetest.Fault{Hang: true}, 1, llm.CodeTimeout, "", 10 * time.Minute, false},
		{"no first byte elsewhere", elsewhere, enginetest.Fault{Hang: true}, 1, llm.CodeTimeout, "", 2 * time.Minute, false},
		{"it stops in the stream", loopback, enginetest.Fault{Stall: true}, 1, llm.CodeTimeout, "continue", 5 * time.Minute, true},
		{"it breaks off in the stream", loopback, enginetest.Fault{Break: true}, 1, llm.CodeStreamClosed, "continue", 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answer := enginetest.Answer{Text: strings.Repeat("the herons of the pond ", 20), Chunk: 40}
				fake := model(8192)
				fake.Answer = func(*enginetest.Chat) enginetest.Answer { return answer }
				w := newWired(t, engine.LlamaCpp, fake, tt.host)
				w.srv.Fault(chatPath, tt.fault)
				time.Sleep(time.Minute) // no connection is kept so long
				events, took := w.turn(t.Context(), "go")
				end := endOf(events)
				said := ""
				if r := find[agent.Retrying](events); len(r) > 0 {
					said = r[0].Err.Error()
				}
				if end.Err != nil {
					said = end.Err.Error()
				}
				if code := agent.Code(end.Err); end.Err == nil && tt.code != "" || end.Err != nil && code != tt.code {
					t.Errorf("ended with code %q, want %q: %v", code, tt.code, end.Err)
				}
				if !strings.Contains(said, tt.says) {
					t.Errorf("said %q, want %q in it", said, tt.says)
				}
				if n := len(w.chatBodies()); n != tt.requests {
					t.Errorf("%d requests, want %d", n, tt.requests)
				}
				if !near(took, tt.took) {
					t.Errorf("took %v, want about %v", took, tt.took)
				}
				if waiting := len(find[agent.Waiting](events)); tt.fault.Hang && waiting == 0 {
					t.Error("nobody was told that the engine is silent")
				}
				if kept := len(w.agent.Messages()) == 2; kept != (tt.partial || tt.code == "") {
					t.Errorf("an answer is kept: %v", kept)
				}
				w.srv.Heal()
				if events, _ := w.turn(t.Context(), "continue"); endOf(events).Reason != agent.EndCompleted || text(events) != answer.Text {
					t.Errorf("the next turn ended %+v with %q", endOf(events), text(events))
				}
				w.check()
			})
		})
	}
}

// TestAnEngineThatIsGone: nobody listens, and then somebody does again.
func TestAnEngineThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWired(t, engine.LlamaCpp, model(8192), "127.0.0.1")
		w.turn(t.Context(), "one")
		w.srv.Close()
		events, took := w.turn(t.Context(), "two")
		end := endOf(events)
		if agent.Code(end.Err) != llm.CodeTransport || !strings.Contains(fmt.Sprint(end.Err), "local:8080") || !near(took, 1500*time.Millisecond) {
			t.Errorf("after %v: %v", took, end.Err)
		}
		if n := len(find[agent.Retrying](events)); n != 2 {
			t.Errorf("tried again %d times, want 2", n)
		}
	})
}

func TestOverflowsOfAnEngine(t *testing.T) {
	long := strings.Repeat("herons stand at the pond and wait for fish ", 400) // about 4,000 tokens
	t.Run("the window has shrunk", func(t *testing.T) {
		for _, preset := range []engine.Preset{engine.LlamaCpp, engine.VLLM, engine.SGLang, engine.LMStudio, engine.OMLX, engine.Custom} {
			t.Run(string(preset), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWired(t, preset, model(16384), "127.0.0.1")
					if events, _ := w.turn(t.Context(), long); endOf(events).Reason != agent.EndCompleted {
						t.Fatalf("the first turn ended %+v", endOf(events))
					}
					// Loaded again with less.
					w.srv.SetModels(enginetest.Model{ID: "brook-7b", Window: 4096})
					events, _ := w.turn(t.Context(), "and now")
					if end := endOf(events); end.Reason != agent.EndCompleted {
						t.Fatalf("ended %+v", end)
					}
					plans := find[agent.Planned](events)
					if len(plans) != 2 || plans[1].Report.WindowTokens > 4096 {
						t.Errorf("%d requests; the last one is for a window of %d", len(plans), plans[len(plans)-1].Report.WindowTokens)
					}
					w.check()
				})
			})
		}
	})
	t.Run("it refuses whatever is sent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWired(t, engine.LlamaCpp, model(8192), "127.0.0.1")
			w.srv.Fault(chatPath, enginetest.Fault{Status: 400, Body: `{"error":{"code":400,"type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096,"message":"request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it"}}`})
			events, _ := w.turn(t.Context(), "go")
			end := endOf(events)
			if agent.Code(end.Err) != llm.CodeContextWindowExceeded || len(w.chatBodies()) != 2 {
				t.Fatalf("%d requests, ended %v", len(w.chatBodies()), end.Err)
			}
			for _, figure := range []string{"5000", "4096"} {
				if !strings.Contains(end.Err.Error(), figure) {
					t.Errorf("%q does not name %s", end.Err, figure)
				}
			}
			w.check()
		})
	})
	t.Run("no figures, and the engine says the same again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWired(t, engine.LlamaCpp, model(8192), "127.0.0.1")
			w.srv.Fault(chatPath, enginetest.Refuse(400, "the context window is exceeded", "invalid_request_error"))
			events, _ := w.turn(t.Context(), "go")
			if end := endOf(events); agent.Code(end.Err) != llm.CodeContextWindowExceeded || len(w.chatBodies()) != 1 {
				t.Errorf("%d requests, ended %v", len(w.chatBodies()), end.Err)
			}
		})
	})
	t.Run("no figures, and the engine tells a smaller window now", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWired(t, engine.LlamaCpp, model(16384), "127.0.0.1")
			w.turn(t.Context(), long)
			w.srv.SetModels(enginetest.Model{ID: "brook-7b", Window: 4096})
			w.srv.Fault(chatPath, enginetest.Fault{Times: 1, Status: 400, Body: `{"error":{"message":"the context window is exceeded"}}`})
			events, _ := w.turn(t.Context(), "and now")
			plans := find[agent.Planned](events)
			if end := endOf(events); end.Reason != agent.EndCompleted || len(plans) != 2 || plans[1].Report.WindowTokens != 4096 {
				t.Errorf("%d requests, ended %+v", len(plans), end)
			}
			w.check()
		})
	})
	t.Run("only the answer is too long", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWired(t, engine.LlamaCpp, model(4096), "127.0.0.1")
			w.srv.Fault(chatPath, enginetest.Fault{Times: 1, Status: 400, Body: `{"error":{"code":"context_length_exceeded","message":"This model's maximum context length is 4096 tokens. However, you requested 4548 tokens (2500 in the messages, 2048 in the completion)."}}`})
			events, _ := w.turn(t.Context(), "go")
			plans := find[agent.Planned](events)
			if end := endOf(events); end.Reason != agent.EndCompleted || len(plans) != 2 {
				t.Fatalf("%d requests, ended %+v", len(plans), end)
			}
			chats := w.srv.Chats()
			if most := chats[len(chats)-1].MaxTokens; most > 4096-2500 || most < 256 {
				t.Errorf("the second request asks for %d tokens", most)
			}
			w.check()
		})
	})
}

// TestPromptsInARow: a turn that failed does not make the session unusable for a
// model whose template wants user and assistant to take turns.
func TestPromptsInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWired(t, engine.LlamaCpp, model(8192), "127.0.0.1")
		w.srv.Fault(chatPath, enginetest.Fault{Times: 1, Status: 400, Body: `{"error":{"message":"no luck"}}`})
		if events, _ := w.turn(t.Context(), "first"); endOf(events).Err == nil {
			t.Fatal("the first turn did not fail")
		}
		w.srv.Fault(chatPath, enginetest.Fault{Times: 1, Status: 500, Body: `{"error":{"code":500,"type":"server_error","message":"Conversation roles must alternate user/assistant/user/assistant/..."}}`})
		events, _ := w.turn(t.Context(), "second")
		if end := endOf(events); end.Reason != agent.EndCompleted {
			t.Fatalf("ended %+v", end)
		}
		bodies := w.chatBodies()
		if last := string(bodies[len(bodies)-1]); len(bodies) != 3 || !strings.Contains(last, `"content":"first\n\nsecond"`) {
			t.Errorf("%d requests, the last %s", len(bodies), last)
		}
		told := find[agent.Notice](events)
		if !slices.ContainsFunc(told, func(n agent.Notice) bool { return strings.Contains(n.Text, "prompts in a row") }) {
			t.Errorf("told %+v", told)
		}
		w.check()
	})
}

// TestNoProgressOnAnEngine: a model that asks for the same for ever stops when
// nobody can be asked, and costs three requests.
func TestNoProgressOnAnEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := model(8192)
		fake.Models[0].Tools = true
		n := 0
		fake.Answer = func(*enginetest.Chat) enginetest.Answer {
			n++
			return enginetest.Answer{Calls: []enginetest.Call{{ID: fmt.Sprint("c", n), Name: "glob", Arguments: `{"pattern": "*"}`}}}
		}
		w := newWired(t, engine.LlamaCpp, fake, "127.0.0.1")
		events, _ := w.turn(t.Context(), "go")
		if end := endOf(events); agent.Code(end.Err) != llm.CodeNoProgress || n != 3 {
			t.Errorf("%d requests, ended %v", n, end.Err)
		}
		w.check()
	})
}

// TestCancelClosesTheRequest: a cancel ends the request at the engine within
// 100 ms wherever it is, and the next prompt works.
func TestCancelClosesTheRequest(t *testing.T) {
	tests := []struct {
		name  string
		fault enginetest.Fault
		open  int           // requests that are under way
		at    time.Duration // of the cancel: in the middle of a wait
	}{
		{"in prefill", enginetest.Fault{Hang: true}, 1, 20300 * time.Millisecond},
		{"in the stream", enginetest.Fault{Stall: true}, 1, 20300 * time.Millisecond},
		{"in a dribble", enginetest.Fault{Dribble: time.Second}, 1, 20300 * time.Millisecond},
		{"in a retry wait", enginetest.Refuse(500, "busy", "server_error"), 0, 5 * time.Second},
		{"while the model is loaded", enginetest.Loading(), 0, 20300 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWired(t, engine.LlamaCpp, model(8192), "127.0.0.1")
				w.srv.Fault(chatPath, tt.fault)
				ctx, cancel := context.WithCancel(t.Context())
				start := time.Now()
				time.AfterFunc(tt.at, cancel)
				events, took := w.turn(ctx, "go")
				if end := endOf(events); end.Reason != agent.EndCancelled {
					t.Errorf("ended %+v", end)
				}
				if took < tt.at || took > tt.at+100*time.Millisecond {
					t.Errorf("silent %v after the cancel", took-tt.at)
				}
				synctest.Wait()
				if n := w.srv.Abandoned(); n != tt.open {
					t.Errorf("%d requests were left at the engine, want %d", n, tt.open)
				}
				w.srv.Heal()
				if events, _ := w.turn(t.Context(), "again"); endOf(events).Reason != agent.EndCompleted {
					t.Errorf("the next prompt ended %+v after %v", endOf(events), time.Since(start))
				}
				w.check()
			})
		})
	}
}

// What was not saved in one turn and is in the next is told there.
func TestSavedAgainInALaterTurn(t *testing.T) {
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Say("one"), llmtest.Say("two"), llmtest.Say("three"), llmtest.Say("four")}}
	root := filepath.Join(t.TempDir(), "sessions")
	log, err := session.NewStore(root).Create("/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	registry := new(catalog.Registry)
	if _, err := registry.Register(p, "p"); err != nil {
		t.Fatal(err)
	}
	selector := target.NewSelector(registry, new(target.Store), llm.Graze)
	selector.Select(t.Context(), llm.Target{Provider: "p", Model: "m"})
	a := agent.New(selector, log, log.NewState(), nil, nil)
	told := func() string {
		var said []string
		for ev := range a.Turn(t.Context(), []llm.Part{llm.Text("go on")}) {
			if n, ok := ev.(agent.Notice); ok && n.Kind == agent.NoticeStore {
				said = append(said, n.Text)
			}
		}
		return strings.Join(said, "\n")
	}
	if got := told(); got != "" {
		t.Errorf("well: %q", got)
	}
	if err := os.RemoveAll(root); err != nil {
		t.Skip(err) // no open file can be removed here
	}
	if err := os.WriteFile(root, nil, 0o600); err != nil { // in the way
		t.Fatal(err)
	}
	if got := told(); !strings.Contains(got, "is not saved") || strings.Contains(got, "\n") || !a.Unsaved() {
		t.Errorf("not saved: %q", got)
	}
	if err := os.Remove(root); err != nil {
		t.Fatal(err)
	}
	if got := told(); got != "The session is saved again." || a.Unsaved() {
		t.Errorf("saved: %q", got)
	}
	if got := told(); got != "" {
		t.Errorf("well again: %q", got)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// Of an answer that the log does not take no call runs: the model would never see
// what came of it, and ask again.
func TestAnswerThatCannotBeLogged(t *testing.T) {
	// Too long would do as well, and take long.
	odd := llm.Usage{PromptTokens: 5, Timings: &llm.Timings{PromptMS: math.Inf(1)}}
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{
		{Events: []llm.Event{llm.ToolCalls{edit("1")}, odd, llm.Finish{Reason: llm.FinishToolCalls}}}, llmtest.Say("well"),
	}}
	f := newFixture(t, p, nil, agent.Options{Gate: tool.NewGate(tool.ModeFull)})
	end := endOf(f.turn(t.Context(), "go"))
	if end.Reason != agent.EndError || end.Err == nil || !strings.Contains(end.Err.Error(), "unsupported value") {
		t.Errorf("ended %s, %v", end.Reason, end.Err)
	}
	if _, err := os.Stat(filepath.Join(f.dir, "new.txt")); err == nil {
		t.Error("the call ran")
	}
	if end := endOf(f.turn(t.Context(), "go on")); end.Reason != agent.EndCompleted {
		t.Errorf("going on: %s, %v", end.Reason, end.Err)
	}
	f.check()
}
