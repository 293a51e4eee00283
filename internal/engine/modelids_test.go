package engine

import (
	"testing"

	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/llm"
)

// oddIDs are model ids as engines, proxies and people make them.
var oddIDs = []string{
	`say "hello"`, `vendor/family/model`, `C:\models\model.gguf`, `qwen3:8b-q4_K_M`, ` two  words `,
	"模型-7b", "mod\u00e8le \u2028 \U0001F411", `<b>&amp;</b>`, `%2F..%2f?a=b#c`, `/models/m.gguf`,
}

// TestOddModelIDsRoundTrip takes each id from an engine's list to a request and
// looks at what the engine was asked for.
func TestOddModelIDsRoundTrip(t *testing.T) {
	fake := &enginetest.Options{}
	for _, id := range oddIDs {
		fake.Models = append(fake.Models, enginetest.Model{ID: id, Window: 4096})
	}
	e, srv := start(t, fake, Custom, nil)
	models, err := e.Models(t.Context(), "lab")
	if err != nil {
		t.Fatal(err)
	}
	if len(models) != len(oddIDs) {
		t.Fatalf("%d models listed, want %d", len(models), len(oddIDs))
	}
	for i, m := range models {
		if m.ID != oddIDs[i] {
			t.Errorf("listed as %q, the engine has %q", m.ID, oddIDs[i])
		}
		parsed, err := llm.ParseTarget(m.Target().String())
		if err != nil || parsed != m.Target() {
			t.Errorf("%q is read back as %q, %v", m.Target(), parsed, err)
		}
		info, err := e.Describe(t.Context(), parsed)
		if err != nil || info.ID != m.ID {
			t.Errorf("%q is described as %q, %v", m.ID, info.ID, err)
		}
		for _, err := range e.Stream(t.Context(), request(info.ID, "hello")) {
			if err != nil {
				t.Errorf("%q: %v", m.ID, err)
			}
		}
		chats := srv.Chats()
		if got := chats[len(chats)-1].Model; got != oddIDs[i] {
			t.Errorf("%q was asked for as %q", oddIDs[i], got)
		}
	}
}
