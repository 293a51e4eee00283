package budget

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/drover-dev/drover/internal/llm"
)

// tightText is policy 2's estimate of a text: the largest count that any of the
// measured tokenizer families gives, from above, in one pass.
func tightText(s string) int {
	if s == "" {
		return 0
	}
	return (tables().scan(s) + tightScale - 1) / tightScale
}

// htmlEscapes are what chat templates that write arguments as JSON make of these
// characters.
var htmlEscapes = strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`)

// tightArguments prices the arguments of a call as the JSON string they travel in.
func tightArguments(s string) int { return tightText(htmlEscapes.Replace(jsonString(s))) }

// tightTool prices a tool as the compact object it travels in.
func tightTool(t *llm.ToolDef) int { return tightText(t.Wire) }

// jsonString is s as llm.AppendJSONString writes it. It has a way of its own for
// what texts are full of.
func jsonString(s string) string {
	if !utf8.ValidString(s) {
		return uncommonJSONString(s)
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/8 + 2)
	b.WriteByte('"')
	start := 0
	for i := range len(s) {
		var escape string
		switch c := s[i]; {
		case c == '\n':
			escape = `\n`
		case c == '"':
			escape = `\"`
		case c == '\\':
			escape = `\\`
		case c == '\t':
			escape = `\t`
		case c < ' ':
			return uncommonJSONString(s)
		default:
			continue
		}
		b.WriteString(s[start:i])
		b.WriteString(escape)
		start = i + 1
	}
	b.WriteString(s[start:])
	b.WriteByte('"')
	return b.String()
}

func uncommonJSONString(s string) string {
	var b bytes.Buffer
	llm.AppendJSONString(&b, s)
	return b.String()
}

// wordState is what the price of a part of a word depends on besides itself.
type wordState struct {
	end      int  // just after the last letter or digit
	nearCore bool // the last word was a core word
}

// scan prices s in 1/32 token.
func (t *tightTables) scan(s string) int {
	total := textStart
	w := wordState{end: -1}
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			cost, n := t.foreign(s[i:])
			total += cost
			i += n
			w.nearCore = false
			continue
		}
		switch asciiClass[c] {
		case classLower, classUpper:
			total += t.hump(s, i, humpEnd(s, i), &w)
			i = w.end
		case classDigit:
			n := runLen(s[i:], classDigit)
			total += digitRun + n*digit
			i += n
			w = wordState{end: i}
		case classSpace:
			n := runLen(s[i:], classSpace)
			total += spaces(s[i+n:], n)
			i += n
		case classPunct, classUnderscore:
			cost, n := punctuation(s[i:])
			total += cost
			i += n
		default:
			total += blank(s, i)
			i++
		}
	}
	return total
}

// hump prices s[i:end], a part of a word as humpEnd finds it.
func (t *tightTables) hump(s string, i, end int, w *wordState) (cost int) {
	glued := w.end == i
	spaced := i > 0 && s[i-1] == ' '
	w.end = end
	if t.isCore(s, i, end) {
		w.nearCore = true
		switch {
		case glued:
			return coreGlued
		case spaced:
			return coreSpaced
		}
		return coreElse
	}
	cost = t.word(s[i:end])
	if !glued && !spaced {
		cost += wordUnspaced
	}
	if w.nearCore {
		cost += afterCore
	}
	w.nearCore = false
	return cost
}

// humpEnd returns the end of the part of a word that starts at i: small letters,
// a capital with the small letters after it, or capitals, of which the last one
// is left to the small letters that follow.
func humpEnd(s string, i int) int {
	j := i
	for j < len(s) && s[j]-'A' < 26 {
		j++
	}
	small := j
	for j < len(s) && s[j]-'a' < 26 {
		j++
	}
	if j > small && small-i > 1 {
		return small - 1
	}
	return j
}

// word prices a part of a word outside the core.
func (t *tightTables) word(w string) int {
	cost := 0
	for k := 1; k < len(w); k++ {
		cost += int(t.pair[int(w[k-1]&31)<<5|int(w[k]&31)])
	}
	switch n := len(w); {
	case w[0] >= 'a':
		return cost + priceByLength(lowerWord[:], n, lowerMore)
	case n > 1 && w[1] >= 'a':
		return cost + priceByLength(capitalisedWord[:], n, capitalisedMore)
	default:
		return cost + priceByLength(upperWord[:], n, upperMore)
	}
}

func priceByLength(prices []int, n, more int) int {
	if n < len(prices) {
		return prices[n]
	}
	return prices[len(prices)-1] + (n-len(prices)+1)*more
}

func runLen(s string, class byte) int {
	n := 1
	for n < len(s) && s[n] < utf8.RuneSelf && asciiClass[s[n]] == class {
		n++
	}
	return n
}

// spaces prices a run of n spaces before rest.
func spaces(rest string, n int) int {
	switch {
	case n > 1:
		return spaceRun + (n-1)/16*spaceRunMore
	case rest == "" || rest[0] >= utf8.RuneSelf:
		return spaceElse
	}
	switch asciiClass[rest[0]] {
	case classLower, classUpper:
		return 0
	case classPunct, classUnderscore:
		return spacePunct
	case classDigit:
		return spaceDigit
	}
	return spaceElse
}

// punctuation prices the run of punctuation at the start of s.
func punctuation(s string) (cost, n int) {
	var r punctuationRun
	for n < len(s) && s[n] < utf8.RuneSelf && (asciiClass[s[n]] == classPunct || asciiClass[s[n]] == classUnderscore) {
		r.add(s[n])
		n++
	}
	return r.cost, n
}

// punctuationRun prices punctuation one character after the other.
type punctuationRun struct {
	cost int
	last byte
	same int // how often in a row
}

func (r *punctuationRun) add(c byte) {
	switch {
	case r.cost == 0:
		r.cost, r.last, r.same = punctFirst, c, 1
		return
	case c != r.last:
		r.cost += punctOther
		r.last, r.same = c, 1
		return
	}
	r.same++
	switch {
	case r.same <= 4:
		r.cost += punctSame
	case strings.IndexByte(ruleCharacters, c) >= 0:
		r.cost += punctRule
	default:
		r.cost += punctMore
	}
}

// blank prices the line feed, tab, carriage return or control character at i.
func blank(s string, i int) int {
	repeated := i > 0 && s[i-1] == s[i]
	switch {
	case s[i] == '\n' && repeated:
		return lineMore
	case s[i] == '\n':
		return lineFirst
	case s[i] == '\t' && repeated:
		return tabMore
	case s[i] == '\t':
		return tabFirst
	case s[i] == '\r':
		return carriage
	}
	return control
}

// foreign prices the run of characters outside ASCII at the start of s.
func (t *tightTables) foreign(s string) (cost, n int) {
	cost = runStart
	var last rune
	repeats := 0
	for n < len(s) && s[n] >= utf8.RuneSelf {
		r, size := utf8.DecodeRuneInString(s[n:])
		if r == last {
			repeats++
		} else {
			last, repeats = r, 0
		}
		price := t.rune(r)
		if repeats >= 2 && price != boxCommon { // long runs of one character rarely merge
			price = [...]int{1: repeatedThree, repeatedTwo, repeatedThree, repeatedFour}[size]
		}
		cost += price
		n += size
	}
	return cost, n
}

func (t *tightTables) rune(r rune) int {
	if i := int(r) - 0x4e00; uint(i) < uint(len(t.han)) {
		return int(t.han[i])
	}
	if i := int(r) - 0x3040; uint(i) < uint(len(t.kana)) {
		return int(t.kana[i])
	}
	i, found := slices.BinarySearchFunc(runeRanges[:], r, func(rr runeRange, r rune) int {
		return int(rr.from) - int(r)
	})
	if !found {
		i--
	}
	return int(runeRanges[i].cost)
}
