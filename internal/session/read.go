package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/drover-dev/drover/internal/llm"
)

// VersionError refuses a log of a newer format.
type VersionError struct {
	ID      string
	Version int // of the log
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("session %s has format version %d, and this drover reads versions up to %d: use a newer drover",
		e.ID, e.Version, formatVersion)
}

// Reader reads the records of a log in file order.
type Reader struct {
	lines  *lineReader
	image  func(*llm.Image) (*llm.Image, error)
	onWarn func(Warning)

	header  header // what of it could be read
	begun   bool   // the first line was looked at
	line    int
	nextSeq int // expected
	bad     badLines
	// unreadable and missing are the counts of [State].
	unreadable, missing int
	// tail says, at the end, what is to be done before appending.
	tail tail
}

// badLines are the unreadable lines since the last record.
type badLines struct {
	count int
	first struct {
		line  int
		start int64
		bytes int64
	}
	torn     bool // the first one is no complete JSON
	warnings []Warning
}

// tail is the state of the end of a file.
type tail struct {
	cut   int64 // cut the file to this length, if not negative
	unend bool  // the last line lacks its line ending
}

// ReaderOptions are the settings of a [Reader].
type ReaderOptions struct {
	// Image finds the bytes of an image that a message refers to. By default
	// images stay without Data.
	Image func(ref *llm.Image) (*llm.Image, error)
	// Warn is told of everything that is wrong with the log.
	Warn func(Warning)
}

// NewReader reads a log. opts may be nil.
func NewReader(r io.Reader, opts *ReaderOptions) *Reader {
	if opts == nil {
		opts = &ReaderOptions{}
	}
	rd := &Reader{lines: newLineReader(r, MaxLine), image: opts.Image, onWarn: opts.Warn, tail: tail{cut: -1}}
	if rd.onWarn == nil {
		rd.onWarn = func(Warning) {}
	}
	return rd
}

// Next returns the next record. At the end the error is io.EOF; for a log of a
// newer format it is a *[VersionError]; else it is the file's. Lines that cannot
// be read are no error.
func (r *Reader) Next() (Record, error) {
	e, err := r.next()
	if err != nil {
		return nil, err
	}
	return e.rec, nil
}

func (r *Reader) next() (*entry, error) {
	for {
		line, err := r.lines.next()
		if err == io.EOF {
			r.finish()
			return nil, io.EOF
		}
		if err != nil {
			return nil, err
		}
		r.line++
		r.tail.unend = !line.ended
		text := bytes.TrimSpace(line.text)
		if len(text) == 0 && !line.tooLong {
			continue
		}
		first := !r.begun
		r.begun = true
		if first {
			ok, err := r.readHeader(text)
			if err != nil {
				return nil, err
			}
			if ok {
				continue
			}
		}
		if e := r.readEntry(line, text, first); e != nil {
			return e, nil
		}
	}
}

// readHeader reports whether the first line is a header.
func (r *Reader) readHeader(text []byte) (bool, error) {
	var h header
	if err := json.Unmarshal(text, &h); err != nil || h.Type != headerType {
		return false, nil
	}
	if h.Version > formatVersion {
		return false, &VersionError{ID: h.ID, Version: h.Version}
	}
	if h.Version < 1 {
		r.warn("the header names no format version")
	}
	r.header = h
	return true, nil
}

// readEntry reads a line that should hold a record; nil if it does not.
func (r *Reader) readEntry(line rawLine, text []byte, first bool) *entry {
	if line.tooLong {
		r.skip(line, false, "longer than %d bytes: skipped", r.lines.max)
		return nil
	}
	e, err := parseEntry(text)
	if first {
		r.warn("the log has no readable header")
	}
	if errors.Is(err, errNotJSON) {
		if e, ok := rejoin(text); ok {
			r.skip(line, false, "damaged: the record at its end was recovered")
			r.accept(e)
			return e
		}
	}
	switch {
	case err == nil:
		r.accept(e)
		return e
	case errors.Is(err, errHeader):
		r.warn("a second header: skipped")
	default:
		r.skip(line, errors.Is(err, errNotJSON), "unreadable (%v): skipped", err)
	}
	return nil
}

func (r *Reader) warn(format string, args ...any) {
	r.onWarn(Warning{r.line, fmt.Sprintf(format, args...)})
}

// skip notes an unreadable line. Whether it is damage or the torn end of the
// file is known only when something or nothing follows.
func (r *Reader) skip(line rawLine, torn bool, format string, args ...any) {
	b := &r.bad
	if b.count++; b.count == 1 {
		b.first.line, b.first.start, b.first.bytes, b.torn = r.line, line.start, r.lines.end-line.start, torn
	}
	if len(b.warnings) < MaxWarnings {
		b.warnings = append(b.warnings, Warning{r.line, fmt.Sprintf(format, args...)})
	}
}

// damage reports the noted lines as damage.
func (r *Reader) damage() {
	for _, w := range r.bad.warnings {
		r.onWarn(w)
	}
	r.unreadable += r.bad.count
	r.bad = badLines{}
}

// accept completes an entry that was read, and checks its number.
func (r *Reader) accept(e *entry) {
	bad := r.bad.count
	r.damage()
	e.line = r.line
	switch gap := e.seq - r.nextSeq; {
	case gap < 0:
		r.warn("record number %d was used before: two processes wrote this log; the order of the file is kept", e.seq)
	case gap > bad:
		r.missing += gap - bad
		r.warn("%d records are missing before number %d", gap-bad, e.seq)
	}
	r.nextSeq = max(r.nextSeq, e.seq+1)
	if m, ok := e.rec.(*UserMessage); ok && r.image != nil {
		r.loadImages(m)
	}
}

func (r *Reader) loadImages(m *UserMessage) {
	for i, p := range m.Parts {
		ref, ok := p.(*llm.Image)
		if !ok {
			continue
		}
		img, err := r.image(ref)
		if err != nil {
			r.warn("image %s: %v", ref.Name, err)
			continue
		}
		m.Parts[i] = img
	}
}

// finish decides what the end of the file is.
func (r *Reader) finish() {
	if !r.begun {
		r.line = 0
		r.warn("the log is empty")
	}
	b := &r.bad
	if b.count == 1 && b.torn {
		r.tail = tail{cut: b.first.start}
		r.onWarn(Warning{b.first.line, fmt.Sprintf("the last record is incomplete (%d bytes) and is left out", b.first.bytes)})
		r.bad = badLines{}
	}
	r.damage()
}

// Fold reads a log to its end and returns the state. Images are not looked up:
// texts stand in their places. The error is a *[VersionError] or the reader's.
func Fold(r io.Reader) (*State, error) {
	s, _, err := fold(r, nil)
	return s, err
}

func fold(r io.Reader, image func(*llm.Image) (*llm.Image, error)) (*State, tail, error) {
	return foldReader(NewReader(r, &ReaderOptions{Image: image}))
}

func foldReader(rd *Reader) (*State, tail, error) {
	s := new(State)
	rd.onWarn = func(w Warning) { s.Warnings = addWarning(s.Warnings, w) }
	for {
		e, err := rd.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, rd.tail, err
		}
		s.line = e.line
		s.Apply(e.rec)
	}
	s.line = 0
	s.ID, s.CWD, s.Created = rd.header.ID, rd.header.CWD, time.Time(rd.header.Created)
	if s.Updated.IsZero() {
		s.Updated = s.Created
	}
	s.Unreadable, s.Missing = rd.unreadable, rd.missing
	return s, rd.tail, nil
}

// newState is the state of a log with nothing but a header.
func newState(h *header) *State {
	created := time.Time(h.Created).UTC().Truncate(time.Millisecond)
	return &State{ID: h.ID, CWD: h.CWD, Created: created, Updated: created}
}
