package tui

import (
	"context"
	"fmt"
	"strings"

	"github.com/drover-dev/drover/internal/brief"
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
	snapshot, _ := b.selector.Current()
	return brief.Context(plan, err, snapshot.Refusals)
}

// toolsText lists the tools, after turning one on or off if that is asked for.
func toolsText(ctx context.Context, b *bench, policy *budget.Policy, argument string) (string, error) {
	if argument != "" {
		name, on, err := brief.ToolSwitch(argument)
		if err == nil {
			err = b.agent.SetTool(name, on)
		}
		if err != nil {
			return "", err
		}
	}
	plan, err := b.agent.Preview(ctx, emptyPrompt)
	if err != nil {
		return "", err
	}
	return brief.Tools(plan, policy), nil
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
