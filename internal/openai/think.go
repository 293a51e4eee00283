package openai

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// The tags that models put around their reasoning when the engine does not
// take it out of the content.
const (
	openTag  = "<think>"
	closeTag = "</think>"
)

// orphanBytes is how much of the first line of an answer is held back while a
// closing tag without an opening one may follow. Text that was passed on cannot
// be taken back.
const orphanBytes = 256

type thinkState uint8

const (
	thinkStart     thinkState = iota // nothing but white space yet
	thinkOrphan                      // holding back for a closing tag
	thinkInside                      // between the tags
	thinkText                        // in the answer
	thinkCandidate                   // behind a tag in the answer that may stay open
)

// thinkSplitter separates inline reasoning from the answer. Content goes in in
// pieces of any size and comes out without change but for the tags, the white
// space around them, and content that is white space alone.
type thinkSplitter struct {
	out func(text string, reasoning bool)
	// supported says that the model is known to reason: only then can a closing
	// tag without an opening one mean anything.
	supported bool
	// separated says that the engine sends reasoning in a field of its own.
	separated bool
	// whole says that the content comes in one piece: all of it is searched.
	whole bool

	state  thinkState
	held   []byte // undecided bytes
	lead   int    // how many of them, from the first, are white space
	seen   int    // how many of them hold no closing tag
	trim   bool   // drop white space before the answer: a block stands before it
	code   codeTracker
	gapped bool // the last byte of the answer was white space
}

// write takes in a piece of content.
func (t *thinkSplitter) write(s string) { inPieces(s, t.piece) }

func (t *thinkSplitter) piece(s string) (rest string) {
	switch t.state {
	case thinkStart:
		return t.start(s)
	case thinkOrphan:
		t.held = append(t.held, s...)
		return t.orphan(false)
	case thinkInside:
		return t.inside(s)
	case thinkText:
		return t.text(s)
	}
	return t.candidate(s)
}

// maxPiece bounds in bytes what is read of a text at once. A step may copy what
// it gives back, so that the work on a long text would grow with its square.
const maxPiece = 4 << 10

// inPieces gives a text to read piece by piece, cut between characters, and what
// read gives back once more.
func inPieces(s string, read func(piece string) (rest string)) {
	if s == "" {
		return
	}
	var few [4]string
	for left := append(few[:0], s); len(left) > 0; {
		s, left = left[len(left)-1], left[:len(left)-1]
		if end := pieceEnd(s); end < len(s) {
			left, s = append(left, s[end:]), s[:end]
		}
		if s = read(s); s != "" {
			left = append(left, s)
		}
	}
}

// pieceEnd is the length of the first piece of a text.
func pieceEnd(s string) int {
	if len(s) <= maxPiece {
		return len(s)
	}
	for end := maxPiece; end > maxPiece-utf8.UTFMax; end-- {
		if utf8.RuneStart(s[end]) {
			return end
		}
	}
	return maxPiece
}

// close decides what is still held back: the answer is over.
func (t *thinkSplitter) close() {
	if t.state == thinkOrphan {
		t.write(t.orphan(true))
	}
	held := t.take()
	switch t.state {
	case thinkStart:
		if trimmed := strings.TrimLeft(held, " \t\r\n"); trimmed != "" {
			if !t.trim {
				trimmed = held
			}
			t.out(trimmed, false)
		}
	case thinkInside:
		t.emit(held, true)
	case thinkText:
		t.emit(held, false)
	case thinkCandidate:
		t.emit(held[len(openTag):], true)
	}
}

func (t *thinkSplitter) emit(s string, reasoning bool) {
	if s != "" {
		t.out(s, reasoning)
	}
}

// take gives the held bytes up.
func (t *thinkSplitter) take() string {
	s := string(t.held)
	t.held, t.lead, t.seen = t.held[:0], 0, 0
	return s
}

// start looks for the first thing that is no white space.
func (t *thinkSplitter) start(s string) (rest string) {
	if len(t.held) == t.lead { // only white space so far
		n := len(s) - len(strings.TrimLeft(s, " \t\r\n"))
		if !t.trim {
			t.held = append(t.held, s[:n]...)
			t.lead = len(t.held)
		}
		if s = s[n:]; s == "" {
			return ""
		}
	}
	// Take in no more than decides about a tag.
	n := min(len(s), max(0, t.lead+len(closeTag)-len(t.held)))
	t.held = append(t.held, s[:n]...)
	s = s[n:]
	word := string(t.held[t.lead:])
	switch {
	case strings.HasPrefix(word, openTag):
		t.take()
		t.state = thinkInside
		return word[len(openTag):] + s
	case t.supported && strings.HasPrefix(word, closeTag):
		t.take()
		t.trim = true
		return word[len(closeTag):] + s
	case strings.HasPrefix(openTag, word), t.supported && strings.HasPrefix(closeTag, word):
		return s // s is empty: the word is shorter than a tag
	}
	t.state = thinkText
	if t.supported && !t.separated && !t.trim {
		t.state = thinkOrphan
	}
	return t.take() + s
}

// orphan decides whether the held beginning is reasoning whose opening tag the
// chat template had already written. It gives back what is to be read on.
func (t *thinkSplitter) orphan(end bool) (rest string) {
	if t.whole && !end {
		return "" // all of it is searched, once
	}
	lead := len(t.held) - len(bytes.TrimLeft(t.held, " \t\r\n"))
	limit := lead + orphanBytes
	if lf := bytes.IndexByte(t.held[lead:], '\n'); lf >= 0 {
		limit = min(limit, lead+lf)
	}
	if t.whole {
		limit = len(t.held)
	}
	tag := bytes.Index(t.held, []byte(closeTag))
	switch {
	case tag >= 0 && tag < limit:
		before := string(t.held[:tag])
		if quotesTag(before) {
			break
		}
		rest = string(t.held[tag+len(closeTag):])
		t.take()
		t.emit(before, true)
		t.state, t.trim = thinkStart, true
		return rest
	case end:
	case len(t.held) < limit:
		return ""
	case len(t.held)-partialTag(t.held, closeTag) < limit:
		return "" // the beginning of a tag straddles the limit
	}
	t.state = thinkText
	return t.take()
}

// quotesTag reports whether a closing tag behind the text is no orphan: it has
// an opening tag, or it stands in code.
func quotesTag(before string) bool {
	var code codeTracker
	code.write(before)
	return code.inCode() || strings.Contains(before, openTag)
}

// partialTag is the length of the longest end of b that begins the tag without
// completing it.
func partialTag[T string | []byte](b T, tag string) int {
	for n := min(len(b), len(tag)-1); n > 0; n-- {
		if string(b[len(b)-n:]) == tag[:n] {
			return n
		}
	}
	return 0
}

// inside looks for the closing tag.
func (t *thinkSplitter) inside(s string) (rest string) {
	if len(t.held) > 0 {
		s = t.take() + s
	}
	if i := strings.Index(s, closeTag); i >= 0 {
		t.emit(s[:i], true)
		t.state, t.trim = thinkStart, true
		return s[i+len(closeTag):]
	}
	n := len(s) - partialTag(s, closeTag)
	t.held = append(t.held, s[n:]...)
	t.emit(s[:n], true)
	return ""
}

// text passes the answer on, up to an opening tag that stands directly after
// white space outside code.
func (t *thinkSplitter) text(s string) (rest string) {
	if len(t.held) > 0 {
		s = t.take() + s
	}
	for i := range len(s) {
		c := s[i]
		if c == '<' && t.gapped && !t.code.inCode() {
			switch word := s[i:]; {
			case strings.HasPrefix(word, openTag):
				t.emit(s[:i], false)
				t.state = thinkCandidate
				return word
			case strings.HasPrefix(openTag, word):
				t.emit(s[:i], false)
				t.held = append(t.held, word...)
				return ""
			}
		}
		t.code.writeByte(c)
		t.gapped = isSpace(c)
	}
	t.emit(s, false)
	return ""
}

// candidate holds back what follows a tag in the answer. When the closing tag
// comes all of it was text; when the answer ends without, it was reasoning.
func (t *thinkSplitter) candidate(s string) (rest string) {
	t.held = append(t.held, s...)
	i := bytes.Index(t.held[t.seen:], []byte(closeTag))
	if i < 0 {
		t.seen = max(0, len(t.held)-len(closeTag)+1)
		return ""
	}
	end := t.seen + i + len(closeTag)
	all := t.take()
	t.emit(all[:end], false)
	t.code.write(all[:end])
	t.gapped = false
	t.state = thinkText
	return all[end:]
}
