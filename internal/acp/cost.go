package acp

import "github.com/drover-dev/drover/internal/llm"

// spend takes note of what a provider has counted.
func (w *workbench) spend(t llm.Target, u *llm.Usage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spent.Add(t, u)
}

// cost is what the session has cost so far in US dollars, at the catalogue's
// prices. known is false while it has used no model with a price.
func (c *conversation) cost(w *workbench) (amount float64, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.spent.Cost(func(t llm.Target) llm.Prices { return c.srv.opts.Targets.Prices(t, w.catalogue.listings) })
}
