//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBudgetPage runs every command of docs/budget.md: what the page shows is
// what the program prints.
func TestBudgetPage(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	page, err := os.ReadFile(filepath.Join(docs, "budget.md"))
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	for _, block := range strings.Split(string(page), "\n    $ drover ")[1:] {
		line, rest, _ := strings.Cut(block, "\n")
		want := ""
		for text := range strings.Lines(rest) {
			indented, ok := strings.CutPrefix(text, "    ")
			if !ok && text != "\n" {
				break
			}
			want += indented
		}
		cmd := self(t, strings.Fields(line)...)
		cmd.Dir = docs
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		_ = cmd.Run() // some of them fail
		if strings.TrimSpace(out.String()) != strings.TrimSpace(want) {
			t.Errorf("drover %s prints\n%s\nthe page has\n%s", line, out.String(), want)
		}
		runs++
	}
	if runs < 5 {
		t.Errorf("only %d commands found", runs)
	}
}
