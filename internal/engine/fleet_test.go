package engine

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/llm"
)

// TestFleet has six engines of which two hang and one is down: the registry has
// every answer that there is within two seconds, and says of each of the others
// what is the matter.
func TestFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang, dribble := &enginetest.Fault{Hang: true}, &enginetest.Fault{Dribble: 100 * time.Millisecond}
		fleet := []struct {
			route  string
			preset Preset
			fault  *enginetest.Fault
			down   bool
			code   llm.Code // of its list, empty for a good one
			part   string   // of its error
		}{
			{route: "hangs", preset: Custom, fault: hang, code: llm.CodeTimeout, part: "local:8000: did not answer"},
			{route: "ollama", preset: Ollama},
			{route: "down", preset: LlamaCpp, down: true, code: llm.CodeTransport, part: "connection refused"},
			{route: "router", preset: LlamaCpp},
			{route: "dribbles", preset: VLLM, fault: dribble, code: llm.CodeTimeout, part: "local:8004: did not answer"},
			{route: "studio", preset: LMStudio},
		}
		var registry catalog.Registry
		for i, f := range fleet {
			srv := enginetest.New(t, &enginetest.Options{Preset: string(f.preset), InMemory: true, Port: 8000 + i})
			if f.fault != nil {
				srv.Fault("", *f.fault)
			}
			opts := &Options{Dial: srv.Dial}
			if f.down {
				opts.Dial = enginetest.Dialer()
			}
			e := New(f.route, mustParse(t, srv.URL), f.preset, opts)
			t.Cleanup(e.Close)
			if _, err := registry.Register(e, f.route); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		all := registry.All(t.Context())
		if took := time.Since(begin); took > catalog.ListTimeout || took < catalog.ListTimeout-300*time.Millisecond {
			t.Errorf("took %v", took)
		}
		for i, f := range fleet {
			l := all[i]
			if l.Provider.ID != f.route {
				t.Errorf("%s came at the place of %s", l.Provider.ID, f.route)
			}
			if f.code == "" {
				if l.Err != nil || len(l.Models) != 1 || l.Models[0].Provider != f.route {
					t.Errorf("%s: %+v", f.route, l)
				}
				continue
			}
			if llm.CodeOf(l.Err) != f.code || !strings.Contains(l.Err.Error(), f.part) || len(l.Models) > 0 {
				t.Errorf("%s: %v", f.route, l.Err)
			}
		}
	})
}

// A list that an engine gives, however odd its entries are, is one that the
// registry takes: one entry of no use hides none of the others.
func TestOddEntriesHideNoOthers(t *testing.T) {
	entries := []string{
		`{}`, `null`, `7`, `""`, `" "`, `{"id":""}`, `{"id":" "}`, `{"id":"\t"}`, `{"id":"\u00a0"}`, `{"id":"\u2028\u3000"}`,
		`{"id":null}`, `{"id":["m"]}`, `{"name":" "}`, `{"id":" ","name":"Blank"}`, `{"id":"odd","name":"\u2003"}`,
		`{"id":"odd"}`, `{"id":"odd","name":"Twice"}`, `{"id":"a\ud800"}`, `{"id":"a\u200bb"}`,
	}
	e, srv := start(t, nil, Custom, nil)
	var registry catalog.Registry
	if _, err := registry.Register(e, "lab"); err != nil {
		t.Fatal(err)
	}
	for _, entry := range append(entries, strings.Join(entries, ",")) {
		srv.Fault("/v1/models", enginetest.Body(`{"data":[`+entry+`,{"id":"good"}]}`))
		models, err := registry.Models(t.Context(), "lab")
		if err != nil || len(models) == 0 || models[len(models)-1].ID != "good" {
			t.Errorf("beside %s: %v, %v", entry, models, err)
		}
	}
}
