package acp

import (
	"fmt"
	"strconv"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

// modes describes the permission modes for people.
var modes = map[tool.Mode]mode{
	tool.ModeAsk:      {Name: "Ask", Description: "Reads freely inside the folder; asks before writing, running commands and using MCP tools"},
	tool.ModeEdit:     {Name: "Edit", Description: "Writes freely inside the folder; asks before running commands and using MCP tools"},
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
