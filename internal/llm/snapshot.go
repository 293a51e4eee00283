package llm

import (
	"encoding/json"
	"slices"
	"strings"
)

// Effort is how much work a person wants of the model. It sets the output
// ceiling, the temperature, and, where proven, reasoning_effort. The zero value
// is "not chosen"; [Effort.Or] gives it a meaning.
type Effort uint8

// The efforts, least first.
const (
	Graze Effort = iota + 1
	Trot
	Climb
	Summit
)

// DefaultEffort is the effort where nobody chose one.
const DefaultEffort = Climb

var effortNames = []string{"", "graze", "trot", "climb", "summit"}

// Efforts lists the efforts, least first.
func Efforts() []Effort { return []Effort{Graze, Trot, Climb, Summit} }

func (e Effort) String() string { return nameOf(effortNames, e) }

// Or returns e, or the other effort when e was not chosen.
func (e Effort) Or(other Effort) Effort {
	if e == 0 {
		return other
	}
	return e
}

// Thinks reports whether the effort asks a model to think, where a profile can say
// so. Only the least effort does not.
func (e Effort) Thinks() bool { return e.Or(DefaultEffort) != Graze }

// Temperature is the sampling temperature of the effort: 0.7 for Graze and
// Trot, 0.6 for Climb and Summit.
func (e Effort) Temperature() float64 {
	if e.Or(DefaultEffort) <= Trot {
		return 0.7
	}
	return 0.6
}

// MarshalText gives the effort's name.
func (e Effort) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads an effort's name; the empty text is "not chosen".
func (e *Effort) UnmarshalText(b []byte) (err error) {
	*e, err = ParseEffort(string(b))
	return err
}

// ParseEffort reads graze, trot, climb or summit; the empty string is "not
// chosen".
func ParseEffort(s string) (Effort, error) {
	if s == "" {
		return 0, nil
	}
	i, err := parseName[Effort]("effort", effortNames[1:], s)
	if err != nil {
		return 0, err
	}
	return Graze + i, nil
}

// Profile is an explicit contract with an engine's chat template or API beyond
// the generic dialect. It is chosen by the user or by a provider's own adapter,
// never by a model's name.
type Profile uint8

// The profiles.
const (
	Generic  Profile = iota // nothing extra; reasoning is never replayed
	Qwen                    // chat_template_kwargs; reasoning replayed as reasoning_content
	DeepSeek                // thinking parameter; "" instead of null; reasoning_content in tool turns
	Replay                  // reasoning replayed in the field it came in
)

var profileNames = []string{"generic", "qwen", "deepseek", "replay"}

func (p Profile) String() string { return nameOf(profileNames, p) }

// ReplaysReasoning reports whether earlier reasoning of the same model is part of a
// request at an effort: Qwen and DeepSeek send none back where they are not to think.
func (p Profile) ReplaysReasoning(e Effort) bool { return p == Replay || p != Generic && e.Thinks() }

// MarshalText gives the profile's name.
func (p Profile) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what MarshalText wrote; the empty text is Generic.
func (p *Profile) UnmarshalText(b []byte) (err error) {
	*p, err = ParseProfile(string(b))
	return err
}

// ParseProfile reads a profile's name; the empty string is Generic.
func ParseProfile(s string) (Profile, error) {
	if s == "" {
		return Generic, nil
	}
	return parseName[Profile]("profile", profileNames, s)
}

// Refusal is something that an engine refused for a model, by the name of the
// option. See the constants and [RefusedEffortValue].
type Refusal string

// Options that engines are known to refuse.
const (
	RefusedSampling      Refusal = "temperature"
	RefusedStreamOptions Refusal = "stream_options"
	RefusedMaxTokens     Refusal = "max_tokens"   // max_completion_tokens is sent instead
	RefusedNullContent   Refusal = "null_content" // "" is sent instead of null
	RefusedEmptyContent  Refusal = "empty_content"
	RefusedEffort        Refusal = "reasoning_effort"
	RefusedEffortLevels  Refusal = "reasoning_effort_levels" // every value but none
	RefusedPattern       Refusal = "schema_pattern"          // nested pattern keywords
	RefusedFormat        Refusal = "schema_format"           // nested format keywords
	RefusedImages        Refusal = "images"
	RefusedUserRuns      Refusal = "user_runs" // prompts in a row are sent as one
)

// RefusedEffortValue is the refusal of one value of reasoning_effort.
func RefusedEffortValue(value string) Refusal { return RefusedEffort + "=" + Refusal(value) }

// refusedImage is what the refusal of one image begins with.
const refusedImage = RefusedImages + "="

// RefusedImage is the refusal of one image, which cannot be read.
func RefusedImage(img *Image) Refusal { return refusedImage + Refusal(img.SHA256) }

// Describe names the option for people, with what is done instead.
func (r Refusal) Describe() string {
	if strings.HasPrefix(string(r), string(refusedImage)) {
		return "a damaged image (a line of text stands in its place)"
	}
	switch r {
	case RefusedSampling:
		return "a temperature"
	case RefusedStreamOptions:
		return "stream_options, and so may not count tokens"
	case RefusedMaxTokens:
		return "max_tokens (max_completion_tokens is sent)"
	case RefusedNullContent, RefusedEmptyContent:
		return "that form of an empty answer (the other is sent)"
	case RefusedEffortLevels:
		return "levels of reasoning_effort"
	case RefusedImages:
		return "images (a line of text stands in their places)"
	case RefusedUserRuns:
		return "two prompts in a row (they are sent as one)"
	case RefusedPattern, RefusedFormat:
		return "a keyword of the tools' schemas"
	}
	return string(r)
}

// Refusals is an immutable sorted set.
type Refusals []Refusal

// Has reports whether the option was refused.
func (r Refusals) Has(option Refusal) bool {
	_, ok := slices.BinarySearch(r, option)
	return ok
}

// Describe names the options for people, in one line.
func (r Refusals) Describe() string {
	var words []string
	for _, option := range r {
		if text := option.Describe(); !slices.Contains(words, text) {
			words = append(words, text)
		}
	}
	return strings.Join(words, "; ")
}

// Image reports whether an image is not sent: because none are, or not this one.
func (r Refusals) Image(img *Image) bool {
	return len(r) > 0 && (r.Has(RefusedImages) || r.Has(RefusedImage(img)))
}

// With returns the set with one more option.
func (r Refusals) With(option Refusal) Refusals {
	i, ok := slices.BinarySearch(r, option)
	if ok {
		return r
	}
	return slices.Insert(slices.Clone(r), i, option)
}

// Snapshot is everything about the selected model that a step depends on. One
// is taken at the start of each step and passed by value to prompt, planning,
// encoding and log, so they cannot disagree.
type Snapshot struct {
	Target       Target       `json:"target"`
	Window       Window       `json:"window"`
	Capabilities Capabilities `json:"capabilities"`
	Profile      Profile      `json:"profile"`
	Effort       Effort       `json:"effort"`
	Refusals     Refusals     `json:"refusals,omitempty"`
	// EngineSampling leaves the sampling temperature to the engine.
	EngineSampling bool `json:"engineSampling,omitempty"`
}

// Temperature is what the request carries, nil when the engine decides.
func (s *Snapshot) Temperature() *float64 {
	if s.EngineSampling || s.Refusals.Has(RefusedSampling) {
		return nil
	}
	t := s.Effort.Temperature()
	return &t
}

// Equal reports whether two snapshots lead to the same requests.
func (s *Snapshot) Equal(other *Snapshot) bool {
	a, errA := json.Marshal(s)
	b, errB := json.Marshal(other)
	return errA == nil && errB == nil && string(a) == string(b)
}

// Request is one request to a model, complete and planned: what it says is what
// is sent.
type Request struct {
	Snapshot Snapshot
	// System is the system turn, empty for none.
	System string
	// Tools are offered in this order (see [SortTools]).
	Tools []ToolDef
	// Messages is the conversation without the system turn.
	Messages []Message
	// MaxTokens is the output reserve of the plan: the most tokens to generate.
	MaxTokens int
}
