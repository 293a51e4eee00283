package engine

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/drover-dev/drover/internal/llm"
)

// errHandshake is the cause of a handshake that took too long.
var errHandshake = errors.New("handshake limit")

// Phase is a part of a generation with a limit of its own.
type Phase uint8

// The phases, in order.
const (
	PhaseConnect   Phase = iota // until the connection stands
	PhaseFirstByte              // until the first byte of the answer
	PhaseIdle                   // between two bytes of the answer
	phaseErrorBody              // the body of an answer that is no stream
)

// TimeoutError is the cause of a TIMEOUT of a generation.
type TimeoutError struct {
	Phase Phase
	Limit time.Duration
}

func (e *TimeoutError) Error() string {
	switch e.Phase {
	case PhaseConnect:
		return fmt.Sprintf("no connection within %s", plain(e.Limit))
	case PhaseFirstByte:
		return fmt.Sprintf("no answer began within %s; reading a long prompt may take longer than that, a shorter one helps", plain(e.Limit))
	case PhaseIdle:
		return fmt.Sprintf("the answer stopped, nothing came for %s", plain(e.Limit))
	default:
		return fmt.Sprintf("the answer did not end within %s", plain(e.Limit))
	}
}

// Prefilling reports that the engine may still have been reading the prompt: to
// send it again would make it start over.
func (e *TimeoutError) Prefilling() bool { return e.Phase == PhaseFirstByte }

// plain writes a duration without the zero units of [time.Duration.String].
func plain(d time.Duration) string {
	switch {
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d >= time.Second && d%time.Second == 0:
		return fmt.Sprintf("%d s", d/time.Second)
	}
	return d.String()
}

// failure turns what went wrong between us and an endpoint into an error that
// names host and port only. ctx is the context of the call, parent the caller's.
func (e *Engine) failure(parent, ctx context.Context, ep Endpoint, err error) *llm.Error {
	if own, ok := errors.AsType[*llm.Error](err); ok {
		return own
	}
	if parent.Err() != nil {
		return callerGone(parent, ep)
	}
	cause := context.Cause(ctx)
	if limit, ok := errors.AsType[*TimeoutError](cause); ok {
		return &llm.Error{Code: llm.CodeTimeout, Message: fmt.Sprintf("%s: %s", ep, limit), Cause: limit}
	}
	if errors.Is(cause, errHandshake) {
		return &llm.Error{
			Code:    llm.CodeTimeout,
			Message: fmt.Sprintf("%s: did not answer within %s", ep, plain(e.opts.Limits.Handshake)),
			Cause:   errHandshake,
		}
	}
	// The URL in a url.Error has the path, which is not for showing.
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &llm.Error{Code: llm.CodeStreamClosed, Message: fmt.Sprintf("%s: the answer broke off", ep), Cause: err}
	}
	if badlyCompressed(err) {
		return &llm.Error{
			Code: llm.CodeMalformedResponse, Message: fmt.Sprintf("%s: the answer is not compressed as its header says", ep), Cause: err,
		}
	}
	op, ok := errors.AsType[*net.OpError](err)
	return &llm.Error{
		Code: llm.CodeTransport, Message: fmt.Sprintf("%s: %s%s", ep, reason(err), e.byProxy(ctx, ep)), Cause: err,
		Unreached: ok && (op.Op == "dial" || op.Op == "proxyconnect"), // net/http's name for a dial of a proxy
	}
}

// badlyCompressed reports whether a body could not be expanded.
func badlyCompressed(err error) bool {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	return corrupt || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum)
}

// callerGone says why the caller's context ended.
func callerGone(parent context.Context, ep Endpoint) *llm.Error {
	err := parent.Err()
	if errors.Is(err, context.DeadlineExceeded) {
		return &llm.Error{Code: llm.CodeTimeout, Message: fmt.Sprintf("%s: did not answer in time", ep), Cause: err}
	}
	return &llm.Error{Code: llm.CodeAborted, Message: fmt.Sprintf("%s: cancelled", ep), Cause: err}
}

// reason names the cause of a failed connection in words, without addresses that
// the caller did not write, except that of a refused localhost.
func reason(err error) string {
	var (
		dns      *net.DNSError
		record   tls.RecordHeaderError
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
	)
	if proxy, ok := errors.AsType[*proxyError](err); ok {
		return proxy.Error()
	}
	text := err.Error()
	switch {
	case errors.Is(err, syscall.ECONNREFUSED) || strings.Contains(text, "refused"):
		if addresses := refusedAddresses(err); len(addresses) > 1 {
			return "connection refused by " + strings.Join(addresses, " and ")
		}
		return "connection refused"
	case errors.As(err, &dns):
		if dns.IsTimeout {
			return "the host name was not resolved in time"
		}
		return "no such host"
	case errors.As(err, &unknown):
		return "the TLS certificate is signed by an unknown authority"
	case errors.As(err, &hostname):
		return "the TLS certificate is for another host"
	case errors.As(err, &invalid):
		return "the TLS certificate is not valid"
	case errors.As(err, &record), strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return "does not speak TLS there, try http"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), strings.Contains(text, "reset by peer"),
		strings.Contains(text, "stream error:"), strings.Contains(text, "GOAWAY"): // HTTP/2
		return "connection reset"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "host or network unreachable"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "does not speak TLS there, try http"
	case strings.Contains(text, "headers exceeded"):
		return "the header of the answer is too large"
	case strings.Contains(text, "malformed HTTP"):
		return "does not speak HTTP"
	case errors.Is(err, io.EOF), strings.Contains(text, "server closed"):
		return "connection closed before an answer"
	case isTimeout(err):
		return "connection timed out"
	case strings.Contains(text, "tls:"), strings.Contains(text, "x509:"):
		return "TLS failed"
	}
	return "connection failed"
}

func isTimeout(err error) bool {
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout()
}

// refusedAddresses lists the addresses behind a joined dial error.
func refusedAddresses(err error) []string {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var addresses []string
	for _, e := range joined.Unwrap() {
		if op, ok := errors.AsType[*net.OpError](e); ok && op.Addr != nil {
			addresses = append(addresses, op.Addr.String())
		}
	}
	return addresses
}
