package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxArguments bounds the arguments of one call: 8 MiB, far above what a model
// can write in one answer.
const maxArguments = 8 << 20

// arguments reads the arguments of a call strictly: every member has to be one
// of the tool's. The first problem is kept and given by err, so that a tool asks
// for all its arguments first and checks once.
type arguments struct {
	names   []string
	members map[string]json.RawMessage
	problem error
}

// parseArguments reads the JSON object text. names are the members that the tool
// knows, required ones first.
func parseArguments(text string, names ...string) *arguments {
	a := &arguments{names: names, members: make(map[string]json.RawMessage)}
	a.problem = a.parse(text)
	return a
}

func (a *arguments) parse(text string) error {
	if len(text) > maxArguments {
		return fmt.Errorf("the arguments are longer than %d bytes", maxArguments)
	}
	if strings.TrimSpace(text) == "" {
		return nil // some engines send nothing for an empty object
	}
	dec := json.NewDecoder(strings.NewReader(text))
	if t, err := dec.Token(); err != nil {
		return notJSON(err)
	} else if t != json.Delim('{') {
		return errors.New("the arguments must be one JSON object")
	}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return notJSON(err)
		}
		name, _ := t.(string)
		if !slices.Contains(a.names, name) {
			return a.unknown(name)
		}
		if _, twice := a.members[name]; twice {
			return fmt.Errorf("argument %q is given twice", name)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return notJSON(err)
		}
		a.members[name] = value
	}
	if _, err := dec.Token(); err != nil {
		return notJSON(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("the arguments must be one JSON object with nothing behind it")
	}
	return nil
}

func notJSON(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the arguments are no complete JSON object: they end too early")
	}
	return fmt.Errorf("the arguments are no valid JSON: %v", err)
}

func (a *arguments) unknown(name string) error {
	hint := ""
	near := nearest(name, a.names)
	if i := slices.IndexFunc(a.names, func(n string) bool { return abbreviates(name, n) }); near == "" && i >= 0 {
		near = a.names[i]
	}
	if near != "" {
		hint = fmt.Sprintf(": did you mean %q?", near)
	}
	return fmt.Errorf("unknown argument %q%s (there are %s)", cutText(name, 50), hint, strings.Join(a.names, ", "))
}

// abbreviates reports whether short is long with letters left out: cmd, command.
func abbreviates(short, long string) bool {
	if len(short) < 2 || !strings.HasPrefix(long, short[:1]) {
		return false
	}
	for _, r := range short {
		_, rest, found := strings.Cut(long, string(r))
		if !found {
			return false
		}
		long = rest
	}
	return true
}

func (a *arguments) fail(format string, args ...any) {
	if a.problem == nil {
		a.problem = fmt.Errorf(format, args...)
	}
}

// err is the first problem.
func (a *arguments) err() error { return a.problem }

// member gives the raw value; null is the same as an absent member.
func (a *arguments) member(name string) (json.RawMessage, bool) {
	v, ok := a.members[name]
	return v, ok && !bytes.Equal(v, []byte("null"))
}

// text reads a required string.
func (a *arguments) text(name string) string {
	if _, ok := a.member(name); !ok {
		a.fail("argument %q is missing", name)
		return ""
	}
	return a.optionalText(name)
}

// optionalText reads a string, "" if it is absent.
func (a *arguments) optionalText(name string) string {
	v, ok := a.member(name)
	if !ok {
		return ""
	}
	var s string
	if json.Unmarshal(v, &s) != nil {
		a.fail("argument %q must be a string, not %s", name, cutText(string(v), 50))
	}
	return s
}

// number reads a whole number of at least low; fallback if it is absent. A number in
// a string is taken too: small models write them often.
func (a *arguments) number(name string, fallback, low int) int {
	v, ok := a.member(name)
	if !ok {
		return fallback
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(unquoted(v)), 64)
	if err != nil || f != math.Trunc(f) || math.IsInf(f, 0) || f < float64(low) {
		a.fail("argument %q must be a whole number from %d, not %s", name, low, cutText(string(v), 50))
		return fallback
	}
	return int(min(f, math.MaxInt32))
}

// flag reads a boolean, false if it is absent, also from a string.
func (a *arguments) flag(name string) bool {
	v, ok := a.member(name)
	if !ok {
		return false
	}
	switch strings.ToLower(strings.TrimSpace(unquoted(v))) {
	case "true":
		return true
	case "false", "":
		return false
	}
	a.fail("argument %q must be true or false, not %s", name, cutText(string(v), 50))
	return false
}

func unquoted(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// nearest gives the candidate that was most likely meant, "" if none is near:
// the same but for case, one that is part of the name (file_path for path), or
// one that a few typing errors away.
func nearest(name string, candidates []string) string {
	lower := strings.ToLower(name)
	best, bestDistance := "", max(1, len(lower)/3)+1
	for _, c := range candidates {
		lc := strings.ToLower(c)
		d := distance(lower, lc)
		if len(lc) > 2 && (strings.Contains(lower, lc) || len(lower) > 2 && strings.Contains(lc, lower)) {
			d = min(d, 1)
		}
		if d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance is the number of bytes to insert, delete or replace, or of neighbours
// to swap, that turn a into b.
func distance(a, b string) int {
	const long = 100 // names longer than this are not worth the time
	if len(a) > long || len(b) > long {
		return long
	}
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	before, last, row := rows[0], rows[1], rows[2]
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
