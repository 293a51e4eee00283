package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagPage is where the table of all flags is.
var flagPage = filepath.Join("..", "..", "docs", "configuration.md")

var flagRow = regexp.MustCompile("(?m)^\\| `--([a-z-]+)( [A-Z/]+)?` \\| ([^|]+) \\| ")

// TestPageOfFlags compares the table of the page with the flags that the commands
// take, in both directions.
func TestPageOfFlags(t *testing.T) {
	const everywhere = "all"
	taken := make(map[string][]string) // by a flag with its argument: the commands
	add := func(f *pflag.Flag, command string) {
		if f.Name == "help" {
			return
		}
		argument, _ := pflag.UnquoteUsage(f)
		if argument == "string" || argument == "int" {
			t.Errorf("%s --help does not name the argument of --%s", command, f.Name)
		}
		name := strings.TrimSpace(f.Name + " " + argument)
		taken[name] = append(taken[name], command)
	}
	root := newRoot(&app{})
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) { add(f, everywhere) })
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		name := strings.TrimPrefix(cmd.CommandPath(), "drover ")
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if root.PersistentFlags().Lookup(f.Name) == nil {
				add(f, name)
			}
		})
		for _, c := range cmd.Commands() {
			c.InheritedFlags() // adds those that a parent hands on
			walk(c)
		}
	}
	walk(root)
	if len(taken) < 20 {
		t.Fatalf("found only %v", taken)
	}

	page, err := os.ReadFile(flagPage)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Flags\n")
	section, _, _ = strings.Cut(section, "\n## ")
	told := make(map[string][]string)
	for _, m := range flagRow.FindAllStringSubmatch(section, -1) {
		told[m[1]+m[2]] = strings.Split(m[3], ", ")
	}
	for name, commands := range taken {
		want := slices.Sorted(slices.Values(commands))
		if got := slices.Sorted(slices.Values(told[name])); !slices.Equal(got, want) {
			t.Errorf("%s says that --%s is a flag of %v, it is one of %v", flagPage, name, got, want)
		}
	}
	for name := range maps.Keys(told) {
		if taken[name] == nil {
			t.Errorf("%s has --%s, which no command takes", flagPage, name)
		}
	}
}
