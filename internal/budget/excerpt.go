package budget

import (
	"fmt"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
)

// excerptOf keeps the first head and the last tail bytes of a text, with a line
// between them that says how much is missing. The count is what the text costs
// less what the kept ends cost, so the same cut always gives the same bytes.
func (p *pricer) excerptOf(role llm.Role, text string, cost, head, tail int) string {
	front, back := text[:head], text[len(text)-tail:]
	missing := max(1, cost-p.textOf(role, front)-p.textOf(role, back))
	var b strings.Builder
	marker := fmt.Sprintf("[... about %d tokens left out ...]", missing)
	b.Grow(head + tail + len(marker) + 2)
	b.WriteString(front)
	if front != "" && !strings.HasSuffix(front, "\n") {
		b.WriteByte('\n')
	}
	b.WriteString(marker)
	if back != "" && !strings.HasPrefix(back, "\n") {
		b.WriteByte('\n')
	}
	b.WriteString(back)
	return b.String()
}

// largestExcerpt finds the excerpt that keeps the most characters at a price of
// at most allowed. price prices an excerpt by the bytes of its head and tail.
// The head gets the odd character. ok is false when not even the marker alone
// fits.
//
// Prices grow with the characters kept, but for a few tokens here and there, so
// the search closes in from both sides by proportion, halving when that is slow,
// and in the end tries a few more characters.
func largestExcerpt(text string, allowed int, price func(head, tail int) int) (head, tail int, ok bool) {
	chars := newCharacters(text)
	try := func(k int) (cost int, fits bool) {
		front, back := chars.first((k+1)/2), chars.last(k/2)
		if front >= back {
			return 0, false
		}
		cost = price(front, len(text)-back)
		if cost > allowed {
			return cost, false
		}
		head, tail = front, len(text)-back
		return cost, true
	}
	low := 0
	lowCost, ok := try(low)
	if !ok {
		return 0, 0, false
	}
	high, highCost := len(text), 0 // 0: not priced
	for step := 0; high-low > 1; step++ {
		k := low + (high-low)/2
		// A text costs about a token for two to four bytes; with a price for the
		// upper end the line between the two is a far better guess.
		switch span := high - low; {
		case highCost == 0:
			k = low + min(span/2, max(1, 2*(allowed-lowCost), low/4))
		case step%3 != 2 && highCost > lowCost:
			k = low + min(max(1, span*(allowed-lowCost)/(highCost-lowCost)), span-1)
		}
		if cost, fits := try(k); fits {
			low, lowCost = k, cost
		} else {
			high, highCost = k, cost
		}
	}
	const unevenness = 8
	for k := low + 2; k <= low+unevenness; k++ {
		if _, fits := try(k); fits {
			low = k
		}
	}
	return head, tail, true
}

// fixedSizes of an excerpt that depends on the text alone, in bytes.
const (
	fixedHead  = 1024
	fixedTail  = 512
	fixedLeast = 2048 // a shorter text stays whole
)

// fixedCut gives the bytes that a fixed excerpt keeps. It ends at a line where
// one ends in the outer half, else between characters.
func fixedCut(text string) (head, tail int) {
	head = boundaryAtMost(text, fixedHead)
	if i := strings.LastIndexByte(text[:head], '\n') + 1; i >= fixedHead/2 {
		head = i
	}
	start := boundaryAtLeast(text, len(text)-fixedTail)
	if i := strings.IndexByte(text[start:], '\n') + 1; i > 0 && i <= fixedTail/2 {
		start += i
	}
	return head, len(text) - start
}
