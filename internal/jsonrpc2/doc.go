// Package jsonrpc2 speaks JSON-RPC 2.0 over newline-delimited JSON, both
// directions, ordered, bounded.
//
// A [Conn] joins a reader and a writer (standard streams, a pipe, a socket). It
// knows nothing of the methods that travel over it and imports nothing of this
// module.
//
// # Order
//
//   - The read loop takes lines in arrival order and calls the [Handler] for each
//     request and notification, one at a time, in that order. Nothing is read
//     while a handler runs, so a handler must be short: answer at once, hand the
//     request to a queue of its own, or [Request.Go]. It must not wait for the
//     peer, hence not [Conn.Call]; a call's answer arrives by the read loop.
//   - "$/cancel_request" is looked at in the read loop, never behind a queue. When
//     it is read, the handler has returned for every request before it, so a
//     cancel that came in one write with its request finds it.
//   - A response is given to its Call after the handler has returned for
//     everything that came before the response.
//   - What one goroutine sends (answers, notifications, calls) goes out in the
//     order in which it was sent, and so does what several goroutines send in an
//     order they have agreed on. Messages are whole lines, never interleaved.
//
// # Bounds
//
// Everything the peer decides has a limit: [MaxLine] for one line, [MaxID] for
// one id, [MaxOpenRequests] and [MaxOpenBytes] for requests not yet answered,
// [MaxQueued] for what waits for the peer to read. A line that is too long or is
// not a message gets an error answer, and the connection goes on.
//
// # End
//
// The connection stops reading at the end of input, when the context of
// [Conn.Run] ends, when a write fails or at [Conn.Close]. Then [Conn.Done] is
// closed, contexts of open requests are cancelled and waiting calls fail with
// [ErrClosed]. Answers may still be sent until Close: a careful owner calls Run,
// then [Conn.Wait] with a bound, then Close.
package jsonrpc2
