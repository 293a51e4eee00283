package acp

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/drover-dev/drover/internal/jsonrpc2"
)

// object is a JSON object whose members are read one by one and by their exact
// names, so that a bad optional member costs nothing but itself.
type object map[string]json.RawMessage

// parseObject reads an object of a text that may be anything; nil if it is not
// an object.
func parseObject(text string) object {
	if !json.Valid([]byte(text)) {
		return nil
	}
	return readObject(json.RawMessage(text))
}

// readObject reads an object of valid JSON; anything else is nil. A prompt can
// be many megabytes, and the connection has checked the whole line already, so
// this only has to find the ends of things.
func readObject(raw json.RawMessage) object {
	i := skipSpace(raw, 0)
	if i == len(raw) || raw[i] != '{' {
		return nil
	}
	o := make(object)
	for i = skipSpace(raw, i+1); raw[i] != '}'; {
		end := skipValue(raw, i)
		name, ok := readText(raw[i:end])
		i = skipSpace(raw, skipSpace(raw, end)+1) // over the colon
		end = skipValue(raw, i)
		if ok {
			o[name] = raw[i:end:end]
		}
		if i = skipSpace(raw, end); raw[i] == ',' {
			i = skipSpace(raw, i+1)
		}
	}
	return o
}

// readArray reads an array of valid JSON.
func readArray(raw json.RawMessage) (elements []json.RawMessage, ok bool) {
	i := skipSpace(raw, 0)
	if i == len(raw) || raw[i] != '[' {
		return nil, false
	}
	elements = []json.RawMessage{}
	for i = skipSpace(raw, i+1); raw[i] != ']'; {
		end := skipValue(raw, i)
		elements = append(elements, raw[i:end:end])
		if i = skipSpace(raw, end); raw[i] == ',' {
			i = skipSpace(raw, i+1)
		}
	}
	return elements, true
}

// readText reads a string of valid JSON.
func readText(raw json.RawMessage) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner), true
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// skipString returns the place behind the string that starts at i.
func skipString(b []byte, i int) int {
	for i++; ; i++ {
		i += bytes.IndexByte(b[i:], '"')
		slashes := 0
		for b[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
}

// skipValue returns the place behind the value that starts at i.
func skipValue(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		default:
			for i < len(b) && bytes.IndexByte([]byte(",:]}\"{[ \t\r\n"), b[i]) < 0 {
				i++
			}
		}
		for depth > 0 && i < len(b) && bytes.IndexByte([]byte(",: \t\r\n"), b[i]) >= 0 {
			i++
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

// object returns a member that is an object, nil if there is none.
func (o object) object(name string) object { return readObject(o[name]) }

// has reports whether a member is there and not null: how capabilities that are
// objects are advertised.
func (o object) has(name string) bool {
	raw, ok := o[name]
	return ok && string(raw) != "null"
}

// text returns a member that is a string.
func (o object) text(name string) (string, bool) { return readText(o[name]) }

// textOr returns a member that is a string, or "".
func (o object) textOr(name string) string {
	s, _ := o.text(name)
	return s
}

// yes reports whether a member is true.
func (o object) yes(name string) bool { return string(o[name]) == "true" }

// array returns a member that is an array.
func (o object) array(name string) ([]json.RawMessage, bool) { return readArray(o[name]) }

// texts returns the strings of an array; other elements are skipped.
func (o object) texts(name string) []string {
	elements, _ := o.array(name)
	var list []string
	for _, e := range elements {
		if s, ok := readText(e); ok {
			list = append(list, s)
		}
	}
	return list
}

// params reads the parameters of a request. None at all is an empty object.
func params(req *jsonrpc2.Request) (object, error) {
	if len(req.Params) == 0 || string(req.Params) == "null" {
		return object{}, nil
	}
	if o := readObject(req.Params); o != nil {
		return o, nil
	}
	return nil, badParams("%s: params must be an object", req.Method)
}

// sessionParams reads the parameters of a request about a session, and the member
// that names it.
func sessionParams(req *jsonrpc2.Request) (o object, id string, err error) {
	if o, err = params(req); err != nil {
		return nil, "", err
	}
	id, ok := o.text("sessionId")
	if !ok || id == "" {
		return nil, "", badParams("sessionId must be a string")
	}
	return o, id, nil
}
