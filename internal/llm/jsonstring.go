package llm

import (
	"bytes"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendJSONString writes s as a JSON string in the form that goes over the
// wire: only the quote, the backslash and control characters are escaped, so
// that bytes, and with them an engine's token counts, stay the same wherever
// the text is encoded. Invalid UTF-8 becomes U+FFFD.
func AppendJSONString(b *bytes.Buffer, s string) {
	b.WriteByte('"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b.WriteString(s[start:i])
				b.WriteString("\uFFFD")
				i++
				start = i
				continue
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b.WriteString(s[start:i])
		appendEscape(b, c)
		i++
		start = i
	}
	b.WriteString(s[start:])
	b.WriteByte('"')
}

func appendEscape(b *bytes.Buffer, c byte) {
	b.WriteByte('\\')
	switch c {
	case '"', '\\':
		b.WriteByte(c)
	case '\n':
		b.WriteByte('n')
	case '\r':
		b.WriteByte('r')
	case '\t':
		b.WriteByte('t')
	case '\b':
		b.WriteByte('b')
	case '\f':
		b.WriteByte('f')
	default:
		b.WriteString("u00")
		b.WriteByte(hexDigits[c>>4])
		b.WriteByte(hexDigits[c&15])
	}
}
