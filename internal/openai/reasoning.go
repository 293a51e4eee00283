package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
)

// reasoningSource is a place where an answer carries reasoning.
type reasoningSource uint8

const (
	fromContent reasoningSource = iota // reasoning_content
	fromReasoning
	fromThinking
	fromDetails
	fromParts // typed parts of the content
	fromTags  // inline tags
	reasoningSources
)

var reasoningFields = [reasoningSources]string{
	fromContent:   fieldReasoningContent,
	fromReasoning: fieldReasoning,
	fromThinking:  fieldThinking,
	fromDetails:   fieldDetails,
}

// reasoningLog gathers the reasoning of an answer. Engines repeat the same
// thoughts in several places of one chunk, or of different chunks; every thought
// is told once.
type reasoningLog struct {
	text []byte
	// first is the source of the first thought, known once text is not empty.
	first   reasoningSource
	sources [reasoningSources]struct {
		at      int  // how much of text the source has repeated or said
		differs bool // it said something else: nothing of it is a repetition
	}
	details detailsLog
}

// add takes in a piece from one source and gives the part of it that is new.
func (r *reasoningLog) add(from reasoningSource, piece string) (fresh string) {
	if piece == "" {
		return ""
	}
	if len(r.text) == 0 {
		r.first = from
	}
	s := &r.sources[from]
	if !s.differs && s.at < len(r.text) {
		known := r.text[s.at:]
		n := min(len(known), len(piece))
		if string(known[:n]) == piece[:n] {
			s.at += n
			piece = piece[n:]
		} else {
			s.differs = true
		}
	}
	if piece == "" {
		return ""
	}
	r.text = append(r.text, piece...)
	s.at = len(r.text)
	return piece
}

// flat reports whether reasoning came in a plain text member.
func (r *reasoningLog) flat() bool {
	return len(r.text) > 0 && r.first <= fromThinking
}

// reasoning gives what the answer's end tells, nil if nothing was thought.
func (r *reasoningLog) reasoning() *llm.Reasoning {
	details := r.details.raw()
	if len(r.text) == 0 && details == nil {
		return nil
	}
	field := reasoningFields[r.first]
	if len(r.text) == 0 {
		field = fieldDetails
	}
	return &llm.Reasoning{Text: string(r.text), Field: field, Details: details}
}

// detailsLog puts the reasoning_details of an answer together. A stream cuts
// its entries into pieces that carry the same index. An entry that came in one
// piece keeps its bytes.
type detailsLog struct {
	entries []detailEntry
	// whole is the array of an answer that was not streamed.
	whole json.RawMessage
}

type detailEntry struct {
	index  string // the lexeme of its index, "" without
	kind   string // its type
	raw    json.RawMessage
	fields []detailField // set when the entry was put together
}

type detailField struct {
	name string
	raw  json.RawMessage
	text []byte // of the members that come in pieces
}

// Bounds that keep a hostile answer from costing more than its length.
const (
	maxDetails      = 1024 // entries of one answer; more are dropped
	maxDetailFields = 64   // members of an entry that comes in pieces
)

// detailTexts are the members that come in pieces; the first two are shown.
var detailTexts = [...]string{"text", "summary", "data"}

// add takes in the entries of one delta and gives the text to show.
func (d *detailsLog) add(entries value) (text string) {
	var b strings.Builder
	for e := range entries.elements() {
		if e.isObject() {
			b.WriteString(d.entry(e))
		}
	}
	return b.String()
}

// addWhole takes in the entries of an answer that was not streamed.
func (d *detailsLog) addWhole(entries value) (text string) {
	if !entries.isArray() {
		return ""
	}
	text = d.add(entries)
	d.whole = bytes.Clone(entries.raw)
	return text
}

func (d *detailsLog) entry(v value) (text string) {
	index := string(v.get("index").raw)
	kind := v.get("type").str()
	open := d.open(index, kind)
	if open == nil && len(d.entries) == maxDetails {
		return ""
	}
	if open == nil {
		d.entries = append(d.entries, detailEntry{index: index, kind: kind, raw: bytes.Clone(v.raw)})
		return v.get("text").str() + summaryText(v.get("summary"))
	}
	return open.merge(v)
}

// open finds the entry that a piece belongs to, nil if it starts one. Without
// an index only a piece of plain text goes on with the entry before it.
func (d *detailsLog) open(index, kind string) *detailEntry {
	if index != "" {
		for i := range d.entries {
			if d.entries[i].index == index && d.entries[i].kind == kind {
				return &d.entries[i]
			}
		}
		return nil
	}
	if n := len(d.entries); n > 0 && kind == "reasoning.text" {
		if last := &d.entries[n-1]; last.index == "" && last.kind == kind {
			return last
		}
	}
	return nil
}

// merge takes in a further piece of the entry and gives the text that is new.
// A piece that begins with everything so far is cumulative.
func (e *detailEntry) merge(piece value) (text string) {
	if e.fields == nil {
		v, _, _ := parseValue(e.raw, 0)
		for name, m := range v.members() {
			f := detailField{name: string(name), raw: m.raw}
			if m.isString() {
				f.text = []byte(m.str())
			}
			e.fields = append(e.fields, f)
		}
	}
	for name, m := range piece.members() {
		if m.isNull() {
			continue
		}
		f := e.field(string(name))
		if f == nil {
			continue
		}
		more := m.str()
		if !m.isString() || !isDetailText(f.name) {
			f.raw, f.text = bytes.Clone(m.raw), []byte(more)
			continue
		}
		if len(more) > len(f.text) && strings.HasPrefix(more, string(f.text)) {
			more = more[len(f.text):]
		}
		f.text = append(f.text, more...)
		f.raw = nil
		if f.name != "data" {
			text += more
		}
	}
	return text
}

func (e *detailEntry) field(name string) *detailField {
	for i := range e.fields {
		if e.fields[i].name == name {
			return &e.fields[i]
		}
	}
	if len(e.fields) >= maxDetailFields {
		return nil
	}
	e.fields = append(e.fields, detailField{name: name})
	return &e.fields[len(e.fields)-1]
}

func isDetailText(name string) bool {
	for _, t := range detailTexts {
		if name == t {
			return true
		}
	}
	return false
}

// raw gives the array for a replay, nil if there were no details.
func (d *detailsLog) raw() json.RawMessage {
	if d.whole != nil || len(d.entries) == 0 {
		return d.whole
	}
	var b bytes.Buffer
	b.WriteByte('[')
	for i := range d.entries {
		if i > 0 {
			b.WriteByte(',')
		}
		d.entries[i].write(&b)
	}
	b.WriteByte(']')
	return b.Bytes()
}

func (e *detailEntry) write(b *bytes.Buffer) {
	if e.fields == nil {
		b.Write(e.raw)
		return
	}
	b.WriteByte('{')
	for i, f := range e.fields {
		if i > 0 {
			b.WriteByte(',')
		}
		llm.AppendJSONString(b, f.name)
		b.WriteByte(':')
		if f.raw != nil {
			b.Write(f.raw)
		} else {
			llm.AppendJSONString(b, string(f.text))
		}
	}
	b.WriteByte('}')
}

// summaryText gives the text of a summary: a string, or parts that have one.
func summaryText(v value) string {
	if v.isString() {
		return v.str()
	}
	var b strings.Builder
	for part := range v.elements() {
		if part.isString() {
			b.WriteString(part.str())
		}
		b.WriteString(part.get("text").str())
	}
	return b.String()
}
