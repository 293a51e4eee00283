package openai

import (
	"bytes"
	"io"
)

// eventReader takes the payloads out of a body of server-sent events. Lines
// that are none, which a body of another kind consists of, are kept apart.
type eventReader struct {
	lines lineReader
	// data joins the data lines of the event that is being read.
	data []byte
	// hasData tells an event with empty data from one without.
	hasData bool
	// isError says that the event's type is error.
	isError bool
	events  int // dispatched so far
	// stray holds the lines that are no fields of an event, line feeds included.
	stray []byte
	end   error
}

// maxStrayBytes bounds the stray lines that are kept once events were seen:
// enough for an error that a proxy wrote into a stream.
const maxStrayBytes = MaxErrorBytes

var (
	byteOrderMark = []byte("\xef\xbb\xbf")
	fieldData     = []byte("data")
	doneMark      = []byte("[DONE]")
)

// next gives the data of the next event that has any, valid until the next
// call, and whether the event is of type error. The error is io.EOF at the end
// of the body; before it comes what the last event had, even when no blank line
// ended it, and then end is set.
func (e *eventReader) next() (data []byte, isError bool, err error) {
	if e.end != nil {
		return nil, false, e.end
	}
	e.data, e.hasData, e.isError = e.data[:0], false, false
	for first := e.lines.total == 0; ; first = false {
		line, err := e.lines.next()
		if err != nil {
			e.end = err
			if len(e.data) > 0 {
				e.events++
				return e.data, e.isError, nil
			}
			return nil, false, err
		}
		if first {
			line = bytes.TrimPrefix(line, byteOrderMark)
		}
		if len(line) == 0 {
			e.keepStray(line)
			if len(e.data) > 0 {
				e.events++
				return e.data, e.isError, nil
			}
			e.hasData, e.isError = false, false
			continue
		}
		e.field(line)
		if markedDone(e.data) {
			// The end of the stream is not put off until a blank line comes.
			e.events++
			return e.data, e.isError, nil
		}
		if e.page() {
			e.end = io.EOF
			return nil, false, io.EOF
		}
	}
}

// markedDone reports whether the payload ends with the end marker on a line of
// its own.
func markedDone(data []byte) bool {
	if !bytes.HasSuffix(bytes.TrimRight(data, " \t"), doneMark) {
		return false
	}
	last := data[bytes.LastIndexByte(data, '\n')+1:]
	return bytes.Equal(bytes.TrimSpace(last), doneMark)
}

// field takes in one line that is not empty.
func (e *eventReader) field(line []byte) {
	name, text, found := bytes.Cut(line, []byte{':'})
	if len(text) > 0 && text[0] == ' ' {
		text = text[1:]
	}
	switch {
	case bytes.Equal(name, fieldData):
		if e.hasData {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, text...)
		e.hasData = true
	case found && len(name) == 0: // a comment
	case found && string(name) == "event":
		e.isError = string(text) == "error"
	case string(name) == "id" || string(name) == "retry" || string(name) == "event":
	default:
		e.keepStray(line)
	}
}

// keepStray keeps a line, but no white space before the first text.
func (e *eventReader) keepStray(line []byte) {
	if len(e.stray) == 0 {
		if line = bytes.TrimLeft(line, " \t"); len(line) == 0 {
			return
		}
	}
	if e.events > 0 && len(e.stray) >= maxStrayBytes {
		return
	}
	e.stray = append(e.stray, line...)
	e.stray = append(e.stray, '\n')
}

// page reports whether the body is a page of HTML or XML. Nothing more is read
// of one: a script in it could look like an event.
func (e *eventReader) page() bool {
	return e.events == 0 && len(e.stray) > 0 && e.stray[0] == '<'
}
