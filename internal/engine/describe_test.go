package engine

import (
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/llm"
)

// describeTest is a preset with an engine and what has to come of it.
type describeTest struct {
	fake                     enginetest.Options
	preset                   Preset
	tokens                   int
	source                   llm.WindowSource
	tools, vision, reasoning llm.Support
	effort                   string // that Summit sends
	asked                    []string
}

func describeTests() map[string]describeTest {
	model := enginetest.Model{ID: "acme/brook:7b", Window: 8192, Declared: 131072, OutputLimit: 1000, Tools: true, Vision: true, Thinking: true, Effort: true}
	unloaded := model
	unloaded.Unloaded = true
	const escaped = "acme%2Fbrook%3A7b"
	return map[string]describeTest{
		"ollama": {enginetest.Options{Preset: enginetest.Ollama, Models: []enginetest.Model{model}}, Ollama,
			8192, llm.Effective, llm.Supported, llm.Supported, llm.Supported, "max",
			[]string{"GET /v1/models", "GET /api/ps", "POST /api/show"}},
		"ollama, not loaded": {enginetest.Options{Preset: enginetest.Ollama, Models: []enginetest.Model{unloaded}}, Ollama,
			4096, llm.Assumed, llm.Supported, llm.Supported, llm.Supported, "max",
			[]string{"GET /v1/models", "GET /api/ps", "POST /api/show"}},
		"llama.cpp": {enginetest.Options{Preset: enginetest.LlamaCpp, Models: []enginetest.Model{model}}, LlamaCpp,
			8192, llm.Effective, llm.Supported, llm.Supported, llm.Supported, "high",
			[]string{"GET /v1/models", "GET /props?model=" + escaped + "&autoload=false"}},
		"router, loaded": {enginetest.Options{Preset: enginetest.LlamaCpp, Router: true, Models: []enginetest.Model{model}}, LlamaCpp,
			8192, llm.Effective, llm.Supported, llm.Supported, llm.Supported, "high",
			[]string{"GET /v1/models", "GET /props?model=" + escaped + "&autoload=false"}},
		"router, not loaded": {enginetest.Options{Preset: enginetest.LlamaCpp, Router: true, Models: []enginetest.Model{unloaded}}, LlamaCpp,
			4096, llm.Assumed, llm.Unknown, llm.Supported, llm.Unknown, "",
			[]string{"GET /v1/models"}},
		"lm studio": {enginetest.Options{Preset: enginetest.LMStudio, Models: []enginetest.Model{model}}, LMStudio,
			8192, llm.Effective, llm.Supported, llm.Supported, llm.Supported, "",
			[]string{"GET /v1/models", "GET /api/v1/models"}},
		"lm studio, not loaded": {enginetest.Options{Preset: enginetest.LMStudio, Models: []enginetest.Model{unloaded}}, LMStudio,
			4096, llm.Assumed, llm.Supported, llm.Supported, llm.Supported, "",
			[]string{"GET /v1/models", "GET /api/v1/models"}},
		"oMLX": {enginetest.Options{Preset: enginetest.OMLX, Models: []enginetest.Model{model}}, OMLX,
			8192, llm.Effective, llm.Unknown, llm.Supported, llm.Unknown, "",
			[]string{"GET /v1/models", "GET /v1/models/status"}},
		"vMLX": {enginetest.Options{Preset: enginetest.VMLX, Models: []enginetest.Model{model}}, VMLX,
			0, llm.Fallback, llm.Supported, llm.Supported, llm.Supported, "high",
			[]string{"GET /v1/models", "GET /v1/models/" + escaped + "/capabilities"}},
		"vLLM": {enginetest.Options{Preset: enginetest.VLLM, Models: []enginetest.Model{model}}, VLLM,
			8192, llm.Effective, llm.Unknown, llm.Unknown, llm.Unknown, "",
			[]string{"GET /v1/models", "GET /v1/models/" + escaped}},
		"custom": {enginetest.Options{Models: []enginetest.Model{{ID: "acme/brook:7b", Declared: 131072, Entry: map[string]any{
			"supported_parameters": []string{"tools", "reasoning", "reasoning_effort"}}}}}, Custom,
			131072, llm.Declared, llm.Supported, llm.Unknown, llm.Supported, "high",
			[]string{"GET /v1/models", "GET /v1/models/" + escaped}},

		// No vendor's path is asked on a custom engine, nor where the engine says
		// that it is another one.
		"ollama as custom": {enginetest.Options{Preset: enginetest.Ollama, Models: []enginetest.Model{model}}, Custom,
			0, llm.Fallback, llm.Unknown, llm.Unknown, llm.Unknown, "",
			[]string{"GET /v1/models", "GET /v1/models/" + escaped}},
		"router as custom": {enginetest.Options{Preset: enginetest.LlamaCpp, Router: true, Models: []enginetest.Model{unloaded}}, Custom,
			0, llm.Fallback, llm.Unknown, llm.Supported, llm.Unknown, "",
			[]string{"GET /v1/models", "GET /v1/models/" + escaped}},
		"vMLX as ollama": {enginetest.Options{Preset: enginetest.VMLX, Models: []enginetest.Model{model}}, Ollama,
			0, llm.Fallback, llm.Unknown, llm.Unknown, llm.Unknown, "",
			[]string{"GET /v1/models", "GET /v1/models/" + escaped}},
		"llama.cpp as lm studio": {enginetest.Options{Preset: enginetest.LlamaCpp, Models: []enginetest.Model{model}}, LMStudio,
			8192, llm.Effective, llm.Unknown, llm.Unknown, llm.Unknown, "",
			[]string{"GET /v1/models", "GET /v1/models/" + escaped}},
	}
}

// Every preset with its own fake engine, from end to end, and what was asked.
func TestDescribe(t *testing.T) {
	for name, test := range describeTests() {
		t.Run(name, func(t *testing.T) {
			e, srv := start(t, &test.fake, test.preset, nil)
			info, err := e.Describe(t.Context(), target("acme/brook:7b"))
			if err != nil {
				t.Fatal(err)
			}
			c := &info.Capabilities
			if info.Window.Tokens != test.tokens || info.Window.Source != test.source ||
				c.Tools.Support != test.tools || c.Vision.Support != test.vision || c.Reasoning.Support != test.reasoning {
				t.Errorf("%+v", info)
			}
			if effort, _ := c.WireEffort(llm.Summit, nil); effort != test.effort {
				t.Errorf("effort %q, want %q", effort, test.effort)
			}
			// Calls that are made side by side come in any order.
			asked := srv.Asked()
			if len(asked) == 3 && strings.HasPrefix(asked[1], "POST") {
				asked[1], asked[2] = asked[2], asked[1]
			}
			if strings.Join(asked, "\n") != strings.Join(test.asked, "\n") {
				t.Errorf("asked\n%s", strings.Join(asked, "\n"))
			}
			if loads := srv.Loads(); len(loads) > 0 {
				t.Errorf("loaded %v", loads)
			}
			foreign := test.preset != Custom && strings.Contains(name, " as ")
			if said := strings.Contains(strings.Join(info.Notes, "\n"), "says it is"); said != foreign {
				t.Errorf("notes %q", info.Notes)
			}
			for _, r := range srv.Requests() {
				if len(r.Body) > 0 && string(r.Body) != `{"model":"acme/brook:7b"}` {
					t.Errorf("%s has the body %s", r, r.Body)
				}
			}
			if _, err := e.Describe(t.Context(), llm.Target{Provider: "x", Model: "m"}); llm.CodeOf(err) != llm.CodeNoAdapter {
				t.Errorf("another provider's target: %v", err)
			}
		})
	}
}

// The first answer loads the model, and then the engine tells what it uses.
func TestWindowAfterTheFirstAnswer(t *testing.T) {
	e, _ := start(t, &enginetest.Options{Preset: enginetest.Ollama, Models: []enginetest.Model{
		{ID: "brook", Window: 16384, Declared: 131072, Unloaded: true}}}, Ollama, nil)
	before, err := e.Describe(t.Context(), target("brook"))
	if err != nil || before.Window.Tokens != 4096 || before.Window.Source != llm.Assumed || before.Window.Declared != 131072 {
		t.Errorf("%+v, %v", before.Window, err)
	}
	collect(t, e, t.Context(), request("brook", "hello"))
	after, err := e.Describe(t.Context(), target("brook"))
	if err != nil || after.Window.Tokens != 16384 || after.Window.Source != llm.Effective {
		t.Errorf("%+v, %v", after.Window, err)
	}
}

// An engine that says at once that it has no such model is quoted.
func TestDescribeUnknownModel(t *testing.T) {
	e, _ := start(t, &enginetest.Options{Preset: enginetest.Ollama}, Ollama, nil)
	info, err := e.Describe(t.Context(), target("nope"))
	if text := strings.Join(info.Notes, "\n"); err != nil || !strings.Contains(text, "POST /api/show: answered 404: ") || !strings.Contains(text, "not found") {
		t.Errorf("%q, %v", text, err)
	}
}

// A model that the engine does not list may be used all the same.
func TestDescribeUnlistedModel(t *testing.T) {
	e, _ := start(t, &enginetest.Options{Models: []enginetest.Model{{ID: "a", Window: 10}, {ID: "b", Window: 20}}}, Custom, nil)
	for _, id := range []string{"org/m", "a b", "..", ".", "é", "x?y#z", "100%", `q"\`, "/my/llms/M3"} {
		info, err := e.Describe(t.Context(), target(id))
		if err != nil || info.ID != id || info.Window.Tokens != 0 || len(info.Notes) > 0 { // most engines have no page for it
			t.Errorf("%q: %+v, %v", id, info, err)
		}
		if r := collect(t, e, t.Context(), request(id, "hello")); r.text != "ok" {
			t.Errorf("%q: %+v", id, r)
		}
	}
}

func TestContext(t *testing.T) {
	window := func(tokens int, source llm.WindowSource, declared int) llm.Window {
		return llm.Window{Tokens: tokens, Source: source, Declared: declared}
	}
	tests := map[string]struct {
		in      llm.Window
		context int
		tokens  int
		source  llm.WindowSource
	}{
		"no word":            {window(8192, llm.Effective, 0), 0, 8192, llm.Effective},
		"negative":           {window(8192, llm.Effective, 0), -1, 8192, llm.Effective},
		"lowers":             {window(8192, llm.Effective, 0), 4096, 4096, llm.Configured},
		"equal":              {window(8192, llm.Effective, 0), 8192, 8192, llm.Effective},
		"does not raise":     {window(8192, llm.Effective, 131072), 32768, 8192, llm.Effective},
		"lowers a declared":  {window(8192, llm.Declared, 8192), 4096, 4096, llm.Configured},
		"declared is a roof": {window(8192, llm.Declared, 8192), 9000, 8192, llm.Declared},
		"supplies":           {window(0, llm.Fallback, 0), 32768, 32768, llm.Configured},
		"for an assumption":  {window(4096, llm.Assumed, 131072), 32768, 32768, llm.Configured},
		"under it":           {window(4096, llm.Assumed, 131072), 2048, 2048, llm.Configured},
		"over the model":     {window(4096, llm.Assumed, 16384), 32768, 16384, llm.Configured},
	}
	for name, test := range tests {
		got := withContext(test.in, test.context)
		if got.Tokens != test.tokens || got.Source != test.source || got.Declared != test.in.Declared {
			t.Errorf("%s: %+v", name, got)
		}
		if (got.Source == llm.Configured) != (len(got.Evidence) == 1) {
			t.Errorf("%s: evidence %v", name, got.Evidence)
		}
	}

	e, _ := start(t, &enginetest.Options{Preset: enginetest.VLLM, Models: []enginetest.Model{{ID: "m", Window: 8192}}}, VLLM, &Options{Context: 4096})
	info, err := e.Describe(t.Context(), target("m"))
	if err != nil || info.Window.Tokens != 4096 || info.Window.Source != llm.Configured {
		t.Errorf("%+v, %v", info.Window, err)
	}
}

// A note about an assumption goes with the assumption.
func TestContextInPlaceOfAnAssumption(t *testing.T) {
	fake := &enginetest.Options{Preset: enginetest.Ollama, Models: []enginetest.Model{{ID: "m", Declared: 131072, Unloaded: true}}}
	for context, want := range map[int]int{0: 1, 32768: 0} {
		e, _ := start(t, fake, Ollama, &Options{Context: context})
		info, err := e.Describe(t.Context(), target("m"))
		if err != nil || len(info.Notes) != want || (info.Window.Source == llm.Assumed) != (want > 0) {
			t.Errorf("%d: %+v, %v", context, info, err)
		}
	}
}

func TestProfiles(t *testing.T) {
	e := New("lab", loopback(1), Custom, &Options{Profile: llm.Qwen, Profiles: map[string]llm.Profile{"some/model": llm.Replay}, EngineSampling: true})
	if e.Profile("qwen") != llm.Qwen || e.Profile("some/model") != llm.Replay || !e.EngineSampling() {
		t.Error("profiles")
	}
}

func TestAPIPath(t *testing.T) {
	e, srv := start(t, nil, Custom, &Options{APIPath: "/"})
	srv.Fault("", enginetest.Body(`{"data":[{"id":"m"}]}`))
	if _, err := e.Describe(t.Context(), target("m")); err != nil {
		t.Fatal(err)
	}
	collect(t, e, t.Context(), request("m", "hello"))
	checkAsked(t, srv, "GET /models", "GET /models/m", "POST /chat/completions")
}

func TestProfilesAndSamplingReachTheDescription(t *testing.T) {
	e := New("lab", loopback(1), Custom, &Options{
		Window:  llm.Window{Tokens: 4096, Source: llm.Declared},
		Profile: llm.Replay, Profiles: map[string]llm.Profile{"a": llm.Qwen}, EngineSampling: true,
	})
	for model, want := range map[string]llm.Profile{"a": llm.Qwen, "b": llm.Replay} {
		info, err := e.Describe(t.Context(), llm.Target{Provider: "lab", Model: model})
		if err != nil || info.Profile != want || !info.EngineSampling {
			t.Errorf("%s: profile %v, engine sampling %v, %v", model, info.Profile, info.EngineSampling, err)
		}
	}
}
