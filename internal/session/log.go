package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/drover-dev/drover/internal/llm"
)

// UnsavedError says that records are in memory only: the disk is full, say. They
// are written with the next record. Whoever runs something with effects outside
// drover does not run it meanwhile.
type UnsavedError struct {
	ID  string
	Err error
}

func (e *UnsavedError) Error() string { return fmt.Sprintf("session %s is not saved: %v", e.ID, e.Err) }

func (e *UnsavedError) Unwrap() error { return e.Err }

// errClosed refuses to append to a closed log.
var errClosed = errors.New("the session's log is closed")

// maxUnsynced bounds what rides along in memory until the next gating record, in
// bytes.
const maxUnsynced = 1 << 20

// Log is a session that is being written. Its methods are safe for concurrent
// use.
type Log struct {
	header header
	path   string // "" in memory
	lock   *lock
	images imageStore
	now    func() time.Time

	mu     sync.Mutex
	opened *State // what [Store.OpenForAppend] has folded and nobody has asked for
	file   file
	closed bool
	seq    int // of the next record
	last   summary

	// The file is good up to synced, and tail is everything behind that. written
	// bytes of the tail are in the file too, though a power failure may take them.
	synced  int64
	tail    []byte
	written int
	// spoiled is how far a failed write may have come that could not be cut off.
	spoiled int64
	// mustSync says that the tail holds a record that gates an action.
	mustSync bool
	// waiting are images whose bytes are not stored yet.
	waiting []*llm.Image
	stored  map[string]*llm.Image // those that have their Attachment, by digest
	unsaved error
}

// summary is what the end of a turn repeats for lists.
type summary struct {
	turn   int
	title  string
	target llm.Target
}

// ID names the session.
func (l *Log) ID() string { return l.header.ID }

// CWD is the working directory that the session was created for.
func (l *Log) CWD() string { return l.header.CWD }

// InMemory reports whether the session ends with the process.
func (l *Log) InMemory() bool { return l.path == "" }

// NewState is the state to start with after [Store.Create] or [Memory]: nothing
// but the header.
func (l *Log) NewState() *State { return newState(&l.header) }

// Unsaved returns the *[UnsavedError] while records are in memory only, else
// nil.
func (l *Log) Unsaved() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unsaved
}

// Append writes a record, with an [Attachment] before it for each new image of a
// message. It stamps the record and replaces its content by what reading it back
// gives; from then on the record belongs to the log and is not to be changed.
// What gates an action is on disk when Append returns nil.
//
// An *[UnsavedError] means that the record is kept and will be written later: go
// on, and apply it to the state. After any other error the record is not in the
// log, and must not be applied.
func (l *Log) Append(rec Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errClosed
	}
	var recs []Record
	var images []*llm.Image
	if m, ok := rec.(*UserMessage); ok {
		recs, images = l.attach(m)
	}
	l.complete(rec)
	recs = append(recs, rec)

	now := l.now().UTC().Truncate(time.Millisecond)
	var lines []byte
	for i, rec := range recs {
		*rec.stamp() = Stamp{Seq: l.seq + i, Time: now}
		data, err := settle(rec)
		if err == nil {
			lines, err = appendLine(lines, rec.stamp(), rec.Kind(), data)
		}
		if err != nil {
			return fmt.Errorf("session %s: %w", l.ID(), err)
		}
		l.mustSync = l.mustSync || gates(rec)
	}
	l.seq += len(recs)
	l.last.add(rec)
	for _, img := range images {
		l.stored[img.SHA256] = img
	}
	l.waiting = append(l.waiting, images...)
	l.tail = append(l.tail, lines...)
	return l.flush()
}

// attach gives the images of a message their digests, and returns those that the
// session has not seen, with their records. What an image was made from is one of
// them.
func (l *Log) attach(m *UserMessage) (recs []Record, images []*llm.Image) {
	seen := make(map[string]bool)
	for i, p := range m.Parts {
		img, ok := p.(*llm.Image)
		if !ok || len(img.Data) == 0 {
			continue
		}
		if sha := digest(img.Data); img.SHA256 != sha { // not built by NewImage
			named := *img
			named.SHA256 = sha
			img = &named
			m.Parts = slices.Clone(m.Parts)
			m.Parts[i] = img
		}
		for ; img != nil && len(img.Data) > 0; img = img.Original {
			if l.stored[img.SHA256] != nil || seen[img.SHA256] {
				continue
			}
			seen[img.SHA256] = true
			images = append(images, img)
			recs = append(recs, &Attachment{
				SHA256: img.SHA256, Bytes: len(img.Data), MediaType: img.MediaType, Name: img.Name,
			})
		}
	}
	return recs, images
}

// complete fills in what Append sets.
func (l *Log) complete(rec Record) {
	switch rec := rec.(type) {
	case *TurnStart:
		if rec.Turn == 0 {
			rec.Turn = l.last.turn + 1
		}
	case *TurnEnd:
		rec.Turn, rec.Title, rec.Target = l.last.turn, l.last.title, l.last.target
	}
}

func (s *summary) add(rec Record) {
	switch rec := rec.(type) {
	case *TurnStart:
		s.turn = rec.Turn
	case *SessionInfo:
		s.title = rec.Title
	case *RequestHeader:
		s.target = rec.Snapshot.Target
	}
}

// flush brings memory to the file as far as is needed.
func (l *Log) flush() error {
	for len(l.waiting) > 0 { // before the lines that refer to them
		img := l.waiting[0]
		if err := l.images.put(img.SHA256, img.Data); err != nil {
			return l.fail(err)
		}
		l.waiting = l.waiting[1:]
	}
	if err := l.giveWay(); err != nil {
		return l.fail(err)
	}
	good := l.synced + int64(l.written)
	if _, err := l.file.WriteAt(l.tail[l.written:], good); err != nil {
		l.cut(good)
		return l.fail(err)
	}
	l.written = len(l.tail)
	if l.mustSync || len(l.tail) > maxUnsynced {
		if err := l.file.Sync(); err != nil {
			// What the system has taken is now in doubt, and it will not tell
			// twice. Write everything again.
			l.cut(l.synced)
			l.written = 0
			return l.fail(err)
		}
		if err := l.keepPlace(); err != nil {
			return l.fail(err)
		}
		l.synced += int64(len(l.tail))
		l.tail, l.written, l.mustSync = l.tail[:0], 0, false
		if cap(l.tail) > maxUnsynced {
			l.tail = nil
		}
	}
	l.unsaved = nil
	return nil
}

// cut takes off the file what a failed write has left behind its good part.
// Should that fail too, the next attempt writes over it.
func (l *Log) cut(good int64) {
	if l.file.Truncate(good) != nil {
		l.spoiled = max(l.spoiled, l.synced+int64(len(l.tail)))
	}
}

func (l *Log) fail(err error) error {
	l.unsaved = &UnsavedError{ID: l.ID(), Err: err}
	return l.unsaved
}

// Close writes what is left and gives the session up. The error is an
// *[UnsavedError] when something is lost with that. Closing again does nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	l.mustSync = len(l.tail) > 0
	err := l.flush()
	if closeErr := l.file.Close(); err == nil && closeErr != nil {
		err = l.fail(closeErr)
	}
	l.lock.release()
	return err
}

// Records yields the log's records so far, those included that are not saved,
// with their images. It ends with an error if the file cannot be read.
func (l *Log) Records() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		r, err := l.open()
		if err != nil {
			yield(nil, err)
			return
		}
		defer r.Close()
		yieldRecords(r, l.images, yield)
	}
}

// Fold folds what [Log.Records] yields. Of what opening the log has cut off it
// warns once.
func (l *Log) Fold() (*State, error) {
	if s := l.takeOpened(); s != nil {
		return s, nil
	}
	r, err := l.open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	found := make(map[string]*llm.Image)
	s, _, err := fold(r, func(ref *llm.Image) (*llm.Image, error) {
		img, err := loadImage(l.images, ref)
		if err == nil {
			found[img.SHA256] = img
		}
		return img, err
	})
	if err != nil {
		return nil, err
	}
	s.ID = l.ID() // the header may be lost
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.Copy(found, l.stored)
	l.stored = found
	return s, nil
}

// takeOpened gives the state that opening the log has made, once, as long as it
// is that of the log.
func (l *Log) takeOpened() *State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.opened
	l.opened = nil
	if s != nil && s.NextSeq != l.seq {
		return nil
	}
	return s
}

func yieldRecords(r io.Reader, images imageStore, yield func(Record, error) bool) {
	rd := NewReader(r, &ReaderOptions{
		Image: func(ref *llm.Image) (*llm.Image, error) { return loadImage(images, ref) },
	})
	for {
		rec, err := rd.Next()
		if err == io.EOF || !yield(rec, err) || err != nil {
			return
		}
	}
}

// open reads the log as it is now.
func (l *Log) open() (io.ReadCloser, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	good := l.synced + int64(l.written)
	rest := bytes.NewReader(slices.Clone(l.tail[l.written:]))
	if m, ok := l.file.(interface{ contents() []byte }); ok {
		return io.NopCloser(io.MultiReader(bytes.NewReader(m.contents()[:good]), rest)), nil
	}
	f, err := os.Open(l.path)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(f, good), rest), f}, nil
}
