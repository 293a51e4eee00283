package jsonrpc2

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
)

// Handler is called on the read loop for every request and notification, one at
// a time and in arrival order; see the package comment for what it must not do.
//
// What it returns is the answer, sent before the next line is looked at. To
// answer later it returns ErrDeferred, or what [Request.Go] returns. An [*Error]
// is sent as it is, ErrMethodNotFound with CodeMethodNotFound, cancellation by
// the peer with CodeRequestCancelled, any other error with CodeInternalError and
// its text. What it returns for a notification is not sent; an error is logged.
//
// A panic becomes the error of [Options] and a log record.
type Handler func(*Request) (result any, err error)

// Request is one incoming request, or a notification, which is a request without
// an id and without an answer. Its methods may be called from any goroutine.
type Request struct {
	ID     ID // zero for a notification
	Method string
	// Params is the parameters as sent, valid UTF-8, nil when there are none. They
	// may be other than the array or object that JSON-RPC asks for; that is for
	// the handler to refuse. They belong to the receiver.
	Params json.RawMessage

	conn *Conn
	// A request carries its context to wherever it is answered, as in net/http.
	ctx     context.Context
	cancel  context.CancelCauseFunc // nil for a notification
	size    int                     // bytes it counts for under MaxOpenBytes
	replied atomic.Bool
}

// IsNotification reports whether no answer is expected.
func (r *Request) IsNotification() bool { return r.ID.IsZero() }

// Context ends when the peer cancels the request (cause ErrCancelled), when the
// connection stops reading (cause ErrClosed, or that of the context of Run) and
// once the request is answered. That of a notification ends with the connection.
func (r *Request) Context() context.Context { return r.ctx }

// Reply answers the request, with result if err is nil, else with err mapped as
// described at [Handler]. Only the first answer is sent; later ones get
// ErrReplied. For a notification it sends nothing and returns nil.
//
// Reply returns when the answer is queued in its place, which waits only while
// the peer leaves twice MaxQueued bytes unread. A result that cannot be encoded is answered
// with CodeInternalError, and returned as an error. After the connection is
// closed the error is ErrClosed, or that of the failed write.
func (r *Request) Reply(result any, err error) error {
	if r.IsNotification() {
		if err != nil {
			r.conn.log.Debug("jsonrpc2: notification failed", r.attr(), "error", answerFor(r.ctx, r.Method, err).Message)
		}
		return nil
	}
	if !r.replied.CompareAndSwap(false, true) {
		return ErrReplied
	}
	// The request stops counting as open when its answer is queued: not later, or
	// a peer that has the answer could find its place still taken, and not sooner,
	// or one that does not read could open requests without end.
	release := func() { r.conn.release(r) }
	defer r.cancel(nil)
	defer release() // should the answer not be queued
	if err != nil {
		return r.conn.sendFault(r.ID, answerFor(r.ctx, r.Method, err), release)
	}
	e := r.conn.encoders.get()
	defer r.conn.encoders.put(e)
	if err := e.result(r.ID, result); err != nil {
		err = fmt.Errorf("jsonrpc2: encode result of %.100q: %w", r.Method, err)
		r.conn.log.Error("jsonrpc2: answer not encoded", r.attr(), "error", err)
		return errors.Join(err, r.conn.sendFault(r.ID, Errorf(CodeInternalError, "%v", err), release))
	}
	return r.conn.out.send(e.line(), 2*r.conn.maxQueued, release, nil, nil)
}

// Do runs f in the calling goroutine and replies with what it returns, unless
// that is ErrDeferred. A panic of f is answered and logged as one of the handler.
// It is for goroutines that work off a queue of requests.
func (r *Request) Do(f func(context.Context) (any, error)) {
	finished := false
	defer func() {
		if finished {
			return
		}
		p := recover() // nil when f has called runtime.Goexit
		r.conn.log.Error("jsonrpc2: panic in handler", r.attr(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		r.reply(nil, r.conn.panicked)
	}()
	result, err := f(r.ctx)
	deferred := errors.Is(err, ErrDeferred) // may call methods of err, hence may panic too
	finished = true
	if !deferred {
		r.reply(result, err)
	}
}

// Go is Do in a new goroutine. It returns at once with (nil, ErrDeferred), so a
// handler can end with
//
//	return req.Go(func(ctx context.Context) (any, error) { ... })
//
// Goroutines of several requests run in no particular order. A notification is
// dropped, with a log record, while MaxOpenRequests others run.
func (r *Request) Go(f func(context.Context) (any, error)) (any, error) {
	if !r.conn.begin(r.IsNotification()) {
		r.conn.log.Warn("jsonrpc2: too many running notifications, one dropped", r.attr())
		return nil, ErrDeferred
	}
	go func() {
		defer r.conn.finish(r.IsNotification())
		r.Do(f)
	}()
	return nil, ErrDeferred
}

// reply is Reply for callers that cannot do anything about a failure.
func (r *Request) reply(result any, err error) {
	if err := r.Reply(result, err); err != nil {
		r.conn.log.Debug("jsonrpc2: answer not sent", r.attr(), "error", err)
	}
}

// attr names the request in log records, bounded since the peer chose the name.
func (r *Request) attr() slog.Attr { return methodAttr(r.Method) }

func methodAttr(method string) slog.Attr {
	return slog.String("method", fmt.Sprintf("%.100s", method))
}
