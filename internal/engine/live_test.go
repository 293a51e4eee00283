//go:build engines

package engine

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/engine/livetest"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
)

const helloText = "Hello from the scripted model: no marker was seen."

func live(tb testing.TB, url string, preset Preset, opts *Options) *Engine {
	tb.Helper()
	var o Options
	if opts != nil {
		o = *opts
	}
	o.Limits.Handshake = realHandshake
	e := New("lab", mustParse(tb, url), preset, &o)
	tb.Cleanup(e.Close)
	return e
}

func describe(tb testing.TB, e *Engine, model string) llm.ModelInfo {
	tb.Helper()
	info, err := e.Describe(tb.Context(), target(model))
	if err != nil {
		tb.Fatal(err)
	}
	return info
}

func checkWindow(tb testing.TB, w llm.Window, tokens int, source llm.WindowSource) {
	tb.Helper()
	if w.Tokens != tokens || w.Source != source {
		tb.Errorf("window %+v, want %d %s", w, tokens, source)
	}
}

func firstModel(tb testing.TB, e *Engine) llm.ModelInfo {
	tb.Helper()
	models, err := e.Models(tb.Context(), "lab")
	if err != nil || len(models) == 0 {
		tb.Fatalf("%v, %v", models, err)
	}
	return models[0]
}

func TestLiveLlamaCpp(t *testing.T) {
	s := livetest.Llama(t, "think", "--ctx-size", "1024", "--parallel", "2")
	e := live(t, s.URL, LlamaCpp, nil)
	listed := firstModel(t, e)
	checkWindow(t, listed.Window, 512, llm.Effective)
	info := describe(t, e, listed.ID)
	checkWindow(t, info.Window, 512, llm.Effective)
	if c := info.Capabilities; c.Tools.Support != llm.Supported || c.Vision.Support != llm.Unsupported {
		t.Errorf("%+v", c)
	}
	if h := e.Health(t.Context()); h.Kind != "llamacpp" {
		t.Errorf("kind %q", h.Kind)
	}
	r := collect(t, e, t.Context(), request(listed.ID, "Hi."))
	if r.err != nil || r.text != helloText || r.reasoning == "" || r.usage.PromptTokens == 0 || r.usage.Timings == nil {
		t.Errorf("%+v", r)
	}
	r = collect(t, e, t.Context(), request(listed.ID, strings.Repeat("word ", 1000)))
	checkError(t, r.err, llm.CodeContextWindowExceeded, "")
	if r.err.Window != 512 || r.err.PromptTokens < 1000 {
		t.Errorf("%+v", r.err)
	}

	// The generic adapter learns the window of it too, from the list.
	checkWindow(t, describe(t, live(t, s.URL, Custom, nil), "any name").Window, 512, llm.Effective)
}

func TestLiveLlamaCppVision(t *testing.T) {
	s := livetest.Llama(t, "vision", "--ctx-size", "1024", "--parallel", "1")
	e := live(t, s.URL, LlamaCpp, nil)
	info := describe(t, e, firstModel(t, e).ID)
	if info.Capabilities.Vision.Support != llm.Supported {
		t.Errorf("%+v", info)
	}
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewRGBA(image.Rect(0, 0, 28, 28))); err != nil {
		t.Fatal(err)
	}
	img, err := llm.NewImage("dot.png", picture.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	req := request(info.ID, "")
	req.Messages = []llm.Message{{Role: llm.User, Parts: []llm.Part{img, llm.Text("Hi.")}}}
	if r := collect(t, e, t.Context(), req); r.err != nil || !strings.Contains(r.text, "picture") {
		t.Errorf("%+v", r)
	}

	text := livetest.Llama(t, "plain", "--ctx-size", "1024", "--parallel", "1")
	r := collect(t, live(t, text.URL, LlamaCpp, nil), t.Context(), req)
	if r.err == nil || r.err.Option != llm.RefusedImages {
		t.Errorf("%+v", r.err)
	}
}

func TestLiveLlamaCppKey(t *testing.T) {
	s := livetest.Llama(t, "plain", "--ctx-size", "1024", "--parallel", "1", "--api-key", "sesame")
	none := live(t, s.URL, LlamaCpp, nil)
	_, err := none.Models(t.Context(), "lab")
	checkError(t, err, llm.CodeAuth, "401: needs a key")
	wrong := live(t, s.URL, LlamaCpp, &Options{Key: "other"})
	_, err = wrong.Models(t.Context(), "lab")
	checkError(t, err, llm.CodeAuth, "401: the key is not accepted")
	checkError(t, collect(t, wrong, t.Context(), request("m", "Hi.")).err, llm.CodeAuth, "")
	right := live(t, s.URL, LlamaCpp, &Options{Key: "sesame\n"})
	info := describe(t, right, firstModel(t, right).ID)
	checkWindow(t, info.Window, 1024, llm.Effective)
	if r := collect(t, right, t.Context(), request(info.ID, "Hi.")); r.text != helloText {
		t.Errorf("%+v", r)
	}
}

// Nothing that is learned about a router's models loads one.
func TestLiveLlamaCppRouter(t *testing.T) {
	s := livetest.Llama(t, "", "--models-dir", livetest.Models(), "--ctx-size", "1024", "--parallel", "1")
	e := live(t, s.URL, LlamaCpp, nil)
	models, err := e.Models(t.Context(), "lab")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range models {
		ids = append(ids, m.ID)
		info := describe(t, e, m.ID)
		if info.Window.Source == llm.Effective {
			t.Errorf("%s: %+v", m.ID, info.Window)
		}
	}
	if !slices.Contains(ids, "plain") || !slices.Contains(ids, "think") {
		t.Fatalf("models %v", ids)
	}
	describe(t, live(t, s.URL, Custom, nil), "think")
	describe(t, e, "unknown")
	checkWindow(t, describe(t, e, "think").Window, 1024, llm.Assumed) // so nothing has loaded it

	if r := collect(t, e, t.Context(), request("think", "Hi.")); r.text != helloText {
		t.Fatalf("%+v", r)
	}
	info := describe(t, e, "think")
	checkWindow(t, info.Window, 1024, llm.Effective)
	if info.Capabilities.Tools.Support != llm.Supported {
		t.Errorf("%+v", info)
	}
	if plain := describe(t, e, "plain"); plain.Window.Source == llm.Effective {
		t.Errorf("plain was loaded: %+v", plain)
	}
	r := collect(t, e, t.Context(), request("unknown", "Hi."))
	if r.err == nil {
		t.Errorf("%+v", r)
	}
}

func TestLiveOllama(t *testing.T) {
	s := livetest.Ollama(t, "OLLAMA_CONTEXT_LENGTH=1024")
	s.Create(t, "bare")
	e := live(t, s.URL, Ollama, nil)
	if _, err := e.Models(t.Context(), "lab"); err != nil {
		t.Fatal(err)
	}

	before := describe(t, e, "think")
	if before.Window.Source != llm.Assumed || before.Window.Declared == 0 || before.Window.Tokens > 4096 {
		t.Errorf("%+v", before.Window)
	}
	if c := before.Capabilities; c.Tools.Support != llm.Supported || c.Reasoning.Support != llm.Supported || c.Vision.Support != llm.Unsupported ||
		strings.Join(c.ReasoningEffort.Values, " ") != "none low medium high max" {
		t.Errorf("%+v", c)
	}
	r := collect(t, e, t.Context(), request("think", "Hi."))
	if r.err != nil || r.text != helloText || r.reasoning == "" {
		t.Errorf("%+v", r)
	}
	checkWindow(t, describe(t, e, "think").Window, 1024, llm.Effective)

	// A prompt that does not fit is cut without a word.
	r = collect(t, e, t.Context(), request("think", strings.Repeat("word ", 3000)))
	if r.err != nil || r.usage.PromptTokens > 1024 {
		t.Errorf("%+v", r)
	}

	bare := describe(t, e, "bare")
	if c := bare.Capabilities; c.Tools.Support != llm.Unsupported || c.Reasoning.Support != llm.Unsupported {
		t.Errorf("%+v", c)
	}
	req := request("bare", "Hi.")
	req.Tools = []llm.ToolDef{llm.NewToolDef("look", "Look", nil)}
	r = collect(t, e, t.Context(), req)
	checkError(t, r.err, llm.CodeOf(r.err), "does not support tools")

	// An effort that this version does not take for this model.
	req = request("think", "Hi.")
	req.Snapshot.Capabilities = before.Capabilities
	req.Snapshot.Effort = llm.Summit
	r = collect(t, e, t.Context(), req)
	if r.err == nil || r.err.Code != llm.CodeUnsupportedOption {
		t.Errorf("%+v", r)
	}
	r = collect(t, e, t.Context(), request("nope", "Hi."))
	checkError(t, r.err, llm.CodeOf(r.err), "not found")

	// No vendor's path of it is asked as a custom engine.
	if custom := describe(t, live(t, s.URL, Custom, nil), "think"); custom.Capabilities.Tools.Support != llm.Unknown || custom.Window.Tokens != 0 {
		t.Errorf("%+v", custom)
	}
}

func TestLiveOllamaVision(t *testing.T) {
	s := livetest.Ollama(t)
	s.Create(t, "vision")
	e := live(t, s.URL, Ollama, nil)
	if info := describe(t, e, "vision"); info.Capabilities.Vision.Support != llm.Supported {
		t.Errorf("%+v", info)
	}
	if info := describe(t, e, "plain"); info.Capabilities.Vision.Support != llm.Unsupported {
		t.Errorf("%+v", info)
	}
}

// cancelLimit is in what time a stream has ended after it was cancelled.
const cancelLimit = 100 * time.Millisecond

// checkCancel cancels endless answers at the event number at.
func checkCancel(t *testing.T, e *Engine, maxTokens, at int) {
	t.Helper()
	took := llmtest.Quickest(cancelLimit, func() time.Duration {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req := request("plain", "[[loop]]")
		req.MaxTokens = maxTokens
		var cancelled time.Time
		var failure error
		n := 0
		for _, err := range e.Stream(ctx, req) {
			if n++; n == at {
				cancelled = time.Now()
				cancel()
			}
			failure = err
		}
		if cancelled.IsZero() {
			t.Fatalf("the answer ended after %d events: %v", n, failure)
		}
		took := time.Since(cancelled)
		checkError(t, failure, llm.CodeAborted, e.Endpoint().String()+": cancelled")
		return took
	})
	if took > cancelLimit {
		t.Errorf("took %v", took)
	}
}

func TestLiveCancel(t *testing.T) {
	s := livetest.Llama(t, "plain", "--ctx-size", "4096", "--parallel", "1", "--no-context-shift")
	e := live(t, s.URL, LlamaCpp, nil)
	checkCancel(t, e, 3000, 1)
	// The only slot is free again.
	if r := collect(t, e, t.Context(), request("plain", "Hi.")); r.text != helloText {
		t.Errorf("%+v", r)
	}
}
