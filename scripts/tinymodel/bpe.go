package main

import (
	"cmp"
	"regexp"
	"strings"
)

// alphabet is the reversible table of byte-level vocabularies: each byte has a
// printable character of its own, and tokens are written in these characters.
// Bytes that are printable in Latin-1 stand for themselves, the others get the
// characters from U+0100 on, in order.
var alphabet = func() (table [256]rune) {
	spare := rune(0x100)
	for b := range table {
		r := rune(b)
		if r > ' ' && r < 0x7f || r > 0xa0 && r != 0xad {
			table[b] = r
			continue
		}
		table[b] = spare
		spare++
	}
	return table
}()

// spell writes text in the alphabet, as vocabularies do.
func spell(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		b.WriteRune(alphabet[c])
	}
	return b.String()
}

// A pair is two adjacent tokens that may become one.
type pair struct{ left, right string }

func (p pair) String() string { return p.left + " " + p.right }

// words splits text where no merge may cross. Tokenizers split a little
// differently; that only means that a merge learned here may never be used.
var words = regexp.MustCompile(`'(?:s|t|re|ve|m|ll|d)| ?\pL+| ?\pN+| ?[^\s\pL\pN]+|\s+`)

// train learns up to n merges from text: again and again the pair seen most
// often, the alphabetically first of equals, until all words are one token.
func train(text string, n int) []pair {
	counts := map[string]int{}
	for _, w := range words.FindAllString(text, -1) {
		counts[spell(w)]++
	}
	var corpus []word
	seen := map[pair]int{}
	for text, count := range counts {
		w := word{strings.Split(text, ""), count}
		w.tally(seen, w.count)
		corpus = append(corpus, w)
	}
	var merges []pair
	for len(merges) < n {
		best, most := pair{}, 0
		for p, count := range seen {
			if count > most || count == most && comparePairs(p, best) < 0 {
				best, most = p, count
			}
		}
		if most == 0 {
			break
		}
		merges = append(merges, best)
		for i := range corpus {
			w := &corpus[i]
			joined := join(w.tokens, best)
			if len(joined) == len(w.tokens) {
				continue
			}
			w.tally(seen, -w.count)
			w.tokens = joined
			w.tally(seen, w.count)
		}
	}
	return merges
}

// A word is a distinct word of a corpus, in the tokens so far, and how often it occurs.
type word struct {
	tokens []string
	count  int
}

// tally adds count for each pair of the word, and forgets pairs that are gone.
func (w *word) tally(seen map[pair]int, count int) {
	for i := range len(w.tokens) - 1 {
		p := pair{w.tokens[i], w.tokens[i+1]}
		if seen[p] += count; seen[p] == 0 {
			delete(seen, p)
		}
	}
}

func comparePairs(a, b pair) int {
	return cmp.Or(strings.Compare(a.left, b.left), strings.Compare(a.right, b.right))
}

// join makes one token of each occurrence of p, from the left. The result may
// be tokens itself, when there is none.
func join(tokens []string, p pair) []string {
	var out []string
	kept := 0 // tokens[kept:i] are still to be copied
	for i := 0; i+1 < len(tokens); i++ {
		if tokens[i] == p.left && tokens[i+1] == p.right {
			out = append(append(out, tokens[kept:i]...), p.left+p.right)
			kept = i + 2
			i++
		}
	}
	if kept == 0 {
		return tokens
	}
	return append(out, tokens[kept:]...)
}
