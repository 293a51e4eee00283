package session

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// quickDecode reads the data of the records that logs mostly consist of, calls
// and their results, in exactly the form that this package writes. In any other
// form, also where it might be valid JSON, it reads nothing and leaves the data
// to encoding/json, which looks at each byte three times. What it reads is what
// encoding/json reads: see FuzzQuickDecode.
func quickDecode(data []byte, rec Record) bool {
	q := quick{data: data}
	switch rec := rec.(type) {
	case *ToolResult:
		r := ToolResult{ID: q.text(`{"id":`), Status: Status(q.text(`,"status":`)), Text: q.text(`,"text":`)}
		if q.take(`,"durationMs":`) {
			r.DurationMS = q.number()
		}
		if q.end() {
			*rec = r
			return true
		}
	case *ToolCall:
		r := ToolCall{ID: q.text(`{"id":`), Name: q.text(`,"name":`), Arguments: q.text(`,"arguments":`)}
		r.Started = q.take(`,"started":true`)
		if q.end() {
			*rec = r
			return true
		}
	}
	return false
}

// quick reads JSON of a known form from the front of data.
type quick struct {
	data   []byte
	failed bool
}

// take removes a prefix and reports whether it was there.
func (q *quick) take(prefix string) bool {
	if q.failed || len(q.data) < len(prefix) || string(q.data[:len(prefix)]) != prefix {
		return false
	}
	q.data = q.data[len(prefix):]
	return true
}

// end reports whether the object ends here, and with it the data.
func (q *quick) end() bool { return q.take("}") && len(q.data) == 0 }

// text reads a string behind a prefix.
func (q *quick) text(prefix string) string {
	if !q.take(prefix) || !q.take(`"`) {
		q.failed = true
		return ""
	}
	end := bytes.IndexByte(q.data, '"')
	if end < 0 {
		q.failed = true
		return ""
	}
	if end > 0 && q.data[end-1] == '\\' { // not the end: that is anywhere
		end = len(q.data)
	}
	text := make([]byte, 0, end)
	for i := 0; i < len(q.data); {
		c := q.data[i]
		if plain[c] {
			text = append(text, c)
			i++
			continue
		}
		if c == '"' {
			q.data = q.data[i+1:]
			return string(text)
		}
		var size int
		if text, size = unescape(text, q.data[i:]); size == 0 {
			break
		}
		i += size
	}
	q.failed = true
	return ""
}

// plain are the bytes that stand for themselves in a JSON string, whatever is
// around them.
var plain = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// escapes are the characters behind a backslash that stand for one other.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape appends the character that data begins with, an escape sequence or
// one beyond ASCII, and gives its size in data: 0 for what is left to
// encoding/json, which is bad UTF-8, control characters and halves of pairs.
func unescape(dst, data []byte) (_ []byte, size int) {
	if data[0] >= utf8.RuneSelf {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 {
			return dst, 0
		}
		return append(dst, data[:size]...), size
	}
	if data[0] != '\\' || len(data) < 2 {
		return dst, 0
	}
	if c := escapes[data[1]]; c != 0 {
		return append(dst, c), 2
	}
	if data[1] != 'u' || len(data) < 6 {
		return dst, 0
	}
	n, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	if err != nil || !utf8.ValidRune(rune(n)) {
		return dst, 0
	}
	return utf8.AppendRune(dst, rune(n)), 6
}

// number reads a whole number without sign.
func (q *quick) number() int64 {
	n := 0
	for n < len(q.data) && '0' <= q.data[n] && q.data[n] <= '9' {
		n++
	}
	v, err := strconv.ParseInt(string(q.data[:n]), 10, 64)
	if err != nil || n > 1 && q.data[0] == '0' {
		q.failed = true
	}
	q.data = q.data[n:]
	return v
}
