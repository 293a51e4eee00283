//go:build engines

package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/engine/livetest"
	"github.com/drover-dev/drover/internal/llm"
)

// What real engines send for every kind of answer and of failure, and what is
// made of it: the events in their order, the code, the words.

const (
	// wireLimit bounds one request.
	wireLimit = time.Minute
	// wireWindow is the window of the engines here, in tokens.
	wireWindow = 1024
	thoughts   = "There is a question; the script has an answer.\n"
)

// transcript is everything that a stream said. In lines neighbouring deltas are
// joined and counts are left out.
type transcript struct {
	lines  []string
	text   string
	calls  llm.ToolCalls
	usage  llm.Usage
	finish *llm.Finish
	err    *llm.Error
}

// listen sends a request and writes down what comes. each, if not nil, is called
// after the n-th event, from 1.
func listen(t *testing.T, e *Engine, req *llm.Request, each func(n int)) transcript {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wireLimit)
	defer cancel()
	var tr transcript
	last := ""
	say := func(kind, text string) {
		if kind == last && kind != "progress" {
			tr.lines[len(tr.lines)-1] += text
			return
		}
		tr.lines = append(tr.lines, kind+" "+text)
		last = kind
	}
	n := 0
	for event, err := range e.Stream(ctx, req) {
		if tr.err != nil || tr.finish != nil {
			t.Errorf("something came after the end: %v, %v", event, err)
		}
		switch event := event.(type) {
		case llm.TextDelta:
			say("text", string(event))
			tr.text += string(event)
		case llm.ReasoningDelta:
			say("think", string(event))
		case llm.ToolCallDelta:
			say("progress", fmt.Sprintf("%d %s", event.Index, event.Name))
		case llm.ToolCalls:
			for _, c := range event {
				tr.lines = append(tr.lines, "call "+c.Name+" "+compact(c.Arguments))
			}
			tr.calls = event
		case llm.Usage:
			tr.lines = append(tr.lines, "usage")
			tr.usage = event
		case llm.Finish:
			tr.lines = append(tr.lines, "finish "+strings.TrimSpace(string(event.Reason)+" "+event.Raw))
			tr.finish = &event
		}
		if err != nil {
			tr.lines = append(tr.lines, "error")
			if !errors.As(err, &tr.err) {
				t.Fatalf("an error that is no *llm.Error: %T %v", err, err)
			}
		}
		if n++; each != nil {
			each(n)
		}
	}
	tr.lines = slices.Compact(tr.lines)
	return tr
}

// compact takes the white space out of JSON. Other text stays.
func compact(s string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(s)) != nil {
		return s
	}
	return b.String()
}

// outcome is what an engine makes of a request.
type outcome struct {
	lines []string
	code  llm.Code
	words []string // parts of the message
	check func(t *testing.T, tr *transcript)
}

func (o *outcome) compare(t *testing.T, e *Engine, tr *transcript) {
	t.Helper()
	if !slices.Equal(tr.lines, o.lines) {
		t.Errorf("events\n  %s\nwant\n  %s", strings.Join(tr.lines, "\n  "), strings.Join(o.lines, "\n  "))
	}
	switch {
	case o.code == "" && tr.err != nil:
		t.Errorf("error %s: %v", tr.err.Code, tr.err)
	case o.code != "" && tr.err == nil:
		t.Errorf("no error, want %s", o.code)
	case o.code != "":
		for _, part := range append(o.words, e.Endpoint().String()+": ") {
			checkError(t, tr.err, o.code, part)
		}
	}
	ids := map[string]bool{}
	for _, c := range tr.calls {
		if c.ID == "" || ids[c.ID] {
			t.Errorf("call ids of %+v", tr.calls)
		}
		ids[c.ID] = true
	}
	if tr.finish != nil && (tr.usage.PromptTokens == 0 || tr.usage.CompletionTokens == 0 || tr.usage.Estimated) {
		t.Errorf("usage %+v", tr.usage)
	}
	if o.check != nil && !t.Failed() {
		o.check(t, tr)
	}
}

// wireTools are tools as the scripted models call them.
func wireTools() []llm.ToolDef {
	def := func(name string, members ...string) llm.ToolDef {
		properties := object{}
		for _, m := range members {
			properties[m] = object{"type": "string"}
		}
		schema, err := json.Marshal(object{"type": "object", "properties": properties, "required": members})
		if err != nil {
			panic(err)
		}
		return llm.NewToolDef(name, "Do it", schema)
	}
	return []llm.ToolDef{def("read", "path"), def("write", "path", "content"), def("shell", "command")}
}

// blankPicture is a message with a picture and a text.
func blankPicture(t *testing.T, text string) llm.Message {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewRGBA(image.Rect(0, 0, 28, 28))); err != nil {
		t.Fatal(err)
	}
	img, err := llm.NewImage("blank.png", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return llm.Message{Role: llm.User, Parts: []llm.Part{img, llm.Text(text)}}
}

// cutCall wants one call whose arguments are no whole JSON.
func cutCall(t *testing.T, tr *transcript) {
	if len(tr.calls) != 1 || tr.calls[0].Name != "shell" || !strings.Contains(tr.calls[0].Arguments, "echo one") {
		t.Fatalf("calls %+v", tr.calls)
	}
	if args, err := llm.RepairArguments(tr.calls[0].Arguments); err == nil {
		t.Errorf("the cut call could run with %s", args)
	}
}

// replayField wants the reasoning of the answer in the field that it came in.
func replayField(field string) func(*testing.T, *transcript) {
	return func(t *testing.T, tr *transcript) {
		if r := tr.finish.Reasoning; r == nil || r.Field != field || r.Text != thoughts {
			t.Errorf("reasoning %+v, want it in %s", r, field)
		}
	}
}

type wireCase struct {
	name   string
	model  string // plain or think, or one that is not there
	text   string
	image  bool
	tokens int // the limit, 0 for enough
	llama  outcome
	ollama *outcome // when it differs
}

func wireCases() []wireCase {
	hello := []string{"text " + helloText, "usage", "finish stop"}
	spoken := append([]string{"think " + thoughts}, hello...)
	before := "text I will write it.\n"
	return []wireCase{
		{name: "text", model: "plain", text: "Hi.", llama: outcome{lines: hello}},
		{
			name: "thinking", model: "think", text: "Hi.",
			llama:  outcome{lines: spoken, check: replayField("reasoning_content")},
			ollama: &outcome{lines: spoken, check: replayField("reasoning")},
		},
		{
			name: "one call", model: "plain", text: "[[read]]",
			llama: outcome{lines: []string{"progress 0 read", `call read {"path":"README.md"}`, "usage", "finish tool_calls"}},
		},
		{
			name: "two calls", model: "plain", text: "[[two]]",
			llama: outcome{lines: []string{
				"text Two calls follow.\n", "progress 0 read", "progress 1 read",
				`call read {"path":"a.txt"}`, `call read {"path":"b.txt"}`, "usage", "finish tool_calls",
			}},
		},
		{
			name: "thoughts and two calls", model: "think", text: "[[two]]",
			llama: outcome{lines: []string{
				"think " + thoughts, "text Two calls follow.\n", "progress 0 read", "progress 1 read",
				`call read {"path":"a.txt"}`, `call read {"path":"b.txt"}`, "usage", "finish tool_calls",
			}},
		},
		{
			// llama-server fails on what its model wrote: another try may end well.
			name: "broken call", model: "plain", text: "[[bad]]",
			llama: outcome{
				lines: []string{before, "error"}, code: llm.CodeServer, words: []string{"Unexpected empty grammar stack", "<tool_call>"},
				check: func(t *testing.T, tr *transcript) {
					if tr.err.Status != 500 || tr.err.Permanent {
						t.Errorf("%+v", tr.err)
					}
				},
			},
			// Ollama takes the call away and calls the rest an answer.
			ollama: &outcome{lines: []string{before, "usage", "finish stop"}},
		},
		{
			name: "length in a call", model: "plain", text: "[[cut]]", tokens: 12,
			llama: outcome{
				lines: []string{"progress 0 shell", `call shell {"command": "echo one` + strings.Repeat(" and one more", 10), "usage", "finish length"},
				check: cutCall,
			},
			// Ollama takes what it has of the call away.
			ollama: &outcome{lines: []string{"usage", "finish length"}},
		},
		{
			name: "length in a call after thoughts", model: "think", text: "[[cut]]", tokens: 16,
			llama: outcome{
				lines: []string{
					"think " + thoughts, "progress 0 shell", `call shell {"command": "echo one` + strings.Repeat(" and one more", 7),
					"usage", "finish length",
				},
				check: cutCall,
			},
			ollama: &outcome{lines: []string{"think " + thoughts, "usage", "finish length"}},
		},
		{
			name: "length in a text", model: "plain", text: "[[loop]]", tokens: 7,
			llama: outcome{lines: []string{"text tick tock tack tick tock tack tick ", "usage", "finish length"}},
		},
		{
			name: "overflow", model: "plain", text: strings.Repeat("word ", 3000),
			llama: outcome{
				lines: []string{"error"}, code: llm.CodeContextWindowExceeded,
				words: []string{"exceeds the available context size (1024 tokens)", "try increasing it"},
				check: func(t *testing.T, tr *transcript) {
					if tr.err.Status != 400 || tr.err.Window != wireWindow || tr.err.PromptTokens < 3000 {
						t.Errorf("%+v", tr.err)
					}
				},
			},
			// Ollama cuts the prompt without a word. The count gives it away.
			ollama: &outcome{lines: hello, check: func(t *testing.T, tr *transcript) {
				if tr.usage.PromptTokens != wireWindow {
					t.Errorf("usage %+v, want a prompt of %d", tr.usage, wireWindow)
				}
			}},
		},
		{
			name: "a picture for a model without eyes", model: "plain", text: "Hi.", image: true,
			llama: outcome{
				lines: []string{"error"}, code: llm.CodeInvalidRequest, words: []string{"image input is not supported", "mmproj"},
				check: func(t *testing.T, tr *transcript) {
					if tr.err.Status != 500 || tr.err.Option != llm.RefusedImages {
						t.Errorf("%+v", tr.err)
					}
				},
			},
			// Ollama drops it without a word; only the metadata can warn.
			ollama: &outcome{lines: hello},
		},
		{
			// llama-server with one model answers for it under every name.
			name: "unknown model", model: "nope", text: "Hi.",
			llama: outcome{lines: hello},
			ollama: &outcome{
				lines: []string{"error"}, code: llm.CodeUnknownModel, words: []string{"model 'nope' not found"},
				check: func(t *testing.T, tr *transcript) {
					if tr.err.Status != 404 {
						t.Errorf("%+v", tr.err)
					}
				},
			},
		},
	}
}

func runWireCase(t *testing.T, e *Engine, c *wireCase, want *outcome) {
	t.Helper()
	req := request(c.model, c.text)
	req.Tools = wireTools()
	if req.MaxTokens = 400; c.tokens > 0 {
		req.MaxTokens = c.tokens
	}
	if c.image {
		req.Messages = []llm.Message{blankPicture(t, c.text)}
	}
	tr := listen(t, e, req, nil)
	want.compare(t, e, &tr)
}

func TestLiveWireLlamaCpp(t *testing.T) {
	engines := map[string]*Engine{}
	for _, model := range []string{"plain", "think"} {
		s := livetest.Llama(t, model, "--ctx-size", strconv.Itoa(wireWindow), "--parallel", "1")
		engines[model] = live(t, s.URL, LlamaCpp, nil)
	}
	engines["nope"] = engines["plain"]
	for _, c := range wireCases() {
		t.Run(c.name, func(t *testing.T) { runWireCase(t, engines[c.model], &c, &c.llama) })
	}
}

func TestLiveWireOllama(t *testing.T) {
	s := livetest.Ollama(t, "OLLAMA_CONTEXT_LENGTH="+strconv.Itoa(wireWindow))
	e := live(t, s.URL, Ollama, nil)
	for _, c := range wireCases() {
		t.Run(c.name, func(t *testing.T) {
			want := c.ollama
			if want == nil {
				want = &c.llama
			}
			runWireCase(t, e, &c, want)
		})
	}
	// After more than 30 equal pieces in a row Ollama ends the answer, and for a
	// call that it has not told yet sends nothing at all: no reason, no end marker.
	t.Run("given up in a call", func(t *testing.T) {
		c := wireCase{model: "plain", text: "[[cut]]", tokens: 60}
		runWireCase(t, e, &c, &outcome{
			lines: []string{"error"}, code: llm.CodeStreamClosed, words: []string{"closed the stream without any data"},
		})
	})
}

// The router of llama-server knows its models, and says so.
func TestLiveWireRouterUnknownModel(t *testing.T) {
	s := livetest.Llama(t, "", "--models-dir", livetest.Models(), "--ctx-size", strconv.Itoa(wireWindow), "--parallel", "1")
	e := live(t, s.URL, LlamaCpp, nil)
	tr := listen(t, e, request("nope", "Hi."), nil)
	want := outcome{lines: []string{"error"}, code: llm.CodeUnknownModel, words: []string{"model 'nope' not found"}}
	want.compare(t, e, &tr)
}

// broken wants a stream that broke off after the n-th event: what had come is
// kept, and nothing says that it was complete.
func broken(t *testing.T, e *Engine, tr *transcript, words string) {
	t.Helper()
	checkError(t, tr.err, llm.CodeStreamClosed, e.Endpoint().String()+": "+words)
	if !strings.HasPrefix(tr.text, "tick tock tack tick ") || tr.finish != nil || len(tr.lines) != 2 {
		t.Errorf("events %q", tr.lines)
	}
}

const (
	// killAfter is the event at which an engine is killed.
	killAfter = 20
	// endlessWindow is the window of engines that are killed, in tokens: nothing but
	// the end of the process may end their answers.
	endlessWindow = "65536"
)

// endless asks for a text that only a limit ends, and kills the engine in the
// middle of it.
func endless(t *testing.T, e *Engine, kill func()) transcript {
	t.Helper()
	req := request("plain", "[[loop]]")
	req.MaxTokens = 100_000
	var killed time.Time
	tr := listen(t, e, req, func(n int) {
		if n == killAfter {
			kill()
			killed = time.Now()
		}
	})
	if took := time.Since(killed); killed.IsZero() || took > 10*time.Second {
		t.Errorf("the end was told %v after the kill", took)
	}
	return tr
}

func TestLiveWireKilled(t *testing.T) {
	engines := map[string]func(t *testing.T) (*livetest.Server, Preset){
		"llama.cpp": func(t *testing.T) (*livetest.Server, Preset) {
			return livetest.Llama(t, "plain", "--ctx-size", endlessWindow, "--parallel", "1"), LlamaCpp
		},
		"ollama": func(t *testing.T) (*livetest.Server, Preset) {
			return livetest.Ollama(t, "OLLAMA_CONTEXT_LENGTH="+endlessWindow), Ollama
		},
	}
	for name, start := range engines {
		t.Run(name, func(t *testing.T) {
			s, preset := start(t)
			e := live(t, s.URL, preset, nil)
			tr := endless(t, e, s.Kill)
			broken(t, e, &tr, "the answer broke off")

			tr = listen(t, e, request("plain", "Hi."), nil)
			want := outcome{lines: []string{"error"}, code: llm.CodeTransport, words: []string{"connection refused"}}
			want.compare(t, e, &tr)
			if !tr.err.Unreached {
				t.Errorf("%+v", tr.err)
			}
		})
	}
}

// Both engines run models in processes of their own. When one of these dies, the
// engine ends the answer like a complete one, but without a finish reason. Then
// the model is loaded anew.
func TestLiveWireWorkerKilled(t *testing.T) {
	engines := map[string]func(t *testing.T) (*livetest.Server, Preset){
		"llama.cpp": func(t *testing.T) (*livetest.Server, Preset) {
			return livetest.Llama(t, "", "--models-dir", livetest.Models(), "--ctx-size", endlessWindow, "--parallel", "1"), LlamaCpp
		},
		"ollama": func(t *testing.T) (*livetest.Server, Preset) {
			return livetest.Ollama(t, "OLLAMA_CONTEXT_LENGTH="+endlessWindow), Ollama
		},
	}
	for name, start := range engines {
		t.Run(name, func(t *testing.T) {
			s, preset := start(t)
			e := live(t, s.URL, preset, nil)
			tr := endless(t, e, func() { killWorkers(t) })
			broken(t, e, &tr, "the engine closed the stream before the answer was complete")
			// The router takes a moment to see that the process is gone. Until then it
			// answers with an error that is worth another try.
			want := outcome{lines: []string{"text " + helloText, "usage", "finish stop"}}
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for deadline := time.Now().Add(wireLimit); ; <-tick.C {
				tr = listen(t, e, request("plain", "Hi."), nil)
				if tr.err == nil || time.Now().After(deadline) {
					break
				}
				lost := outcome{lines: []string{"error"}, code: llm.CodeServer}
				if lost.compare(t, e, &tr); tr.err.Permanent || t.Failed() {
					t.Fatalf("%+v", tr.err)
				}
			}
			want.compare(t, e, &tr)
		})
	}
}

// killWorkers kills the processes that an engine of this test has started. They
// have the home folder that livetest made for the engine, and so has their parent.
func killWorkers(t *testing.T) {
	t.Helper()
	home := []byte("HOME=" + filepath.Dir(t.TempDir()) + string(filepath.Separator))
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	parents := map[int]int{}
	for _, folder := range folders {
		environ, err := os.ReadFile(filepath.Join(folder, "environ"))
		if err != nil || !slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(v []byte) bool { return bytes.HasPrefix(v, home) }) {
			continue // it has ended meanwhile, or is another's
		}
		stat, err := os.ReadFile(filepath.Join(folder, "stat"))
		if err != nil {
			continue
		}
		// Behind the name, which may hold anything, come the state and the parent.
		var state string
		var pid, parent int
		if _, err := fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &parent); err != nil {
			t.Fatal(err)
		}
		if pid, err = strconv.Atoi(filepath.Base(folder)); err != nil {
			t.Fatal(err)
		}
		parents[pid] = parent
	}
	killed := 0
	for pid, parent := range parents {
		if _, ok := parents[parent]; !ok {
			continue
		}
		p, err := os.FindProcess(pid)
		if err == nil {
			err = p.Kill()
		}
		switch {
		case err == nil:
			killed++
		case !errors.Is(err, os.ErrProcessDone): // by itself, meanwhile
			t.Error(err)
		}
	}
	if killed == 0 {
		t.Error("the engine has no process for its model")
	}
}

// loadingLlama starts a llama-server that has to load the vocabulary of a model of
// today, which takes over a second, and does not wait for it.
func loadingLlama(t *testing.T) (e *Engine, ended <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), filepath.Join(livetest.Dir(), "llama.cpp", "lib", "llama-server"),
		"--host", "127.0.0.1", "--port", port, "--offline", "--threads", "1", "--ctx-size", "1024", "--parallel", "1",
		"--model", filepath.Join(livetest.Models(), "vocab.gguf"))
	command.Env = []string{"HOME=" + t.TempDir()}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = command.Wait() // killed, or without its port
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill() // it may have ended
		<-gone
	})
	return live(t, "http://"+address, LlamaCpp, nil), gone
}

// untilLoading looks at engines that load, until one was seen doing so: another
// process may take the port between the choice and its use, and a starved test may
// sleep while its engine loads.
func untilLoading(t *testing.T, look func(e *Engine, ended <-chan struct{}) (times int)) {
	t.Helper()
	livetest.Llama(t, "vocab").Stop() // it is installed, and its file is in memory
	for range 3 {
		if n := look(loadingLlama(t)); n > 0 || t.Failed() {
			t.Logf("%d times loading", n)
			return
		}
	}
	t.Error("it was never seen loading")
}

// While llama-server loads its model a request is refused with 503.
func TestLiveWireLoadingLlamaCpp(t *testing.T) {
	untilLoading(t, func(e *Engine, ended <-chan struct{}) (loading int) {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		var tr transcript
		for deadline := time.Now().Add(time.Minute); ; {
			if tr = listen(t, e, request("vocab", "Hi."), nil); tr.err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal(tr.err)
			}
			want := outcome{lines: []string{"error"}, code: llm.CodeServer, words: []string{"loading the model"}}
			if tr.err.Unreached {
				want.code, want.words = llm.CodeTransport, []string{"connection refused"}
			} else if loading++; !tr.err.Loading || tr.err.Status != 503 {
				t.Errorf("%+v", tr.err)
			}
			if want.compare(t, e, &tr); t.Failed() {
				return loading
			}
			select {
			case <-tick.C:
			case <-ended:
				return 0
			}
		}
		want := outcome{lines: []string{"text " + helloText, "usage", "finish stop"}}
		want.compare(t, e, &tr)
		return loading
	})
}

// Ollama lets a request wait while it loads the model: that is the wait for the
// first byte, with the words for it, and no failure while the limit allows it.
func TestLiveWireLoadingOllama(t *testing.T) {
	s := livetest.Ollama(t, "OLLAMA_CONTEXT_LENGTH="+strconv.Itoa(wireWindow))
	hasty := live(t, s.URL, Ollama, &Options{Limits: Limits{FirstByte: 10 * time.Millisecond}})
	tr := listen(t, hasty, request("plain", "Hi."), nil)
	want := outcome{lines: []string{"error"}, code: llm.CodeTimeout, words: []string{"no answer began within 10ms"}}
	want.compare(t, hasty, &tr)
	if limit, ok := errors.AsType[*TimeoutError](tr.err); !ok || !limit.Prefilling() {
		t.Errorf("%+v", tr.err)
	}

	patient := live(t, s.URL, Ollama, nil)
	tr = listen(t, patient, request("plain", "Hi."), nil)
	want = outcome{lines: []string{"text " + helloText, "usage", "finish stop"}}
	want.compare(t, patient, &tr)
}

// A cancel ends the stream at once, and Ollama stops writing: its only place is
// free for the next request.
func TestLiveWireCancelOllama(t *testing.T) {
	s := livetest.Ollama(t, "OLLAMA_CONTEXT_LENGTH=65536", "OLLAMA_NUM_PARALLEL=1")
	e := live(t, s.URL, Ollama, nil)
	checkCancel(t, e, 100_000, killAfter)
	tr := listen(t, e, request("plain", "Hi."), nil)
	want := outcome{lines: []string{"text " + helloText, "usage", "finish stop"}}
	want.compare(t, e, &tr)
}
