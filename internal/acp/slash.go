package acp

import (
	"context"
	"fmt"
	"strings"

	"github.com/drover-dev/drover/internal/brief"
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
		if text, err = brief.Notes(w.agent.Memory(), argument); err != nil {
			err = badParams("%v", err)
		}
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
	return fmt.Sprintf("Effort: %s (%s)", effortNames[e], brief.Effort(e, snapshot, c.srv.policy())), nil
}

// emptyPrompt stands for the next message when its request is planned.
var emptyPrompt = []llm.Part{llm.Text("")}

// contextCommand shows the plan of the next request as a table.
func contextCommand(ctx context.Context, w *workbench) (string, error) {
	plan, err := w.agent.Preview(ctx, emptyPrompt)
	snapshot, _ := w.selector.Current()
	return brief.Context(plan, err, snapshot.Refusals)
}

func (c *conversation) toolsCommand(ctx context.Context, w *workbench, argument string) (string, error) {
	if argument != "" {
		name, on, err := brief.ToolSwitch(argument)
		if err == nil {
			err = w.agent.SetTool(name, on)
		}
		if err != nil {
			return "", badParams("%v", err)
		}
	}
	plan, err := w.agent.Preview(ctx, emptyPrompt)
	if err != nil {
		return "", err
	}
	return brief.Tools(plan, c.srv.policy()), nil
}
