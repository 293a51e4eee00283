package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
)

// command is a line that begins with a slash. It is answered here and reaches no
// model.
type command struct {
	name, argument, meaning string
}

// commands are listed by /help and completed in the composer.
var commands = [...]command{
	{"model", "[PROVIDER/MODEL]", "choose the model, listed or not"},
	{"effort", "[NAME]", "choose how much work an answer gets"},
	{"mode", "[NAME]", "choose what runs without asking"},
	{"context", "", "how the next request uses the window"},
	{"tools", "[off NAME, on NAME]", "the tools and what they cost"},
	{"memory", "[TITLE]", "the notes of earlier sessions"},
	{"sessions", "[ID]", "go on with another session"},
	{"new", "", "begin a new session"},
	{"copy", "", "copy the last answer to the clipboard"},
	{"log", "", "what was planned, trimmed, refused"},
	{"help", "", "keys and commands"},
	{"quit", "", "leave"},
}

// readCommand recognises a command: one line that begins with its name. Anything
// else that begins with a slash is for the model.
func readCommand(text string) (name, argument string, ok bool) {
	rest, slash := strings.CutPrefix(strings.TrimSpace(text), "/")
	if !slash || strings.Contains(rest, "\n") {
		return "", "", false
	}
	name, argument, _ = strings.Cut(rest, " ")
	for _, c := range commands {
		if c.name == name {
			return name, strings.TrimSpace(argument), true
		}
	}
	return "", "", false
}

// emptyPrompt stands for the next message when its request is planned.
var emptyPrompt = []llm.Part{llm.Text("")}

// contextText shows the plan of the next request as a table.
func contextText(ctx context.Context, b *bench) (string, error) {
	plan, err := b.agent.Preview(ctx, emptyPrompt)
	overflow, _ := errors.AsType[*budget.OverflowError](err)
	var report *budget.Report
	switch {
	case overflow != nil:
		report = &overflow.Report
	case err != nil:
		return "", err
	default:
		report = &plan.Report
	}
	parts := report.BreakdownAfter
	if overflow != nil {
		parts = report.BreakdownBefore
	}
	var t strings.Builder
	fmt.Fprintf(&t, "Window: %s tokens (%s)\n\n", thousands(report.WindowTokens), report.WindowSource)
	t.WriteString("| part | tokens |\n|---|---:|\n")
	for _, row := range []struct {
		name   string
		tokens int
	}{
		{"request", parts.Request}, {"system", parts.System}, {"memory", parts.Memory}, {"tools", parts.ToolSchemas},
		{"conversation", parts.Exchanges}, {"**total**", parts.Total()}, {"most that a request may cost", report.InputBudget},
		{"kept for the answer", report.OutputReserve}, {"kept in reserve", report.SafetyReserve},
	} {
		fmt.Fprintf(&t, "| %s | %s |\n", row.name, thousands(row.tokens))
	}
	for _, more := range []string{report.Summary(), listed("Memory notes without room: ", report.OmittedNotes)} {
		if more != "" {
			t.WriteString("\n" + more + "\n")
		}
	}
	if snapshot, _ := b.selector.Current(); len(snapshot.Refusals) > 0 {
		t.WriteString("\nThe engine refuses, so it is left out: " + snapshot.Refusals.Describe() + "\n")
	}
	if overflow != nil {
		t.WriteString("\n" + err.Error() + "\n")
	}
	return t.String(), nil
}

func listed(head string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return head + strings.Join(names, ", ")
}

// toolsText lists the tools, after turning one on or off if that is asked for.
func toolsText(ctx context.Context, b *bench, policy *budget.Policy, argument string) (string, error) {
	if argument != "" {
		how, name, _ := strings.Cut(argument, " ")
		if how != "on" && how != "off" {
			return "", fmt.Errorf("/tools %s: want /tools, /tools off NAME or /tools on NAME", argument)
		}
		if err := b.agent.SetTool(strings.TrimSpace(name), how == "on"); err != nil {
			return "", err
		}
	}
	plan, err := b.agent.Preview(ctx, emptyPrompt)
	if err != nil {
		return "", err
	}
	if len(plan.Request.Tools) == 0 {
		return "No tools are offered to this model.", nil
	}
	var t strings.Builder
	t.WriteString("| tool | tokens | |\n|---|---:|---|\n")
	for i := range plan.Request.Tools {
		def := &plan.Request.Tools[i]
		fmt.Fprintf(&t, "| %s | %s | %s |\n", tableText(def.Name), thousands(budget.EstimateTool(policy, def)), tableText(def.Description))
	}
	return t.String(), nil
}

// memoryText lists the notes of a session, or shows one.
func memoryText(b *bench, title string) (string, error) {
	store := b.agent.Memory()
	if title != "" {
		n, err := store.Get(title)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("**%s**\n\n%s\n\n%s\n\n%s", n.Title, n.Summary, n.Text, n.Path), nil
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
		fmt.Fprintf(&t, "| %s | %s | %s |\n", tableText(n.Title), n.Scope, tableText(n.Summary))
	}
	for _, p := range problems {
		t.WriteString("\nLeft out: " + p.String() + "\n")
	}
	return t.String(), nil
}

// tableText is a text in a cell of a table of Markdown.
func tableText(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}

// keyHelp lists the keys. docs/terminal.md shows the same.
var keyHelp = [...][2]string{
	{"Enter", "send; while a turn runs: queue"},
	{"Ctrl-S", "send now, into the running turn"},
	{"Alt-Enter, Ctrl-J", "new line"},
	{"Esc", "cancel the turn; close what is open"},
	{"Ctrl-C", "cancel, or clear the line; twice: leave"},
	{"Up, Down", "earlier prompts"},
	{"Tab", "complete a command or an @file"},
	{"PgUp, PgDn, wheel", "scroll; Ctrl-End: to the end"},
	{"Ctrl-R", "open and fold thoughts and output"},
	{"Ctrl-O", "choose the model"},
	{"Ctrl-T", "choose the effort"},
	{"Shift-Tab", "next mode: ask, edit, read-only, full"},
	{"Ctrl-L", "the activity log"},
}

func helpText() string {
	var t strings.Builder
	t.WriteString("| key | does |\n|---|---|\n")
	for _, k := range keyHelp {
		fmt.Fprintf(&t, "| %s | %s |\n", k[0], k[1])
	}
	t.WriteString("\n| command | does |\n|---|---|\n")
	for _, c := range commands {
		fmt.Fprintf(&t, "| %s | %s |\n", strings.TrimSpace("/"+c.name+" "+c.argument), c.meaning)
	}
	t.WriteString("\nA path of an image that is pasted or dropped here is attached. `@` completes the names of files.\n")
	return t.String()
}
