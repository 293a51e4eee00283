package probe

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/openai"
)

// FuzzResolve feeds every adapter with arbitrary documents: nothing panics, and
// what comes out keeps its own rules.
func FuzzResolve(f *testing.F) {
	f.Add(uint8(Ollama), "m", `{"id":"m"}`, `{"model_info":{"a.context_length":1},"capabilities":["tools"]}`, `{"models":[{"name":"m","context_length":2}]}`)
	f.Add(uint8(LlamaCpp), "m", `{"id":"m","status":{"value":"unloaded","args":["-c","1","-np","0"]}}`, `{"default_generation_settings":{"n_ctx":1e9}}`, ``)
	f.Add(uint8(Generic), "x", `{"meta":{"n_ctx":"7"}}`, `{"supported_parameters":["reasoning_effort"],"reasoning":{"allowed_options":[]}}`, `null`)
	f.Add(uint8(LMStudio), "x", `[]`, `{"models":[{"key":"x","loaded_instances":[null,{"id":"x"}]}]}`, ``)
	long := strings.Repeat(`\u001b]0;é\u202e\n`, 99)
	f.Add(uint8(Ollama), "m", `{"id":"m"}`, `{"model_info":{"`+long+`.context_length":9},"parameters":"num_ctx 9"}`, `{"models":[{"name":"`+long+`","context_length":2}]}`)
	f.Add(uint8(Generic), "m", `{"id":"m","reasoning":true,"supported_parameters":["reasoning_effort"]}`, `{"max_model_len":1}`, ``)
	f.Fuzz(func(t *testing.T, adapter uint8, model, entry, first, second string) {
		in := Input{Adapter: Adapter(adapter % 6), Model: model}
		if json.Valid([]byte(entry)) {
			in.Catalogue = &openai.Catalogue{Entries: []openai.Entry{{ID: model, Raw: json.RawMessage(entry)}}}
		}
		endpoints := []string{endpointModel, endpointLMStudio, endpointShow, endpointProps, endpointStatus, endpointCapabilities}
		for _, e := range endpoints {
			in.Documents = append(in.Documents, Document{e, []byte(first)})
		}
		in.Documents = append(in.Documents, Document{endpointRunning, []byte(second)})
		r := Resolve(in)
		w := r.Window
		if (w.Tokens == 0) != (w.Source == llm.Fallback) || w.Tokens < 0 || w.Tokens > maxTokens {
			t.Errorf("window %+v", w)
		}
		if w.Source == llm.Assumed && (w.Tokens > AssumedWindow || w.Tokens > w.Declared) {
			t.Errorf("assumed window %+v", w)
		}
		if f := r.Capabilities.ReasoningEffort; !f.Advertised && len(f.Values) > 0 {
			t.Errorf("effort %+v", f)
		}
		checkShown(t, &r)
		in.Adapter.Calls(model, in.Catalogue)
	})
}

// checkShown holds what people read of an answer to its bounds: nothing is long,
// nothing is said twice in one place, and a note is one line of text.
func checkShown(t *testing.T, r *Result) {
	t.Helper()
	for _, n := range r.Notes {
		if len(n) > 8*maxValue || strings.ContainsFunc(n, unprintable) {
			t.Errorf("note %q", n)
		}
	}
	c := &r.Capabilities
	for _, list := range [][]llm.Evidence{r.Window.Evidence, c.Tools.Evidence, c.Vision.Evidence, c.Reasoning.Evidence, c.ReasoningEffort.Evidence} {
		for i, e := range list {
			if len(e.Field) > maxValue+len("…") || len(e.Value) > maxValue+len("…") || strings.ContainsFunc(e.Field, unprintable) ||
				strings.ContainsAny(e.Value, "\n\r\t") {
				t.Errorf("evidence %q", e)
			}
			if slices.Contains(list[:i], e) {
				t.Errorf("said twice: %q", e)
			}
		}
	}
}

// FuzzEscapeID checks that an id is one component and comes back unchanged.
func FuzzEscapeID(f *testing.F) {
	for _, id := range []string{"org/m", "..", "a b+c", "é%", "x?y#z", "\x00"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		escaped := EscapeID(id)
		if strings.ContainsAny(escaped, "/\\?#+ &=") || escaped == "." || escaped == ".." {
			t.Errorf("%q is not one component", escaped)
		}
		if back, err := url.PathUnescape(escaped); err != nil || back != id {
			t.Errorf("path: %q came back as %q, %v", id, back, err)
		}
		if back, err := url.QueryUnescape(escaped); err != nil || back != id {
			t.Errorf("query: %q came back as %q, %v", id, back, err)
		}
	})
}
