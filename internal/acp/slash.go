package acp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
)

// slashCommands are the commands that a client may offer. They are answered
// here, reach no model and are not part of the conversation.
func slashCommands() []availableCommand {
	return []availableCommand{
		{Name: "model", Description: "Show or choose the model, listed or not", Input: &commandInput{"PROVIDER/MODEL"}},
		{Name: "effort", Description: "Show or choose the effort", Input: &commandInput{"graze, trot, climb or summit"}},
		{Name: "context", Description: "Show how the context window is used"},
		{Name: "memory", Description: "List the notes of earlier sessions, or show one", Input: &commandInput{"TITLE"}},
		{Name: "tools", Description: "List the tools on offer and what they cost; off NAME and on NAME turn one off and on", Input: &commandInput{"off NAME or on NAME"}},
	}
}

// slashCommand recognises a command: a message of one text that begins with its
// name. Anything else that begins with a slash is for the model.
func slashCommand(parts []llm.Part) (command, argument string, ok bool) {
	if len(parts) != 1 {
		return "", "", false
	}
	text, isText := parts[0].(llm.Text)
	rest, slash := strings.CutPrefix(strings.TrimSpace(string(text)), "/")
	if !isText || !slash || strings.Contains(rest, "\n") {
		return "", "", false
	}
	name, argument, _ := strings.Cut(rest, " ")
	for _, c := range slashCommands() {
		if c.Name == name {
			return name, strings.TrimSpace(argument), true
		}
	}
	return "", "", false
}

// runCommand answers a command with a message.
func (c *conversation) runCommand(ctx context.Context, w *workbench, command, argument string) error {
	var text string
	var err error
	switch command {
	case "model":
		text, err = c.modelCommand(ctx, w, argument)
	case "effort":
		text, err = c.effortCommand(w, argument)
	case "context":
		if err = c.ensureModel(ctx, w); err == nil {
			text, err = contextCommand(ctx, w)
		}
	case "memory":
		text, err = memoryCommand(w.agent.Memory(), argument)
	case "tools":
		if err = c.ensureModel(ctx, w); err == nil {
			text, err = c.toolsCommand(ctx, w, argument)
		}
	}
	if err != nil {
		return err
	}
	c.update(chunk{messageChunk, textContent(clip(text, maxField)), c.messageID()})
	return nil
}

func (c *conversation) modelCommand(ctx context.Context, w *workbench, argument string) (string, error) {
	if argument != "" {
		t, err := llm.ParseTarget(argument)
		if err != nil {
			return "", badParams("%v", err)
		}
		if _, err := c.srv.opts.Registry.Lookup(t.Provider); err != nil {
			return "", err
		}
		if err := c.probeTarget(ctx, w, t); err != nil {
			return "", err
		}
		c.sendOptions(w)
	}
	snapshot, _ := w.selector.Current()
	if snapshot.Target.IsZero() {
		return "No model is selected.", nil
	}
	info := w.selector.Info()
	info.ID, info.Name = "", ""
	text := "Model: " + snapshot.Target.String()
	if facts := describeModel(&info); facts != "" {
		text += "\n\n" + facts
	}
	for _, note := range info.Notes {
		text += "\n\n" + note
	}
	return text, nil
}

func (c *conversation) effortCommand(w *workbench, argument string) (string, error) {
	if argument != "" {
		e, err := llm.ParseEffort(strings.ToLower(argument))
		if err != nil {
			return "", badParams("%v", err)
		}
		w.selector.SetEffort(e)
		c.sendOptions(w)
	}
	snapshot, _ := w.selector.Current()
	e := snapshot.Effort.Or(llm.DefaultEffort)
	return fmt.Sprintf("Effort: %s (%s)", effortNames[e].name, describeEffort(e, &snapshot, c.srv.policy())), nil
}

// emptyPrompt stands for the next message when its request is planned.
var emptyPrompt = []llm.Part{llm.Text("")}

// contextCommand shows the plan of the next request as a table.
func contextCommand(ctx context.Context, w *workbench) (string, error) {
	plan, err := w.agent.Preview(ctx, emptyPrompt)
	var report *budget.Report
	if overflow, ok := errors.AsType[*budget.OverflowError](err); ok {
		report = &overflow.Report
	} else if err != nil {
		return "", err
	} else {
		report = &plan.Report
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Window: %s tokens (%s)\n\n", thousands(report.WindowTokens), report.WindowSource)
	if snapshot, _ := w.selector.Current(); len(snapshot.Refusals) > 0 {
		fmt.Fprintf(&b, "The engine refuses, so it is left out: %s\n\n", snapshot.Refusals.Describe())
	}
	b.WriteString("| part | tokens |\n|---|---:|\n")
	after := &report.BreakdownAfter
	if err != nil {
		after = &report.BreakdownBefore
	}
	for _, row := range []struct {
		name   string
		tokens int
	}{
		{"request", after.Request}, {"system", after.System}, {"memory", after.Memory},
		{"tools", after.ToolSchemas}, {"conversation", after.Exchanges}, {"total", after.Total()},
		{"most that a request may cost", report.InputBudget},
		{"kept for the answer", report.OutputReserve}, {"kept in reserve", report.SafetyReserve},
	} {
		fmt.Fprintf(&b, "| %s | %s |\n", row.name, thousands(row.tokens))
	}
	if summary := report.Summary(); summary != "" {
		b.WriteString("\n" + summary + "\n")
	}
	if len(report.OmittedNotes) > 0 {
		b.WriteString("\nMemory notes without room: " + line(strings.Join(report.OmittedNotes, ", ")) + "\n")
	}
	if err != nil {
		b.WriteString("\n" + err.Error() + "\n")
	}
	return b.String(), nil
}

func (c *conversation) toolsCommand(ctx context.Context, w *workbench, argument string) (string, error) {
	if argument != "" {
		how, name, _ := strings.Cut(argument, " ")
		if how != "on" && how != "off" {
			return "", badParams("/tools %.100q: want /tools, /tools off NAME or /tools on NAME", argument)
		}
		if err := w.agent.SetTool(strings.TrimSpace(name), how == "on"); err != nil {
			return "", badParams("/tools: %v", err)
		}
	}
	plan, err := w.agent.Preview(ctx, emptyPrompt)
	if err != nil {
		return "", err
	}
	if len(plan.Request.Tools) == 0 {
		return "No tools are offered to this model.", nil
	}
	var b strings.Builder
	b.WriteString("| tool | tokens | |\n|---|---:|---|\n")
	for i := range plan.Request.Tools {
		t := &plan.Request.Tools[i]
		fmt.Fprintf(&b, "| %s | %d | %s |\n", t.Name, budget.EstimateTool(c.srv.policy(), t), strings.ReplaceAll(line(t.Description), "|", `\|`))
	}
	return b.String(), nil
}
