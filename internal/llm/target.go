package llm

import (
	"fmt"
	"slices"
	"strings"
)

// Target is a provider's route and one of its models: always the pair, since
// the same model id may be had from several providers. The zero Target means
// that nothing is selected.
type Target struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
}

// IsZero reports whether nothing is selected.
func (t Target) IsZero() bool { return t == Target{} }

// String is the form people write: provider/model. A model id may hold slashes
// of its own.
func (t Target) String() string {
	if t.IsZero() {
		return ""
	}
	return t.Provider + "/" + t.Model
}

// ParseTarget reads provider/model. The provider is what stands before the
// first slash; everything behind it, slashes included, is the model.
func ParseTarget(s string) (Target, error) {
	provider, model, ok := strings.Cut(s, "/")
	if !ok || provider == "" || model == "" {
		return Target{}, fmt.Errorf("model %q: want PROVIDER/MODEL, as listed by drover models", s)
	}
	return Target{Provider: provider, Model: model}, nil
}

// ProviderInfo names a provider for people. ID is the route it is registered
// under.
type ProviderInfo struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// ModelInfo is what a provider says of one of its models. As an entry of a list
// it is advice: a model that is not listed may be used all the same.
type ModelInfo struct {
	Provider    string `json:"provider"`
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`

	// Window and Capabilities are what is known without asking further. A list
	// may leave them zero: nothing known.
	Window       Window       `json:"window,omitzero"`
	Capabilities Capabilities `json:"capabilities,omitzero"`
	// Profile and EngineSampling are what the provider's owner set for this
	// model; see [Snapshot].
	Profile        Profile `json:"profile,omitzero"`
	EngineSampling bool    `json:"engineSampling,omitempty"`

	// Prices are what the provider takes, where that is known.
	Prices Prices `json:"prices,omitzero"`

	// NotChat marks an entry that by its own type field is no chat model
	// (an embedding model, say). It is listed all the same.
	NotChat bool `json:"notChat,omitempty"`
	// Unlearned says that the engine could not be asked, so that all of this is
	// what was known without it.
	Unlearned bool `json:"unlearned,omitempty"`
	// Unreached says that nobody listened where the engine should be.
	Unreached bool `json:"unreached,omitempty"`
	// Notes are remarks for people about this answer: a probe that timed out,
	// evidence in conflict.
	Notes []string `json:"notes,omitempty"`
}

// Snapshot is the model as a request uses it, with the session's effort.
func (m *ModelInfo) Snapshot(effort Effort, refused Refusals) Snapshot {
	return Snapshot{
		Target:         m.Target(),
		Window:         m.Window,
		Capabilities:   m.Capabilities,
		Profile:        m.Profile,
		Effort:         effort.Or(DefaultEffort),
		Refusals:       refused,
		EngineSampling: m.EngineSampling,
	}
}

// Clone is a copy that shares nothing with m.
func (m *ModelInfo) Clone() ModelInfo {
	c := *m
	c.Notes = slices.Clone(m.Notes)
	c.Window.Evidence = slices.Clone(m.Window.Evidence)
	for _, f := range []*Fact{&c.Capabilities.Tools, &c.Capabilities.Vision, &c.Capabilities.Reasoning} {
		f.Evidence = slices.Clone(f.Evidence)
	}
	effort := &c.Capabilities.ReasoningEffort
	effort.Values, effort.Evidence = slices.Clone(effort.Values), slices.Clone(effort.Evidence)
	return c
}

// Target returns the pair that selects the model.
func (m *ModelInfo) Target() Target { return Target{Provider: m.Provider, Model: m.ID} }
