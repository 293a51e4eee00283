package llm

import "slices"

// Support says whether a model can do something. Unknown is neutral: the
// portable request path is kept, nothing is forbidden and nothing is assumed.
type Support uint8

// The three states of a capability.
const (
	Unknown Support = iota
	Supported
	Unsupported
)

var supportNames = []string{"unknown", "supported", "unsupported"}

func (s Support) String() string { return nameOf(supportNames, s) }

// MarshalText gives the state's name.
func (s Support) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *Support) UnmarshalText(b []byte) (err error) {
	*s, err = parseName[Support]("support", supportNames, string(b))
	return err
}

// Evidence is one claim of a metadata document: where it stood and what it said.
type Evidence struct {
	// Endpoint is the method and path that was asked, without host and key,
	// for example "GET /v1/models", or "configuration".
	Endpoint string `json:"endpoint"`
	// Field is the path of the member in the answer, for example
	// "data[].meta.n_ctx".
	Field string `json:"field"`
	// Value is what stood there, as JSON, cut to a line.
	Value string `json:"value"`
}

// Fact is a capability with everything that was said about it. When the claims
// contradict each other Support is Unknown and both sides are kept.
type Fact struct {
	Support  Support    `json:"support"`
	Evidence []Evidence `json:"evidence,omitempty"`
}

// Capabilities is what is proven about one model on one engine. The zero value
// is the generic-compatible state: nothing known.
type Capabilities struct {
	Tools     Fact `json:"tools,omitzero"`
	Vision    Fact `json:"vision,omitzero"`
	Reasoning Fact `json:"reasoning,omitzero"`
	// ReasoningEffort describes the request member reasoning_effort.
	ReasoningEffort EffortField `json:"reasoningEffort,omitzero"`
}

// EffortField is what metadata proves about the request member reasoning_effort.
type EffortField struct {
	// Advertised says that this exact parameter was named.
	Advertised bool `json:"advertised,omitempty"`
	// Values are the values it takes, lowest effort first. Empty means that the
	// member must not be sent.
	Values   []string   `json:"values,omitempty"`
	Evidence []Evidence `json:"evidence,omitempty"`
}

// effortOrder ranks the values of reasoning_effort, lowest first.
var effortOrder = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// EffortRank gives the place of a reasoning_effort value in the order none,
// minimal, low, medium, high, xhigh, max. ok is false for any other value.
func EffortRank(value string) (rank int, ok bool) {
	rank = slices.Index(effortOrder, value)
	return rank, rank >= 0
}

// WireEffort is the value of reasoning_effort that the effort sends to a model
// with these capabilities, and false when the member must stay away: it crosses
// the wire only when it is advertised, reasoning is supported and a value is
// left after the refusals.
//
// Graze takes the lowest value, Summit the highest, Trot the one nearest to
// medium and Climb the one nearest to high; ties go to the lower value.
func (c *Capabilities) WireEffort(e Effort, refused Refusals) (value string, ok bool) {
	f := &c.ReasoningEffort
	if !f.Advertised || c.Reasoning.Support != Supported || refused.Has(RefusedEffort) {
		return "", false
	}
	best, bestRank := "", -1
	for _, v := range f.Values {
		rank, known := EffortRank(v)
		if !known || refused.Has(RefusedEffortValue(v)) {
			continue
		}
		// A model that cannot be told how much to think can still be told not
		// to; that is what Graze asks for, and no other effort may fall to it.
		if refused.Has(RefusedEffortLevels) && (v != "none" || e != Graze) {
			continue
		}
		if bestRank < 0 || e.prefers(rank, bestRank) {
			best, bestRank = v, rank
		}
	}
	return best, bestRank >= 0
}

// prefers reports whether rank a serves the effort better than rank b.
func (e Effort) prefers(a, b int) bool {
	want := 0
	switch e.Or(DefaultEffort) {
	case Graze:
		return a < b
	case Summit:
		return a > b
	case Trot:
		want, _ = EffortRank("medium")
	default:
		want, _ = EffortRank("high")
	}
	da, db := max(a-want, want-a), max(b-want, want-b)
	return da < db || da == db && a < b
}

// WindowSource says how the size of a context window is known. The zero value
// is Fallback: it is not known.
type WindowSource uint8

// Window sources, from nothing known to what the engine really uses.
const (
	Fallback   WindowSource = iota // nobody said: the policy's fallback is used
	Assumed                        // declared only, and the engine may load the model smaller
	Configured                     // set by the user
	Declared                       // what the model could do
	Effective                      // what the engine will really use
)

var windowSourceNames = []string{"fallback", "assumed", "configured", "declared", "effective"}

func (s WindowSource) String() string { return nameOf(windowSourceNames, s) }

// MarshalText gives the source's name.
func (s WindowSource) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *WindowSource) UnmarshalText(b []byte) (err error) {
	*s, err = parseName[WindowSource]("window source", windowSourceNames, string(b))
	return err
}

// Window is a model's context window in tokens: prompt and output together.
// The zero value means that nothing is known.
type Window struct {
	// Tokens is the size to plan with, 0 when Source is Fallback.
	Tokens int          `json:"tokens"`
	Source WindowSource `json:"source"`
	// Declared is what the model could do, 0 if unknown. It is larger than
	// Tokens when Source is Assumed.
	Declared int `json:"declared,omitempty"`
	// OutputLimit is the most tokens the engine lets one answer have, 0 if it
	// does not say.
	OutputLimit int        `json:"outputLimit,omitempty"`
	Evidence    []Evidence `json:"evidence,omitempty"`
}
