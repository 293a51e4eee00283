package budget

import (
	"slices"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// characters finds where the first and the last characters of a text end and
// begin, as far as it is asked: a long text of which little is kept costs little.
// A character is a grapheme cluster.
type characters struct {
	text string
	head []int // head[k] is where the first k characters end
	tail []int // tail[k] is where the last k characters begin
}

func newCharacters(text string) *characters {
	return &characters{text: text, head: []int{0}, tail: []int{len(text)}}
}

// first is where the first k characters end, the end of the text if there are
// fewer.
func (c *characters) first(k int) int {
	for k >= len(c.head) {
		at := c.head[len(c.head)-1]
		if at == len(c.text) {
			return at
		}
		c.head = append(c.head, at+clusterLen(c.text[at:]))
	}
	return c.head[k]
}

// last is where the last k characters begin, 0 if there are fewer.
func (c *characters) last(k int) int {
	for k >= len(c.tail) {
		end := c.tail[len(c.tail)-1]
		if end == 0 {
			return 0
		}
		// The characters of the stretch come first to last; they are wanted the
		// other way round.
		from := len(c.tail)
		for at := knownBoundary(c.text, end-1); at < end; at += clusterLen(c.text[at:end]) {
			c.tail = append(c.tail, at)
		}
		slices.Reverse(c.tail[from:])
	}
	return c.tail[k]
}

// clusterLen is the length in bytes of the first character of s.
func clusterLen(s string) int {
	if s[0] < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf && !(s[0] == '\r' && s[1] == '\n')) {
		return 1
	}
	cluster, _, _, _ := uniseg.FirstGraphemeClusterInString(s, -1)
	return len(cluster)
}

// lookBack bounds the search for a place that is a boundary whatever stands
// before it. Only a text of nothing but flags or combining marks has none nearby.
const lookBack = 64 << 10

// knownBoundary returns the last place at or before i that is a boundary between
// characters whatever stands before it.
func knownBoundary(s string, i int) int {
	for stop := max(0, i-lookBack); i > stop; i-- {
		if isBoundary(s, i) {
			return i
		}
	}
	for i > 0 && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}

// isBoundary reports whether a boundary lies at i for certain. The two runes
// around i decide unless the first one extends a character before it; then the
// answer is no.
func isBoundary(s string, i int) bool {
	if s[i-1] < utf8.RuneSelf && s[i] < utf8.RuneSelf {
		return s[i-1] != '\r' || s[i] != '\n'
	}
	if !utf8.RuneStart(s[i]) {
		return false
	}
	_, n := utf8.DecodeLastRuneInString(s[:i])
	_, m := utf8.DecodeRuneInString(s[i:])
	return uniseg.GraphemeClusterCount("a"+s[i-n:i+m]) == 3
}

// boundaryAtMost is the last boundary between characters at or before i.
func boundaryAtMost(s string, i int) int {
	if i <= 0 || i >= len(s) {
		return min(max(i, 0), len(s))
	}
	at := knownBoundary(s, i)
	for at < i {
		next := at + clusterLen(s[at:])
		if next > i {
			break
		}
		at = next
	}
	return at
}

// boundaryAtLeast is the first boundary between characters at or after i.
func boundaryAtLeast(s string, i int) int {
	at := boundaryAtMost(s, i)
	if at < i {
		at += clusterLen(s[at:])
	}
	return at
}
