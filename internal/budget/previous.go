package budget

import "github.com/drover-dev/drover/internal/llm"

// Previous is what the last request of a session looked like, and what the
// engine counted for it. It is a value for the log: a plan can be repeated from
// it.
type Previous struct {
	Policy int        `json:"policy"`
	Target llm.Target `json:"target"`
	// Window is the context window in tokens that was planned for.
	Window int `json:"window"`
	// Head is the hex SHA-256 of the system turn and the tools.
	Head string `json:"head"`
	// Output is the output reserve.
	Output int   `json:"output"`
	Shape  Shape `json:"shape"`
	// Estimate is what the policy's estimator gives for the request.
	Estimate int `json:"estimate"`
	// Opaque says that the request held images or replayed reasoning, whose
	// share of the engine's count may change from request to request.
	Opaque bool `json:"opaque,omitempty"`
	// Earlier is the engine's count of the request that this one extends, 0 if
	// there was none.
	Earlier int `json:"earlier,omitempty"`
	// PromptTokens is the engine's count of this request, 0 if it is missing.
	PromptTokens int `json:"prompt_tokens,omitempty"`
	// Estimated says that PromptTokens is a guess of drover's.
	Estimated bool `json:"estimated,omitempty"`
}

// WithUsage returns p with the engine's count.
func (p *Previous) WithUsage(usage llm.Usage) *Previous {
	next := *p
	next.PromptTokens, next.Estimated = max(0, usage.PromptTokens), usage.Estimated
	return &next
}
