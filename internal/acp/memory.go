package acp

import (
	"fmt"
	"strings"

	"github.com/drover-dev/drover/internal/memory"
)

// memoryCommand lists the notes of a session, or shows one.
func memoryCommand(store *memory.Store, title string) (string, error) {
	if title != "" {
		n, err := store.Get(title)
		if err != nil {
			return "", badParams("/memory: %v", err)
		}
		text := "**" + line(n.Title) + "**\n"
		if n.Summary != "" {
			text += "\n" + line(n.Summary) + "\n"
		}
		return fmt.Sprintf("%s\n%s\n\n%s", text, n.Text, line(n.Path)), nil
	}
	notes, problems := store.List()
	var b strings.Builder
	if len(notes) == 0 {
		b.WriteString("There are no notes.\n")
	} else {
		b.WriteString("| note | of | |\n|---|---|---|\n")
	}
	for i := range notes {
		n := &notes[i]
		fmt.Fprintf(&b, "| %s | %s | %s |\n", cell(n.Title), n.Scope, cell(n.Summary))
	}
	for _, p := range problems {
		b.WriteString("\nLeft out: " + line(p.String()) + "\n")
	}
	return b.String(), nil
}

// cell is a text in a table.
func cell(s string) string { return strings.ReplaceAll(line(s), "|", `\|`) }
