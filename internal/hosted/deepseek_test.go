package hosted_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/agent/agenttest"
	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/hosted"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/target"
)

// noting is a proxy function that notes the address of a generation and fails it.
// It is asked again, with GET, for the name of the proxy that failed.
func noting(got *string) func(*http.Request) (*url.URL, error) {
	return func(r *http.Request) (*url.URL, error) {
		if r.Method == http.MethodPost {
			*got = r.URL.String()
		}
		return nil, errors.New("no network in this test")
	}
}

func TestDeepSeekAdvertises(t *testing.T) {
	tests := []struct {
		name   string
		models []llm.ModelInfo
		want   []string
	}{
		{"by default", nil, []string{"deepseek-v4-flash DeepSeek-V4-Flash", "deepseek-v4-pro DeepSeek-V4-Pro"}},
		{"its list", []llm.ModelInfo{{ID: "my-private", Name: "Ours"}, {ID: "b"}}, []string{"my-private Ours", "b b"}},
		{"nothing", []llm.ModelInfo{}, nil},
	}
	for _, tt := range tests {
		d, err := hosted.NewDeepSeek(&hosted.Options{Models: tt.models})
		if err != nil {
			t.Fatal(err)
		}
		var r catalog.Registry
		if _, err := r.Register(d, hosted.DeepSeekRoute); err != nil {
			t.Fatal(err)
		}
		if got := r.Providers()[0].Name; got != "DeepSeek" {
			t.Errorf("the provider is called %q", got)
		}
		models, err := r.Models(t.Context(), hosted.DeepSeekRoute)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range models {
			got = append(got, m.ID+" "+m.Name)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestDeepSeekFactsAreDeclaredForEveryID(t *testing.T) {
	d, err := hosted.NewDeepSeek(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"deepseek-v4-pro", "my/private \"model\""} {
		info, err := d.Describe(t.Context(), llm.Target{Provider: hosted.DeepSeekRoute, Model: id})
		if err != nil || info.Window.Tokens != 1_000_000 || info.Window.OutputLimit != 384_000 || info.Window.Source != llm.Declared ||
			info.Profile != llm.DeepSeek || len(info.Window.Evidence) != 2 {
			t.Errorf("%s: %+v, %v", id, info, err)
		}
	}
}

func TestDeepSeekAddressAndPassThrough(t *testing.T) {
	got := ""
	d, err := hosted.NewDeepSeek(&hosted.Options{Key: "k", Proxy: noting(&got)})
	if err != nil {
		t.Fatal(err)
	}
	if err := send(t, d, llm.Target{Provider: hosted.DeepSeekRoute, Model: "unlisted"}); llm.CodeOf(err) != llm.CodeTransport {
		t.Error(err)
	}
	if want := "https://api.deepseek.com/v1/chat/completions"; got != want {
		t.Errorf("sent to %s, want %s", got, want)
	}
}

// imitation answers as DeepSeek's API does: first with a tool call, then with
// text, and with 400 to a conversation that its thinking mode does not take.
type imitation struct {
	t testing.TB

	mu     sync.Mutex
	bodies [][]byte
}

type wireMessage struct {
	Role      string           `json:"role"`
	Content   *json.RawMessage `json:"content"`
	Reasoning *string          `json:"reasoning_content"`
	Calls     []any            `json:"tool_calls"`
}

type wireRequest struct {
	Model    string            `json:"model"`
	Messages []json.RawMessage `json:"messages"`
	Thinking struct {
		Type string `json:"type"`
	} `json:"thinking"`
	Effort string `json:"reasoning_effort"`
}

// thought has what a replay must not change: white space, escapes, Unicode.
const thought = "  Look first.\n\"a\\b\" <think> \u00e9 \u2028 "

func (im *imitation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		im.t.Error(err)
	}
	im.mu.Lock()
	im.bodies = append(im.bodies, body)
	im.mu.Unlock()
	var req wireRequest
	if err := json.Unmarshal(body, &req); err != nil {
		im.t.Error(err)
	}
	if r.Header.Get("Authorization") != "Bearer the-key" {
		refuse(w, http.StatusUnauthorized, "Authentication Fails")
		return
	}
	last := ""
	for i, raw := range req.Messages {
		var m wireMessage
		if err := json.Unmarshal(raw, &m); err != nil {
			im.t.Error(err)
		}
		last = m.Role
		if m.Content == nil || string(*m.Content) == "null" {
			refuse(w, http.StatusBadRequest, fmt.Sprintf("messages[%d]: content should be a string, but got null", i))
			return
		}
		if m.Role == "assistant" && len(m.Calls) > 0 && m.Reasoning == nil && req.Thinking.Type != "disabled" {
			refuse(w, http.StatusBadRequest, "The `reasoning_content` in the thinking mode must be passed back to the API.")
			return
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if req.Thinking.Type != "disabled" {
		chunk(w, map[string]any{"reasoning_content": thought})
	}
	if last == "tool" {
		chunk(w, map[string]any{"content": "It says hello."})
		finish(w, "stop", len(body))
		return
	}
	chunk(w, map[string]any{"content": nil, "tool_calls": []any{map[string]any{
		"index": 0, "id": fmt.Sprint("call-", len(req.Messages)), "type": "function",
		"function": map[string]any{"name": "read", "arguments": `{"path":"hello.txt"}`},
	}}})
	finish(w, "tool_calls", len(body))
}

func refuse(w http.ResponseWriter, status int, message string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"message":%q,"type":"invalid_request_error"}}`, message)
}

func chunk(w io.Writer, delta map[string]any) {
	data, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta}}})
	fmt.Fprintf(w, "data: %s\n\n", data)
}

// finish counts the prompt roughly as a tokenizer would.
func finish(w io.Writer, reason string, size int) {
	fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":%q}],"usage":{"prompt_tokens":%d,"completion_tokens":9}}`+"\n\ndata: [DONE]\n\n", reason, size/3)
}

// deepSeekSession is an agent on the real client in front of the imitation.
type deepSeekSession struct {
	t        *testing.T
	server   *imitation
	selector *target.Selector
	log      *session.Log
	agent    *agent.Agent
}

func newDeepSeekSession(t *testing.T) *deepSeekSession {
	t.Helper()
	s := &deepSeekSession{t: t, server: &imitation{t: t}}
	server := httptest.NewServer(s.server)
	t.Cleanup(server.Close)
	d, err := hosted.NewDeepSeek(&hosted.Options{Key: "the-key", URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	registry := new(catalog.Registry)
	if _, err := registry.Register(d, hosted.DeepSeekRoute); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.selector = target.NewSelector(registry, new(target.Store), llm.Climb)
	s.selector.Select(t.Context(), llm.Target{Provider: hosted.DeepSeekRoute, Model: "my-private"})
	if s.log, err = session.NewStore("").Create(dir, nil); err != nil {
		t.Fatal(err)
	}
	s.agent = agent.New(s.selector, s.log, s.log.NewState(), nil, &agent.Options{Dir: dir})
	return s
}

// turn runs one turn, which must complete with the answer to the tool's result.
func (s *deepSeekSession) turn(effort llm.Effort) {
	s.t.Helper()
	s.selector.SetEffort(effort)
	text := ""
	for ev := range s.agent.Turn(s.t.Context(), []llm.Part{llm.Text("What does hello.txt say?")}) {
		switch ev := ev.(type) {
		case agent.Text:
			text += string(ev)
		case agent.End:
			if ev.Reason != agent.EndCompleted {
				s.t.Fatalf("%s: the turn ended with %v, %v", effort, ev.Reason, ev.Err)
			}
		}
	}
	if text != "It says hello." {
		s.t.Errorf("%s: %q", effort, text)
	}
}

// last decodes the newest request.
func (s *deepSeekSession) last() (wireRequest, []wireMessage) {
	s.t.Helper()
	var req wireRequest
	if err := json.Unmarshal(s.server.bodies[len(s.server.bodies)-1], &req); err != nil {
		s.t.Fatal(err)
	}
	messages := make([]wireMessage, len(req.Messages))
	for i, raw := range req.Messages {
		if err := json.Unmarshal(raw, &messages[i]); err != nil {
			s.t.Fatal(err)
		}
	}
	return req, messages
}

// TestDeepSeekToolRounds runs tool rounds with the thinking on and off, and a
// conversation that goes from one to the other and back.
func TestDeepSeekToolRounds(t *testing.T) {
	for _, efforts := range [][]llm.Effort{{llm.Climb}, {llm.Graze}, {llm.Graze, llm.Summit, llm.Graze, llm.Trot}} {
		s := newDeepSeekSession(t)
		for _, e := range efforts {
			s.turn(e)
			thinking, wireEffort := "enabled", map[llm.Effort]string{llm.Trot: "low", llm.Climb: "high", llm.Summit: "max"}[e]
			if e == llm.Graze {
				thinking = "disabled"
			}
			req, _ := s.last()
			if req.Model != "my-private" || req.Thinking.Type != thinking || req.Effort != wireEffort {
				t.Errorf("%s: model %q, thinking %q, effort %q", e, req.Model, req.Thinking.Type, req.Effort)
			}
		}
		if want := 2 * len(efforts); len(s.server.bodies) != want {
			t.Errorf("%v: %d requests, want %d: one was refused and repeated", efforts, len(s.server.bodies), want)
		}
		agenttest.CheckBodies(t, s.log.Records(), s.server.bodies)
	}
}

// TestDeepSeekReasoningGoesBackByteForByte looks at a turn that was thought
// about and one that was not.
func TestDeepSeekReasoningGoesBackByteForByte(t *testing.T) {
	s := newDeepSeekSession(t)
	s.turn(llm.Graze)
	s.turn(llm.Climb)
	_, messages := s.last()
	var got []string
	for _, m := range messages {
		if m.Role == "assistant" && len(m.Calls) > 0 {
			if m.Reasoning == nil {
				t.Fatal("a turn of calls goes without reasoning_content")
			}
			got = append(got, *m.Reasoning)
		}
	}
	if want := []string{"", thought}; !slices.Equal(got, want) {
		t.Errorf("reasoning_content %q, want %q", got, want)
	}
}

// TestTheImitationRefuses keeps the server of the tests above honest.
func TestTheImitationRefuses(t *testing.T) {
	s := httptest.NewServer(&imitation{t: t})
	defer s.Close()
	for body, want := range map[string]string{
		`{"messages":[{"role":"assistant","content":null}]}`:                                                    "got null",
		`{"messages":[{"role":"assistant","content":"","tool_calls":[{}]}],"thinking":{"type":"enabled"}}`:      "must be passed back",
		`{"messages":[{"role":"assistant","tool_calls":[{}],"content":"x"}],"thinking":{"type":"disabled"}}`:    "call-1",
		`{"messages":[{"role":"assistant","tool_calls":[{}],"content":"x","reasoning_content":""}],"model":""}`: "call-1",
	} {
		r, err := http.NewRequest(http.MethodPost, s.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer the-key")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if !strings.Contains(string(answer), want) {
			t.Errorf("%s: answered %d %s", body, res.StatusCode, answer)
		}
	}
}
