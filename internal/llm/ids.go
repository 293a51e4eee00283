package llm

import (
	"slices"
	"strconv"
	"strings"
)

// MaxToolCallIDBytes bounds the id of a tool call that is sent: the narrowest
// limit that a public API is known to have.
const MaxToolCallIDBytes = 40

// UniqueIDs gives every call an id of its own: ids that are missing, longer
// than [MaxToolCallIDBytes], repeated in calls, or taken by the history are
// replaced, all others stay as the engine gave them. Equal input gives equal
// ids. A made id has nine letters and digits, which is what the strictest
// templates ask for. The result is a new slice.
func UniqueIDs(calls []ToolCall, taken func(id string) bool) []ToolCall {
	out := slices.Clone(calls)
	used := make(map[string]bool, len(out))
	for i := range out {
		id := out[i].ID
		if id == "" || len(id) > MaxToolCallIDBytes || used[id] || taken != nil && taken(id) {
			out[i].ID = "" // decided below, when all ids that stay are known
			continue
		}
		used[id] = true
	}
	next := 1
	for i := range out {
		for out[i].ID == "" {
			id := madeID(next)
			next++
			if !used[id] && (taken == nil || !taken(id)) {
				out[i].ID = id
				used[id] = true
			}
		}
	}
	return out
}

// madeID is the n-th id of our own making.
func madeID(n int) string {
	const prefix, width = "drover", 3
	digits := strconv.FormatInt(int64(n), 36)
	return prefix + strings.Repeat("0", max(0, width-len(digits))) + digits
}
