package openai

import (
	"bytes"
	"errors"
	"io"
)

// limits are the bounds of one stream, in bytes.
type limits struct{ line, response int }

var (
	errLineTooLong      = errors.New("a line is longer than the limit")
	errResponseTooLarge = errors.New("the answer is larger than the limit")
)

// lineReader cuts a stream into lines that end with LF, CRLF or CR alone. What
// it gives does not depend on how the bytes arrive.
type lineReader struct {
	r      io.Reader
	max    limits
	buf    []byte
	start  int // of the unread bytes
	seen   int // bytes from start that hold no line ending
	total  int // bytes read in all
	skipLF bool
	err    error // of r, told when the bytes before it are used up
}

// readSize is how much is asked for at once: several network packets.
const readSize = 32 << 10

// next gives the next line, valid until the next call. A line that the end of
// the stream cuts short comes before the error that says so.
func (l *lineReader) next() ([]byte, error) {
	for {
		pending := l.buf[l.start:]
		if l.skipLF && len(pending) > 0 {
			l.skipLF = false
			if pending[0] == '\n' {
				l.start++
				pending = pending[1:]
			}
		}
		if end := lineEnd(pending[l.seen:]); end >= 0 {
			end += l.seen
			if end > l.max.line {
				return nil, errLineTooLong
			}
			l.skipLF = pending[end] == '\r'
			l.start += end + 1
			l.seen = 0
			return pending[:end], nil
		}
		l.seen = len(pending)
		if l.seen > l.max.line {
			return nil, errLineTooLong
		}
		if l.err != nil {
			l.start, l.seen = len(l.buf), 0
			if len(pending) > 0 {
				return pending, nil
			}
			return nil, l.err
		}
		l.fill()
	}
}

func lineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// fill reads once, making room first.
func (l *lineReader) fill() {
	if l.start > 0 {
		n := copy(l.buf, l.buf[l.start:])
		l.buf, l.start = l.buf[:n], 0
	}
	if cap(l.buf)-len(l.buf) < readSize/2 {
		bigger := make([]byte, len(l.buf), max(readSize, 2*cap(l.buf)))
		copy(bigger, l.buf)
		l.buf = bigger
	}
	room := l.buf[len(l.buf):cap(l.buf)]
	// One byte beyond the limit tells a full answer from one that goes on.
	room = room[:min(len(room), l.max.response-l.total+1)]
	const maxEmptyReads = 100
	for range maxEmptyReads {
		n, err := l.r.Read(room)
		if n < 0 || n > len(room) {
			l.err = errors.New("the reader counts wrongly")
			return
		}
		if l.total += n; l.total > l.max.response {
			n -= l.total - l.max.response
			err = errResponseTooLarge
		}
		l.buf = l.buf[:len(l.buf)+n]
		if l.err = err; n > 0 || err != nil {
			return
		}
	}
	l.err = io.ErrNoProgress
}
