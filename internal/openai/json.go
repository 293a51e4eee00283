package openai

import (
	"bytes"
	"iter"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// The package reads JSON with a scanner of its own. It must tell members apart
// by exact case, take a member of the wrong type for absent, keep number
// lexemes and raw values, name byte offsets, and spend next to nothing on a
// chunk of a stream.

// maxJSONDepth bounds nesting, so that no input can exhaust the stack. Real
// documents nest less than twenty levels.
const maxJSONDepth = 1000

// syntaxError says where a text stops being JSON.
type syntaxError struct {
	offset int
	reason string
	// short means that the text ended too early: more bytes could complete it.
	short bool
}

func (e *syntaxError) Error() string { return e.reason }

// value is one well-formed JSON value. The zero value stands for an absent one
// and answers every question with no.
type value struct {
	raw []byte // without white space around it
	at  int    // offset of raw in its document
}

// parseValue checks the first JSON value of data at or after position at. It
// gives the value and the offset behind it.
func parseValue(data []byte, at int) (v value, end int, err *syntaxError) {
	s := scanner{data: data}
	start := skipSpace(data, at)
	end, err = s.value(start, 0)
	if err != nil {
		return value{}, 0, err
	}
	return value{raw: data[start:end], at: start}, end, nil
}

// parseDocument checks that data holds one JSON value and nothing else.
func parseDocument(data []byte) (value, *syntaxError) {
	v, end, err := parseValue(data, 0)
	if err != nil {
		return value{}, err
	}
	if end = skipSpace(data, end); end < len(data) {
		return value{}, &syntaxError{offset: end, reason: "more than one value"}
	}
	return v, nil
}

// scanner checks the JSON grammar.
type scanner struct {
	data []byte
	// controls allows raw control characters inside strings.
	controls bool
	// sawControl says that there was one.
	sawControl bool
}

func (s *scanner) fail(at int, reason string) *syntaxError {
	if at >= len(s.data) {
		return &syntaxError{offset: len(s.data), reason: "unexpected end", short: true}
	}
	return &syntaxError{offset: at, reason: reason}
}

func (s *scanner) value(i, depth int) (end int, err *syntaxError) {
	if i >= len(s.data) {
		return 0, s.fail(i, "")
	}
	if depth > maxJSONDepth {
		return 0, s.fail(i, "nested too deeply")
	}
	switch c := s.data[i]; c {
	case '{':
		return s.object(i, depth)
	case '[':
		return s.array(i, depth)
	case '"':
		return s.str(i)
	case 't':
		return s.literal(i, "true")
	case 'f':
		return s.literal(i, "false")
	case 'n':
		return s.literal(i, "null")
	default:
		return s.number(i)
	}
}

func (s *scanner) object(i, depth int) (end int, err *syntaxError) {
	i = skipSpace(s.data, i+1)
	if i < len(s.data) && s.data[i] == '}' {
		return i + 1, nil
	}
	for {
		if i >= len(s.data) || s.data[i] != '"' {
			return 0, s.fail(i, "want a member name")
		}
		if i, err = s.str(i); err != nil {
			return 0, err
		}
		i = skipSpace(s.data, i)
		if i >= len(s.data) || s.data[i] != ':' {
			return 0, s.fail(i, "want a colon")
		}
		if i, err = s.value(skipSpace(s.data, i+1), depth+1); err != nil {
			return 0, err
		}
		i = skipSpace(s.data, i)
		switch {
		case i < len(s.data) && s.data[i] == '}':
			return i + 1, nil
		case i < len(s.data) && s.data[i] == ',':
			i = skipSpace(s.data, i+1)
		default:
			return 0, s.fail(i, "want a comma or the end of the object")
		}
	}
}

func (s *scanner) array(i, depth int) (end int, err *syntaxError) {
	i = skipSpace(s.data, i+1)
	if i < len(s.data) && s.data[i] == ']' {
		return i + 1, nil
	}
	for {
		if i, err = s.value(i, depth+1); err != nil {
			return 0, err
		}
		i = skipSpace(s.data, i)
		switch {
		case i < len(s.data) && s.data[i] == ']':
			return i + 1, nil
		case i < len(s.data) && s.data[i] == ',':
			i = skipSpace(s.data, i+1)
		default:
			return 0, s.fail(i, "want a comma or the end of the array")
		}
	}
}

func (s *scanner) str(i int) (end int, err *syntaxError) {
	for i++; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case c == '"':
			return i + 1, nil
		case c == '\\':
			if i, err = s.escape(i); err != nil {
				return 0, err
			}
		case c < ' ':
			if !s.controls {
				return 0, s.fail(i, "control character in a string")
			}
			s.sawControl = true
		}
	}
	return 0, s.fail(i, "")
}

// escape checks the escape sequence at i and gives the offset of its last byte.
func (s *scanner) escape(i int) (last int, err *syntaxError) {
	if i+1 >= len(s.data) {
		return 0, s.fail(i+1, "")
	}
	switch s.data[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1, nil
	case 'u':
		for j := i + 2; j < i+6; j++ {
			if j >= len(s.data) || !isHex(s.data[j]) {
				return 0, s.fail(j, "want four hexadecimal digits")
			}
		}
		return i + 5, nil
	}
	return 0, s.fail(i+1, "unknown escape")
}

func (s *scanner) literal(i int, word string) (end int, err *syntaxError) {
	for j := range len(word) {
		if i+j >= len(s.data) || s.data[i+j] != word[j] {
			return 0, s.fail(i+j, "unknown word")
		}
	}
	return i + len(word), nil
}

func (s *scanner) number(i int) (end int, err *syntaxError) {
	digits := func(i int) int {
		for i < len(s.data) && '0' <= s.data[i] && s.data[i] <= '9' {
			i++
		}
		return i
	}
	start := i
	if s.data[i] == '-' {
		i++
	}
	end = digits(i)
	switch {
	case end == i && i == start:
		return 0, s.fail(i, "want a value")
	case end == i:
		return 0, s.fail(i, "want a digit")
	case s.data[i] == '0':
		end = i + 1
	}
	if i = end; i < len(s.data) && s.data[i] == '.' {
		if end = digits(i + 1); end == i+1 {
			return 0, s.fail(end, "want a digit")
		}
	}
	if i = end; i < len(s.data) && (s.data[i] == 'e' || s.data[i] == 'E') {
		if i++; i < len(s.data) && (s.data[i] == '+' || s.data[i] == '-') {
			i++
		}
		if end = digits(i); end == i {
			return 0, s.fail(end, "want a digit")
		}
	}
	return end, nil
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && isSpace(data[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// skipValue gives the offset behind the value at i of well-formed JSON.
func skipValue(data []byte, i int) int {
	switch data[i] {
	case '"':
		return skipString(data, i)
	case '{', '[':
		depth := 0
		for {
			switch data[i] {
			case '"':
				i = skipString(data, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			if i++; depth == 0 {
				return i
			}
		}
	}
	for i < len(data) && !isSpace(data[i]) && data[i] != ',' && data[i] != '}' && data[i] != ']' {
		i++
	}
	return i
}

func skipString(data []byte, i int) int {
	for i++; data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// kind is the first byte of the value, which tells its type; 0 if absent.
func (v value) kind() byte {
	if len(v.raw) == 0 {
		return 0
	}
	return v.raw[0]
}

func (v value) isObject() bool { return v.kind() == '{' }
func (v value) isArray() bool  { return v.kind() == '[' }
func (v value) isString() bool { return v.kind() == '"' }

// isNull reports whether the value is null or absent.
func (v value) isNull() bool { return v.kind() == 'n' || len(v.raw) == 0 }

// members yields names and values of an object, in order, and nothing for any
// other value. A name is valid until the loop goes on.
func (v value) members() iter.Seq2[[]byte, value] {
	return func(yield func([]byte, value) bool) {
		if !v.isObject() {
			return
		}
		d, i := v.raw, 1
		for {
			if i = skipSpace(d, i); d[i] == ',' {
				i = skipSpace(d, i+1)
			}
			if d[i] == '}' {
				return
			}
			end := skipString(d, i)
			name := d[i+1 : end-1]
			if bytes.IndexByte(name, '\\') >= 0 {
				name = []byte(unquote(d[i:end]))
			}
			i = skipSpace(d, skipSpace(d, end)+1) // over the colon
			end = skipValue(d, i)
			if !yield(name, value{raw: d[i:end], at: v.at + i}) {
				return
			}
			i = end
		}
	}
}

// elements yields the elements of an array and nothing for any other value.
func (v value) elements() iter.Seq[value] {
	return func(yield func(value) bool) {
		if !v.isArray() {
			return
		}
		d, i := v.raw, 1
		for {
			if i = skipSpace(d, i); d[i] == ',' {
				i = skipSpace(d, i+1)
			}
			if d[i] == ']' {
				return
			}
			end := skipValue(d, i)
			if !yield(value{raw: d[i:end], at: v.at + i}) {
				return
			}
			i = end
		}
	}
}

// get gives the last member of that name, absent if there is none.
func (v value) get(name string) (found value) {
	for n, m := range v.members() {
		if string(n) == name {
			found = m
		}
	}
	return found
}

// str gives the text of a string, and "" for any other value.
func (v value) str() string {
	if !v.isString() {
		return ""
	}
	return unquote(v.raw)
}

// number gives the value of a finite number; ok is false for anything else.
func (v value) number() (f float64, ok bool) {
	if c := v.kind(); c != '-' && (c < '0' || c > '9') {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v.raw), 64)
	return f, err == nil
}

// count gives a number of things: whole, never negative, and 0 for anything
// that is no number. A count beyond maxCount is taken for nonsense.
func (v value) count() (n int, ok bool) {
	f, ok := v.number()
	if !ok || f > maxCount || f != f {
		return 0, false
	}
	return max(0, int(f)), true
}

// maxCount bounds the token counts that are believed.
const maxCount = 1 << 40

// unquote gives the text of a well-formed JSON string, quotes included in raw.
// Lone surrogates and invalid UTF-8 become U+FFFD.
func unquote(raw []byte) string {
	s := raw[1 : len(raw)-1]
	if bytes.IndexByte(s, '\\') < 0 {
		if utf8.Valid(s) {
			return string(s)
		}
		return string(bytes.ToValidUTF8(s, []byte("\uFFFD")))
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			next := bytes.IndexByte(s[i:], '\\')
			if next < 0 {
				next = len(s) - i
			}
			out = append(out, s[i:i+next]...)
			i += next
			continue
		}
		if s[i+1] != 'u' {
			out = append(out, unescape(s[i+1]))
			i += 2
			continue
		}
		r := hex4(s[i+2:])
		i += 6
		if utf16.IsSurrogate(r) {
			low := rune(-1)
			if i+6 <= len(s) && s[i] == '\\' && s[i+1] == 'u' {
				low = hex4(s[i+2:])
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				i += 6
			}
		}
		out = utf8.AppendRune(out, r)
	}
	if !utf8.Valid(out) {
		out = bytes.ToValidUTF8(out, []byte("\uFFFD"))
	}
	return string(out)
}

func unescape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

func hex4(s []byte) (r rune) {
	for _, c := range s[:4] {
		switch {
		case c <= '9':
			c -= '0'
		case c >= 'a':
			c -= 'a' - 10
		default:
			c -= 'A' - 10
		}
		r = r<<4 | rune(c)
	}
	return r
}
