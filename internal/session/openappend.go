package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/drover-dev/drover/internal/llm"
)

// OpenForAppend opens a session for writing without reading it whole: in the
// time of a few reads, however long the log is. That works when the log ends
// with the end of a turn, which repeats everything that goes on; else it does
// what [Store.Open] does. [Log.Fold] gives the state when it is needed. What is
// damaged before the end is not seen here, and is no reason not to append.
func (s *Store) OpenForAppend(id string) (*Log, error) {
	path, lock, err := s.findLocked(id)
	if err != nil {
		return nil, err
	}
	l, err := s.openEnd(path)
	if err != nil {
		lock.release()
		return nil, fmt.Errorf("open session: %w", err)
	}
	if l != nil {
		l.lock = lock
		return l, nil
	}
	lock.release()
	l, state, err := s.Open(id)
	if err != nil {
		return nil, err
	}
	l.opened = state
	return l, nil
}

// openEnd is nil when the beginning and the end of the log do not tell enough.
func (s *Store) openEnd(path string) (_ *Log, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	taken := false
	defer func() {
		if !taken {
			f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	head, end, err := readEnds(f, info.Size())
	if err != nil {
		return nil, err
	}
	var h header
	line, _, ok := bytes.Cut(head, []byte("\n"))
	if !ok || json.Unmarshal(line, &h) != nil || h.Type != headerType || h.Version < 1 {
		return nil, nil
	}
	if h.Version > formatVersion {
		return nil, &VersionError{ID: idOf(path), Version: h.Version}
	}
	end, whole := bytes.CutSuffix(end, []byte("\n"))
	at := bytes.LastIndexByte(end, '\n')
	if !whole || at < 0 {
		return nil, nil
	}
	e, ok := cutEnvelope(end[at+1:])
	if !ok || e.kind != new(TurnEnd).Kind() || e.decode() != nil {
		return nil, nil
	}
	rec := e.rec.(*TurnEnd)
	h.ID = idOf(path)
	h.Created = timestamp(time.Time(h.Created).UTC().Truncate(time.Millisecond))
	taken = true
	return &Log{
		header: h, path: path, images: imagesOf(path), now: s.now,
		file: f, seq: e.seq + 1, synced: info.Size(), stored: make(map[string]*llm.Image),
		last: summary{turn: rec.Turn, title: rec.Title, target: rec.Target},
	}, nil
}

// readEnds reads the beginning and the end of a log; they may overlap.
func readEnds(f io.ReaderAt, size int64) (head, end []byte, err error) {
	head = make([]byte, min(headSize, size))
	if _, err := f.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, nil, err
	}
	end = make([]byte, min(tailSizes[0], size))
	if _, err := f.ReadAt(end, size-int64(len(end))); err != nil && err != io.EOF {
		return nil, nil, err
	}
	return head, end, nil
}
