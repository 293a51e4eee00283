package jsonrpc2

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Codes of error answers. The first five are those of JSON-RPC 2.0.
const (
	CodeParseError     = -32700 // the line is not a JSON text
	CodeInvalidRequest = -32600 // the line is JSON, but not a message
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternalError  = -32603

	// CodeRequestCancelled answers a request that ended because the peer sent
	// "$/cancel_request" for it.
	CodeRequestCancelled = -32800

	// CodeTooManyOpen answers a request beyond MaxOpenRequests or MaxOpenBytes.
	CodeTooManyOpen = -32001
)

var (
	// ErrMethodNotFound is returned by a Handler for a method it does not know.
	// A request is answered with CodeMethodNotFound; a notification is ignored.
	ErrMethodNotFound = errors.New("method not found")

	// ErrDeferred is returned by a Handler that has arranged for the answer to
	// come later, by Request.Reply, Request.Do or Request.Go.
	ErrDeferred = errors.New("jsonrpc2: the answer comes later")

	// ErrReplied reports a second answer to one request; it was not sent.
	ErrReplied = errors.New("jsonrpc2: request already answered")

	// ErrClosed reports that the connection has ended. It is also the cause of
	// request contexts cancelled by that end.
	ErrClosed = errors.New("jsonrpc2: connection closed")

	// ErrCancelled is the cause of request contexts cancelled by the peer's
	// "$/cancel_request".
	ErrCancelled = errors.New("jsonrpc2: request cancelled by the peer")
)

// Error is the error object of JSON-RPC 2.0. A handler returns one to choose the
// code of its answer; Call returns one for an error answer of the peer.
type Error struct {
	Code    int
	Message string
	// Data is any value that encoding/json can encode, left out when nil. In an
	// error that came from the peer it is a json.RawMessage, or nil.
	Data any
}

// Errorf returns an Error with a formatted message and no data.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error returns the message and the code.
func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// answerFor maps an error of a handler to the error object that is sent. The
// context is that of the request. Methods of err may panic, as those of a nil
// pointer in an error interface do; the request is answered all the same.
func answerFor(ctx context.Context, method string, err error) (answer *Error) {
	defer func() {
		if recover() != nil {
			answer = &Error{Code: CodeInternalError, Message: "internal error"}
		}
	}()
	if e, ok := errors.AsType[*Error](err); ok && e != nil {
		return e
	}
	if errors.Is(err, ErrMethodNotFound) {
		// The method comes from the peer: quoted, and cut to a readable length.
		return Errorf(CodeMethodNotFound, "method not found: %.100q", method)
	}
	if errors.Is(err, ErrCancelled) ||
		errors.Is(err, context.Canceled) && context.Cause(ctx) == ErrCancelled {
		return &Error{Code: CodeRequestCancelled, Message: "request cancelled"}
	}
	return &Error{Code: CodeInternalError, Message: err.Error()}
}

// decodeError reads the error member of a response. It accepts what peers send
// in place of an error object, because a call has to fail with something.
func decodeError(raw []byte) *Error {
	e := &Error{Code: CodeInternalError, Message: "error answer without a message"}
	if raw[0] == '"' {
		e.Message = unquote(raw)
	}
	if raw[0] != '{' {
		return e
	}
	for name, value := range members(raw) {
		switch name {
		case "code":
			if n, ok := integer(value); ok {
				e.Code = int(n)
			}
		case "message":
			if value[0] == '"' {
				e.Message = unquote(value)
			}
		case "data":
			e.Data = json.RawMessage(value)
		}
	}
	return e
}
