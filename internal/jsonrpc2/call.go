package jsonrpc2

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
)

// Notify sends a notification. It returns when the line is queued in its place,
// which waits only while the peer leaves MaxQueued bytes unread. Nil params are
// left out. The error is one of encoding, ErrClosed, or that of the write that
// closed the connection.
func (c *Conn) Notify(method string, params any) error {
	return c.notify(method, params, c.maxQueued)
}

func (c *Conn) notify(method string, params any, limit int) error {
	e := c.encoders.get()
	defer c.encoders.put(e)
	if err := e.notification(method, params); err != nil {
		return fmt.Errorf("jsonrpc2: encode %s: %w", method, err)
	}
	return c.out.send(e.line(), limit, nil, nil, nil)
}

// Call sends a request and waits for its answer, which is decoded into result by
// encoding/json unless result is nil. Nil params are left out.
//
// An error answer is returned as an [*Error]. When ctx ends first, Call tells the
// peer by "$/cancel_request", returns ctx.Err() at once and the late answer is
// dropped. When the connection ends first it returns ErrClosed. A handler must
// not call it on the read loop, which has to read the answer.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	id, answer := c.register()
	defer c.unregister(id)
	if err := c.sendCall(ctx, id, method, params); err != nil {
		return err
	}
	var m message
	select {
	case m = <-answer:
	case <-ctx.Done():
		select {
		case m = <-answer:
		default:
			// Beyond any limit: it is short, at most one a call, and must not wait.
			_ = c.notify(cancelMethod, cancelParams{id}, math.MaxInt)
			return ctx.Err()
		}
	case <-c.done:
		select {
		case m = <-answer: // came before the end
		default:
			return ErrClosed
		}
	}
	if m.err != nil {
		return decodeError(m.err)
	}
	if result == nil {
		return nil
	}
	if m.result == nil {
		return fmt.Errorf("jsonrpc2: answer to %s has no result", method)
	}
	if err := json.Unmarshal(m.result, result); err != nil {
		return fmt.Errorf("jsonrpc2: decode result of %s: %w", method, err)
	}
	return nil
}

type cancelParams struct {
	RequestID int64 `json:"requestId"`
}

func (c *Conn) sendCall(ctx context.Context, id int64, method string, params any) error {
	e := c.encoders.get()
	defer c.encoders.put(e)
	if err := e.request(id, method, params); err != nil {
		return fmt.Errorf("jsonrpc2: encode %s: %w", method, err)
	}
	select {
	case <-c.done: // nobody reads the answer any more
		return ErrClosed
	default:
	}
	err := c.out.send(e.line(), c.maxQueued, nil, ctx.Done(), c.done)
	if err == errStopped {
		if err := ctx.Err(); err != nil {
			return err
		}
		return ErrClosed
	}
	return err
}

// register makes room for an answer.
func (c *Conn) register() (int64, <-chan message) {
	answer := make(chan message, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastID++
	c.pending[c.lastID] = answer
	return c.lastID, answer
}

func (c *Conn) unregister(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
}
