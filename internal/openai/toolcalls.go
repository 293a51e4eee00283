package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
)

// callBuilder puts the tool calls of an answer together. Engines agree on
// little, so that one rule decides which call a delta belongs to: different
// explicit indexes are different calls; within one index, or without any (then
// a matching id decides, else the last open call), a delta opens a new call only
// when it has an id that is new there, and a name, and the open call's
// arguments are already a complete JSON value. Otherwise it goes on with the
// open call.
type callBuilder struct {
	calls []*openCall
	// slots gives the open call of each explicit index.
	slots map[string]*openCall
	// scanned counts the bytes that were looked at for completeness.
	scanned int
	tooMany bool // the answer has more than maxCalls
}

// Bounds that keep a hostile answer from costing more than its length. Real
// answers stay far below.
const (
	maxCalls     = 256     // calls in one answer; more are an error
	maxCallIDs   = 16      // ids of one call that are remembered
	maxNameBytes = 4 << 10 // of a name that comes in pieces
	maxExtra     = 64      // unknown members of one call that are kept
	maxCallScans = 1 << 30 // bytes, see callBuilder.scanned
)

type openCall struct {
	number int // place among the calls of the answer, from 0
	slot   string
	ids    []string // all ids seen on it; the first is used
	name   string
	args   []byte
	extra  []detailField // unknown members, of the call and of its function
	inner  []detailField
}

// legacySlot is the slot of a function_call, the form before tool_calls.
const legacySlot = "function_call"

// add takes in one entry of tool_calls. The slot stands for its index when it
// has none of its own, and may be empty.
func (b *callBuilder) add(entry value, slot string) (delta llm.ToolCallDelta, ok bool) {
	if !entry.isObject() {
		return delta, false
	}
	var id, name string
	var args value
	for key, m := range entry.members() {
		switch string(key) {
		case "index":
			if c := m.kind(); '0' <= c && c <= '9' {
				slot = string(m.raw)
			}
		case "id":
			id = m.str()
		case "function":
			name, args = m.get("name").str(), m.get("arguments")
		}
	}
	call := b.find(slot, id, name)
	if call == nil {
		if len(b.calls) == maxCalls {
			b.tooMany = true
			return delta, false
		}
		call = b.open(slot)
	}
	if id != "" && len(call.ids) < maxCallIDs && !slices.Contains(call.ids, id) {
		call.ids = append(call.ids, id)
	}
	if name != call.name && len(call.name) < maxNameBytes {
		call.name += name
	}
	n := call.addArguments(args)
	call.keepExtra(entry)
	return llm.ToolCallDelta{Index: call.number, Name: call.name, Bytes: n}, true
}

// find gives the open call that a delta goes on with, nil when it opens one.
func (b *callBuilder) find(slot, id, name string) *openCall {
	var open *openCall
	byID := func(c *openCall) bool { return id != "" && slices.Contains(c.ids, id) }
	switch {
	case slot != "" && b.slots[slot] != nil:
		open = b.slots[slot]
		// An index may be used again for one call after another.
		for _, c := range b.calls {
			if c.slot == slot && byID(c) {
				open = c
			}
		}
	case slot != "":
		// A call that began without an index may get one later.
		for _, c := range b.calls {
			if c.slot == "" && (byID(c) || id == "" && name == "" && c == b.calls[len(b.calls)-1]) {
				c.slot = slot
				b.slot(slot, c)
				return c
			}
		}
		return nil
	default:
		if i := slices.IndexFunc(b.calls, byID); i >= 0 {
			return b.calls[i]
		}
		if n := len(b.calls); n > 0 {
			open = b.calls[n-1]
		}
	}
	if open != nil && id != "" && name != "" && !byID(open) && b.complete(open) {
		return nil
	}
	return open
}

// complete reports whether the arguments of the call are one whole JSON value.
func (b *callBuilder) complete(c *openCall) bool {
	b.scanned += len(c.args)
	return b.scanned <= maxCallScans && completeArguments(c.args)
}

func (b *callBuilder) open(slot string) *openCall {
	c := &openCall{number: len(b.calls), slot: slot}
	b.calls = append(b.calls, c)
	if slot != "" {
		b.slot(slot, c)
	}
	return c
}

func (b *callBuilder) slot(slot string, c *openCall) {
	if b.slots == nil {
		b.slots = make(map[string]*openCall)
	}
	b.slots[slot] = c
}

// addArguments appends a piece and gives its length in bytes. A value that is
// no string is taken as its JSON.
func (c *openCall) addArguments(v value) int {
	switch {
	case v.isNull():
		return 0
	case !v.isString():
		c.args = append(c.args, v.raw...)
		return len(v.raw)
	}
	piece := v.str()
	if piece != "" && string(c.args) == piece && completeArguments(c.args) {
		return 0 // the engine closes with the whole call once more
	}
	c.args = append(c.args, piece...)
	return len(piece)
}

// keepExtra keeps the members that the dialect does not define.
func (c *openCall) keepExtra(entry value) {
	for key, m := range entry.members() {
		switch string(key) {
		case "index", "id", "type":
		case "function":
			for key, m := range m.members() {
				if k := string(key); k != "name" && k != "arguments" && !m.isNull() {
					setField(&c.inner, k, m.raw)
				}
			}
		default:
			if !m.isNull() {
				setField(&c.extra, string(key), m.raw)
			}
		}
	}
}

// setField sets a member to its newest value.
func setField(fields *[]detailField, name string, raw []byte) {
	for i := range *fields {
		if (*fields)[i].name == name {
			(*fields)[i].raw = bytes.Clone(raw)
			return
		}
	}
	if len(*fields) < maxExtra {
		*fields = append(*fields, detailField{name: name, raw: bytes.Clone(raw)})
	}
}

// finish gives the calls in the order in which they were begun. A call without
// a name and arguments is none.
func (b *callBuilder) finish() llm.ToolCalls {
	var calls llm.ToolCalls
	for _, c := range b.calls {
		name, _, _ := strings.Cut(c.name, "<|") // the rest is template markup
		name = strings.TrimSpace(name)
		if name == "" && len(bytes.TrimSpace(c.args)) == 0 {
			continue
		}
		call := llm.ToolCall{Name: name, Arguments: string(c.args), Extra: c.extraJSON()}
		if len(c.ids) > 0 {
			call.ID = c.ids[0]
		}
		if args := strings.TrimSpace(call.Arguments); args == "" || args == "null" {
			call.Arguments = "{}"
		}
		calls = append(calls, call)
	}
	return calls
}

func (c *openCall) extraJSON() json.RawMessage {
	if len(c.extra) == 0 && len(c.inner) == 0 {
		return nil
	}
	e := detailEntry{fields: c.extra}
	if len(c.inner) > 0 {
		var b bytes.Buffer
		(&detailEntry{fields: c.inner}).write(&b)
		e.fields = append(slices.Clone(c.extra), detailField{name: "function", raw: b.Bytes()})
	}
	var b bytes.Buffer
	e.write(&b)
	return b.Bytes()
}

// completeArguments reports whether the text is one whole JSON value.
func completeArguments(raw []byte) bool {
	s := scanner{data: raw, controls: true}
	end, err := s.value(skipSpace(raw, 0), 0)
	return err == nil && skipSpace(raw, end) == len(raw)
}
