package acp

import "strings"

// client is what the editor said of itself in initialize. The zero value is a
// client that can do nothing.
type client struct {
	name, version string
	named         bool // it sent clientInfo

	readFile, writeFile bool // fs/read_text_file, fs/write_text_file
	notices             bool // session.notices
	terminal            bool // terminal/*
	terminalOutput      bool // _meta.terminal_output

	quirks quirks
}

func readClient(o object) client {
	caps, info := o.object("clientCapabilities"), o.object("clientInfo")
	fs := caps.object("fs")
	c := client{
		name:           info.textOr("name"),
		version:        info.textOr("version"),
		named:          info != nil,
		readFile:       fs.yes("readTextFile"),
		writeFile:      fs.yes("writeTextFile"),
		notices:        caps.object("session").has("notices"),
		terminal:       caps.yes("terminal"),
		terminalOutput: caps.object("_meta").yes("terminal_output"),
	}
	c.quirks = quirksOf(&c)
	return c
}

// quirks are deviations that a client needs.
type quirks struct {
	// flatModels shows models of several providers as one list, with the
	// provider in the name.
	flatModels bool
	// modesOnly leaves configOptions away; modes are sent.
	modesOnly bool
}

// knownQuirks is the whole list of clients that are treated differently, each
// with its reason. The first entry that matches counts.
var knownQuirks = []struct {
	matches func(*client) bool
	quirks  quirks
	reason  string
}{
	{
		matches: func(c *client) bool { return !c.named },
		quirks:  quirks{flatModels: true},
		reason:  "avante.nvim sends no clientInfo, and of a grouped select it shows the groups as values",
	},
	{
		matches: func(c *client) bool {
			return strings.HasPrefix(c.name, "JetBrains") && strings.HasPrefix(c.version, "2026.1")
		},
		quirks: quirks{modesOnly: true},
		reason: "JetBrains 2026.1 breaks on configOptions; codex-acp leaves them away for it too (its pull request 179)",
	},
	{
		matches: nameIs("bb"),
		quirks:  quirks{flatModels: true},
		reason:  "bb refuses session/new with grouped options: options.0.value expected string (its issue 4152)",
	},
	{
		matches: nameIs("termul"),
		quirks:  quirks{flatModels: true},
		reason:  "termul shows no model picker for grouped options (its pull request 526)",
	},
}

func nameIs(name string) func(*client) bool {
	return func(c *client) bool { return strings.EqualFold(c.name, name) }
}

func quirksOf(c *client) quirks {
	for i := range knownQuirks {
		if knownQuirks[i].matches(c) {
			return knownQuirks[i].quirks
		}
	}
	return quirks{}
}
