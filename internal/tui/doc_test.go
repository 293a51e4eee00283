package tui

import (
	"os"
	"strings"
	"testing"
)

// TestPageOfTheTerminal: docs/terminal.md has every key and every command.
func TestPageOfTheTerminal(t *testing.T) {
	data, err := os.ReadFile("../../docs/terminal.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	for _, k := range keyHelp {
		if row := "| " + k[0] + " | " + k[1] + " |"; !strings.Contains(page, row) {
			t.Errorf("no %s", row)
		}
	}
	for _, c := range commands {
		if row := "| `" + strings.TrimSpace("/"+c.name+" "+c.argument) + "` | " + c.meaning + " |"; !strings.Contains(page, row) {
			t.Errorf("no %s", row)
		}
	}
}
