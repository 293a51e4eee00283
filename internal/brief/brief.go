// Package brief says in a few words, or in a table of Markdown, what a session
// works with: the mode, the effort, the room in the window, the tools, the notes and
// what it has cost. Both front ends say it, and say the same.
package brief

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/memory"
	"github.com/drover-dev/drover/internal/tool"
)

var modes = map[tool.Mode]string{
	tool.ModeAsk:      "reads freely in the folder, asks before writing and running",
	tool.ModeEdit:     "writes freely in the folder, asks before running commands",
	tool.ModeReadOnly: "writes nothing and runs no commands",
	tool.ModeFull:     "does everything without asking",
}

// Mode says what a mode does.
func Mode(m tool.Mode) string { return modes[m] }

var efforts = map[llm.Effort]string{
	llm.Graze:  "short answers, least thinking",
	llm.Trot:   "everyday work",
	llm.Climb:  "long answers, more thinking",
	llm.Summit: "the longest answers, most thinking",
}

// Effort says what an effort means and what it sends to the model of a snapshot.
func Effort(e llm.Effort, snapshot llm.Snapshot, policy *budget.Policy) string {
	snapshot.Effort = e
	text := fmt.Sprintf("%s: up to %s tokens", efforts[e], Thousands(budget.ReservesFor(policy, &snapshot, 0).Output))
	if t := snapshot.Temperature(); t != nil {
		text += ", temperature " + strconv.FormatFloat(*t, 'g', -1, 64)
	}
	if value, ok := snapshot.Capabilities.WireEffort(e, snapshot.Refusals); ok {
		text += ", reasoning_effort " + value
	}
	return text
}

// Outcome says how a call of a tool went.
func Outcome(s tool.Status) string {
	switch s {
	case tool.StatusOK:
		return "done"
	case tool.StatusDenied:
		return "denied"
	case tool.StatusNotExecuted:
		return "not run"
	case tool.StatusUnknown:
		return "interrupted"
	}
	return "failed"
}

// Context is the plan of the next request as a table. plan and err are what
// planning gave; an error that is no *[budget.OverflowError] comes back.
func Context(plan *budget.Plan, err error, refused llm.Refusals) (string, error) {
	var report *budget.Report
	overflow, failed := errors.AsType[*budget.OverflowError](err)
	switch {
	case failed:
		report = &overflow.Report
	case err != nil:
		return "", err
	default:
		report = &plan.Report
	}
	parts := report.BreakdownAfter
	if failed {
		parts = report.BreakdownBefore
	}
	var t strings.Builder
	fmt.Fprintf(&t, "Window: %s tokens (%s)\n\n", Thousands(report.WindowTokens), report.WindowSource)
	t.WriteString("| part | tokens |\n|---|---:|\n")
	for _, row := range []struct {
		name   string
		tokens int
	}{
		{"request", parts.Request}, {"system", parts.System}, {"memory", parts.Memory}, {"tools", parts.ToolSchemas},
		{"conversation", parts.Exchanges}, {"**total**", parts.Total()}, {"most that a request may cost", report.InputBudget},
		{"kept for the answer", report.OutputReserve}, {"kept in reserve", report.SafetyReserve},
	} {
		fmt.Fprintf(&t, "| %s | %s |\n", row.name, Thousands(row.tokens))
	}
	if a := report.Anchor; a != nil {
		fmt.Fprintf(&t, "\nThe engine counted %s tokens for the request before; with what came since that is about %s.\n",
			Thousands(a.PromptTokens), Thousands(report.EstimatedAfter))
	}
	if summary := report.Summary(); summary != "" {
		t.WriteString("\n" + summary + "\n")
	}
	if len(report.OmittedNotes) > 0 {
		t.WriteString("\nMemory notes without room: " + oneLine(strings.Join(report.OmittedNotes, ", ")) + "\n")
	}
	if len(refused) > 0 {
		t.WriteString("\nThe engine refuses, so it is left out: " + refused.Describe() + "\n")
	}
	if failed {
		t.WriteString("\n" + err.Error() + "\n")
	}
	return t.String(), nil
}

// Tools is a table of the tools of a request with what each costs.
func Tools(plan *budget.Plan, policy *budget.Policy) string {
	if len(plan.Request.Tools) == 0 {
		return "No tools are offered to this model."
	}
	var t strings.Builder
	t.WriteString("| tool | tokens | |\n|---|---:|---|\n")
	for i := range plan.Request.Tools {
		def := &plan.Request.Tools[i]
		fmt.Fprintf(&t, "| %s | %s | %s |\n", cell(def.Name), Thousands(budget.EstimateTool(policy, def)), cell(def.Description))
	}
	return t.String()
}

// ToolSwitch reads what stands behind /tools: "on NAME" or "off NAME".
func ToolSwitch(argument string) (name string, on bool, err error) {
	how, name, _ := strings.Cut(argument, " ")
	name = strings.TrimSpace(name)
	if how != "on" && how != "off" || name == "" {
		return "", false, fmt.Errorf("/tools %.100q: want /tools, /tools off NAME or /tools on NAME", argument)
	}
	return name, how == "on", nil
}

// Notes is a table of the notes of a store, or the one of a title.
func Notes(store *memory.Store, title string) (string, error) {
	if title != "" {
		n, err := store.Get(title)
		if err != nil {
			return "", fmt.Errorf("/memory: %w", err)
		}
		text := "**" + oneLine(n.Title) + "**\n"
		if n.Summary != "" {
			text += "\n" + oneLine(n.Summary) + "\n"
		}
		return fmt.Sprintf("%s\n%s\n\n%s", text, n.Text, oneLine(n.Path)), nil
	}
	notes, problems := store.List()
	var t strings.Builder
	if len(notes) == 0 {
		t.WriteString("There are no notes.\n")
	} else {
		t.WriteString("| note | of | |\n|---|---|---|\n")
	}
	for i := range notes {
		n := &notes[i]
		fmt.Fprintf(&t, "| %s | %s | %s |\n", cell(n.Title), n.Scope, cell(n.Summary))
	}
	for _, p := range problems {
		t.WriteString("\nLeft out: " + oneLine(p.String()) + "\n")
	}
	return t.String(), nil
}

// Thousands writes a number with commas.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// maxLine bounds what is shown of a text in a line or a cell, in characters.
const maxLine = 200

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > maxLine {
		return string(runes[:maxLine]) + "…"
	}
	return s
}

// cell is a text in a cell of a table.
func cell(s string) string { return strings.ReplaceAll(oneLine(s), "|", `\|`) }
