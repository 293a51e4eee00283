//go:build engines && linux

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/engine/livetest"
)

const (
	// soakTime is how long TestSoak runs unless DROVER_SOAK says otherwise.
	soakTime = time.Minute
	// soakSessions are open at a time.
	soakSessions = 50
	// soakTurns is how many turns a session has before it makes way for another.
	soakTurns = 12
	// soakPatience bounds the answer to anything: the engines have 50 sessions to
	// serve and two cores.
	soakPatience = 5 * time.Minute
	// soakRest is how long a process has to come to rest when all is over.
	soakRest = 20 * time.Second
	// moreFDs and moreGoroutines is what an idle process may have beyond one that
	// has done next to nothing: connections that are kept for the next request.
	moreFDs, moreGoroutines = 8, 24
	// moreMemory is by what part the memory of the last quarter of the time may
	// exceed that of the second, and slackMemory what in KiB.
	moreMemory, slackMemory = 0.15, 8 << 10
)

// TestSoak runs many sessions over one process against two engines, with random
// switches of models and random cancels. See scripts/acpsoak.
//
// Each prompt holds the tag of its session and its number. A request must hold the
// tags of one session alone, be for a model that this session had selected in the
// turn of its newest prompt, name that model and its provider in the system text,
// and arrive at that provider: that of a turn that was cancelled may be read late.
// Afterwards,
// with all sessions closed, nothing may be left: goroutines, file descriptors,
// child processes.
func TestSoak(t *testing.T) {
	limit := soakTime
	if s := os.Getenv("DROVER_SOAK"); s != "" {
		var err error
		if limit, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("DROVER_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("DROVER_SEED=%d", seed)
	h := &soak{t: t, seed: seed, binary: os.Getenv("DROVER_BINARY")}
	if h.binary == "" {
		h.binary = filepath.Join(t.TempDir(), "drover")
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", h.binary, ".").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	h.start(livetest.Llama(t, "plain", "--alias", bothModel, "-np", "4", "-c", "32768").URL, livetest.Ollama(t, "OLLAMA_NUM_PARALLEL=4").URL)

	// A process in which every session has had one turn is what the other is
	// compared with.
	short := h.run(0, 0)
	long := h.run(limit, short.fds+moreFDs)
	t.Logf("before: %s", &short)
	t.Logf("after %v: %s", limit, &long)
	t.Logf("%d turns ended, %d were cancelled (%d in one write with their prompt), %d switches (%d in the middle of a turn), %d sessions, %d requests",
		long.ended, long.cancelled, long.atOnce, long.switches, long.midTurn, long.sessions, long.requests)
	if t.Failed() {
		t.Logf("the goroutines of drover:\n%s", long.dump)
	}
	if long.fds > short.fds+moreFDs || long.goroutines > short.goroutines+moreGoroutines || long.children > 0 {
		t.Errorf("something is left\n%s", long.dump)
	}
	if n := len(long.memory); n >= 8 {
		early, late := median(long.memory[n/4:n/2]), median(long.memory[3*n/4:])
		t.Logf("memory: %d KiB in the second quarter, %d KiB in the last", early, late)
		if float64(late) > float64(early)*(1+moreMemory)+slackMemory {
			t.Errorf("the memory grows from %d to %d KiB: %d", early, late, long.memory)
		}
	}
	if long.ended == 0 || long.cancelled == 0 || long.switches == 0 {
		t.Error("too little has happened")
	}
}

func median(list []int) int {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// soak is what both processes have in common.
type soak struct {
	t      *testing.T
	seed   uint64
	binary string
	config string

	mu       sync.Mutex
	used     map[string]map[string]bool // by prompt: the targets that a request may have
	requests int
	figures  soakFigures
}

// soakFigures are what is counted and measured.
type soakFigures struct {
	ended, cancelled, atOnce, switches, midTurn, sessions, requests int

	fds, goroutines, children int
	memory                    []int  // KiB resident, every second or so
	dump                      string // of the goroutines
}

func (f *soakFigures) String() string {
	if len(f.memory) == 0 {
		return fmt.Sprintf("%d turns ended, %d cancelled", f.ended, f.cancelled)
	}
	return fmt.Sprintf("%d goroutines, %d file descriptors, %d children, %d KiB", f.goroutines, f.fds, f.children, f.memory[len(f.memory)-1])
}

func (h *soak) count(n *int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*n++
}

// start puts itself in front of both engines and writes the configuration.
func (h *soak) start(llama, ollama string) {
	settings := fmt.Sprintf("model = %q\nmode = \"full\"\n", workshop+"/"+bothModel)
	for _, e := range []struct{ provider, preset, url string }{{workshop, "llamacpp", llama}, {attic, "ollama", ollama}} {
		u, err := url.Parse(e.url)
		if err != nil {
			h.t.Fatal(err)
		}
		front := livetest.Front(func() *url.URL { return u })
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/chat/completions") {
				body, _ := io.ReadAll(req.Body) // a client that left is no matter
				h.check(e.provider, body)
				req.Body = io.NopCloser(bytes.NewReader(body))
			}
			front.ServeHTTP(w, req)
		}))
		h.t.Cleanup(s.Close)
		settings += fmt.Sprintf("\n[engines.%s]\npreset = %q\nurl = %q\n", e.provider, e.preset, s.URL)
	}
	h.config = filepath.Join(h.t.TempDir(), "drover.toml")
	if err := os.WriteFile(h.config, []byte(settings), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// soakTag is in every prompt: the tag of its session, and which one it is.
var soakTag = regexp.MustCompile(`(sheep-\d+-)\d+`)

// check looks at a request that a provider got.
func (h *soak) check(provider string, body []byte) {
	var chat struct {
		Model    string
		Messages []struct {
			Role    string
			Content any
		}
	}
	if err := json.Unmarshal(body, &chat); err != nil || len(chat.Messages) == 0 {
		h.t.Errorf("%s: %v: %.500s", provider, err, body)
		return
	}
	tags, newest := make(map[string]bool), ""
	for _, m := range chat.Messages {
		if m.Role == "user" {
			for _, found := range soakTag.FindAllStringSubmatch(fmt.Sprint(m.Content), -1) {
				tags[found[1]], newest = true, found[0]
			}
		}
	}
	target := provider + "/" + chat.Model
	system, _ := chat.Messages[0].Content.(string)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests++
	if len(tags) != 1 || !h.used[newest][target] || !strings.Contains(system, "the model "+chat.Model+" of "+provider+".") {
		h.t.Errorf("a request of %v to %s; %q may ask %v; system text %.300q", tags, target, newest, h.used[newest], system)
	}
}

// run runs a process for a time and looks at what is left, which it expects to come
// down to so many file descriptors. With no time each session has one turn.
func (h *soak) run(limit time.Duration, fds int) soakFigures {
	h.t.Helper()
	h.figures, h.requests, h.used = soakFigures{}, 0, make(map[string]map[string]bool)
	c := h.connect()
	deadline := time.Now().Add(limit)
	var wg sync.WaitGroup
	for i := range soakSessions {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(h.seed, uint64(i)))
			for n := 0; n == 0 || time.Now().Before(deadline) && !h.t.Failed(); n++ {
				s := &soakSession{c: c, h: h, rng: rng, tag: fmt.Sprintf("sheep-%d-", i+n*soakSessions), turns: soakTurns}
				if limit == 0 {
					s.turns = 1
				}
				s.live(deadline)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	tick := time.NewTicker(max(time.Second, limit/200))
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-tick.C:
			h.figures.memory = append(h.figures.memory, c.resident())
		case <-done:
			running = false
		}
		if h.t.Failed() { // the turns that are waited for may never end
			running = false
		}
	}
	c.settle(fds)
	h.figures.memory = append(h.figures.memory, c.resident())
	h.figures.requests = h.requests
	h.figures.fds, h.figures.children = c.descriptors(), c.children()
	h.figures.goroutines, h.figures.dump = c.quit()
	return h.figures
}

// soakClient is the client's end of one process.
type soakClient struct {
	h      *soak
	cmd    *exec.Cmd
	dir    string
	stderr bytes.Buffer
	gone   chan struct{}

	mu       sync.Mutex
	in       io.Writer
	lastID   int
	waiting  map[int]chan soakMessage
	sessions map[string]*soakSession
}

type soakMessage struct {
	ID     *int
	Method string
	Params struct {
		SessionID string
		Update    struct {
			SessionUpdate string
			ConfigOptions []soakOption
		}
	}
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}

type soakOption struct{ ID, CurrentValue string }

func (h *soak) connect() *soakClient {
	h.t.Helper()
	home := h.t.TempDir()
	c := &soakClient{h: h, dir: h.t.TempDir(), gone: make(chan struct{}), waiting: make(map[int]chan soakMessage), sessions: make(map[string]*soakSession)}
	if err := os.WriteFile(filepath.Join(c.dir, "README.md"), []byte("# Sheep\n"), 0o600); err != nil {
		h.t.Fatal(err)
	}
	c.cmd = exec.Command(h.binary, "acp")
	c.cmd.Dir, c.cmd.Stderr = c.dir, &c.stderr
	c.cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "DROVER_CONFIG=" + h.config, "GOTRACEBACK=all"}
	in, err := c.cmd.StdinPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	c.in = in
	if err := c.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = c.cmd.Process.Kill() }) // it has ended, if all is well
	go c.read(out)
	c.call("initialize", map[string]any{"protocolVersion": 1, "clientInfo": map[string]any{"name": "soak", "version": "1"}}, nil)
	return c
}

// read hands every message to whom it is for.
func (c *soakClient) read(out io.Reader) {
	defer close(c.gone)
	r := bufio.NewReaderSize(out, 1<<16)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		var m soakMessage
		if err := json.Unmarshal(line, &m); err != nil {
			c.h.t.Errorf("%v: %.300s", err, line)
			continue
		}
		c.mu.Lock()
		switch {
		case m.Method == "session/update":
			if s := c.sessions[m.Params.SessionID]; s != nil {
				s.update(&m)
			} else if k := m.Params.Update.SessionUpdate; strings.Contains(k, "chunk") || strings.Contains(k, "tool") {
				c.h.t.Errorf("%s for %q, which is not open", k, m.Params.SessionID)
			}
		case m.Method != "":
			c.h.t.Errorf("asked: %.300s", line)
		case m.ID == nil || c.waiting[*m.ID] == nil:
			c.h.t.Errorf("an answer to nobody: %.300s", line)
		default:
			c.waiting[*m.ID] <- m
			delete(c.waiting, *m.ID)
		}
		c.mu.Unlock()
	}
}

// begin sends a request, with a line behind it in the same write.
func (c *soakClient) begin(method string, params any, behind string) <-chan soakMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastID++
	answer := make(chan soakMessage, 1)
	c.waiting[c.lastID] = answer
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.lastID, "method": method, "params": params})
	if err != nil {
		c.h.t.Error(err)
	}
	_, _ = c.in.Write(append(append(line, '\n'), behind...)) // who does not read is found out by the answer
	return answer
}

// write sends a notification.
func (c *soakClient) write(note []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.in.Write(append(bytes.Clone(note), '\n')) // as in begin
}

func (c *soakClient) await(method string, answer <-chan soakMessage, result any) bool {
	timer := time.NewTimer(soakPatience)
	defer timer.Stop()
	select {
	case m := <-answer:
		if m.Error != nil {
			c.h.t.Errorf("%s: %+v", method, *m.Error)
			return false
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				c.h.t.Errorf("%s: %v", method, err)
			}
		}
		return true
	case <-c.gone: // said by who waits for the process
		return false
	case <-timer.C:
		c.h.t.Errorf("%s: no answer in %v; so far: %s", method, soakPatience, &c.h.figures)
	}
	return false
}

func (c *soakClient) call(method string, params, result any) bool {
	return c.await(method, c.begin(method, params, ""), result)
}

func (c *soakClient) proc(name string) string {
	return filepath.Join("/proc", strconv.Itoa(c.cmd.Process.Pid), name)
}

// settle waits until no child and so many descriptors are left, as long as that may
// take: what was cancelled at the very end takes a moment to be gone.
func (c *soakClient) settle(fds int) {
	deadline := time.NewTimer(soakRest)
	defer deadline.Stop()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for c.children() > 0 || fds > 0 && c.descriptors() > fds {
		select {
		case <-poll.C:
		case <-deadline.C:
			return
		}
	}
}

func (c *soakClient) resident() int {
	status, _ := os.ReadFile(c.proc("status"))
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n
		}
	}
	return 0
}

func (c *soakClient) descriptors() int {
	list, err := os.ReadDir(c.proc("fd"))
	if err != nil {
		c.h.t.Error(err)
	}
	return len(list)
}

func (c *soakClient) children() int {
	tasks, _ := filepath.Glob(c.proc("task/*/children"))
	n := 0
	for _, task := range tasks {
		data, _ := os.ReadFile(task) // a thread that has ended has none
		n += len(strings.Fields(string(data)))
	}
	return n
}

// quit has the process write the stacks of its goroutines and end.
func (c *soakClient) quit() (goroutines int, dump string) {
	if err := c.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		c.h.t.Error(err)
	}
	<-c.gone
	_ = c.cmd.Wait() // 2
	dump = c.stderr.String()
	return strings.Count("\n"+dump, "\ngoroutine "), dump
}

// soakSession is one session and its person.
type soakSession struct {
	c     *soakClient
	h     *soak
	rng   *rand.Rand
	tag   string
	turns int
	id    string
	said  string // the tag and number of the newest prompt

	// Guarded by the client.
	busy    bool   // a prompt has no answer
	current string // the model as the options say
	first   chan struct{}
}

// soakTargets are what a session chooses from. Ollama gets less: it is slower.
var soakTargets = [][2]string{{workshop, bothModel}, {workshop, bothModel}, {workshop, bothModel}, {attic, bothModel}, {attic, "think:latest"}}

// live is a session from new to delete.
func (s *soakSession) live(deadline time.Time) {
	var opened struct {
		SessionID     string
		ConfigOptions []soakOption
	}
	if !s.c.call("session/new", map[string]any{"cwd": s.c.dir, "mcpServers": []any{}}, &opened) {
		return
	}
	s.h.count(&s.h.figures.sessions)
	s.id = opened.SessionID
	s.c.mu.Lock()
	s.options(opened.ConfigOptions)
	s.c.sessions[s.id] = s
	s.c.mu.Unlock()
	for n := range s.turns {
		if n > 0 && time.Now().After(deadline) || s.h.t.Failed() {
			break
		}
		if s.rng.IntN(3) == 0 {
			s.switchModel(false)
		}
		if !s.turn(n, deadline) {
			break
		}
	}
	method := "session/close"
	if s.rng.IntN(2) == 0 {
		method = "session/delete"
	}
	s.c.call(method, s.params(nil), nil)
	s.c.mu.Lock()
	delete(s.c.sessions, s.id)
	s.c.mu.Unlock()
}

func (s *soakSession) params(more map[string]any) map[string]any {
	p := map[string]any{"sessionId": s.id}
	for k, v := range more {
		p[k] = v
	}
	return p
}

// allow notes that the newest prompt may ask a target from now on.
func (s *soakSession) allow(t [2]string) {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	if s.h.used[s.said] == nil {
		s.h.used[s.said] = make(map[string]bool)
	}
	s.h.used[s.said][t[0]+"/"+t[1]] = true
}

func (s *soakSession) switchModel(inTurn bool) {
	t := soakTargets[s.rng.IntN(len(soakTargets))]
	if inTurn {
		s.allow(t)
	}
	value, _ := json.Marshal(t)
	var state struct{ ConfigOptions []soakOption }
	if !s.c.call("session/set_config_option", s.params(map[string]any{"configId": "model", "value": string(value)}), &state) {
		return
	}
	s.h.count(&s.h.figures.switches)
	if inTurn {
		s.h.count(&s.h.figures.midTurn)
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.options(state.ConfigOptions)
	if s.current != string(value) {
		s.h.t.Errorf("%s has set %s, and the answer says %s", s.tag, value, s.current)
	}
}

// options takes note of what the client knows; it needs the client's lock.
func (s *soakSession) options(list []soakOption) {
	for _, o := range list {
		if o.ID == "model" {
			s.current = o.CurrentValue
		}
	}
}

// update takes an update; it needs the client's lock.
func (s *soakSession) update(m *soakMessage) {
	u := &m.Params.Update
	switch {
	case u.SessionUpdate == "config_option_update":
		s.options(u.ConfigOptions)
	case strings.Contains(u.SessionUpdate, "chunk"), strings.HasPrefix(u.SessionUpdate, "tool_call"):
		if !s.busy {
			s.h.t.Errorf("%s: %s outside of a turn", s.tag, u.SessionUpdate)
		}
		if s.first != nil {
			close(s.first)
			s.first = nil
		}
	}
}

// turn is one prompt: a call of read or shell and an answer, or an endless
// answer that is cancelled. At the deadline every turn is cancelled: a slow engine
// has a long queue.
func (s *soakSession) turn(n int, deadline time.Time) bool {
	marker, cancel := []string{"[[read]]", "[[shell]]"}[s.rng.IntN(2)], s.rng.IntN(3)
	if cancel > 0 && s.turns > 1 && s.rng.IntN(2) == 0 {
		marker = "[[loop]]"
	}
	if s.turns == 1 {
		cancel = 0
	}
	s.said = fmt.Sprint(s.tag, n)
	params := s.params(map[string]any{"prompt": []any{map[string]any{"type": "text", "text": marker + " " + s.said}}})
	note, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "session/cancel", "params": s.params(nil)})
	behind := ""
	if cancel == 1 {
		behind = string(note) + "\n"
		s.h.count(&s.h.figures.atOnce)
	}
	first := make(chan struct{})
	var selected [2]string
	s.c.mu.Lock()
	s.busy, s.first = true, first
	_ = json.Unmarshal([]byte(s.current), &selected)
	s.c.mu.Unlock()
	s.allow(selected)
	answer := s.c.begin("session/prompt", params, behind)
	if cancel == 2 {
		s.hold(first)
		if s.rng.IntN(3) == 0 {
			s.switchModel(true)
		}
		s.c.write(note)
	} else if cancel == 0 && s.rng.IntN(4) == 0 && s.turns > 1 {
		s.switchModel(true)
	}
	if rest := time.Until(deadline); rest > 0 {
		timer := time.AfterFunc(rest, func() { s.c.write(note) })
		defer timer.Stop()
	}
	var result struct{ StopReason string }
	ok := s.c.await("session/prompt", answer, &result)
	s.c.mu.Lock()
	s.busy, s.first = false, nil
	s.c.mu.Unlock()
	switch {
	case !ok:
		return false
	case result.StopReason == "cancelled":
		s.h.count(&s.h.figures.cancelled)
	case result.StopReason == "end_turn":
		s.h.count(&s.h.figures.ended)
	}
	if over := time.Now().After(deadline); over && s.turns > 1 && result.StopReason == "cancelled" {
		return true
	}
	if want := []string{"end_turn", "cancelled", cmp.Or(result.StopReason, "none")}[cancel]; result.StopReason != want ||
		cancel == 2 && marker == "[[loop]]" && want != "cancelled" {
		s.h.t.Errorf("%s: %s %s with cancel %d ends with %q", s.tag, marker, params, cancel, result.StopReason)
	}
	return true
}

// hold waits for the first update of the turn or for a moment, by chance.
func (s *soakSession) hold(first <-chan struct{}) {
	timer := time.NewTimer(time.Duration(s.rng.IntN(1000)) * time.Millisecond)
	defer timer.Stop()
	if s.rng.IntN(2) == 0 {
		first = nil
	}
	select {
	case <-first:
	case <-timer.C:
	}
}
