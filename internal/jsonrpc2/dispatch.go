package jsonrpc2

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// cancelMethod is the notification {"requestId": id} that cancels a request, in
// both directions.
const cancelMethod = "$/cancel_request"

// readLoop takes lines until the input or the connection ends.
func (c *Conn) readLoop(base context.Context) {
	err := errors.New("jsonrpc2: the handler ended the read loop") // only by runtime.Goexit
	defer func() { c.end(err) }()
	for {
		line, owned, readErr := c.in.next()
		switch {
		case readErr == errLineTooLong:
			c.refuse(ID{}, Errorf(CodeInvalidRequest, "invalid request: line longer than %d bytes", c.in.max))
		case readErr == io.EOF:
			err = nil
			return
		case readErr != nil:
			err = fmt.Errorf("jsonrpc2: read: %w", readErr)
			return
		default:
			c.dispatch(base, line, owned)
		}
		select {
		case <-c.done:
			return
		default:
		}
	}
}

// dispatch handles one line; unless owned it is valid only during the call.
func (c *Conn) dispatch(base context.Context, line []byte, owned bool) {
	m := decode(line)
	if !owned {
		// Only what outlives the call is copied, and long lines never are.
		m.params = bytes.Clone(m.params)
		m.result = bytes.Clone(m.result)
		m.err = bytes.Clone(m.err)
	}
	switch m.kind {
	case kindInvalid:
		c.refuse(m.id, m.fault)
	case kindResponse:
		c.deliver(m)
	case kindNotification:
		if m.method == cancelMethod {
			c.cancelRequest(m.params)
			return
		}
		c.handle(base, m, len(line))
	case kindRequest:
		c.handle(base, m, len(line))
	}
}

// handle calls the handler for a request or notification.
func (c *Conn) handle(base context.Context, m message, size int) {
	r := &Request{ID: m.id, Method: m.method, Params: m.params, conn: c, size: size}
	fault, ok := c.admit(base, r)
	if !ok {
		if fault != nil {
			c.refuse(m.id, fault)
		}
		return
	}
	defer c.finish(false)
	r.Do(func(context.Context) (any, error) { return c.handler(r) })
}

// cancelRequest cancels the context of the open requests with the id named in
// params, of all of them should the peer use an id twice. The handler has been
// called for each of them, since it is called by the goroutine that is here.
func (c *Conn) cancelRequest(params []byte) {
	if len(params) == 0 || params[0] != '{' {
		return
	}
	var key string
	for name, value := range members(params) {
		if name == "requestId" {
			key = idKey(value)
		}
	}
	if key == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.open {
		if r.ID.key() == key {
			r.cancel(ErrCancelled)
		}
	}
}

// deliver gives a response to the call that waits for it. Answers to anything
// else, including late ones and errors without an id, are never answered: two
// peers would go on for ever.
func (c *Conn) deliver(m message) {
	id, err := strconv.ParseInt(idKey(m.replyTo), 10, 64)
	c.mu.Lock()
	answer, ok := c.pending[id]
	ok = ok && err == nil
	if ok {
		delete(c.pending, id)
	}
	c.mu.Unlock()
	if !ok {
		c.log.Debug("jsonrpc2: response without a call ignored", "id", fmt.Sprintf("%.100s", m.replyTo))
		return
	}
	answer <- m // has room for its only message
}

// refuse answers what never became a request.
func (c *Conn) refuse(id ID, fault *Error) {
	c.log.Debug("jsonrpc2: message refused", "code", fault.Code, "reason", fault.Message)
	if err := c.sendFault(id, fault, nil); err != nil {
		c.log.Debug("jsonrpc2: answer not sent", "error", err)
	}
}

// sendFault sends an error answer, with the id null if id is zero. For queued see
// outbox.send.
func (c *Conn) sendFault(id ID, fault *Error, queued func()) error {
	e := c.encoders.get()
	defer c.encoders.put(e)
	e.fault(id, fault)
	return c.out.send(e.line(), 2*c.maxQueued, queued, nil, nil)
}
