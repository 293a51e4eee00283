package acp

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/brief"
	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/picker"
)

// modelValue is the value of the model option that selects a target: the
// compact JSON array of provider and model. To clients it is opaque.
func modelValue(t llm.Target) string {
	var b bytes.Buffer
	b.WriteByte('[')
	llm.AppendJSONString(&b, t.Provider)
	b.WriteByte(',')
	llm.AppendJSONString(&b, t.Model)
	b.WriteByte(']')
	return b.String()
}

// modelChoice is everything that the model option of a session depends on.
type modelChoice struct {
	current llm.Target
	// past are the targets that were current before, oldest first.
	past []llm.Target
	// providers are the registered ones, in the order of registration.
	providers []llm.ProviderInfo
	// listings is the session's snapshot of the catalogue.
	listings []catalog.Listing
	// known returns the newest description of a target, if there is one.
	known func(llm.Target) (llm.ModelInfo, bool)
	flat  bool
}

// registered reports whether a target is complete and its provider registered.
func (m *modelChoice) registered(t llm.Target) bool {
	return t.Provider != "" && t.Model != "" &&
		slices.ContainsFunc(m.providers, func(p llm.ProviderInfo) bool { return p.ID == t.Provider })
}

// option builds the model option. ok is false when there is none to offer:
// without a complete target of a registered provider.
func (m *modelChoice) option() (o configOption, ok bool) {
	if !m.registered(m.current) {
		return configOption{}, false
	}
	o = configOption{
		ID: "model", Name: "Model", Category: "model", Type: "select",
		Description: "The model that answers in this session",
		Current:     modelValue(m.current),
	}
	var groups []selectGroup
	for _, p := range m.providers {
		if values := m.values(p.ID); len(values) > 0 {
			groups = append(groups, selectGroup{Group: p.ID, Name: shortLine(p.Name, maxName), Options: values})
		}
	}
	switch {
	case len(groups) == 1:
		o.Options = groups[0].Options
	case m.flat:
		var all []selectValue
		for _, g := range groups {
			for _, v := range g.Options {
				v.Name += " (" + g.Name + ")"
				all = append(all, v)
			}
		}
		o.Options = all
	default:
		o.Options = groups
	}
	return o, true
}

// values lists what is shown of one provider: the targets of this session that
// its catalogue omits, then the best of the catalogue, and the current target
// wherever it stands.
func (m *modelChoice) values(provider string) []selectValue {
	models := picker.Order(m.models(provider))
	var values []selectValue
	for _, t := range m.customs(provider, models) {
		values = append(values, m.value(&llm.ModelInfo{Provider: t.Provider, ID: t.Model, Name: t.Model}))
	}
	limit := min(maxModels, max(1, maxShown/len(m.providers)))
	shown := 0
	for i := range models {
		if models[i].Target() != m.current {
			if shown++; shown > limit {
				continue
			}
		}
		values = append(values, m.value(&models[i]))
	}
	return values
}

func (m *modelChoice) models(provider string) []llm.ModelInfo {
	for i := range m.listings {
		if m.listings[i].Provider.ID == provider {
			return m.listings[i].Models
		}
	}
	return nil
}

// customs are the targets of the session, the current one last, that the
// provider does not list.
func (m *modelChoice) customs(provider string, models []llm.ModelInfo) []llm.Target {
	var customs []llm.Target
	for _, t := range append(slices.Clone(m.past), m.current) {
		listed := slices.ContainsFunc(models, func(info llm.ModelInfo) bool { return info.Target() == t })
		if t.Provider == provider && t.Model != "" && !listed && !slices.Contains(customs, t) {
			customs = append(customs, t)
		}
	}
	return customs
}

// find looks up a value among everything that may be set: the whole catalogue
// snapshot and the session's own targets. Values are compared as they are.
func (m *modelChoice) find(value string) (llm.Target, bool) {
	for _, p := range m.providers {
		models := m.models(p.ID)
		for i := range models {
			if t := models[i].Target(); modelValue(t) == value {
				return t, true
			}
		}
		for _, t := range m.customs(p.ID, models) {
			if modelValue(t) == value {
				return t, true
			}
		}
	}
	return llm.Target{}, false
}

func (m *modelChoice) value(info *llm.ModelInfo) selectValue {
	v := selectValue{Value: modelValue(info.Target()), Name: shortLine(info.Name, maxName)}
	described := *info
	if m.known != nil {
		if newest, ok := m.known(info.Target()); ok {
			described.Window, described.Capabilities = newest.Window, newest.Capabilities
		}
	}
	v.Description = describeModel(&described)
	return v
}

// describeModel is one line with what is known of a model: window, tools,
// vision, reasoning. What is unknown is left out.
func describeModel(m *llm.ModelInfo) string {
	var facts []string
	add := func(format string, args ...any) { facts = append(facts, fmt.Sprintf(format, args...)) }
	if m.Name != m.ID && m.ID != "" {
		add("%s", m.ID)
	}
	if m.Description != "" {
		add("%s", m.Description)
	}
	if m.Window.Source != llm.Fallback && m.Window.Tokens > 0 {
		add("window %s (%s)", brief.Thousands(m.Window.Tokens), m.Window.Source)
	}
	caps := &m.Capabilities
	for _, f := range []struct {
		name string
		fact llm.Support
	}{{"tools", caps.Tools.Support}, {"vision", caps.Vision.Support}, {"reasoning", caps.Reasoning.Support}} {
		switch f.fact {
		case llm.Supported:
			add("%s", f.name)
		case llm.Unsupported:
			add("no %s", f.name)
		}
	}
	if m.NotChat {
		add("not a chat model")
	}
	return shortLine(strings.Join(facts, " · "), maxDescription)
}
