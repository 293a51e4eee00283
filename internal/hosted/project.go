package hosted

import (
	"cmp"
	"encoding/json"
	"slices"

	"charm.land/catwalk/pkg/catwalk"

	"github.com/drover-dev/drover/internal/llm"
)

// The fields of an entry that facts come from, by their names in the catalogue.
const (
	fieldWindow  = "context_window"
	fieldOutput  = "default_max_tokens"
	fieldImages  = "supports_attachments"
	fieldReason  = "can_reason"
	fieldEfforts = "reasoning_levels"
)

// project turns a model of the catalogue into what drover knows of it.
func (e *Entry) project(m *catwalk.Model) llm.ModelInfo {
	return llm.ModelInfo{
		Provider: e.ID, ID: m.ID, Name: cmp.Or(m.Name, m.ID),
		Window: window(m), Prices: prices(m),
		Capabilities: llm.Capabilities{
			Vision:          fact(m.SupportsImages, fieldImages),
			Reasoning:       fact(m.CanReason, fieldReason),
			ReasoningEffort: e.efforts(m),
		},
	}
}

func window(m *catwalk.Model) llm.Window {
	var w llm.Window
	if m.ContextWindow > 0 {
		n := int(m.ContextWindow)
		w.Tokens, w.Declared, w.Source = n, n, llm.Declared
		w.Evidence = append(w.Evidence, claim(fieldWindow, n))
	}
	if m.DefaultMaxTokens > 0 {
		w.OutputLimit = int(m.DefaultMaxTokens)
		w.Evidence = append(w.Evidence, claim(fieldOutput, w.OutputLimit))
	}
	return w
}

// prices reads what a model costs. Entries do not agree on which of the two
// members for cached tokens is that of reading them: it is the one that makes them
// cheaper.
func prices(m *catwalk.Model) llm.Prices {
	if m.CostPer1MIn <= 0 && m.CostPer1MOut <= 0 { // free, or by subscription
		return llm.Prices{}
	}
	p := llm.Prices{Input: max(0, m.CostPer1MIn), Output: max(0, m.CostPer1MOut)}
	for _, cached := range []float64{m.CostPer1MInCached, m.CostPer1MOutCached} {
		if cached > 0 && cached < p.Input && (p.Cached == 0 || cached < p.Cached) {
			p.Cached = cached
		}
	}
	return p
}

// fact is what a member that is true or false proves. The catalogue leaves it
// away for models that can and for models that cannot, and once read that looks
// like false: only true proves something.
func fact(says bool, field string) llm.Fact {
	if !says {
		return llm.Fact{}
	}
	return llm.Fact{Support: llm.Supported, Evidence: []llm.Evidence{claim(field, true)}}
}

// efforts is what an entry proves about reasoning_effort: something only where
// the API is known to take the member, and only with levels.
func (e *Entry) efforts(m *catwalk.Model) llm.EffortField {
	switch e.kind {
	case catwalk.TypeOpenAI, catwalk.TypeOpenAICompat, catwalk.TypeOpenRouter:
	default:
		return llm.EffortField{}
	}
	var f llm.EffortField
	for _, level := range m.ReasoningLevels {
		if _, ok := llm.EffortRank(level); ok {
			f.Values = append(f.Values, level)
		}
	}
	if len(f.Values) == 0 {
		return llm.EffortField{}
	}
	slices.SortStableFunc(f.Values, func(a, b string) int {
		x, _ := llm.EffortRank(a)
		y, _ := llm.EffortRank(b)
		return x - y
	})
	f.Advertised, f.Evidence = true, []llm.Evidence{claim(fieldEfforts, m.ReasoningLevels)}
	return f
}

// claim is the evidence of one field. The value is a number, a bool or a list
// of strings.
func claim(field string, value any) llm.Evidence {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // no such value: a mistake in this package
	}
	return llm.Evidence{Endpoint: "catalogue", Field: field, Value: string(text)}
}
