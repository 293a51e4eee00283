package acp

import (
	"maps"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
)

// spend takes note of what a provider has counted.
func (w *workbench) spend(t llm.Target, u *llm.Usage) {
	if u.Estimated {
		return // nobody is billed for a guess
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.spent == nil {
		w.spent = make(map[llm.Target]llm.Usage)
	}
	w.spent[t] = w.spent[t].Plus(u)
}

// cost is what the session has cost so far in US dollars, at the catalogue's
// prices. known is false while it has used no model with a price.
func (c *conversation) cost(w *workbench) (amount float64, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// In one order, so that the same sum is the same number.
	for _, t := range slices.SortedFunc(maps.Keys(w.spent), func(a, b llm.Target) int {
		return strings.Compare(a.String(), b.String())
	}) {
		if p := c.prices(w, t); !p.IsZero() {
			u := w.spent[t]
			amount, known = amount+p.Cost(&u), true
		}
	}
	return amount, known
}

// prices looks a model up in what is known of it, else in the list of its
// provider. It needs the workbench's lock.
func (c *conversation) prices(w *workbench, t llm.Target) llm.Prices {
	if m, ok := c.srv.opts.Targets.Get(t); ok {
		return m.Prices
	}
	for i := range w.catalogue.listings {
		for _, m := range w.catalogue.listings[i].Models {
			if m.Target() == t {
				return m.Prices
			}
		}
	}
	return llm.Prices{}
}
