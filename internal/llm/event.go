package llm

import (
	"context"
	"iter"
)

// Event is one thing that a stream says. The set is closed: [TextDelta],
// [ReasoningDelta], [ToolCallDelta], [ToolCalls], [Usage] and [Finish].
type Event interface{ event() }

// TextDelta is a piece of the answer.
type TextDelta string

// ReasoningDelta is a piece of what the model thinks.
type ReasoningDelta string

// ToolCallDelta says that a call is being written, for a progress display. It
// is no call to run: those come in [ToolCalls].
type ToolCallDelta struct {
	Index int    // which call of the answer, from 0
	Name  string // as far as it is known
	Bytes int    // bytes of arguments in this piece
}

// ToolCalls are the complete calls of the answer. It comes at most once, after
// all deltas and before [Finish].
type ToolCalls []ToolCall

// Usage is what the engine counted. It may come several times; the last counts.
type Usage struct {
	PromptTokens     int `json:"promptTokens"`
	CompletionTokens int `json:"completionTokens"`
	CachedTokens     int `json:"cachedTokens,omitempty"`
	ReasoningTokens  int `json:"reasoningTokens,omitempty"`
	// Estimated says that the engine did not count and drover guessed.
	Estimated bool `json:"estimated,omitempty"`
	// Timings are llama.cpp's own figures, if sent.
	Timings *Timings `json:"timings,omitempty"`
}

// Plus adds up what was counted for two requests.
func (u Usage) Plus(v *Usage) Usage {
	return Usage{
		PromptTokens:     u.PromptTokens + v.PromptTokens,
		CompletionTokens: u.CompletionTokens + v.CompletionTokens,
		CachedTokens:     u.CachedTokens + v.CachedTokens,
		ReasoningTokens:  u.ReasoningTokens + v.ReasoningTokens,
		Estimated:        u.Estimated || v.Estimated,
	}
}

// Timings are the figures that llama.cpp puts into its last chunk. Times are in
// milliseconds.
type Timings struct {
	CacheN      int     `json:"cacheN"`     // prompt tokens taken from the cache
	PromptN     int     `json:"promptN"`    // prompt tokens computed
	PredictedN  int     `json:"predictedN"` // tokens generated
	PromptMS    float64 `json:"promptMs"`
	PredictedMS float64 `json:"predictedMs"`
}

// Finish ends a stream that the engine ended itself. It is the last event.
type Finish struct {
	Reason FinishReason
	// Raw is the engine's own word, when it differs.
	Raw string
	// Reasoning is the whole reasoning of the answer in the form that a
	// replaying profile needs, nil if there was none.
	Reasoning *Reasoning
}

// FinishReason says why an answer ended.
type FinishReason string

// Finish reasons. A filtered answer or a broken stream is an error instead.
const (
	FinishStop      FinishReason = "stop"
	FinishToolCalls FinishReason = "tool_calls"
	FinishLength    FinishReason = "length"
)

func (TextDelta) event()      {}
func (ReasoningDelta) event() {}
func (ToolCallDelta) event()  {}
func (ToolCalls) event()      {}
func (Usage) event()          {}
func (Finish) event()         {}

// Provider gives access to models under one or more routes. Methods are safe
// for concurrent use.
type Provider interface {
	// Info names the provider of a route. It does no I/O.
	Info(route string) ProviderInfo
	// Models lists what the route recommends, in the provider's order. The list
	// is advice: Stream may be called with any model.
	Models(ctx context.Context, route string) ([]ModelInfo, error)
	// Stream sends the request and yields its events. A failure is yielded once,
	// as the last pair, and is an *[Error]. Leaving the loop, or the end of ctx,
	// closes the connection.
	Stream(ctx context.Context, req *Request) iter.Seq2[Event, error]
}

// Describer is a [Provider] that can say more of a selected model than its list
// does: window and capabilities, found by bounded metadata calls alone.
type Describer interface {
	// Describe always returns something usable: what could not be learned is
	// unknown, and Notes say why. The error is set when the provider itself
	// refuses the model (UNKNOWN_MODEL) or the context was cancelled.
	Describe(ctx context.Context, target Target) (ModelInfo, error)
}
