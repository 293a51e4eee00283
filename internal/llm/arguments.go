package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// ArgumentsError says that the arguments of a call are no JSON object.
type ArgumentsError struct {
	// Offset is the byte at which reading stopped, from 0.
	Offset int
	Reason string
}

func (e *ArgumentsError) Error() string {
	return fmt.Sprintf("the arguments are no JSON object: byte %d: %s", e.Offset, e.Reason)
}

// RepairArguments gives the JSON object that the arguments of a call stand for.
// Three things are mended, since models get them wrong and they have one
// meaning: nothing at all and null are {}; raw control characters inside
// strings are escaped; an object that was encoded a second time as a string is
// unwrapped once. Anything else is an [*ArgumentsError], and must not be run;
// cut or broken JSON is never guessed at. An object that needs no repair keeps
// its bytes.
func RepairArguments(raw string) (object string, err error) {
	text := escapeControls(raw)
	trimmed := strings.TrimLeft(text, jsonSpace)
	start := len(text) - len(trimmed) // nothing before it was escaped
	if trimmed == "" {
		return "{}", nil
	}
	var value json.RawMessage
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return "", &ArgumentsError{Offset: rawOffset(raw, errorOffset(err, text)), Reason: err.Error()}
	}
	switch value[0] {
	case '{':
		return text, nil
	case 'n':
		return "{}", nil
	case '"':
		var inner string
		if err := json.Unmarshal(value, &inner); err != nil {
			return "", &ArgumentsError{Offset: start, Reason: err.Error()}
		}
		inner = escapeControls(inner)
		if strings.HasPrefix(strings.TrimLeft(inner, jsonSpace), "{") && json.Valid([]byte(inner)) {
			return inner, nil
		}
		return "", &ArgumentsError{Offset: start, Reason: "a string that holds no object"}
	}
	return "", &ArgumentsError{Offset: start, Reason: "another kind of value"}
}

// jsonSpace is the white space of JSON.
const jsonSpace = " \t\r\n"

// errorOffset is the byte at which decoding stopped.
func errorOffset(err error, text string) int {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return max(0, int(syntax.Offset)-1) // it counts the bytes that were read
	}
	return len(text)
}

// rawOffset gives the place in raw of an offset in its escaped form.
func rawOffset(raw string, escaped int) int {
	at := 0
	for i, width := range escapedWidths(raw) {
		if at += width; at > escaped {
			return i
		}
	}
	return len(raw)
}

// escapedWidths yields for each byte of a JSON text how many bytes it has once
// the raw control characters inside strings are escaped.
func escapedWidths(raw string) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		inString, escaped := false, false
		for i := range len(raw) {
			c, width := raw[i], 1
			switch {
			case inString && c < ' ' && !escaped:
				width = len(controlEscape(c))
			case escaped: // a control character behind a backslash stays, and is refused
				escaped = false
			case inString && c == '\\':
				escaped = true
			case c == '"':
				inString = !inString
			}
			if !yield(i, width) {
				return
			}
		}
	}
}

// escapeControls escapes the raw control characters that stand inside JSON
// strings.
func escapeControls(raw string) string {
	if !strings.ContainsFunc(raw, func(r rune) bool { return r < ' ' }) {
		return raw
	}
	var b strings.Builder
	for i, width := range escapedWidths(raw) {
		if width == 1 {
			b.WriteByte(raw[i])
		} else {
			b.WriteString(controlEscape(raw[i]))
		}
	}
	return b.String()
}

// controlEscape is the escape of a control character inside a JSON string.
func controlEscape(c byte) string {
	var b bytes.Buffer
	appendEscape(&b, c)
	return b.String()
}

// CoerceArguments decodes each string of the arguments whose schema wants an
// array or an object, and no string, if it holds one: models encode nested
// values twice. It goes down through properties and items. What changes is
// written in canonical form; arguments without such a string come back
// unchanged. It is for the tool only: the history keeps the model's bytes.
func CoerceArguments(arguments, schema string) string {
	v, err := decodeExact([]byte(arguments))
	if err != nil {
		return arguments
	}
	want, err := decodeExact([]byte(schema))
	if err != nil {
		return arguments
	}
	v, changed := coerce(v, want)
	if !changed {
		return arguments
	}
	var b bytes.Buffer
	appendCanonical(&b, v)
	return b.String()
}

// coerce gives v decoded as the schema wants, and whether anything was decoded.
func coerce(v, schema any) (_ any, changed bool) {
	want, _ := schema.(map[string]any)
	switch v := v.(type) {
	case string:
		inner, err := decodeExact([]byte(v))
		if err != nil || !wantsOnly(want, typeName(inner)) {
			return v, false
		}
		return inner, true
	case map[string]any:
		properties, _ := want["properties"].(map[string]any)
		for name, member := range v {
			if m, ok := coerce(member, properties[name]); ok {
				v[name], changed = m, true
			}
		}
		return v, changed
	case []any:
		for i, element := range v {
			if e, ok := coerce(element, want["items"]); ok {
				v[i], changed = e, true
			}
		}
		return v, changed
	}
	return v, false
}

// typeName is the schema's word for an array or object, "" for anything else.
func typeName(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	}
	return ""
}

// wantsOnly reports whether the schema names the type, directly or as one
// alternative, and does not take a string as well.
func wantsOnly(schema map[string]any, typ string) bool {
	types := schemaTypes(nil, schema, 0)
	return slices.Contains(types, typ) && !slices.Contains(types, "string")
}

// schemaTypes collects the type names that a schema and its alternatives give.
func schemaTypes(types []string, schema map[string]any, depth int) []string {
	const maxAlternatives = 8 // levels of anyOf inside anyOf that are looked at
	if depth > maxAlternatives {
		return types
	}
	switch t := schema["type"].(type) {
	case string:
		types = append(types, t)
	case []any:
		for _, e := range t {
			if name, ok := e.(string); ok {
				types = append(types, name)
			}
		}
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		alternatives, _ := schema[key].([]any)
		for _, a := range alternatives {
			if inner, ok := a.(map[string]any); ok {
				types = schemaTypes(types, inner, depth+1)
			}
		}
	}
	return types
}
