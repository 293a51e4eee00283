package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptrace"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/openai"
)

// maxErrorBody bounds the body of an answer that is no stream, in bytes.
const maxErrorBody = 64 << 10

// errorBodyLimit bounds the reading of that body.
const errorBodyLimit = 10 * time.Second

// Stream sends a request and yields what the engine answers. It makes one HTTP
// request and repeats nothing, except on another connection when a kept one was
// closed before any byte of the answer. An error is an [*llm.Error] and the last thing
// yielded. Leaving the loop, or the end of parent, closes the connection.
func (e *Engine) Stream(parent context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		ep := e.Endpoint()
		ctx, cancel := context.WithCancelCause(parent)
		defer cancel(nil)
		watch := newWatch(cancel)
		defer watch.stop()

		res, failure := e.generate(parent, ctx, ep, req, watch)
		if failure != nil {
			yield(nil, unlessInVain(req, failure))
			return
		}
		// The context goes first: closing the body alone could wait for data.
		defer res.Body.Close()
		defer cancel(nil)

		body := &watched{body: res.Body, watch: watch, idle: e.opts.Limits.Idle}
		body.explain = func(err error) *llm.Error { return e.broken(parent, ctx, ep, !body.began, err) }
		opts := &openai.StreamOptions{
			ReasoningSupported: req.Snapshot.Capabilities.Reasoning.Support == llm.Supported,
			Tools:              req.Tools,
		}
		for event, err := range openai.DecodeStream(body, opts) {
			if err != nil {
				yield(nil, unlessInVain(req, e.streamError(parent, ep, res, body, err)))
				return
			}
			if parent.Err() != nil {
				yield(nil, callerGone(parent, ep))
				return
			}
			if !yield(event, nil) {
				return
			}
		}
	}
}

// generate sends the request and gives the answer when it is a stream.
func (e *Engine) generate(parent, ctx context.Context, ep Endpoint, req *llm.Request, watch *watch) (*http.Response, *llm.Error) {
	if failure := e.keyFor(true); failure != nil {
		return nil, failure
	}
	if parent.Err() != nil {
		return nil, callerGone(parent, ep)
	}
	body, err := openai.EncodeRequest(req)
	if err != nil {
		return nil, asError(err, llm.CodeInvalidRequest)
	}
	firstByte := e.opts.Limits.FirstByte
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { watch.enter(PhaseFirstByte, firstByte) },
	})
	hr, err := e.newRequest(traced, ep, http.MethodPost, e.opts.APIPath+"/chat/completions", body)
	if err != nil {
		return nil, llm.Errorf(llm.CodeInvalidRequest, "%s: %w", ep, errBadRequest)
	}
	hr.Header.Set("Accept", "text/event-stream")
	// Not sent, but it lets the transport take another connection when a kept one
	// was closed before a byte of the answer: llama-server closes behind every
	// streamed answer without having said so.
	hr.Header["Idempotency-Key"] = nil

	client := &http.Client{Transport: e.transport, CheckRedirect: noRedirects}
	start := time.Now()
	watch.enter(PhaseConnect, e.opts.Limits.Connect)
	res, err := client.Do(hr)
	if err != nil {
		failure := e.broken(parent, ctx, ep, watch.connected(), err)
		e.log.DebugContext(ctx, "generation", "engine", ep.String(), "bytes", len(body), "error", failure.Message)
		return nil, failure
	}
	e.log.DebugContext(ctx, "generation", "engine", ep.String(), "bytes", len(body), "status", res.StatusCode,
		"took", time.Since(start))
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	watch.enter(phaseErrorBody, errorBodyLimit)
	text, err := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
	if err != nil && parent.Err() != nil {
		return nil, callerGone(parent, ep)
	}
	// A body that broke off still says more than its status alone.
	return nil, e.statusError(ctx, ep, res.StatusCode, res.Header, text)
}

// statusError is the error of an answer with another status than 200.
func (e *Engine) statusError(ctx context.Context, ep Endpoint, status int, header http.Header, body []byte) *llm.Error {
	if status >= 300 && status <= 399 {
		failure := llm.Errorf(llm.HTTPCode(status), "%s: answered with a redirect (%d), which is not followed", ep, status)
		failure.Status = status
		return failure
	}
	failure := openai.DecodeError(status, header.Get, body)
	failure.Message = fmt.Sprintf("%s: %s%s", ep, e.redact(failure.Message), e.through(ctx, ep, status))
	if failure.RetryAfter == 0 {
		failure.RetryAfter = retryDate(header)
	}
	return failure
}

// retryDate reads the date form of Retry-After. The engine's own clock counts
// where it tells its time.
func retryDate(header http.Header) time.Duration {
	at, err := http.ParseTime(header.Get("Retry-After"))
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(0, at.Sub(now))
}

// through names the proxy that an answer may have come from instead of the
// engine, by its statuses.
func (e *Engine) through(ctx context.Context, ep Endpoint, status int) string {
	if status != http.StatusBadGateway && status != http.StatusGatewayTimeout && status != http.StatusProxyAuthRequired {
		return ""
	}
	return e.byProxy(ctx, ep)
}

// byProxy names the proxy of an endpoint, empty for none.
func (e *Engine) byProxy(ctx context.Context, ep Endpoint) string {
	req, err := e.newRequest(ctx, ep, http.MethodGet, "/", nil)
	if err != nil {
		return ""
	}
	proxy, err := e.proxy(req)
	if err != nil || proxy == nil {
		return ""
	}
	return " (through the proxy " + proxy.Host + ")"
}

// broken explains a connection that failed. prefilling says that it stood and
// that nothing of the answer had come.
func (e *Engine) broken(parent, ctx context.Context, ep Endpoint, prefilling bool, err error) *llm.Error {
	failure := e.failure(parent, ctx, ep, err)
	if failure.Code == llm.CodeTransport && prefilling {
		// Engines that run out of memory while they read a prompt go like this.
		failure.Message += " while the prompt was processed; the engine may have run out of memory"
	}
	return failure
}

// streamError chooses between what the connection and what the decoder say: a
// connection that broke is the reason for whatever the decoder missed.
func (e *Engine) streamError(parent context.Context, ep Endpoint, res *http.Response, body *watched, err error) *llm.Error {
	if parent.Err() != nil {
		return callerGone(parent, ep)
	}
	failure := asError(err, llm.CodeUnknown)
	if body.failure != nil && (failure.Code == llm.CodeStreamClosed || failure.Code == llm.CodeTransport ||
		failure.Code == llm.CodeUnknown || errors.Is(err, body.failure)) {
		failure = body.failure
	}
	copied := *failure
	copied.Message = e.redact(copied.Message)
	if !strings.HasPrefix(copied.Message, ep.String()) {
		copied.Message = ep.String() + ": " + copied.Message
	}
	if copied.RequestID == "" {
		copied.RequestID = res.Header.Get("X-Request-Id")
	}
	return &copied
}

// unlessInVain takes the option out of an error when the request without it would
// be the same one: the engine means something else, and asking again is in vain.
func unlessInVain(req *llm.Request, failure *llm.Error) *llm.Error {
	if failure.Option == "" || req.Snapshot.Refusals.Has(failure.Option) {
		return failure
	}
	without := *req
	without.Snapshot.Refusals = req.Snapshot.Refusals.With(failure.Option)
	sent, _ := openai.EncodeRequest(req)
	next, err := openai.EncodeRequest(&without)
	if err != nil || !bytes.Equal(sent, next) {
		return failure
	}
	copied := *failure
	copied.Option = ""
	if copied.Code == llm.CodeUnsupportedOption {
		copied.Code = llm.CodeInvalidRequest
	}
	return &copied
}

// asError finds the [*llm.Error] in a chain or makes one of the code.
func asError(err error, code llm.Code) *llm.Error {
	if found, ok := errors.AsType[*llm.Error](err); ok {
		return found
	}
	return &llm.Error{Code: code, Message: err.Error(), Cause: err}
}
