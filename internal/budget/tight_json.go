package budget

import "unicode/utf8"

// tightResult prices the body of a tool result as the JSON string it travels in,
// tightText(jsonString(s)). Every tool result goes through here, so that string
// is made only where s has control characters besides line feed and tab.
func tightResult(s string) int {
	if utf8.ValidString(s) {
		if cost, ok := tables().scanJSON(s); ok {
			return (cost + tightScale - 1) / tightScale
		}
	}
	return tightText(jsonString(s))
}

// classForeign is the class of bytes outside ASCII in jsonClass.
const classForeign = 'f'

// jsonClass gives the class with which the JSON form of a byte begins.
var jsonClass = func() (class [256]byte) {
	for c := range class {
		switch {
		case c >= utf8.RuneSelf:
			class[c] = classForeign
		case c == '\n' || c == '\t' || c == '_':
			class[c] = classPunct
		default:
			class[c] = asciiClass[c]
		}
	}
	return class
}()

// scanJSON is scan of the JSON form of s, without making it. It gives up at a
// control character besides line feed and tab.
func (t *tightTables) scanJSON(s string) (total int, ok bool) {
	w := wordState{end: -1}
	total, i, letter := jsonRun(s, 0, true)
	total += textStart
	for {
		if letter != 0 {
			total += t.escaped(letter, s, i, &w)
			i, letter = w.end, 0
		} else if i > len(s) {
			return total, true
		}
		if i == len(s) {
			return total + punctFirst, true
		}
		switch jsonClass[s[i]] {
		case classForeign:
			cost, n := t.foreign(s[i:])
			total += cost
			i += n
			w.nearCore = false
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
			if rest := s[i+n:]; n == 1 && (rest == "" || jsonClass[rest[0]] == classPunct) {
				total += spacePunct
			} else {
				total += spaces(rest, n)
			}
			i += n
		case classPunct:
			var cost int
			cost, i, letter = jsonRun(s, i, false)
			total += cost
		default:
			if s[i] < ' ' {
				return 0, false
			}
			total += control
			i++
		}
	}
}

// jsonRun prices the run of punctuation at s[i:] in its JSON form, with the
// opening quote before it, if that is to come first, and the closing quote at the
// end of s, for which end is one more. A run that ends with an escaped line feed or
// tab is followed by the letter of the escape, else the letter is 0.
func jsonRun(s string, i int, opening bool) (cost, end int, letter byte) {
	var r punctuationRun
	if opening {
		r.add('"')
	}
	for ; i < len(s); i++ {
		c := s[i]
		switch {
		case jsonClass[c] != classPunct:
			return r.cost, i, 0
		case c == '\n':
			r.add('\\')
			return r.cost, i + 1, 'n'
		case c == '\t':
			r.add('\\')
			return r.cost, i + 1, 't'
		case c == '"' || c == '\\':
			r.add('\\')
		}
		r.add(c)
	}
	r.add('"')
	return r.cost, i + 1, 0
}

// escaped prices the part of a word that consists of the letter of an escape and
// the small letters at s[i:].
func (t *tightTables) escaped(letter byte, s string, i int, w *wordState) (cost int) {
	end := i
	for end < len(s) && s[end]-'a' < 26 {
		end++
	}
	w.end = end
	if n := end - i + 1; n >= coreShortest && n <= coreLongest {
		p := packWord(s, i, end)
		p.first, p.rest = p.first<<8|uint64(letter), p.rest<<8|p.first>>56
		if t.hasCore(p) {
			w.nearCore = true
			return coreElse
		}
	}
	cost = t.lower(letter, s[i:end]) + wordUnspaced
	if w.nearCore {
		cost += afterCore
	}
	w.nearCore = false
	return cost
}

// lower prices a word of small letters outside the core by its first letter and
// the rest.
func (t *tightTables) lower(first byte, rest string) int {
	cost := priceByLength(lowerWord[:], 1+len(rest), lowerMore)
	for k := range len(rest) {
		cost += int(t.pair[int(first&31)<<5|int(rest[k]&31)])
		first = rest[k]
	}
	return cost
}
