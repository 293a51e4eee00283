package hosted_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"

	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/hosted"
	"github.com/drover-dev/drover/internal/llm"
)

func find(t testing.TB, id string) *hosted.Entry {
	t.Helper()
	e, ok := hosted.Find(id)
	if !ok {
		t.Fatalf("the catalogue has no %s", id)
	}
	return e
}

func provider(t testing.TB, id string, opts *hosted.Options) *hosted.Provider {
	t.Helper()
	p, err := hosted.New(find(t, id), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// embeddedProviders is the library's own view of the catalogue.
func embeddedProviders() map[string]catwalk.Provider {
	all := make(map[string]catwalk.Provider)
	for _, p := range embedded.GetAll() {
		if p.ID != "" {
			all[string(p.ID)] = p
		}
	}
	return all
}

// TestEveryEmbeddedProviderPassesTheRegistry registers all of the catalogue and
// lists it as the library has it.
func TestEveryEmbeddedProviderPassesTheRegistry(t *testing.T) {
	var r catalog.Registry
	want := embeddedProviders()
	for _, e := range hosted.Entries() {
		if _, err := r.Register(provider(t, e.ID, nil), e.ID); err != nil {
			t.Fatal(err)
		}
	}
	models, refused := 0, []string{}
	for _, l := range r.All(t.Context()) {
		p := want[l.Provider.ID]
		if l.Provider.Name != p.Name {
			t.Errorf("%s is called %q", l.Provider.ID, l.Provider.Name)
		}
		if l.Err != nil {
			if llm.CodeOf(l.Err) != llm.CodeNoAdapter || !strings.Contains(l.Err.Error(), p.Name+" is not supported: ") {
				t.Errorf("%s: %v", l.Provider.ID, l.Err)
			}
			refused = append(refused, l.Provider.ID)
			continue
		}
		if len(l.Models) != len(p.Models) {
			t.Errorf("%s: %d models, the catalogue has %d", l.Provider.ID, len(l.Models), len(p.Models))
		}
		for i, m := range l.Models {
			if m.ID != p.Models[i].ID || m.Name != p.Models[i].Name {
				t.Errorf("%s: %q (%s), want %q", l.Provider.ID, m.ID, m.Name, p.Models[i].ID)
			}
		}
	}
	for _, p := range want {
		models += len(p.Models)
	}
	if len(r.Providers()) != 40 || models != 1506 {
		t.Errorf("%d providers with %d models: the installed catalogue is another one", len(r.Providers()), models)
	}
	slices.Sort(refused)
	if w := []string{"azure", "bedrock", "bedrock-europe", "copilot", "vertexai"}; !slices.Equal(refused, w) {
		t.Errorf("not supported are %v, want %v", refused, w)
	}
}

// TestFactsComeFromTheirFields compares what is known of each model with the
// entry, and each fact with its evidence.
func TestFactsComeFromTheirFields(t *testing.T) {
	want := embeddedProviders()
	for _, e := range hosted.Entries() {
		p := want[e.ID]
		takesEffort := slices.Contains([]catwalk.Type{catwalk.TypeOpenAI, catwalk.TypeOpenAICompat, catwalk.TypeOpenRouter}, p.Type)
		for i, m := range e.Models() {
			w, c := &p.Models[i], &m.Capabilities
			if m.Window.Source != llm.Declared || m.Window.Tokens != int(w.ContextWindow) || m.Window.OutputLimit != int(w.DefaultMaxTokens) {
				t.Errorf("%v: window %+v", m.Target(), m.Window)
			}
			if (c.Vision.Support == llm.Supported) != w.SupportsImages || (c.Reasoning.Support == llm.Supported) != w.CanReason {
				t.Errorf("%v: vision %v, reasoning %v", m.Target(), c.Vision.Support, c.Reasoning.Support)
			}
			if c.Vision.Support == llm.Unsupported || c.Reasoning.Support == llm.Unsupported || c.Tools.Support != llm.Unknown {
				t.Errorf("%v: something is claimed that the catalogue does not say: %+v", m.Target(), c)
			}
			if advertised := c.ReasoningEffort.Advertised; advertised != (takesEffort && len(w.ReasoningLevels) > 0) {
				t.Errorf("%v: reasoning_effort advertised: %v", m.Target(), advertised)
			} else if advertised && len(c.ReasoningEffort.Values) != len(w.ReasoningLevels) {
				t.Errorf("%v: %v of %v", m.Target(), c.ReasoningEffort.Values, w.ReasoningLevels)
			}
			evidence := slices.Concat(m.Window.Evidence, c.Vision.Evidence, c.Reasoning.Evidence, c.ReasoningEffort.Evidence)
			for _, ev := range evidence {
				if ev.Endpoint != "catalogue" || ev.Field == "" || ev.Value == "" {
					t.Errorf("%v: evidence %+v", m.Target(), ev)
				}
			}
		}
	}
}

func TestAddresses(t *testing.T) {
	tests := []struct{ id, url, want string }{
		{"openrouter", "", "https://openrouter.ai/api/v1/chat/completions"},
		{"groq", "", "https://api.groq.com/openai/v1/chat/completions"},
		{"zai", "", "https://api.z.ai/api/coding/paas/v4/chat/completions"},
		{"openai", "", "https://api.openai.com/v1/chat/completions"},
		{"anthropic", "", "https://api.anthropic.com/v1/chat/completions"},
		{"gemini", "", "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions"},
		{"kimi-coding", "", "https://api.kimi.com/coding/v1/chat/completions"},
		{"minimax", "", "https://api.minimax.io/v1/chat/completions"},
		{"vercel", "", "https://ai-gateway.vercel.sh/v1/chat/completions"},
		{"groq", "https://proxy.example.org/groq", "https://proxy.example.org/groq/v1/chat/completions"},
		{"groq", "https://proxy.example.org/groq/v1/", "https://proxy.example.org/groq/v1/chat/completions"},
		{"zai", "https://proxy.example.org/zai", "https://proxy.example.org/zai/chat/completions"},
		{"zai", "https://proxy.example.org/zai/v1", "https://proxy.example.org/zai/v1/chat/completions"},
		{"azure", "https://res.openai.azure.com/openai/v1", "https://res.openai.azure.com/openai/v1/chat/completions"},
	}
	for _, tt := range tests {
		// A proxy is asked about the address of each request, and refuses it.
		got := ""
		p := provider(t, tt.id, &hosted.Options{Key: "k", URL: tt.url, Proxy: noting(&got)})
		models, err := p.Models(t.Context(), tt.id)
		if err != nil {
			t.Errorf("%s: %v", tt.id, err)
			continue
		}
		if code := llm.CodeOf(send(t, p, models[0].Target())); code != llm.CodeTransport || got != tt.want {
			t.Errorf("%s %s: %s, %s, want %s", tt.id, tt.url, code, got, tt.want)
		}
	}
	if _, err := hosted.New(find(t, "groq"), &hosted.Options{URL: "groq"}); err == nil || !strings.HasPrefix(err.Error(), "groq: ") {
		t.Errorf("an address without a scheme: %v", err)
	}
}

// send makes a request of one message and gives its error.
func send(t *testing.T, p llm.Provider, target llm.Target) error {
	t.Helper()
	req := &llm.Request{Snapshot: llm.Snapshot{Target: target}, Messages: []llm.Message{llm.UserText("hello")}, MaxTokens: 16}
	for _, err := range p.Stream(t.Context(), req) {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestAnUnknownModelIsRefusedBeforeAnyIO also has a custom address.
func TestAnUnknownModelIsRefusedBeforeAnyIO(t *testing.T) {
	var connections atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { connections.Add(1) }))
	defer s.Close()
	p := provider(t, "openrouter", &hosted.Options{Key: "k", URL: s.URL})
	for _, id := range []string{"no/such-model", "", "OpenAI/GPT-OSS-120B"} {
		target := llm.Target{Provider: "openrouter", Model: id}
		if _, err := p.Describe(t.Context(), target); llm.CodeOf(err) != llm.CodeUnknownModel {
			t.Errorf("describe %q: %v", id, err)
		}
		if err := send(t, p, target); llm.CodeOf(err) != llm.CodeUnknownModel {
			t.Errorf("stream %q: %v", id, err)
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d requests were made", n)
	}
}

func TestAProviderServesItsModels(t *testing.T) {
	const id = "openai/gpt-oss-120b"
	s := enginetest.New(t, &enginetest.Options{Key: "right", Models: []enginetest.Model{{ID: id}}})
	p := provider(t, "openrouter", &hosted.Options{Key: "right", URL: s.URL, Profile: llm.Replay})
	target := llm.Target{Provider: "openrouter", Model: id}
	info, err := p.Describe(t.Context(), target)
	if err != nil || info.Window.Tokens == 0 || info.Profile != llm.Replay {
		t.Fatalf("%+v, %v", info, err)
	}
	if len(s.Requests()) != 0 {
		t.Error("somebody was asked about a model of the catalogue")
	}
	if err := send(t, p, target); err != nil {
		t.Fatal(err)
	}
	r := s.Requests()[0]
	if r.String() != "POST /v1/chat/completions" || r.Header.Get("X-Title") != "drover" || strings.Contains(r.Header.Get("Http-Referer"), "charm") {
		t.Errorf("%v with %v", r, r.Header)
	}
}

func TestKeys(t *testing.T) {
	s := enginetest.New(t, &enginetest.Options{Models: []enginetest.Model{{ID: "qwen/qwen3-32b"}}})
	missing := llm.Errorf(llm.CodeMissingCredential, "the environment variable GROQ_API_KEY is not set")
	bad := llm.Errorf(llm.CodeInvalidCredential, "the key from env:GROQ_API_KEY has a space")
	for _, keyErr := range []*llm.Error{missing, bad} {
		p := provider(t, "groq", &hosted.Options{URL: s.URL, KeyErr: keyErr})
		models, err := p.Models(t.Context(), "groq")
		if err != nil || len(models) == 0 {
			t.Errorf("without a key the list is %v, %v", models, err)
		}
		for _, err := range []error{p.CheckKey(), send(t, p, models[0].Target())} {
			if llm.CodeOf(err) != keyErr.Code || !strings.Contains(err.Error(), "GROQ_API_KEY") {
				t.Errorf("%s: %v", keyErr.Code, err)
			}
		}
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests were made without a key", n)
	}
}

// TestWhatIsNotSupportedGivesTheReason asks in every way there is.
func TestWhatIsNotSupportedGivesTheReason(t *testing.T) {
	p := provider(t, "bedrock", &hosted.Options{Key: "k"})
	target := llm.Target{Provider: "bedrock", Model: find(t, "bedrock").Models()[0].ID}
	_, listed := p.Models(t.Context(), "bedrock")
	_, described := p.Describe(t.Context(), target)
	for _, err := range []error{listed, described, send(t, p, target), p.CheckKey(), p.Health(t.Context()).Err} {
		if llm.CodeOf(err) != llm.CodeNoAdapter || !strings.Contains(err.Error(), "AWS Bedrock US is not supported: ") {
			t.Errorf("%v", err)
		}
	}
}

func TestAnotherRouteIsRefused(t *testing.T) {
	p := provider(t, "groq", nil)
	_, listed := p.Models(t.Context(), "xai")
	_, described := p.Describe(t.Context(), llm.Target{Provider: "xai", Model: "qwen/qwen3-32b"})
	for _, err := range []error{listed, described, send(t, p, llm.Target{Provider: "xai", Model: "qwen/qwen3-32b"})} {
		if llm.CodeOf(err) != llm.CodeNoAdapter {
			t.Errorf("%v", err)
		}
	}
}

// TestListsAreDetached changes a list down to its last slice.
func TestListsAreDetached(t *testing.T) {
	p := provider(t, "openrouter", nil)
	list := func() []llm.ModelInfo {
		models, err := p.Models(context.Background(), "openrouter")
		if err != nil {
			t.Fatal(err)
		}
		return models
	}
	first, want := list(), list()
	for i := range first {
		first[i].ID = "changed"
		for _, e := range [][]llm.Evidence{first[i].Window.Evidence, first[i].Capabilities.ReasoningEffort.Evidence} {
			for j := range e {
				e[j].Value = "changed"
			}
		}
		for j := range first[i].Capabilities.ReasoningEffort.Values {
			first[i].Capabilities.ReasoningEffort.Values[j] = "changed"
		}
	}
	if !reflect.DeepEqual(list(), want) {
		t.Error("the caller can change the catalogue")
	}
}

// BenchmarkCatalogue is what a person with [hosted] pays once.
func BenchmarkCatalogue(b *testing.B) {
	for b.Loop() {
		embedded.GetAll()
	}
}

// TestPrices: each price of the catalogue is the entry's, cached tokens are never
// dearer than others, and at an address of the owner's nobody knows the price.
func TestPrices(t *testing.T) {
	want, priced := embeddedProviders(), 0
	for _, e := range hosted.Entries() {
		for i, m := range e.Models() {
			w := &want[e.ID].Models[i]
			if m.Prices.IsZero() {
				if w.CostPer1MIn > 0 || w.CostPer1MOut > 0 {
					t.Errorf("%v has no price", m.Target())
				}
				continue
			}
			priced++
			if m.Prices.Input != w.CostPer1MIn || m.Prices.Output != w.CostPer1MOut || m.Prices.Cached > m.Prices.Input || m.Prices.Cached < 0 {
				t.Errorf("%v: %+v", m.Target(), m.Prices)
			}
		}
	}
	if priced == 0 {
		t.Error("no model has a price")
	}
	for url, known := range map[string]bool{"": true, "https://gateway.example.org/v1": false} {
		p := provider(t, "groq", &hosted.Options{URL: url})
		list, err := p.Models(t.Context(), "groq")
		if err != nil || list[0].Prices.IsZero() == known {
			t.Errorf("%q: %v, %+v", url, err, list[0].Prices)
		}
		if m, err := p.Describe(t.Context(), list[0].Target()); err != nil || m.Prices.IsZero() == known {
			t.Errorf("%q: %v, %+v", url, err, m.Prices)
		}
	}
}
