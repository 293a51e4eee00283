package openai

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/drover-dev/drover/internal/llm"
)

// ArgumentsError says why the arguments of a call cannot be run.
type ArgumentsError struct {
	// Offset is the byte of the raw text where reading failed.
	Offset int
	Reason string
}

func (e *ArgumentsError) Error() string {
	return fmt.Sprintf("invalid arguments at byte %d: %s", e.Offset, e.Reason)
}

// RepairArguments gives the arguments of a call as one JSON object in canonical
// form (see [llm.CanonicalJSON]), ready for a tool. An empty text and null are
// {}; raw control characters inside strings are escaped; an object that was
// encoded twice, as a JSON string, is unwrapped once. Nothing else is repaired:
// text that is cut or no object is an [*ArgumentsError], and must not be run.
func RepairArguments(raw string) (canonical string, err error) {
	text, bad := repairArguments(raw)
	if bad != nil {
		return "", bad
	}
	canonical, err = llm.CanonicalJSON([]byte(text))
	if err != nil {
		return "", &ArgumentsError{Reason: err.Error()}
	}
	return canonical, nil
}

// repairArguments is RepairArguments without the canonical form: a valid object
// keeps its bytes.
func repairArguments(raw string) (text string, err *ArgumentsError) {
	data := []byte(raw)
	start := skipSpace(data, 0)
	if start == len(data) {
		return "{}", nil
	}
	s := scanner{data: data, controls: true}
	end, bad := s.value(start, 0)
	if bad != nil {
		return "", &ArgumentsError{Offset: bad.offset, Reason: bad.reason}
	}
	if rest := skipSpace(data, end); rest < len(data) {
		return "", &ArgumentsError{Offset: rest, Reason: "more than one value"}
	}
	switch data[start] {
	case 'n':
		return "{}", nil
	case '{':
		if s.sawControl {
			return escapeControls(raw), nil
		}
		return raw, nil
	case '"':
		inner := unquote(data[start:end])
		if i := skipSpace([]byte(inner), 0); i < len(inner) && inner[i] == '{' {
			if text, err := repairArguments(inner); err == nil {
				return text, nil
			}
		}
		return "", &ArgumentsError{Offset: start, Reason: "a string that holds no JSON object"}
	}
	return "", &ArgumentsError{Offset: start, Reason: "want a JSON object"}
}

// completeArguments reports whether the text is one whole JSON value.
func completeArguments(raw []byte) bool {
	s := scanner{data: raw, controls: true}
	end, err := s.value(skipSpace(raw, 0), 0)
	return err == nil && skipSpace(raw, end) == len(raw)
}

// escapeControls escapes the control characters inside the strings of a JSON
// text that is well formed but for them.
func escapeControls(raw string) string {
	var b bytes.Buffer
	b.Grow(len(raw) + 16)
	inString := false
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case inString && c == '\\':
			b.WriteByte(c)
			i++
			c = raw[i]
		case c == '"':
			inString = !inString
		case inString && c < ' ':
			var quoted bytes.Buffer
			llm.AppendJSONString(&quoted, string(rune(c)))
			b.Write(quoted.Bytes()[1 : quoted.Len()-1])
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// CoerceArguments decodes each string of the arguments whose schema wants an
// array or an object, and no string, if it holds one: models encode nested
// values twice. It goes down through properties and items. What changes is
// written in canonical form; arguments without such a string come back
// unchanged. It is for the tool only: the history keeps the model's bytes.
func CoerceArguments(args, schema string) string {
	a, badArgs := parseDocument([]byte(args))
	s, badSchema := parseDocument([]byte(schema))
	if badArgs != nil || badSchema != nil {
		return args
	}
	var b bytes.Buffer
	if !coerce(&b, a, s) {
		return args
	}
	canonical, err := llm.CanonicalJSON(b.Bytes())
	if err != nil {
		return args
	}
	return canonical
}

// coerce appends v, decoded as the schema wants, and reports whether anything
// was decoded.
func coerce(b *bytes.Buffer, v, schema value) (changed bool) {
	switch v.kind() {
	case '"':
		inner, bad := parseDocument([]byte(v.str()))
		if bad == nil && (inner.isArray() && wantsOnly(schema, "array") || inner.isObject() && wantsOnly(schema, "object")) {
			b.Write(inner.raw)
			return true
		}
	case '{':
		props := schema.get("properties")
		b.WriteByte('{')
		first := true
		for name, m := range v.members() {
			if !first {
				b.WriteByte(',')
			}
			first = false
			llm.AppendJSONString(b, string(name))
			b.WriteByte(':')
			changed = coerce(b, m, props.get(string(name))) || changed
		}
		b.WriteByte('}')
		return changed
	case '[':
		items := schema.get("items")
		b.WriteByte('[')
		first := true
		for e := range v.elements() {
			if !first {
				b.WriteByte(',')
			}
			first = false
			changed = coerce(b, e, items) || changed
		}
		b.WriteByte(']')
		return changed
	}
	b.Write(v.raw)
	return false
}

// wantsOnly reports whether the schema names the type, directly or as one
// alternative, and does not take a string as well.
func wantsOnly(schema value, typ string) bool {
	types := schemaTypes(nil, schema, 0)
	return slices.Contains(types, typ) && !slices.Contains(types, "string")
}

// schemaTypes collects the type names that a schema and its alternatives give.
func schemaTypes(types []string, schema value, depth int) []string {
	const maxAlternatives = 8 // levels of anyOf inside anyOf that are looked at
	if depth > maxAlternatives {
		return types
	}
	for name, m := range schema.members() {
		switch string(name) {
		case "type":
			if m.isString() {
				types = append(types, m.str())
			}
			for e := range m.elements() {
				types = append(types, e.str())
			}
		case "anyOf", "oneOf":
			for e := range m.elements() {
				types = schemaTypes(types, e, depth+1)
			}
		}
	}
	return types
}
