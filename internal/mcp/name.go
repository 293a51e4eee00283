package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

const (
	maxName  = 64 // of a tool, what every API takes
	maxLabel = 24 // of a server, so that the tool's own name has room
)

// labels gives each server the part of a tool's name in front of "__". Labels
// are unique, hold no "__" and do not end in "_", so that a name belongs to one
// server alone.
func labels(servers []string) []string {
	var list []string
	for _, name := range servers {
		label := strings.TrimRight(plain(name), "_")
		for strings.Contains(label, "__") {
			label = strings.ReplaceAll(label, "__", "_")
		}
		if label == "" {
			label = "mcp"
		}
		label = shorten(label, maxLabel, name)
		unique := label
		for n := 2; slices.Contains(list, unique); n++ {
			unique = label + "-" + strconv.Itoa(n)
		}
		list = append(list, unique)
	}
	return list
}

// plain replaces what no API takes in a name.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
}

// shorten cuts a name that is longer than limit and marks it with a hash of what
// it stands for.
func shorten(name string, limit int, of string) string {
	if len(name) <= limit {
		return name
	}
	mark := hash(of)
	return strings.TrimRight(name[:limit-len(mark)-1], "_") + "-" + mark
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}

// namer names the tools of one server. A name that was given stays with its tool.
type namer struct {
	label string
	given map[string]string // the server's name for a tool to the offered one
	taken map[string]bool
}

func newNamer(label string) *namer {
	return &namer{label: label, given: make(map[string]string), taken: make(map[string]bool)}
}

// name gives the name of a tool. Where two become the same, the later is marked;
// callers ask in sorted order.
func (n *namer) name(toolName string) string {
	if name, ok := n.given[toolName]; ok {
		return name
	}
	full := n.label + "__" + plain(toolName)
	name := shorten(full, maxName, n.label+"\x00"+toolName)
	if n.taken[name] {
		name = full[:min(len(full), maxName-9)] + "-" + hash(n.label+"\x00"+toolName)
	}
	n.given[toolName], n.taken[name] = name, true
	return name
}
