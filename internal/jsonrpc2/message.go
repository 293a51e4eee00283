package jsonrpc2

import (
	"bytes"
	"encoding/json"
	"iter"
	"unicode/utf8"
)

type messageKind uint8

const (
	kindBlank messageKind = iota // nothing but white space
	kindInvalid
	kindRequest
	kindNotification
	kindResponse
)

// message is one decoded line. Raw members alias the line.
type message struct {
	kind    messageKind
	id      ID     // of a request; of an invalid message where it is certain
	method  string // of a request or notification
	params  []byte // nil when absent
	replyTo []byte // of a response, its id
	result  []byte // of a response
	err     []byte // of a response, nil when absent or null
	fault   *Error // of an invalid message, what to answer
}

// decode reads a line. Member names count only in their exact case, unlike with
// encoding/json; of a repeated member the last counts, like there. Bytes that
// are not UTF-8 become U+FFFD, so that one broken file name in a prompt does not
// leave its sender without an answer.
func decode(line []byte) message {
	line = bytes.Trim(line, " \t\r")
	if len(line) == 0 {
		return message{}
	}
	if !json.Valid(line) {
		return invalid(CodeParseError, "parse error: the line is not a JSON text")
	}
	if line[0] == '[' {
		return invalid(CodeInvalidRequest, "invalid request: batches are not supported")
	}
	if line[0] != '{' {
		return invalid(CodeInvalidRequest, "invalid request: not an object")
	}
	var m message
	var version, id, method []byte
	for name, value := range members(line) {
		switch name {
		case "jsonrpc":
			version = value
		case "id":
			id = value
		case "method":
			method = value
		case "params":
			m.params = value
		case "result":
			m.result = value
		case "error":
			m.err = value
		}
	}
	// Without the version the object may be anything, say a log line, and its id
	// may be anybody's: the answer carries none.
	if string(version) != `"2.0"` {
		return invalid(CodeInvalidRequest, `invalid request: "jsonrpc" is not "2.0"`)
	}
	if method == nil {
		return m.asResponse(id)
	}
	return m.asRequest(id, method)
}

func invalid(code int, text string) message {
	return message{kind: kindInvalid, fault: &Error{Code: code, Message: text}}
}

func (m message) asRequest(id, method []byte) message {
	m.kind = kindNotification
	if id != nil {
		if !validID(id) {
			return invalid(CodeInvalidRequest, "invalid request: the id is not a string, number or null, or is too long")
		}
		m.kind, m.id = kindRequest, ID{string(id)}
	}
	if method[0] != '"' {
		bad := invalid(CodeInvalidRequest, "invalid request: the method is not a string")
		bad.id = m.id
		return bad
	}
	m.method = unquote(method)
	m.params = repair(m.params)
	return m
}

// repair makes bytes valid UTF-8, without a copy where they are.
func repair(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	return bytes.ToValidUTF8(b, []byte("\uFFFD"))
}

func (m message) asResponse(id []byte) message {
	if m.result == nil && m.err == nil {
		return invalid(CodeInvalidRequest, "invalid request: no method, result or error")
	}
	m.kind, m.replyTo = kindResponse, id
	if string(m.err) == "null" {
		m.err = nil
	}
	m.result, m.err = repair(m.result), repair(m.err)
	return m
}

func validID(id []byte) bool {
	if len(id) > MaxID || !utf8.Valid(id) {
		return false
	}
	c := id[0]
	return c == '"' || c == 'n' || c == '-' || '0' <= c && c <= '9'
}

// members yields the names and raw values of an object. The object must be valid
// JSON without space around it; decode has checked the whole line once, so this
// pass only has to find ends.
func members(object []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		i := skipSpace(object, 1)
		for object[i] != '}' {
			end := skipString(object, i)
			name := object[i:end]
			i = skipSpace(object, end)
			i = skipSpace(object, i+1) // the colon
			end = skipValue(object, i)
			if !yield(unquote(name), object[i:end:end]) {
				return
			}
			i = skipSpace(object, end)
			if object[i] == ',' {
				i = skipSpace(object, i+1)
			}
		}
	}
}

func skipSpace(b []byte, i int) int {
	for b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n' {
		i++
	}
	return i
}

// skipString returns the index behind the string that starts at i.
func skipString(b []byte, i int) int {
	for i++; ; {
		i += bytes.IndexByte(b[i:], '"')
		back := i
		for b[back-1] == '\\' {
			back--
		}
		i++
		if (i-1-back)%2 == 0 {
			return i
		}
	}
}

// skipValue returns the index behind the value that starts at i.
func skipValue(b []byte, i int) int {
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
	default:
		for b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
			i++
		}
		return i
	}
	for depth := 0; ; {
		switch b[i] {
		case '"':
			i = skipString(b, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
}

// unquote returns the text of a valid JSON string.
func unquote(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return string(inner) // unreachable for valid JSON
	}
	return s
}
