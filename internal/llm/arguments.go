package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ArgumentsError says that the arguments of a call are no JSON object.
type ArgumentsError struct {
	// Offset is the byte at which reading stopped, from 0.
	Offset int
	Reason string
}

func (e *ArgumentsError) Error() string {
	return fmt.Sprintf("the arguments are no JSON object: %s at byte %d", e.Reason, e.Offset)
}

// RepairArguments gives the JSON object that the arguments of a call stand for.
// Three things are mended, since models get them wrong and they have one
// meaning: nothing at all and null are {}; raw control characters inside
// strings are escaped; an object that was encoded a second time as a string is
// unwrapped once. Anything else is an [*ArgumentsError]; cut or broken JSON is
// never guessed at.
func RepairArguments(raw string) (object string, err error) {
	text := escapeControls(strings.TrimSpace(raw))
	if strings.HasPrefix(text, `"`) {
		var inner string
		if err := json.Unmarshal([]byte(text), &inner); err != nil {
			return "", argumentsError(err, text)
		}
		text = escapeControls(strings.TrimSpace(inner))
		if !strings.HasPrefix(text, "{") {
			return "", &ArgumentsError{Reason: "a string"}
		}
	}
	if text == "" || text == "null" {
		return "{}", nil
	}
	var value json.RawMessage
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return "", argumentsError(err, text)
	}
	if text[0] != '{' {
		return "", &ArgumentsError{Reason: "another kind of value"}
	}
	return text, nil
}

func argumentsError(err error, text string) *ArgumentsError {
	e := &ArgumentsError{Reason: err.Error(), Offset: len(text)}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		e.Offset = int(syntax.Offset)
	}
	return e
}

// escapeControls escapes raw control characters that stand inside JSON strings.
func escapeControls(text string) string {
	clean := true
	for i := range len(text) {
		if text[i] < ' ' {
			clean = false
			break
		}
	}
	if clean {
		return text
	}
	var b strings.Builder
	inString, escaped := false, false
	for i := range len(text) {
		c := text[i]
		switch {
		case inString && c < ' ':
			fmt.Fprintf(&b, `\u%04x`, c)
			escaped = false
			continue
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		}
		b.WriteByte(c)
	}
	return b.String()
}
