//go:build engines

package budget_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/engine/livetest"
	"github.com/drover-dev/drover/internal/history"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/openai"
	"github.com/drover-dev/drover/internal/tool"
)

// docs/performance.md has the figures of a run with 500:
//
//	go test -tags engines ./internal/budget -run TestLive -v -timeout 2h -args -histories 500
var histories = flag.Int("histories", 15, "how many generated conversations to plan for real engines")

// liveWindows are the windows that every conversation is planned for.
var liveWindows = []int{512, 1024, 2048, 4096, 8192, 16384, 32768}

const (
	// successWindow is the window from which on a plan is expected to succeed,
	// and successShare how often.
	successWindow = 2048
	successShare  = 0.9

	// longRun is the number of conversations from which on all is done that takes
	// more than a minute.
	longRun = 100

	// sessionRequests is how many requests of a conversation are made one after
	// the other, each told of the one before.
	sessionRequests = 6

	// wholeTokens is how long a prompt may be for its answer to be read to the
	// end. Of longer ones only every wholeEvery-th is: the engine has compared the
	// prompt with its window before it reports the first progress.
	wholeTokens = 1500
	wholeEvery  = 40
)

// liveTools are the tools that a window has room for, at a token a byte too.
func liveTools(t *testing.T, window int) []llm.ToolDef {
	w := &tool.Workspace{Dir: t.TempDir()}
	switch {
	case window < 1024:
		return nil
	case window < 4096:
		return []llm.ToolDef{llm.NewToolDef("read", "Read a file.",
			[]byte(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`))}
	case window < 8192:
		return tool.NewSet(tool.Read(w), tool.Grep(w)).Defs()
	}
	return droverTools(t, window)
}

// droverTools are the built-in tools that drover offers in a window.
func droverTools(t *testing.T, window int) []llm.ToolDef {
	w := &tool.Workspace{Dir: t.TempDir()}
	if window < 12_000 {
		return tool.NewSet(tool.Small(w)...).Defs()
	}
	return tool.NewSet(tool.Builtin(w)...).Defs()
}

// live plans for one running llama-server and compares.
type live struct {
	*testing.T
	server *livetest.Server
	window int
	tally  *tally
	counts counts
	taken  map[[sha256.Size]byte]bool
}

// counts remembers what the engine counted for a body, which does not depend on
// the window.
type counts map[[sha256.Size]byte]int

func newLive(t *testing.T, known counts, window int, args ...string) *live {
	args = append([]string{"-c", strconv.Itoa(window), "-np", "1", "-b", "128"}, args...)
	return &live{
		T: t, server: livetest.Llama(t, "vocab", args...), window: window,
		tally: newTally(), counts: known, taken: map[[sha256.Size]byte]bool{},
	}
}

// input asks for the conversation's first turns in the window of the server.
func (l *live) input(c *conversation, turns int, tools []llm.ToolDef) *budget.Input {
	in := &budget.Input{
		Snapshot: llm.Snapshot{
			Target: llm.Target{Provider: "lab", Model: "vocab"},
			Window: llm.Window{Tokens: l.window, Source: llm.Effective},
			Effort: c.effort,
		},
		System: c.system, Memory: c.memory,
		Messages:        c.messages[:turns],
		RequestedOutput: c.output,
	}
	if c.tools {
		in.Tools = tools
	}
	if l.window < successWindow { // what the efforts ask for fills such a window
		in.RequestedOutput = l.window / 8
	}
	if l.window < 1024 {
		in.System, in.Memory = "You are drover.", ""
	}
	return in
}

// plan plans, holds the plan against the engine and returns it with what the
// engine counted. It returns nil when nothing fits.
func (l *live) plan(p *budget.Policy, in *budget.Input, name string) (*budget.Plan, llm.Usage) {
	l.Helper()
	name = fmt.Sprintf("%s, window %d, policy %d", name, l.window, p.Version)
	plan, err := budget.Make(p, in)
	if err != nil {
		var overflow *budget.OverflowError
		if !errors.As(err, &overflow) || overflow.Component == budget.InvalidHistory || overflow.Component == budget.ModelMismatch {
			l.Fatalf("%s: %v", name, err)
		}
		return nil, llm.Usage{}
	}
	body := l.encode(plan, name)
	again := *in
	again.Costs = nil
	if second, err := budget.Make(p, &again); err != nil || !bytes.Equal(body, l.encode(second, name)) {
		l.Errorf("%s: planned again it differs: %v", name, err)
	}
	if _, err := history.Split(plan.Request.Messages); err != nil {
		l.Errorf("%s: %v", name, err)
	}

	key := sha256.Sum256(body)
	count, counted := l.counts[key]
	if !counted {
		count = l.count(body)
		l.counts[key] = count
	}
	r := &plan.Report
	if count > r.EstimatedAfter || r.EstimatedAfter > r.InputBudget || count+plan.Request.MaxTokens > l.window {
		l.Errorf("%s: the engine counts %d of estimated %d, input budget %d, max_tokens %d (anchor %+v)",
			name, count, r.EstimatedAfter, r.InputBudget, plan.Request.MaxTokens, r.Anchor)
	}
	l.tally.add(p.Version, r, count)
	if !l.taken[key] { // or the engine took these very bytes already
		l.taken[key] = true
		l.send(body, count, plan.Request.Tools, name)
	}
	return plan, llm.Usage{PromptTokens: count}
}

func (l *live) encode(plan *budget.Plan, name string) []byte {
	body, err := openai.EncodeRequest(&plan.Request)
	if err != nil {
		l.Fatalf("%s: %v", name, err)
	}
	return body
}

func (l *live) post(path string, body []byte) *http.Response {
	request, err := http.NewRequestWithContext(l.Context(), http.MethodPost, l.server.URL+path, bytes.NewReader(body))
	if err != nil {
		l.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Close = true // the server may close a connection at any time between two requests
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		l.Fatal(err)
	}
	return response
}

// count is how many tokens the engine says that the request has.
func (l *live) count(body []byte) int {
	response := l.post("/v1/chat/completions/input_tokens", body)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	var count struct {
		Tokens int `json:"input_tokens"`
	}
	if err = errors.Join(err, json.Unmarshal(answer, &count)); err != nil || response.StatusCode != http.StatusOK || count.Tokens == 0 {
		l.Fatalf("count: status %d, %v: %s", response.StatusCode, err, answer)
	}
	return count.Tokens
}

// send sends the request: the engine must answer, and count the same.
func (l *live) send(body []byte, count int, tools []llm.ToolDef, name string) {
	l.Helper()
	l.tally.sent++
	whole := count <= wholeTokens || l.tally.sent%wholeEvery == 0
	if !whole {
		body = append(bytes.TrimSuffix(body, []byte("}")), `,"return_progress":true}`...)
	}
	response := l.post("/v1/chat/completions", body)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		answer, _ := io.ReadAll(response.Body)
		l.Errorf("%s: the engine answers %d: %s", name, response.StatusCode, answer)
		return
	}
	used := 0
	if whole {
		l.tally.whole++
		for event, err := range openai.DecodeStream(response.Body, &openai.StreamOptions{Tools: tools}) {
			if err != nil {
				l.Errorf("%s: %v", name, err)
			}
			if u, ok := event.(llm.Usage); ok {
				used = u.PromptTokens
			}
		}
	} else {
		used = progress(response.Body)
	}
	if used != count {
		l.Errorf("%s: %d tokens counted before, %d then", name, count, used)
	}
}

// progress reads a stream up to the first report of progress, and returns the
// length of the prompt in tokens.
func progress(stream io.Reader) int {
	line := make([]byte, 0, 1024)
	for b := make([]byte, 1); ; {
		if _, err := stream.Read(b); err != nil {
			return 0
		}
		if b[0] != '\n' {
			line = append(line, b[0])
			continue
		}
		var chunk struct {
			Progress struct{ Total int } `json:"prompt_progress"`
		}
		data, _ := bytes.CutPrefix(line, []byte("data: "))
		if json.Unmarshal(data, &chunk) == nil && chunk.Progress.Total > 0 {
			return chunk.Progress.Total
		}
		line = line[:0]
	}
}

// TestLiveWindows plans generated conversations for every window by both
// policies, and lets the engine count and take each request.
func TestLiveWindows(t *testing.T) {
	all := make([]*conversation, *histories)
	for i := range all {
		all[i] = newConversation(i, nil)
	}
	policies := []*budget.Policy{budget.Policy1(), budget.Policy2()}
	total, known := newTally(), counts{}
	for w, window := range liveWindows {
		t.Run(strconv.Itoa(window), func(t *testing.T) {
			l, tools := newLive(t, known, window), liveTools(t, window)
			for _, c := range all {
				for i, p := range policies {
					in := l.input(c, len(c.messages), tools)
					in.Costs = &c.costs[i]
					plan, _ := l.plan(p, in, fmt.Sprintf("history %d", c.number))
					l.tally.planned(p.Version, plan)
				}
				if c.number%len(liveWindows) == w {
					for _, p := range policies {
						l.session(p, c, tools)
					}
				}
			}
			t.Logf("%d requests, %d of them to the end of the answer\n%s", l.tally.sent, l.tally.whole, l.tally)
			total.join(l.tally, window >= successWindow)
		})
	}
	t.Logf("all windows: %d requests, %d of them to the end of the answer\n%s", total.sent, total.whole, total)
	for version, n := range total.plans {
		if n.all == 0 {
			continue // a window was picked with -run
		}
		if share := float64(n.fit) / float64(n.all); share < successShare {
			t.Errorf("policy %d: %.1f %% of the plans at %d and more succeed", version, 100*share, successWindow)
		}
	}
	if len(total.ratios[kind{2, true}]) == 0 {
		t.Error("no plan has an anchor")
	}
}

// session makes the last requests of a conversation one after the other, each
// told what the engine counted for the one before.
func (l *live) session(p *budget.Policy, c *conversation, tools []llm.ToolDef) {
	ends := c.requests()
	costs := new(budget.Costs)
	var previous *budget.Previous
	for _, end := range ends[max(0, len(ends)-sessionRequests):] {
		in := l.input(c, end, tools)
		in.Previous, in.Costs = previous, costs
		plan, usage := l.plan(p, in, fmt.Sprintf("history %d up to turn %d", c.number, end))
		if plan != nil {
			previous = plan.Next(usage)
		}
	}
}

// tally collects figures.
type tally struct {
	ratios  map[kind][]float64 // estimate by count
	slack   map[kind]int       // least tokens by which an estimate was above its count
	plans   map[int]*outcome   // by policy
	trimmed map[int]int        // by policy
	sent    int
	whole   int // of sent
}

// kind tells apart what was estimated how.
type kind struct {
	policy int
	anchor bool
}

type outcome struct{ fit, all int }

func newTally() *tally {
	return &tally{ratios: map[kind][]float64{}, slack: map[kind]int{}, trimmed: map[int]int{}, plans: map[int]*outcome{1: {}, 2: {}}}
}

func (y *tally) add(policy int, r *budget.Report, count int) {
	k := kind{policy, r.Anchor != nil}
	y.note(k, r.EstimatedAfter-count, float64(r.EstimatedAfter)/float64(count))
	if r.Trimmed() {
		y.trimmed[policy]++
	}
}

func (y *tally) note(k kind, slack int, ratios ...float64) {
	if old, ok := y.slack[k]; !ok || slack < old {
		y.slack[k] = slack
	}
	y.ratios[k] = append(y.ratios[k], ratios...)
}

func (y *tally) planned(policy int, plan *budget.Plan) {
	y.plans[policy].all++
	if plan != nil {
		y.plans[policy].fit++
	}
}

func (y *tally) join(other *tally, plans bool) {
	for k, ratios := range other.ratios {
		y.note(k, other.slack[k], ratios...)
	}
	for version, n := range other.plans {
		y.trimmed[version] += other.trimmed[version]
		if plans {
			y.plans[version].fit += n.fit
			y.plans[version].all += n.all
		}
	}
	y.sent += other.sent
	y.whole += other.whole
}

func (y *tally) String() string {
	var b strings.Builder
	for _, version := range []int{1, 2} {
		n := y.plans[version]
		fmt.Fprintf(&b, "policy %d: %d of %d plans succeed, %d requests are trimmed\n", version, n.fit, n.all, y.trimmed[version])
	}
	b.WriteString("estimate/count           n    min     p1    p10 median    p90    p99    max  least above\n")
	for _, k := range []kind{{1, false}, {1, true}, {2, false}, {2, true}} {
		ratios := slices.Sorted(slices.Values(y.ratios[k]))
		if len(ratios) == 0 {
			continue
		}
		fmt.Fprintf(&b, "policy %d, %s %6d", k.policy, map[bool]string{false: "no anchor", true: "anchor   "}[k.anchor], len(ratios))
		for _, share := range []float64{0, 0.01, 0.1, 0.5, 0.9, 0.99, 1} {
			fmt.Fprintf(&b, " %6.3f", ratios[max(0, int(math.Ceil(share*float64(len(ratios))))-1)])
		}
		fmt.Fprintf(&b, " %6d tokens\n", y.slack[k])
	}
	return b.String()
}
