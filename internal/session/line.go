package session

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// readBuffer is what is read of a log at a time.
const readBuffer = 64 << 10

// keptBuffer bounds the buffer for long lines that is kept from line to line.
const keptBuffer = 1 << 20

// lineReader splits a log into lines of bounded length and knows where they are.
type lineReader struct {
	br   *bufio.Reader
	max  int    // longest line in bytes, with its line ending
	long []byte // a line that did not fit the read buffer
	end  int64  // offset behind the line read last
}

// rawLine is one line without its ending, valid until the next call.
type rawLine struct {
	text    []byte
	start   int64 // offset of its first byte
	tooLong bool  // longer than the limit: text is empty
	ended   bool  // it has a line ending
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{br: bufio.NewReaderSize(r, readBuffer), max: limit}
}

// next returns the next line, or io.EOF, or the error of the file.
func (l *lineReader) next() (rawLine, error) {
	if cap(l.long) > keptBuffer {
		l.long = nil
	}
	line := rawLine{start: l.end}
	l.long = l.long[:0]
	for {
		chunk, err := l.br.ReadSlice('\n')
		l.end += int64(len(chunk))
		if l.end-line.start > int64(l.max) {
			line.tooLong = true
			l.long = l.long[:0]
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if !line.tooLong {
				l.long = append(l.long, chunk...)
			}
			continue
		case err == io.EOF && l.end == line.start:
			return line, io.EOF
		case err != nil && err != io.EOF:
			return line, err
		}
		line.ended = err == nil
		if line.tooLong {
			return line, nil
		}
		if line.text = chunk; len(l.long) > 0 {
			l.long = append(l.long, chunk...)
			line.text = l.long
		}
		line.text = bytes.TrimSuffix(bytes.TrimSuffix(line.text, []byte("\n")), []byte("\r"))
		return line, nil
	}
}
