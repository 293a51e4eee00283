package llm

// Prices are what a provider takes for a million tokens, in US dollars. The zero
// value is that nobody knows.
type Prices struct {
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
	// Cached is for the tokens of a prompt that the provider had kept; 0 is as
	// much as for others.
	Cached float64 `json:"cached,omitempty"`
}

// IsZero reports whether nobody knows them.
func (p Prices) IsZero() bool { return p == Prices{} }

// Cost is what the tokens that a provider counted cost, in US dollars.
func (p Prices) Cost(u *Usage) float64 {
	cached := min(u.CachedTokens, u.PromptTokens)
	price := p.Cached
	if price == 0 {
		price = p.Input
	}
	const million = 1e6
	return (float64(u.PromptTokens-cached)*p.Input + float64(cached)*price + float64(u.CompletionTokens)*p.Output) / million
}
