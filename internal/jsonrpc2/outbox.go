package jsonrpc2

import (
	"errors"
	"io"
	"sync"
)

// errStopped reports that the sender gave up before its line was queued.
var errStopped = errors.New("stopped")

// outbox is the queue of lines on their way out. One goroutine at a time writes;
// it exists only while there is something to write, so an idle connection holds
// none, and senders never wait in Write. Lines that queue up during a write go
// out together in the next.
type outbox struct {
	w    io.Writer
	fail func(error) // called without the lock when a Write has failed

	mu      sync.Mutex
	buf     []byte        // whole lines, not yet taken by the writer
	spare   []byte        // the writer's last buffer, for reuse
	flying  int           // bytes the writer has taken and not yet written
	writing bool          // whether the writer goroutine runs
	err     error         // why nothing more is accepted, nil while open
	changed chan struct{} // closed when bytes leave or the box closes; nil without waiters
}

// send queues a copy of line. While limit bytes or more are queued it waits,
// until either channel is closed; nil channels never are. Unless nil, queued is
// called under the lock when the line has its place and before it is written.
func (o *outbox) send(line []byte, limit int, queued func(), stop1, stop2 <-chan struct{}) error {
	o.mu.Lock()
	for o.err == nil && len(o.buf)+o.flying >= limit {
		changed := o.waiter()
		o.mu.Unlock()
		select {
		case <-changed:
		case <-stop1:
			return errStopped
		case <-stop2:
			return errStopped
		}
		o.mu.Lock()
	}
	defer o.mu.Unlock()
	if o.err != nil {
		return o.err
	}
	o.buf = append(o.buf, line...)
	if queued != nil {
		queued()
	}
	if !o.writing {
		o.writing = true
		go o.drain()
	}
	return nil
}

// drain writes until nothing is queued.
func (o *outbox) drain() {
	for {
		o.mu.Lock()
		if o.err != nil || len(o.buf) == 0 {
			o.writing = false
			o.mu.Unlock()
			return
		}
		batch := o.buf
		o.buf, o.spare = o.spare, nil
		o.flying = len(batch)
		o.mu.Unlock()

		n, err := o.w.Write(batch)
		if err == nil && n < len(batch) {
			err = io.ErrShortWrite
		}

		o.mu.Lock()
		o.flying = 0
		if cap(batch) <= maxSpare {
			o.spare = batch[:0]
		}
		failed := err != nil && o.err == nil // after close, errors are expected
		if failed {
			o.err, o.buf = err, nil
		}
		o.wake()
		o.mu.Unlock()
		if failed {
			o.fail(err)
		}
	}
}

// close refuses further lines with err and drops those not yet taken.
func (o *outbox) close(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err, o.buf, o.spare = err, nil, nil
		o.wake()
	}
}

// waiter returns a channel closed at the next change; it needs the lock.
func (o *outbox) waiter() <-chan struct{} {
	if o.changed == nil {
		o.changed = make(chan struct{})
	}
	return o.changed
}

// wake tells everyone who waits; it needs the lock.
func (o *outbox) wake() {
	if o.changed != nil {
		close(o.changed)
		o.changed = nil
	}
}

// flushed returns a channel to wait on before asking again while lines are queued
// or being written, else nil and why the box is closed, if it is.
func (o *outbox) flushed() (<-chan struct{}, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.buf)+o.flying == 0 {
		return nil, o.err
	}
	return o.waiter(), nil
}
