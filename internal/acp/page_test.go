package acp

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPageOfCommands: docs/protocol.md has the commands that a client is told of, in
// their order, and each that takes an argument with one.
func TestPageOfCommands(t *testing.T) {
	page, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n### Commands\n")
	section, _, _ = strings.Cut(section, "\n### ")
	var told, want []string
	for _, m := range regexp.MustCompile("(?m)^\\| `/([a-z]+)( \\[.+\\])?` \\| ").FindAllStringSubmatch(section, -1) {
		if m[2] != "" {
			m[1] += " with an argument"
		}
		told = append(told, m[1])
	}
	for _, c := range slashCommands() {
		if c.Input != nil {
			c.Name += " with an argument"
		}
		want = append(want, c.Name)
	}
	if !slices.Equal(told, want) {
		t.Errorf("docs/protocol.md has the commands %q, clients are told of %q", told, want)
	}
}
