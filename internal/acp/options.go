package acp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

// modes describes the permission modes for people.
var modes = map[tool.Mode]mode{
	tool.ModeAsk:      {Name: "Ask", Description: "Reads freely inside the folder; asks before writing and running commands"},
	tool.ModeEdit:     {Name: "Edit", Description: "Writes freely inside the folder; asks before running commands"},
	tool.ModeReadOnly: {Name: "Read only", Description: "Writes nothing and runs no commands"},
	tool.ModeFull:     {Name: "Full", Description: "Does everything without asking"},
}

// modeStateOf is the older form of the mode option. Both always say the same.
func modeStateOf(current tool.Mode) *modeState {
	s := &modeState{Current: current.String()}
	for _, m := range tool.Modes() {
		d := modes[m]
		s.Available = append(s.Available, mode{ID: m.String(), Name: d.Name, Description: d.Description})
	}
	return s
}

func modeOption(current tool.Mode) configOption {
	var values []selectValue
	for _, m := range tool.Modes() {
		d := modes[m]
		values = append(values, selectValue{Value: m.String(), Name: d.Name, Description: d.Description})
	}
	return configOption{
		ID: "mode", Name: "Mode", Category: "mode", Type: "select",
		Description: "How much may be done without asking",
		Current:     current.String(), Options: values,
	}
}

// effortNames are the efforts for people.
var effortNames = map[llm.Effort]struct{ name, meaning string }{
	llm.Graze:  {"Graze", "short answers, least thinking"},
	llm.Trot:   {"Trot", "everyday work"},
	llm.Climb:  {"Climb", "long answers, more thinking"},
	llm.Summit: {"Summit", "the longest answers, most thinking"},
}

// effortOption says of each effort what it sends to the model of the snapshot.
// It has the same values whatever the model can do.
func effortOption(snapshot *llm.Snapshot, policy *budget.Policy) configOption {
	var values []selectValue
	for _, e := range llm.Efforts() {
		values = append(values, selectValue{
			Value: e.String(), Name: effortNames[e].name, Description: describeEffort(e, snapshot, policy),
		})
	}
	return configOption{
		ID: "effort", Name: "Effort", Category: "thought_level", Type: "select",
		Description: "How much work the model puts into an answer",
		Current:     snapshot.Effort.Or(llm.DefaultEffort).String(), Options: values,
	}
}

func describeEffort(e llm.Effort, snapshot *llm.Snapshot, policy *budget.Policy) string {
	with := *snapshot
	with.Effort = e
	text := fmt.Sprintf("%s: up to %s tokens", effortNames[e].meaning, thousands(budget.ReservesFor(policy, &with, 0).Output))
	if t := with.Temperature(); t != nil {
		text += ", temperature " + strconv.FormatFloat(*t, 'g', -1, 64)
	}
	if value, ok := with.Capabilities.WireEffort(e, with.Refusals); ok {
		text += fmt.Sprintf(", reasoning_effort %s", value)
	}
	return text
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
