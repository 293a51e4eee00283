package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// harmless shows what a model, a tool or a file wrote without letting it move
// the cursor, colour the screen or turn the direction of text around: such
// characters become U+FFFD. Line feeds and tabs stay.
func harmless(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if !strings.ContainsFunc(s, harmful) && utf8.ValidString(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if harmful(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// harmful reports whether a character does something other than being seen. The
// two joiners belong to scripts and emoji.
func harmful(r rune) bool {
	switch r {
	case '\n', '\t', '\u200c', '\u200d':
		return false
	}
	return r < ' ' || r >= 0x7f && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// oneLine is harmless, in one line.
func oneLine(s string) string {
	return strings.Join(strings.Fields(harmless(s)), " ")
}

// printSafeJSON is printJSON with harmful characters as escape sequences: to a
// program they are the same, and to a terminal they are text.
func printSafeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	if err := printJSON(&b, v); err != nil {
		return err
	}
	_, err := w.Write(escapeJSON(b.Bytes()))
	return err
}

// safeJSON is a value as JSON in one line, see [printSafeJSON].
func safeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return escapeJSON(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), err
}

// escapeJSON escapes the harmful characters of a JSON text, which can only stand
// in its strings.
func escapeJSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, harmful) {
		return text
	}
	out := make([]byte, 0, len(text)+64)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case !harmful(r):
			out = append(out, text[:size]...)
		case r < 0x10000:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		}
		text = text[size:]
	}
	return out
}

// indentJSON lays out raw JSON; what is none is returned as it is.
func indentJSON(raw []byte) []byte {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return raw
	}
	return b.Bytes()
}

// maxShown bounds what show prints of a text that is not the conversation's own:
// a call's arguments and a result.
const (
	maxShownLines = 8
	maxShownBytes = 1200
)

// shorten cuts a harmless text to its first lines and says what is missing.
func shorten(s string) string {
	s = strings.TrimRight(s, "\n")
	total := strings.Count(s, "\n") + 1
	cut := s
	if len(cut) > maxShownBytes {
		cut = strings.ToValidUTF8(cut[:maxShownBytes], "")
	}
	if lines := strings.SplitN(cut, "\n", maxShownLines+1); len(lines) > maxShownLines {
		cut = strings.Join(lines[:maxShownLines], "\n")
	}
	if cut == s {
		return s
	}
	return fmt.Sprintf("%s\n[… %d bytes in %d lines]", cut, len(s), total)
}

// indent puts a prefix before each line.
func indent(s, prefix string) string {
	return prefix + strings.ReplaceAll(s, "\n", "\n"+prefix)
}
