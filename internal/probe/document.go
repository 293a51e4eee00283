package probe

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxTokens bounds a size that is believed. Engines write figures like 1e30 for
// "no limit"; no real window comes near this one.
const maxTokens = math.MaxInt32

// maxValue bounds each text of the engine's that is kept as evidence, in bytes.
const maxValue = 160

// object is a JSON object whose members are looked up by exact name. The nil
// object has no members.
type object map[string]json.RawMessage

// parse reads a JSON object, nil if it is none.
func parse(body []byte) object {
	var o object
	if json.Unmarshal(body, &o) != nil {
		return nil
	}
	return o
}

// at gives the member at a dotted path, nil if there is none.
func (o object) at(path string) json.RawMessage {
	name, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		return o[name]
	}
	return parse(o[name]).at(rest)
}

// list gives the elements of the array at a dotted path, nil if it is none.
func (o object) list(path string) []json.RawMessage {
	var elements []json.RawMessage
	if json.Unmarshal(o.at(path), &elements) != nil {
		return nil
	}
	return elements
}

// words gives the strings in the array at a dotted path. exact is false when
// there is no array or something in it is no string.
func (o object) words(path string) (words []string, exact bool) {
	elements := o.list(path)
	exact = elements != nil
	for _, e := range elements {
		if w, ok := word(e); ok {
			words = append(words, w)
		} else {
			exact = false
		}
	}
	return words, exact
}

// holds reports whether the array at a dotted path has the string.
func (o object) holds(path, want string) bool {
	for _, e := range o.list(path) {
		if w, ok := word(e); ok && w == want {
			return true
		}
	}
	return false
}

// is reports whether the member at a dotted path is the string.
func (o object) is(path, want string) bool {
	w, ok := word(o.at(path))
	return ok && w == want
}

func word(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	return s, json.Unmarshal(raw, &s) == nil
}

func boolean(raw json.RawMessage) (value, ok bool) {
	switch string(raw) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}

// tokens reads a size: a positive finite number, cut to an integer, or a string
// of digits.
func tokens(raw json.RawMessage) (int, bool) {
	if w, ok := word(raw); ok {
		return digits(w)
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || len(raw) == 0 || !(f >= 1 && f <= maxTokens) {
		return 0, false
	}
	return int(f), true
}

// digits reads a positive decimal integer without sign or space.
func digits(s string) (int, bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || n > maxTokens {
		return 0, false
	}
	return int(n), true
}

// shown is a JSON value as evidence: on one line and cut.
func shown(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return ""
	}
	return short(b.String())
}

// named is a name of the engine's in a note: quoted, since it may hold anything,
// and cut.
func named(name string) string { return strconv.Quote(short(name)) }

// short cuts a text between characters.
func short(s string) string {
	if len(s) <= maxValue {
		return s
	}
	cut := maxValue
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
