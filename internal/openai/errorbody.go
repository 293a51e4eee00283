package openai

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// errorBody is what the body of an error says. Engines agree on no shape: the
// error is a string, an object, or the body itself; its message a string, an
// object or a list of complaints; its code a word, a number or a number in
// quotes.
type errorBody struct {
	message string
	typ     string
	code    string
	param   string
	// status is the code where it is an HTTP status, else 0.
	status int
	// promptTokens and window are figures with members of their own.
	promptTokens, window int
	html, empty          bool
}

// lower is all that the texts are matched against, in lower case.
func (b *errorBody) lower() string {
	return strings.ToLower(b.message + "\n" + b.typ + "\n" + b.code + "\n" + b.param)
}

// parseError reads the body of an error of any shape.
func parseError(body []byte) *errorBody {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, byteOrderMark))
	b := &errorBody{}
	switch {
	case len(body) == 0:
		b.empty = true
		return b
	case body[0] == '<':
		b.html = true
		return b
	}
	// A body may be cut at MaxErrorBytes, or be followed by something.
	v, _, bad := parseValue(body, 0)
	if bad != nil {
		b.message = string(body)
		return b
	}
	b.read(v, 0)
	if b.message == "" && !v.isObject() {
		b.message = string(body)
	}
	return b
}

// maxErrorNesting is how many wrappers around an error are opened.
const maxErrorNesting = 5

// read takes in what v says, the innermost word last.
func (b *errorBody) read(v value, depth int) {
	if depth > maxErrorNesting {
		return
	}
	switch v.kind() {
	case '"':
		b.text(v.str(), depth)
		return
	case '[':
		for e := range v.elements() {
			b.read(e, depth+1)
			return
		}
		return
	case '{':
	default:
		return
	}
	for name, m := range v.members() {
		switch string(name) {
		case "type":
			b.typ = firstOf(m.str(), b.typ)
		case "param":
			b.param = firstOf(m.str(), b.param)
		case "code", "status", "status_code":
			b.readCode(m)
		case "n_prompt_tokens":
			b.promptTokens, _ = m.count()
		case "n_ctx":
			b.window, _ = m.count()
		}
	}
	// The shapes, most telling member first.
	for _, name := range [...]string{"error", "message", "detail", "error_description", "msg", "errors"} {
		m := v.get(name)
		if m.isNull() {
			continue
		}
		if list := complaints(m); list != "" {
			b.message = list
		} else {
			b.read(m, depth+1)
		}
		if b.message != "" {
			break
		}
	}
	b.metadata(v.get("metadata"), depth)
}

// text takes in a message. Proxies put the JSON of another error into it.
func (b *errorBody) text(s string, depth int) {
	trimmed := strings.TrimSpace(s)
	if strings.HasPrefix(trimmed, "{") {
		if v, bad := parseDocument([]byte(trimmed)); bad == nil {
			inner := errorBody{}
			inner.read(v, depth+1)
			if inner.message != "" {
				b.message = inner.message
				b.typ = firstOf(inner.typ, b.typ)
				b.promptTokens, b.window = max(b.promptTokens, inner.promptTokens), max(b.window, inner.window)
				return
			}
		}
	}
	b.message = s
}

// readCode reads a code, which may be an HTTP status.
func (b *errorBody) readCode(m value) {
	text := m.str()
	if !m.isString() {
		if _, ok := m.number(); !ok {
			return
		}
		text = string(m.raw)
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 300 && n <= 599 {
		b.status = n
	} else if text != "" {
		b.code = text
	}
}

// metadata adds what a router says of the provider behind it.
func (b *errorBody) metadata(v value, depth int) {
	if !v.isObject() {
		return
	}
	inner := errorBody{}
	inner.read(v.get("raw"), depth+1)
	if inner.message != "" && inner.message != b.message {
		b.message = strings.TrimSuffix(b.message, ".") + ": " + inner.message
	}
	if name := v.get("provider_name").str(); name != "" {
		b.message += " (" + name + ")"
	}
}

// complaints reads a validator's list: where something stood and what is wrong
// with it.
func complaints(v value) string {
	if v.isObject() {
		v = v.get("detail")
	}
	var list []string
	for e := range v.elements() {
		msg := firstOf(e.get("msg").str(), e.get("type").str())
		var place []string
		for part := range e.get("loc").elements() {
			if part.isString() {
				place = append(place, part.str())
			} else {
				place = append(place, string(part.raw))
			}
		}
		if msg == "" && place == nil {
			continue
		}
		list = append(list, strings.TrimPrefix(strings.Join(place, ".")+": "+msg, ": "))
	}
	return strings.Join(list, "; ")
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// clean makes a text of an engine fit to be shown: one line without control and
// format characters, of at most n characters.
func clean(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.In(r, unicode.Cc, unicode.Cf):
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	const dots = "..."
	runes := 0
	for i := range s {
		if runes == n-len(dots) {
			return s[:i] + dots
		}
		runes++
	}
	return s
}

// excerpt is the beginning of something unexpected, quoted.
func excerpt(b []byte) string {
	const length = 120 // characters
	return strconv.Quote(clean(string(b[:min(len(b), MaxErrorBytes)]), length))
}
