//go:build unix

package main

import (
	"bytes"
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

// TestPageOfMistakes makes each mistake in the configuration that the page of
// troubleshooting lists, in its order: what the page quotes is what is said.
func TestPageOfMistakes(t *testing.T) {
	mistakes := []string{
		"[engines.x]\nurl = \"http://x\"\n",
		"[engines.x]\npreset = \"olama\"\n",
		"[engines.x]\npreset = \"custom\"\n",
		"[engines.x]\npreset = \"ollama\"\nurl = \"ftp://x\"\n",
		"[engines.x]\npreset = \"ollama\"\nkey = \"abcdef\"\n",
		"model =\neffort = \"climb\"\n",
		"model = 3\n",
		"", // the file is not there
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## The configuration has a mistake\n")
	section, _, _ = strings.Cut(section, "\n## ")
	quotes := regexp.MustCompile("(?m)^\\| `(.+?)` \\| ").FindAllStringSubmatch(section, -1)
	if len(quotes) != len(mistakes) {
		t.Fatalf("the page quotes %d mistakes, this test makes %d", len(quotes), len(mistakes))
	}
	for i, q := range quotes {
		file := filepath.Join(t.TempDir(), "config.toml")
		if mistakes[i] != "" {
			if err := os.WriteFile(file, []byte(mistakes[i]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := self(t, "config", "check")
		cmd.Env = append(cmd.Env, "DROVER_CONFIG="+file)
		var said bytes.Buffer
		cmd.Stderr = &said
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != exitUsage {
			t.Errorf("%q: %v", mistakes[i], err)
		}
		rest := said.String()
		for part := range strings.SplitSeq(q[1], "…") {
			_, behind, found := strings.Cut(rest, part)
			if !found {
				t.Errorf("the page quotes %q, what is said is %q", q[1], said.String())
				break
			}
			rest = behind
		}
	}
}
