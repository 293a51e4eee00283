package engine

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/llm"
)

// probeHeaders are the headers that a probe may send, and no other.
var probeHeaders = []string{"Accept", "Accept-Encoding", "Authorization", "Content-Length", "Content-Type", "User-Agent"}

// probePaths are the addresses that a probe may ask, with ID for the model.
var probePaths = []string{
	"GET /v1/models", "GET /v1/models/ID", "GET /v1/models/ID/capabilities", "GET /v1/models/status",
	"GET /api/ps", "POST /api/show", "GET /api/v1/models", "GET /props?model=ID&autoload=false",
}

// TestProbesHoldNothingButTheModel records, for every preset in every role of its
// engine, what the probes before, between and after conversations send: the
// model's id, the key, and nothing of what was said.
func TestProbesHoldNothingButTheModel(t *testing.T) {
	const model, escaped = "acme/brook:7b+é", "acme%2Fbrook%3A7b%2B%C3%A9"
	secrets := []string{"pomegranate", "quicksilver", "saltcellar", "thimblerig"}
	for _, preset := range Presets() {
		for name, played := range map[string]enginetest.Options{
			"as itself": {Preset: string(preset)}, "router": {Preset: enginetest.LlamaCpp, Router: true},
			"as another": {Preset: enginetest.VMLX}, "unknown": {},
		} {
			t.Run(string(preset)+"/"+name, func(t *testing.T) {
				played.Key = "sesame"
				played.Models = []enginetest.Model{
					{ID: model, Window: 8192, Declared: 131072, Tools: true, Vision: true, Thinking: true, Effort: true},
					{ID: "other"},
				}
				e, srv := start(t, &played, preset, &Options{Key: "sesame", Context: 4096, Profile: llm.Replay})
				probe := func() {
					if h := e.Health(t.Context()); h.Err != nil {
						t.Fatal(h.Err)
					}
					if _, err := e.Describe(t.Context(), target(model)); err != nil {
						t.Fatal(err)
					}
				}
				probe()
				srv.Script(enginetest.Answer{Text: secrets[0], Reasoning: secrets[1]})
				req := request(model, secrets[2])
				req.System = secrets[3]
				if r := collect(t, e, t.Context(), req); r.err != nil || r.text != secrets[0] {
					t.Fatalf("%q, %v", r.text, r.err)
				}
				probe()
				srv.Fault("", enginetest.HTML(500)) // a probe that fails asks for nothing more
				e.Health(t.Context())
				if _, err := e.Describe(t.Context(), target(model)); err != nil {
					t.Fatal(err)
				}
				probes := 0
				for _, r := range srv.Requests() {
					if r.Path == "/v1/chat/completions" {
						continue
					}
					probes++
					checkProbe(t, r, model, escaped, secrets)
				}
				if probes < 6 || len(srv.Chats()) != 1 {
					t.Errorf("%d probes, %d chats", probes, len(srv.Chats()))
				}
			})
		}
	}
}

func checkProbe(t *testing.T, r enginetest.Request, model, escaped string, secrets []string) {
	t.Helper()
	if at := strings.ReplaceAll(r.String(), escaped, "ID"); !slices.Contains(probePaths, at) {
		t.Errorf("a probe asked %s", r)
	}
	var body map[string]string
	switch err := json.Unmarshal(r.Body, &body); {
	case r.Method == http.MethodGet && len(r.Body) > 0:
		t.Errorf("%s has the body %s", r, r.Body)
	case r.Method == http.MethodPost && (err != nil || len(body) != 1 || body["model"] != model):
		t.Errorf("%s has the body %s", r, r.Body)
	}
	for name, values := range r.Header {
		if !slices.Contains(probeHeaders, name) || len(values) != 1 {
			t.Errorf("%s has the header %s: %q", r, name, values)
		}
	}
	if got := r.Header.Get("Authorization"); got != "Bearer sesame" {
		t.Errorf("%s has the key %q", r, got)
	}
	all := r.String() + string(r.Body)
	for _, values := range r.Header {
		all += strings.Join(values, " ")
	}
	for _, s := range secrets {
		if strings.Contains(all, s) {
			t.Errorf("%s holds %q of the conversation", r, s)
		}
	}
}
