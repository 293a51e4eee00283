package budget

import "github.com/drover-dev/drover/internal/llm"

// reserveRules say how a window is shared out, in tokens.
type reserveRules struct {
	FallbackWindow int // when no window is known
	SafetyDivisor  int // the safety reserve is the window by this, within the bounds
	SafetyMin      int
	SafetyMax      int
	Ceilings       [4]int // output by effort, least effort first
	// ReasoningFactor multiplies the ceilings for a model that is known to
	// reason: engines charge thinking to max_tokens.
	ReasoningFactor int
}

// reserves are the numbers of the governing decision record. The safety reserve
// stands for chat-template markers and what tokenizers differ by.
var reserves = reserveRules{
	FallbackWindow:  8192,
	SafetyDivisor:   20,
	SafetyMin:       256,
	SafetyMax:       2048,
	Ceilings:        [4]int{1024, 2048, 4096, 8192},
	ReasoningFactor: 1,
}

// Reserves is how a window is shared out, in tokens.
type Reserves struct {
	Window    int
	Source    llm.WindowSource
	Requested int // output asked for
	Output    int // output reserve: what is sent as max_tokens
	Safety    int
	Input     int // what the request may cost; not positive when nothing fits
}

// ReservesFor shares out the snapshot's window. requested is the most tokens
// that the answer should have, 0 for the ceiling of the snapshot's effort.
func ReservesFor(p *Policy, s *llm.Snapshot, requested int) Reserves {
	r := &p.reserves
	out := Reserves{Window: s.Window.Tokens, Source: s.Window.Source, Requested: requested}
	if out.Window <= 0 {
		out.Window, out.Source = r.FallbackWindow, llm.Fallback
	}
	if requested == 0 {
		out.Requested = r.ceiling(s)
	}
	out.Requested = max(1, out.Requested)
	out.Output = min(out.Requested, out.Window/2)
	if limit := s.Window.OutputLimit; limit > 0 {
		out.Output = min(out.Output, limit)
	}
	out.Safety = min(max(out.Window/r.SafetyDivisor, r.SafetyMin), r.SafetyMax)
	out.Input = out.Window - out.Output - out.Safety
	return out
}

func (r *reserveRules) ceiling(s *llm.Snapshot) int {
	effort := min(max(s.Effort.Or(llm.DefaultEffort), llm.Graze), llm.Summit)
	tokens := r.Ceilings[effort-llm.Graze]
	if s.Capabilities.Reasoning.Support == llm.Supported {
		tokens *= r.ReasoningFactor
	}
	return tokens
}
