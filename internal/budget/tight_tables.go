package budget

import (
	"strings"
	"sync"
)

// Prices of ASCII text for policy 2, in 1/32 token. They are the envelope of 23
// tokenizer families, calibrated from above: on held-out texts none counts more.
const (
	tightScale   = 32
	textStart    = 128 // any text that is not empty
	coreSpaced   = 33  // a core word after a space
	coreGlued    = 32  // directly after a letter or digit
	coreElse     = 36  // anywhere else
	afterCore    = -19 // a word outside the core, next after a core word
	wordUnspaced = 2   // a word outside the core that follows neither space, letter nor digit
	pairUncommon = 6
	pairRare     = 22
	digit        = 34
	digitRun     = 1
	lineFirst    = 27
	lineMore     = 33 // a line feed directly after another
	carriage     = 32
	tabFirst     = 36
	tabMore      = 33
	spaceRun     = 50 // two spaces or more
	spaceRunMore = 34 // each 16 spaces beyond the first 16 of a run
	spacePunct   = 32 // a single space before punctuation
	spaceDigit   = 34 // before a digit
	spaceElse    = 26 // before anything but a letter, or at the end
	punctFirst   = 32 // the first of a run of punctuation
	punctOther   = 33 // unlike the one before it
	punctSame    = 20 // like the one before it, up to the fourth
	punctMore    = 33 // from the fifth on
	punctRule    = 11 // from the fifth on, of the characters that rules are drawn with
	control      = 32

	ruleCharacters = "#*/=_-"
)

// Words outside the core by length in letters; a longer one costs the last
// price and the one of each letter more.
var (
	lowerWord       = [...]int{1: 32, 34, 50, 72, 72, 72, 72, 72, 103, 149}
	capitalisedWord = [...]int{2: 54, 54, 54, 81, 81, 85, 103, 103, 103}
	upperWord       = [...]int{1: 33, 35, 58, 58, 87, 101}
)

const (
	lowerMore       = 17
	capitalisedMore = 9
	upperMore       = 20
)

// pairClasses says how rare a pair of letters is, row by first letter, column by
// second: 0 at least 0.1 % of the pairs of English prose and code, 1 at least
// 0.015 %, 2 rarer.
const pairClasses = "" +
	"2000210102100020200000110202120222012022022112022202" +
	"0212012002001101201002221201100122022112012101112212" +
	"0000001111100010000010001202210012022121022011022212" +
	"1212021102211112201112222202210222022212022110122222" +
	"0000000222100000200020212012221222222222122202122222" +
	"1222021202222112221122222201100022022011012200012202" +
	"0011022202211200221102222202000002021111012100001212" +
	"1000100212000000200000012202110221021012002000022212" +
	"2222222222222222222202222201000102021100012000012202" +
	"0201012002111100210002120202010120022111002000021102" +
	"1011011202200020200022212202220222022222122222222222" +
	"0222122002222102201222122212121222122212202210222222" +
	"1222122212211110211122222212220222222222122222222222"

const (
	coreShortest = 3
	coreLongest  = 12
	coreBits     = 12
	coreSlots    = 1 << coreBits
)

// tightTables are the tables in the form that the scan needs.
type tightTables struct {
	core [coreSlots]packedWord // open addressing; the zero word is free
	pair [32 * 32]uint8        // by the low five bits of two letters
	han  [0xa000 - 0x4e00]uint8
	kana [0x3100 - 0x3040]uint8
}

// tables are built at first use, so that a start without planning pays nothing.
var tables = sync.OnceValue(func() *tightTables {
	t := new(tightTables)
	for w := range strings.FieldsSeq(coreWords) {
		p := packWord(w, 0, len(w))
		slot := p.slot()
		for t.core[slot] != (packedWord{}) {
			slot = (slot + 1) % coreSlots
		}
		t.core[slot] = p
	}
	for i := range len(pairClasses) {
		first, second := i/26+1, i%26+1
		t.pair[first<<5|second] = [...]uint8{0, pairUncommon, pairRare}[pairClasses[i]-'0']
	}
	for i := range t.han {
		t.han[i] = hanOther
	}
	for _, r := range hanTwo {
		t.han[r-0x4e00] = hanTwoTokens
	}
	for _, r := range hanOne {
		t.han[r-0x4e00] = hanOneToken
	}
	for i := range t.kana {
		t.kana[i] = kanaOther
	}
	for _, r := range kanaOne {
		t.kana[r-0x3040] = kanaOneToken
	}
	return t
})

// packedWord holds the letters of a core word in two integers, so that looking
// one up compares numbers.
type packedWord struct{ first, rest uint64 }

// packWord packs s[i:end], which has at most coreLongest letters.
func packWord(s string, i, end int) (p packedWord) {
	n := end - i
	if i+coreLongest > len(s) { // too near the end for whole loads
		for k := n - 1; k >= 0; k-- {
			if k >= 8 {
				p.rest = p.rest<<8 | uint64(s[i+k])
			} else {
				p.first = p.first<<8 | uint64(s[i+k])
			}
		}
		return p
	}
	w := s[i : i+coreLongest]
	p.first = uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 |
		uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
	if n < 8 {
		p.first &= 1<<(8*n) - 1
		return p
	}
	p.rest = uint64(w[8]) | uint64(w[9])<<8 | uint64(w[10])<<16 | uint64(w[11])<<24
	p.rest &= 1<<(8*(n-8)) - 1
	return p
}

// slot is where the word belongs in a table.
func (p packedWord) slot() uint64 {
	return (p.first ^ p.rest*0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd >> (64 - coreBits)
}

// isCore reports whether s[i:end] is a core word.
func (t *tightTables) isCore(s string, i, end int) bool {
	if n := end - i; n < coreShortest || n > coreLongest {
		return false
	}
	return t.hasCore(packWord(s, i, end))
}

func (t *tightTables) hasCore(p packedWord) bool {
	for slot := p.slot(); t.core[slot] != (packedWord{}); slot = (slot + 1) % coreSlots {
		if t.core[slot] == p {
			return true
		}
	}
	return false
}
