//go:build engines && linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/agent/agenttest"
	"github.com/drover-dev/drover/internal/engine/livetest"
	"github.com/drover-dev/drover/internal/openai"
	"github.com/drover-dev/drover/internal/session"
)

const (
	// faultSoakTime is how long TestFaultSoak runs unless DROVER_FAULT_SOAK says
	// otherwise.
	faultSoakTime = 30 * time.Second
	// faultEditors serve two sessions each, faultRuns call drover run.
	faultEditors, faultRuns = 3, 2
	// faultLife is how long a process of drover acp lives, at most.
	faultLife = 20 * time.Second
	// faultPause is the mean time between two crashes of an engine.
	faultPause = 90 * time.Second
)

// TestFaultSoak runs editors and drover run against both real engines while the
// way to the engines fails in every manner, the engines crash and come back, and
// drover itself is killed. See scripts/soak. Afterwards a prompt is answered again,
// and every log has to be sound, hold everything that was acknowledged, and give every request that an engine
// got, byte for byte.
func TestFaultSoak(t *testing.T) {
	limit := faultSoakTime
	if s := os.Getenv("DROVER_FAULT_SOAK"); s != "" {
		var err error
		if limit, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	s := &faultSoak{t: t, home: t.TempDir(), dir: t.TempDir(), deadline: time.Now().Add(limit), sent: make(map[[32]byte]bool), acked: make(map[string]string), counts: make(map[string]int)}
	s.binary = os.Getenv("DROVER_BINARY")
	if s.binary == "" {
		s.binary = filepath.Join(t.TempDir(), "drover")
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", s.binary, ".").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(s.dir, "README.md"), []byte("# Sheep\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	var workers sync.WaitGroup
	for i := range faultEditors {
		workers.Go(func() { s.editor(i) })
	}
	for i := range faultRuns {
		workers.Go(func() { s.runs(i) })
	}
	workers.Wait()
	s.stop()
	s.heal()
	s.check()
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(s.counts)) {
		lines = append(lines, fmt.Sprintf("%6d %s", s.counts[name], name))
	}
	t.Logf("after %v:\n%s", limit, strings.Join(lines, "\n"))
	for _, name := range []string{"drover killed", "drover closed"} {
		if s.counts[name] == 0 {
			t.Errorf("nothing of: %s", name)
		}
	}
}

type faultSoak struct {
	t         *testing.T
	binary    string
	home, dir string
	config    string
	deadline  time.Time
	stop      func()
	calm      atomic.Bool // no fault any more

	mu     sync.Mutex
	sent   map[[32]byte]bool // digests of the requests that engines got
	acked  map[string]string // how the prompts were answered, by their tags
	counts map[string]int
}

func (s *faultSoak) count(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[name]++
}

func (s *faultSoak) ack(tag, how string) {
	s.count("turns: " + how)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acked[tag] = how
}

func (s *faultSoak) over() bool { return time.Now().After(s.deadline) || s.t.Failed() }

// start starts the engines, puts the faults in front of them, and lets the
// llama-server crash now and then.
func (s *faultSoak) start() {
	llama := func() *livetest.Server {
		return livetest.Llama(s.t, "plain", "--alias", bothModel, "-np", "2", "-c", "16384")
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	server := llama()
	var address atomic.Pointer[url.URL]
	point := func(to string) {
		u, err := url.Parse(to)
		if err != nil {
			s.t.Error(err)
		}
		address.Store(u)
	}
	point(server.URL)
	crashes := make(chan struct{})
	go func() {
		defer close(crashes)
		for {
			timer := time.NewTimer(faultPause/2 + rand.N(faultPause))
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
			server.Kill()
			server = llama()
			point(server.URL)
			s.count("engine crashes")
		}
	}()
	ollama, err := url.Parse(livetest.Ollama(s.t, "OLLAMA_NUM_PARALLEL=2").URL)
	if err != nil {
		s.t.Fatal(err)
	}
	settings := fmt.Sprintf("model = %q\nmode = \"full\"\n", workshop+"/"+bothModel)
	settings += s.engine(workshop, "llamacpp", address.Load) + s.engine(attic, "ollama", func() *url.URL { return ollama })
	s.config = filepath.Join(s.home, "drover.toml")
	if err := os.WriteFile(s.config, []byte(settings), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.stop = func() {
		cancel()
		<-crashes
	}
}

// engine puts faults in front of an engine and gives its part of the
// configuration.
func (s *faultSoak) engine(name, preset string, address func() *url.URL) string {
	front := livetest.Front(address)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
			front.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // it left
		}
		s.mu.Lock()
		s.sent[sha256.Sum256(body)] = true
		s.counts["requests"]++
		s.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.fail(front, w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	s.t.Cleanup(server.Close)
	return fmt.Sprintf("\n[engines.%s]\npreset = %q\nurl = %q\n", name, preset, server.URL)
}

// fail answers a request, one time in four wrongly.
func (s *faultSoak) fail(proxy http.Handler, w http.ResponseWriter, r *http.Request) {
	faults := []struct {
		name string
		do   func()
	}{
		{"500", func() { http.Error(w, `{"error":{"message":"out of memory"}}`, http.StatusInternalServerError) }},
		{"503, loading", func() {
			http.Error(w, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`, http.StatusServiceUnavailable)
		}},
		{"429", func() {
			w.Header().Set("Retry-After", "1")
			http.Error(w, `{"error":{"message":"slow down"}}`, http.StatusTooManyRequests)
		}},
		{"a reset", func() { panic(http.ErrAbortHandler) }},
		{"a web page", func() {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>maintenance</html>")
		}},
		{"a stream that breaks off", func() { proxy.ServeHTTP(&breaking{ResponseWriter: w, left: 1 + rand.IntN(2000)}, r) }},
		{"a slow stream", func() { proxy.ServeHTTP(&breaking{ResponseWriter: w, left: 1 << 30, pause: 200 * time.Millisecond}, r) }},
	}
	if n := rand.IntN(4 * len(faults)); n < len(faults) && !s.calm.Load() {
		s.count("faults: " + faults[n].name)
		faults[n].do()
		return
	}
	proxy.ServeHTTP(w, r)
}

// breaking passes on so many bytes, each write after a pause.
type breaking struct {
	http.ResponseWriter
	left  int
	pause time.Duration
}

func (b *breaking) Write(p []byte) (int, error) {
	time.Sleep(b.pause)
	if b.left -= len(p); b.left < 0 {
		panic(http.ErrAbortHandler)
	}
	return b.ResponseWriter.Write(p)
}

func (b *breaking) Unwrap() http.ResponseWriter { return b.ResponseWriter }

func (s *faultSoak) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.binary, args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"HOME=" + s.home, "PATH=" + os.Getenv("PATH"), "DROVER_CONFIG=" + s.config}
	return cmd
}

// faultPrompts are what is asked for: an answer, calls, an endless answer.
var faultPrompts = []string{"Good morning.", "[[read]]", "[[shell]]", "[[two]]", "[[loop]]"}

func (s *faultSoak) prompt(tag string) string {
	return faultPrompts[rand.IntN(len(faultPrompts))] + " " + tag
}

// runs calls drover run, again and again, half of the time in the session before.
func (s *faultSoak) runs(worker int) {
	last := ""
	for n := 0; !s.over(); n++ {
		tag := fmt.Sprintf("sheep-run-%d-%d-", worker, n)
		args := []string{"run", "--json", "--model", []string{workshop, attic}[rand.IntN(2)] + "/" + bothModel, "--effort", "graze", s.prompt(tag)}
		if last != "" && rand.IntN(2) == 0 {
			args = append(args, "--resume", last)
		}
		cmd := s.command(args...)
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			s.t.Error(err)
			return
		}
		timer := time.AfterFunc(rand.N(6*time.Second), func() {
			if rand.IntN(2) == 0 {
				s.count("run killed")
				_ = cmd.Process.Kill() // it may have ended
			} else {
				_ = cmd.Process.Signal(os.Interrupt) // likewise
			}
		})
		_ = cmd.Wait() // the events tell
		timer.Stop()
		for line := range strings.Lines(out.String()) {
			var ev struct{ Type, ID, Reason string }
			if json.Unmarshal([]byte(line), &ev) != nil {
				continue // killed while it wrote
			}
			switch ev.Type {
			case "session":
				last = ev.ID
			case "end":
				s.ack(tag, ev.Reason)
			}
		}
	}
}

// heal has a prompt answered by each engine when the faults are over.
func (s *faultSoak) heal() {
	s.calm.Store(true)
	for _, engine := range []string{workshop, attic} {
		tag := "sheep-calm-" + engine + "-"
		out, err := s.command("run", "--json", "--model", engine+"/"+bothModel, "--effort", "graze", "Good morning. "+tag).CombinedOutput()
		if err != nil || !strings.Contains(string(out), `"completed"`) {
			s.t.Errorf("%s after the faults: %v\n%s", engine, err, out)
			continue
		}
		s.ack(tag, "completed")
	}
}

// editor starts drover acp, works with two sessions, and has it end: by closing
// its input, or by killing it.
func (s *faultSoak) editor(worker int) {
	sessions := make([]string, 2)
	for life := 0; !s.over(); life++ {
		c := s.connect()
		if c == nil {
			return
		}
		ctx, cancel := context.WithTimeout(s.t.Context(), faultLife/2+rand.N(faultLife/2))
		var both sync.WaitGroup
		for i := range sessions {
			both.Go(func() {
				if c.open(ctx, &sessions[i]) {
					c.talk(ctx, sessions[i], fmt.Sprintf("sheep-%d-%d-%d-", worker, i, life))
				}
			})
		}
		<-ctx.Done()
		cancel()
		if (worker+life)%2 == 0 { // in turns: both happen however short the soak is
			s.count("drover killed")
			_ = c.cmd.Process.Kill() // it runs
		} else {
			s.count("drover closed")
			c.in.Close()
		}
		both.Wait()
		_ = c.cmd.Wait() // it was told to
	}
}

// faultClient is the client's end of one process.
type faultClient struct {
	s    *faultSoak
	cmd  *exec.Cmd
	in   io.WriteCloser
	gone chan struct{}

	mu      sync.Mutex
	lastID  int
	waiting map[int]chan soakMessage
}

func (s *faultSoak) connect() *faultClient {
	c := &faultClient{s: s, cmd: s.command("acp"), gone: make(chan struct{}), waiting: make(map[int]chan soakMessage)}
	in, err := c.cmd.StdinPipe()
	if err == nil {
		c.in = in
		var out io.ReadCloser
		if out, err = c.cmd.StdoutPipe(); err == nil {
			if err = c.cmd.Start(); err == nil {
				go c.read(out)
				c.call("initialize", map[string]any{"protocolVersion": 1, "clientInfo": map[string]any{"name": "soak", "version": "1"}}, nil)
				return c
			}
		}
	}
	s.t.Error(err)
	return nil
}

func (c *faultClient) read(out io.Reader) {
	defer close(c.gone)
	r := bufio.NewReaderSize(out, 1<<16)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		var m soakMessage
		if err := json.Unmarshal(line, &m); err != nil {
			c.s.t.Errorf("%v: %.300s", err, line)
			continue
		}
		c.mu.Lock()
		if m.ID != nil && c.waiting[*m.ID] != nil {
			c.waiting[*m.ID] <- m
			delete(c.waiting, *m.ID)
		}
		c.mu.Unlock()
	}
}

// begin sends a request. The answer comes in the channel, unless the process ends.
func (c *faultClient) begin(method string, params any) <-chan soakMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastID++
	answer := make(chan soakMessage, 1)
	c.waiting[c.lastID] = answer
	c.send(map[string]any{"jsonrpc": "2.0", "id": c.lastID, "method": method, "params": params})
	return answer
}

// send writes a message; the caller holds the lock.
func (c *faultClient) send(m map[string]any) {
	line, err := json.Marshal(m)
	if err != nil {
		c.s.t.Error(err)
	}
	_, _ = c.in.Write(append(line, '\n')) // the process may be gone
}

// call waits for the answer; not ok when it is an error or the process ends.
func (c *faultClient) call(method string, params, result any) (ok bool) {
	select {
	case m := <-c.begin(method, params):
		return m.Error == nil && (result == nil || json.Unmarshal(m.Result, result) == nil)
	case <-c.gone:
	}
	return false
}

// open makes a session or goes on with the one there was, with and without being
// shown what was said.
func (c *faultClient) open(ctx context.Context, id *string) bool {
	params := map[string]any{"cwd": c.s.dir, "mcpServers": []any{}}
	if *id == "" {
		var opened struct{ SessionID string }
		if !c.call("session/new", params, &opened) {
			return false
		}
		*id = opened.SessionID
		c.s.count("sessions of editors")
		return true
	}
	method := []string{"session/load", "session/resume"}[rand.IntN(2)]
	params["sessionId"] = *id
	c.s.count(method)
	if !c.call(method, params, nil) {
		if ctx.Err() == nil {
			c.s.t.Errorf("%s of %s failed", method, *id)
		}
		return false
	}
	return true
}

// talk sends prompts, switches the model and cancels by chance, until ctx ends.
func (c *faultClient) talk(ctx context.Context, id, tag string) {
	for n := 0; ctx.Err() == nil; n++ {
		if rand.IntN(4) == 0 {
			value, _ := json.Marshal([]string{[]string{workshop, attic}[rand.IntN(2)], bothModel})
			c.call("session/set_config_option", map[string]any{"sessionId": id, "configId": "model", "value": string(value)}, nil)
		}
		mark := fmt.Sprint(tag, n, "-")
		answer := c.begin("session/prompt", map[string]any{"sessionId": id, "prompt": []any{map[string]any{"type": "text", "text": c.s.prompt(mark)}}})
		timer := time.NewTimer(rand.N(5 * time.Second))
		select {
		case m := <-answer:
			c.answered(mark, &m)
		case <-timer.C:
			c.mu.Lock()
			c.send(map[string]any{"jsonrpc": "2.0", "method": "session/cancel", "params": map[string]any{"sessionId": id}})
			c.mu.Unlock()
			select {
			case m := <-answer:
				c.answered(mark, &m)
			case <-c.gone:
			}
		case <-c.gone:
		}
		timer.Stop()
		select {
		case <-c.gone:
			return
		default:
		}
	}
}

func (c *faultClient) answered(tag string, m *soakMessage) {
	var result struct{ StopReason string }
	switch {
	case m.Error != nil:
		c.s.ack(tag, "error")
	case json.Unmarshal(m.Result, &result) == nil && result.StopReason != "":
		c.s.ack(tag, map[string]string{"end_turn": "completed"}[result.StopReason]+strings.TrimPrefix(result.StopReason, "end_turn"))
	default:
		c.s.t.Errorf("a prompt is answered with %s", m.Result)
	}
}

// check looks at every log when everything has ended.
func (s *faultSoak) check() {
	if out, err := s.command("sessions", "verify").CombinedOutput(); err != nil {
		s.t.Errorf("sessions verify: %v\n%s", err, out)
	}
	store := session.NewStore(filepath.Join(s.home, ".local", "state", "drover", "sessions"))
	list, err := store.List(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.counts["sessions"] = len(list)
	said := new(strings.Builder)
	rebuilt := make(map[[32]byte]bool)
	for _, info := range list {
		started := make(map[string]bool)
		for rec, err := range store.Records(info.ID) {
			if err != nil {
				s.t.Errorf("%s: %v", info.ID, err)
				break
			}
			switch rec := rec.(type) {
			case *session.UserMessage:
				fmt.Fprint(said, rec.Parts, "\n")
			case *session.ToolCall:
				if rec.Started && started[rec.ID] {
					s.t.Errorf("%s: the call %s was started twice", info.ID, rec.ID)
				}
				started[rec.ID] = started[rec.ID] || rec.Started
			case *session.TurnEnd:
				s.counts["turns in the logs: "+string(rec.Reason)]++
			}
		}
		for _, req := range agenttest.Rebuild(s.t, store.Records(info.ID)) {
			body, err := openai.EncodeRequest(&req)
			if err != nil {
				s.t.Errorf("%s: %v", info.ID, err)
			}
			rebuilt[sha256.Sum256(body)] = true
		}
	}
	all := said.String()
	for tag, how := range s.acked {
		switch {
		case strings.Contains(all, tag):
		case how == "cancelled": // before it began: nobody was asked anything
			s.counts["prompts cancelled before they began"]++
		default:
			s.t.Errorf("the prompt %s was answered (%s), and no log has it", tag, how)
		}
	}
	for sum := range s.sent {
		if !rebuilt[sum] {
			s.counts["requests that no log gives"]++
		}
	}
	if n := s.counts["requests that no log gives"]; n > 0 {
		s.t.Errorf("%d requests were sent that no log gives", n)
	}
}
