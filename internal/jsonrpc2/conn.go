package jsonrpc2

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"sync"
)

// Options adjusts a Conn. The zero value is usable.
type Options struct {
	// Logger gets panics, dropped messages and other trouble, never parameters or
	// results. Nil discards.
	Logger *slog.Logger
	// Panic is what a panic of a handler is answered with. Nil is
	// CodeInternalError "internal error".
	Panic *Error
}

// Conn is one connection to a peer. Make it with [New], start it with [Conn.Run].
// Its methods may be called from any goroutine.
type Conn struct {
	in       *lineReader
	out      outbox
	handler  Handler
	log      *slog.Logger
	panicked *Error // the answer to a panic
	encoders encoders
	closers  []io.Closer
	done     chan struct{} // closed when reading has ended

	// The limits of the same names; tests lower them before Run.
	maxOpen, maxOpenBytes, maxQueued int

	mu        sync.Mutex
	started   bool
	ended     bool                    // reading has ended, nothing more is dispatched
	endErr    error                   // what Run returns
	cancel    context.CancelCauseFunc // of all request contexts; nil before Run
	open      map[*Request]struct{}   // requests without an answer
	openBytes int
	running   int           // handlers and Go functions that have not returned
	notes     int           // of these, Go functions of notifications
	idle      chan struct{} // closed when the last of open and running goes; nil without waiters
	lastID    int64
	pending   map[int64]chan message // calls that wait for their answer, by id
}

// New returns a connection that reads from r, writes to w and gives what arrives
// to handler; a nil handler knows no method. The connection owns r and w: Close
// closes those that are an io.Closer. Nothing is read before Run, though Notify
// and Call may already send.
func New(r io.Reader, w io.Writer, handler Handler, opts *Options) *Conn {
	c := &Conn{
		in:           newLineReader(r, MaxLine),
		handler:      handler,
		log:          slog.New(slog.DiscardHandler),
		panicked:     &Error{Code: CodeInternalError, Message: "internal error"},
		done:         make(chan struct{}),
		maxOpen:      MaxOpenRequests,
		maxOpenBytes: MaxOpenBytes,
		maxQueued:    MaxQueued,
		open:         make(map[*Request]struct{}),
		pending:      make(map[int64]chan message),
	}
	if handler == nil {
		c.handler = func(*Request) (any, error) { return nil, ErrMethodNotFound }
	}
	if opts != nil && opts.Logger != nil {
		c.log = opts.Logger
	}
	if opts != nil && opts.Panic != nil {
		c.panicked = opts.Panic
	}
	c.out.w = w
	c.out.fail = c.writeFailed
	if closer, ok := r.(io.Closer); ok {
		c.closers = append(c.closers, closer)
	}
	if closer, ok := w.(io.Closer); ok && !same(r, w) {
		c.closers = append(c.closers, closer)
	}
	return c
}

// same reports whether both are one value, as with a socket.
func same(r, w any) bool { return reflect.ValueOf(w).Comparable() && r == w }

// Run reads and dispatches until the connection ends: nil at the end of input or
// after Close, the error of ctx when that ended, else the error of the read or
// write that failed. Contexts of requests derive from ctx. It may be called once.
//
// When ctx ends, Run does not wait for a handler that still runs, and a Read that
// cannot be interrupted goes on until Close; what it yet reads is dropped.
func (c *Conn) Run(ctx context.Context) error {
	base, cancel := context.WithCancelCause(ctx)
	defer cancel(ErrClosed)
	c.mu.Lock()
	if c.started {
		c.mu.Unlock()
		return errors.New("jsonrpc2: run called twice")
	}
	c.started, c.cancel = true, cancel
	ended := c.ended
	c.mu.Unlock()
	if !ended {
		go c.readLoop(base)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		c.end(ctx.Err())
	}
	<-c.done
	return c.endErr
}

// Done is closed when the connection has stopped reading: no handler is called
// any more, contexts of requests are cancelled. Answers and notifications can be
// sent until Close.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Wait waits until every request taken so far is answered, handlers and functions
// given to Go have returned and all that was sent is written, or dropped by Close.
// It returns the error of ctx if that ends first, or that of a failed write.
// Before Done the peer may of course send more.
func (c *Conn) Wait(ctx context.Context) error {
	for {
		changed := c.quiet()
		if changed == nil {
			var err error
			if changed, err = c.out.flushed(); changed == nil {
				if err == ErrClosed {
					return nil
				}
				return err
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close ends the connection at once: what Done says happens, lines not yet
// written are dropped, and the reader and writer are closed where they can be,
// which also ends a blocked Read or Write of a pipe. It does not wait for
// handlers; call Wait before it to let answers out, or after it. It returns the
// error of closing the reader or writer, and nil when called again.
func (c *Conn) Close() error {
	c.end(nil)
	c.out.close(ErrClosed)
	c.mu.Lock()
	closers := c.closers
	c.closers = nil
	c.mu.Unlock()
	var errs []error
	for _, closer := range closers {
		errs = append(errs, closer.Close())
	}
	return errors.Join(errs...)
}

// writeFailed closes the connection: a peer that missed a message cannot be
// served any further.
func (c *Conn) writeFailed(err error) {
	c.log.Warn("jsonrpc2: write failed", "error", err)
	c.end(fmt.Errorf("jsonrpc2: write: %w", err))
	_ = c.Close()
}

// end stops the reading side. The first reason counts.
func (c *Conn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended, c.endErr = true, err
	if c.cancel != nil {
		c.cancel(ErrClosed)
	}
	close(c.done)
}

// admit registers a request and makes its context, or tells why not. Like begin
// it counts the handler that is about to run.
func (c *Conn) admit(base context.Context, r *Request) (fault *Error, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, false
	}
	if !r.IsNotification() {
		if len(c.open) >= c.maxOpen || c.openBytes+r.size > c.maxOpenBytes {
			return &Error{Code: CodeTooManyOpen, Message: "too many open requests"}, false
		}
		base, r.cancel = context.WithCancelCause(base)
		c.open[r] = struct{}{}
		c.openBytes += r.size
	}
	r.ctx = base
	c.running++
	return nil, true
}

// release forgets an answered request; again it does nothing. The outbox may be
// locked, so its lock comes before that of the Conn.
func (c *Conn) release(r *Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.open[r]; !ok {
		return
	}
	delete(c.open, r)
	c.openBytes -= r.size
	c.wakeIdle()
}

// begin counts a Go function that is about to run. It refuses that of a
// notification beyond the limit; requests were counted by admit.
func (c *Conn) begin(notification bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if notification {
		if c.notes >= c.maxOpen {
			return false
		}
		c.notes++
	}
	c.running++
	return true
}

// finish undoes begin.
func (c *Conn) finish(notification bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if notification {
		c.notes--
	}
	c.running--
	c.wakeIdle()
}

// quiet returns nil when no request is open and nothing runs, else a channel to
// wait on before asking again.
func (c *Conn) quiet() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open)+c.running == 0 {
		return nil
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	return c.idle
}

// wakeIdle tells those in Wait; it needs the lock.
func (c *Conn) wakeIdle() {
	if c.idle != nil && len(c.open)+c.running == 0 {
		close(c.idle)
		c.idle = nil
	}
}
