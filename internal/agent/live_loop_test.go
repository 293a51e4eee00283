//go:build engines

package agent_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/engine/livetest"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/openai"
)

// docs/performance.md has the figures of a run with -long:
//
//	go test -tags engines ./internal/agent -run TestLivePrefix -v -timeout 1h -args -long
var long = flag.Bool("long", false, "run 200 prompts and 100 rounds on the real engine instead of some")

// work is what a scripted model does for a number of prompts or rounds.
type work struct {
	name   string
	window int
	count  int // of prompts in a session, of rounds in a loop
	// prompt and answer are the most bytes of a prompt and of an answer of a
	// session, file is the size of each file that a tool loop reads.
	prompt, answer, file int
	// largest is the largest exchange of a session, or round of a loop, in quanta.
	largest float64
	// share is how much of what policy 1 has an engine compute policy 2 may have
	// it compute, over the requests that both plan; 0 for no limit.
	share float64
}

const (
	half  = 1.0 / 2
	third = 1.0 / 3 // where the largest exchange is a quarter of a quantum
)

var (
	shortWork = []work{
		{name: "short session", window: 4096, count: 110, prompt: 45, answer: 50, largest: 0.25, share: third},
		{name: "uneven session", window: 8192, count: 30, prompt: 600, answer: 2000, largest: 1, share: half},
		{name: "loop", window: 8192, count: 25, file: 500, largest: 1, share: half},
	}
	longWork = []work{
		{name: "short session", window: 4096, count: 200, prompt: 45, answer: 50, largest: 0.25, share: third},
		{name: "short session", window: 8192, count: 200, prompt: 200, answer: 400, largest: 0.25, share: third},
		{name: "uneven session", window: 4096, count: 200, prompt: 150, answer: 450, largest: 1, share: half},
		{name: "uneven session", window: 8192, count: 200, prompt: 600, answer: 2000, largest: 1, share: half},
		{name: "loop of short results", window: 8192, count: 100, file: 100, largest: 0.25, share: third},
		{name: "loop", window: 8192, count: 100, file: 500, largest: 1, share: half},
		{name: "loop", window: 32768, count: 100, file: 1500, largest: 1, share: half},
		// Rounds that are larger than the quantum move the shape each time.
		{name: "loop", window: 4096, count: 100, file: 1000, largest: 4},
		{name: "loop of long results", window: 8192, count: 100, file: 4000, largest: 4},
	}
)

// TestLivePrefix runs sessions and tool loops at the limit of a window, by both
// policies. A scripted model answers, and a llama-server with this window takes
// every request and says how many of its tokens it had to compute: those that are
// new, and all behind the first place where a request differs from the one before.
func TestLivePrefix(t *testing.T) {
	all := shortWork
	if *long {
		all = longWork
	}
	for _, w := range all {
		t.Run(fmt.Sprintf("%s %d", w.name, w.window), func(t *testing.T) {
			server := livetest.Llama(t, "vocab", "-c", strconv.Itoa(w.window), "-np", "1")
			one, two := w.run(t, server, 1), w.run(t, server, 2)
			both := min(len(one.requests), len(two.requests))
			a, b := one.computed(both), two.computed(both)
			t.Logf("policy 1: %v\npolicy 2: %v\nof %d requests policy 1 computes %d a request, policy 2 %d, %.0f %%",
				one, two, both, a/both, b/both, 100*float64(b)/float64(a))
			if two.refused != nil {
				t.Errorf("policy 2 gave up: %v", two.refused)
			}
			if one.trimmed == 0 || two.trimmed == 0 {
				t.Errorf("%d and %d requests at the limit: the test does not reach what it is about", one.trimmed, two.trimmed)
			}
			if two.largest > w.largest {
				t.Errorf("%.2f of a quantum in one exchange or round, want at most %.2f", two.largest, w.largest)
			}
			if w.share > 0 && float64(b) > w.share*float64(a) {
				t.Errorf("policy 2 computes %d tokens, want at most %.2f of the %d of policy 1", b, w.share, a)
			}
		})
	}
}

// served is what the server says of one request, in tokens.
type served struct{ computed, cached int }

// spending is what a policy had the server compute.
type spending struct {
	requests          []served
	anchored, trimmed int     // requests judged by an anchor, and those at the limit
	largest           float64 // the largest exchange or round in quanta
	refused           error   // why not everything was planned
}

// computed is how much the first n requests had computed.
func (s *spending) computed(n int) int {
	sum := 0
	for _, r := range s.requests[:n] {
		sum += r.computed
	}
	return sum
}

func (s *spending) String() string {
	cached, n := 0, len(s.requests)
	for _, r := range s.requests {
		cached += r.cached
	}
	text := fmt.Sprintf("%d requests, a request %d tokens computed and %d from the cache; %d at the limit, %d by anchor, largest part %.2f quanta",
		n, s.computed(n)/n, cached/n, s.trimmed, s.anchored, s.largest)
	if s.refused != nil {
		text += ", then refused"
	}
	return text
}

// run does the work by one policy.
func (w *work) run(t *testing.T, server *livetest.Server, version int) *spending {
	policy, _ := budget.PolicyByVersion(version)
	s := new(spending)
	r := rand.New(rand.NewPCG(20261130, uint64(w.window)))
	p := &llmtest.Provider{Facts: window(w.window)}
	p.Answer = func(n int, req *llm.Request) llmtest.Answer {
		used := s.send(t, server, req)
		if w.file == 0 {
			return reply(used, llm.TextDelta(talk(r, w.answer)), llm.Finish{Reason: llm.FinishStop})
		}
		if n == w.count {
			return reply(used, llm.TextDelta("The gates are counted."), llm.Finish{Reason: llm.FinishStop})
		}
		call := llm.ToolCall{ID: fmt.Sprint("c", n), Name: "read", Arguments: fmt.Sprintf(`{"path":"f%d.txt"}`, n)}
		return reply(used, llm.ToolCalls{call}, llm.Finish{Reason: llm.FinishToolCalls})
	}
	f := newFixture(t, p, nil, agent.Options{Policy: policy, NoInstructions: true})
	for i := range w.count {
		if w.file > 0 {
			if err := os.WriteFile(filepath.Join(f.dir, fmt.Sprintf("f%d.txt", i)), []byte(lines(r, w.file)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	prompts := 1
	if w.file == 0 {
		prompts = w.count
	}
	for i := range prompts {
		events := f.turn(t.Context(), fmt.Sprintf("%d: %s", i, talk(r, w.prompt)))
		for _, planned := range find[agent.Planned](events) {
			if planned.Report.Anchor != nil {
				s.anchored++
			}
			if planned.Report.Trimmed() {
				s.trimmed++
			}
		}
		s.largest = max(s.largest, w.part(f, &find[agent.Planned](events)[0].Report))
		if end := endOf(events); end.Reason != agent.EndCompleted {
			s.refused = end.Err
			break
		}
	}
	return s
}

// part is the size of the newest exchange or round, in quanta of policy 2.
func (w *work) part(f *fixture, r *budget.Report) float64 {
	quantum := 1
	for 8*quantum <= r.InputBudget-r.BreakdownBefore.Fixed() {
		quantum *= 2
	}
	messages := f.agent.Messages()
	end := len(messages)
	start := end - 2 // the prompt and its answer
	if w.file > 0 {  // the call and its result, before the answer or at the end
		if messages[end-1].Role == llm.Assistant {
			end--
		}
		start = end - 2
	}
	cost := budget.EstimateRequest(budget.Policy2(), &llm.Request{Messages: messages[start:end]}).Exchanges
	return float64(cost) / float64(quantum)
}

func reply(u llm.Usage, events ...llm.Event) llmtest.Answer {
	return llmtest.Answer{Events: append([]llm.Event{u}, events...)}
}

// send has the server take a request, and adds up what it computed.
func (s *spending) send(t *testing.T, server *livetest.Server, req *llm.Request) llm.Usage {
	t.Helper()
	one := *req
	one.MaxTokens = 1
	body, err := openai.EncodeRequest(&one)
	if err != nil {
		t.Fatal(err)
	}
	// What the texts hold is escaped, so that this can stand at one place only.
	body = bytes.Replace(body, []byte(`"stream":true,"stream_options":{"include_usage":true}`), []byte(`"stream":false`), 1)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Close = true // the server may close a connection at any time between two requests
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	var answer struct {
		Usage struct {
			Prompt int `json:"prompt_tokens"`
		}
		Timings struct {
			Computed int `json:"prompt_n"`
			Cached   int `json:"cache_n"`
		}
	}
	if err == nil {
		err = json.Unmarshal(data, &answer)
	}
	if err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("request %d: status %d, %v: %s", len(s.requests), response.StatusCode, err, data)
		return llm.Usage{}
	}
	u, timings := &answer.Usage, &answer.Timings
	if timings.Computed == 0 || timings.Computed+timings.Cached != u.Prompt {
		t.Errorf("request %d: %d tokens, of which %d computed and %d cached", len(s.requests), u.Prompt, timings.Computed, timings.Cached)
	}
	s.requests = append(s.requests, served{timings.Computed, timings.Cached})
	return llm.Usage{PromptTokens: u.Prompt, CompletionTokens: 1}
}

var talkWords = strings.Fields("the drover walks behind herd and counts every gate before evening while files change because nobody " +
	"expects that a fence moves over night so look again at the north side please")

// talk is between a third and all of n bytes of sentences.
func talk(r *rand.Rand, n int) string {
	n = n/3 + r.IntN(n-n/3+1)
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(talkWords[r.IntN(len(talkWords))])
		b.WriteByte(" .\n"[max(0, r.IntN(24)-21)])
	}
	return b.String()[:n]
}

// lines is about n bytes of a file.
func lines(r *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "\tgate[%d] = fence(%q, %d) // %s\n", r.IntN(1000), talkWords[r.IntN(len(talkWords))], r.IntN(1e6), talkWords[r.IntN(len(talkWords))])
	}
	return b.String()
}
