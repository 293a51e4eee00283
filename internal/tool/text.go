package tool

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// cutText gives the first n bytes of s, at a character boundary, with a mark
// when something was left out.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	cut := runeStart(s, n)
	return fmt.Sprintf("%s...[+%d bytes]", s[:cut], len(s)-cut)
}

// runeStart moves i back to the start of the character that holds it. Bytes
// that are no UTF-8 are characters of their own.
func runeStart(s string, i int) int {
	for j := i; j > 0 && j > i-utf8.UTFMax; j-- {
		if utf8.RuneStart(s[j]) {
			if _, n := utf8.DecodeRuneInString(s[j:]); j+n > i {
				return j
			}
			return i
		}
	}
	return i
}

// plural is "1 line", "2 lines".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "ch") {
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// byteSize is a size for people.
func byteSize(n int64) string {
	switch {
	case n < 1<<10:
		return plural(int(n), "byte")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
}

// countLines counts lines; what stands after the last newline is one too.
func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

// oneLine makes a title out of a text.
func oneLine(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= limit {
		return s
	}
	return s[:runeStart(s, limit)] + "..."
}
