package budget

import "github.com/drover-dev/drover/internal/llm"

// Shape is what of the caller's messages a request held, as indexes into them.
type Shape struct {
	// FirstTurn is the first kept turn.
	FirstTurn int `json:"first_turn"`
	// Turns is how many turns the caller's list had.
	Turns int `json:"turns"`
	// Excerpts are the texts that were shortened, by turn.
	Excerpts []Excerpt `json:"excerpts,omitempty"`
	// OmittedImages are the images that a marker stands for, by turn.
	OmittedImages []ImageRef `json:"omitted_images,omitempty"`
	// LeftOut are the tool groups that were left out, in order.
	LeftOut []Range `json:"left_out,omitempty"`
	// Emitted is how many messages the request held, and Digest a checksum of
	// what they put into it.
	Emitted int    `json:"emitted"`
	Digest  uint64 `json:"digest,string"`
}

// Excerpt says how much of a turn's text was kept, in bytes.
type Excerpt struct {
	Turn int `json:"turn"`
	Head int `json:"head"`
	Tail int `json:"tail"`
	// Fixed marks an excerpt whose size depends on the text alone.
	Fixed bool `json:"fixed,omitempty"`
}

// ImageRef names an image: the turn's index and the image's number in it, from 1.
type ImageRef struct {
	Turn  int `json:"turn"`
	Image int `json:"image"`
}

// Range is an index range over the caller's messages, End exclusive.
type Range struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

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
