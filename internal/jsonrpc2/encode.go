package jsonrpc2

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
)

const version = `{"jsonrpc":"2.0"`

// encoders keeps encode buffers between messages.
type encoders struct{ pool sync.Pool }

func (p *encoders) get() *encoder {
	if e, ok := p.pool.Get().(*encoder); ok {
		return e
	}
	e := new(encoder)
	e.json = json.NewEncoder(&e.buf)
	// The peer is a program, not a web page: "<" stays "<".
	e.json.SetEscapeHTML(false)
	return e
}

func (p *encoders) put(e *encoder) {
	if e.buf.Cap() <= maxPooled {
		e.buf.Reset()
		p.pool.Put(e)
	}
}

// encoder writes one message as one line. encoding/json writes no line breaks,
// also not for a json.RawMessage or a MarshalJSON, which it compacts.
type encoder struct {
	buf  bytes.Buffer
	json *json.Encoder
}

// line returns the finished message, valid until the encoder is put back.
func (e *encoder) line() []byte {
	e.buf.WriteString("}\n")
	return repair(e.buf.Bytes()) // a json.RawMessage can carry anything in its strings
}

// notification encodes a call without an id.
func (e *encoder) notification(method string, params any) error {
	e.buf.WriteString(version)
	return e.invoke(method, params)
}

// request encodes a call.
func (e *encoder) request(id int64, method string, params any) error {
	e.buf.WriteString(version + `,"id":`)
	e.buf.Write(strconv.AppendInt(e.buf.AvailableBuffer(), id, 10))
	return e.invoke(method, params)
}

func (e *encoder) invoke(method string, params any) error {
	e.buf.WriteString(`,"method":`)
	if err := e.value(method); err != nil {
		return err
	}
	if params == nil {
		return nil
	}
	e.buf.WriteString(`,"params":`)
	return e.value(params)
}

// result encodes a successful answer; a nil result is null.
func (e *encoder) result(id ID, result any) error {
	e.head(id)
	e.buf.WriteString(`,"result":`)
	return e.value(result)
}

// fault encodes an error answer. Data that cannot be encoded is left out rather
// than the answer.
func (e *encoder) fault(id ID, f *Error) {
	e.head(id)
	e.buf.WriteString(`,"error":{"code":`)
	e.buf.Write(strconv.AppendInt(e.buf.AvailableBuffer(), int64(f.Code), 10))
	e.buf.WriteString(`,"message":`)
	_ = e.value(f.Message) // a string always encodes
	if f.Data != nil {
		mark := e.buf.Len()
		e.buf.WriteString(`,"data":`)
		if e.value(f.Data) != nil {
			e.buf.Truncate(mark)
		}
	}
	e.buf.WriteByte('}')
}

// head begins an answer. The zero ID, where none is known, is written null.
func (e *encoder) head(id ID) {
	e.buf.WriteString(version + `,"id":`)
	if id.IsZero() {
		e.buf.WriteString("null")
		return
	}
	e.buf.WriteString(id.lexeme)
}

// value appends one JSON value. A panic in a MarshalJSON is an error: it must
// neither end the process nor lose the answer.
func (e *encoder) value(v any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("encoding %T panicked: %v", v, p)
		}
	}()
	if err := e.json.Encode(v); err != nil {
		return err
	}
	e.buf.Truncate(e.buf.Len() - 1) // the line break Encode adds
	return nil
}
