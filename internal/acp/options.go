package acp

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/brief"
	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

// modeNames are the permission modes for people.
var modeNames = map[tool.Mode]string{tool.ModeAsk: "Ask", tool.ModeEdit: "Edit", tool.ModeReadOnly: "Read only", tool.ModeFull: "Full"}

func describeMode(m tool.Mode) mode {
	return mode{ID: m.String(), Name: modeNames[m], Description: capital(brief.Mode(m))}
}

// capital begins a text with a capital letter; it is of ASCII.
func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// modeStateOf is the older form of the mode option. Both always say the same.
func modeStateOf(current tool.Mode) *modeState {
	s := &modeState{Current: current.String()}
	for _, m := range tool.Modes() {
		s.Available = append(s.Available, describeMode(m))
	}
	return s
}

func modeOption(current tool.Mode) configOption {
	var values []selectValue
	for _, m := range tool.Modes() {
		d := describeMode(m)
		values = append(values, selectValue{Value: d.ID, Name: d.Name, Description: d.Description})
	}
	return configOption{
		ID: "mode", Name: "Mode", Category: "mode", Type: "select",
		Description: "How much may be done without asking",
		Current:     current.String(), Options: values,
	}
}

// effortNames are the efforts for people.
var effortNames = map[llm.Effort]string{llm.Graze: "Graze", llm.Trot: "Trot", llm.Climb: "Climb", llm.Summit: "Summit"}

// effortOption says of each effort what it sends to the model of the snapshot.
// It has the same values whatever the model can do.
func effortOption(snapshot *llm.Snapshot, policy *budget.Policy) configOption {
	var values []selectValue
	for _, e := range llm.Efforts() {
		values = append(values, selectValue{
			Value: e.String(), Name: effortNames[e], Description: brief.Effort(e, *snapshot, policy),
		})
	}
	return configOption{
		ID: "effort", Name: "Effort", Category: "thought_level", Type: "select",
		Description: "How much work the model puts into an answer",
		Current:     snapshot.Effort.Or(llm.DefaultEffort).String(), Options: values,
	}
}

// choice is what the session's model option depends on now.
func (c *conversation) choice(w *workbench) *modelChoice {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &modelChoice{
		current:   w.selector.Target(),
		past:      slices.Clone(w.past),
		providers: c.srv.opts.Registry.Providers(),
		listings:  w.catalogue.listings,
		known:     c.srv.opts.Targets.Get,
		flat:      c.srv.client.Load().quirks.flatModels,
	}
}

// options is the complete list of the session's options, in the order in which
// clients show them, and remembers it as what the client knows.
func (c *conversation) options(w *workbench) []configOption {
	list, text := c.currentOptions(w)
	w.mu.Lock()
	w.sent = text
	w.mu.Unlock()
	return list
}

func (c *conversation) currentOptions(w *workbench) (list []configOption, text string) {
	list = append(list, modeOption(w.gate.Mode()))
	if o, ok := c.choice(w).option(); ok {
		list = append(list, o)
	}
	snapshot, _ := w.selector.Current()
	list = append(list, effortOption(&snapshot, c.srv.policy()))
	encoded, err := json.Marshal(list)
	if err != nil {
		panic(err) // strings alone
	}
	return list, string(encoded)
}

// state is what a client is told of a session when it is opened.
func (c *conversation) state(w *workbench) sessionState {
	st := sessionState{Modes: modeStateOf(w.gate.Mode())}
	if !c.srv.client.Load().quirks.modesOnly {
		st.ConfigOptions = c.options(w)
	}
	return st
}

// sendOptions sends the options if they are not what the client knows.
func (c *conversation) sendOptions(w *workbench) {
	if c.srv.client.Load().quirks.modesOnly {
		return
	}
	list, text := c.currentOptions(w)
	w.mu.Lock()
	known := w.sent == text
	w.sent = text
	w.mu.Unlock()
	if !known {
		c.update(optionsUpdate{Kind: "config_option_update", ConfigOptions: list})
	}
}
