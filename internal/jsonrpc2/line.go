package jsonrpc2

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
)

// errLineTooLong reports a line beyond the limit, which has been skipped; the
// next line can be read.
var errLineTooLong = errors.New("line too long")

// lineReader splits a stream into lines of bounded length.
type lineReader struct {
	br    *bufio.Reader
	max   int // longest line in bytes, without its line ending
	begun bool
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{br: bufio.NewReaderSize(r, readBuffer), max: limit}
}

// next returns the next line without "\n" or "\r\n". A last line that lacks its
// ending counts. If owned, the line is the caller's to keep, else it is valid
// until the next call. A byte order mark at the start of the stream is dropped,
// since some shells write one.
func (l *lineReader) next() (line []byte, owned bool, err error) {
	var long []byte // what of the line did not fit the read buffer
	skip := false
	for {
		chunk, err := l.br.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			// Two more bytes than the limit may still become "\r\n".
			if skip = skip || len(long)+len(chunk) > l.max+2; skip {
				long = nil
			} else {
				// Doubling, where append would copy a long line some five times.
				if cap(long)-len(long) < len(chunk) {
					long = slices.Grow(long, max(len(chunk), len(long)))
				}
				long = append(long, chunk...)
			}
			continue
		}
		if err != nil && (err != io.EOF || len(chunk)+len(long) == 0 && !skip) {
			return nil, false, err
		}
		line = chunk
		if len(long) > 0 {
			line = append(long, chunk...)
		}
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if !l.begun {
			l.begun = true
			line = bytes.TrimPrefix(line, []byte("\uFEFF"))
		}
		if skip || len(line) > l.max {
			return nil, false, errLineTooLong
		}
		return line, len(long) > 0, nil
	}
}
