package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	// maxRedirects is how many redirects a metadata call follows.
	maxRedirects = 3
	// maxHeader bounds the header of an answer, in bytes.
	maxHeader = 64 << 10
	// idleConnection is how long an unused connection is kept. A turn's next
	// step comes within seconds, and llama-server closes after five: a POST on a
	// connection that is being closed fails.
	idleConnection = 3 * time.Second
	userAgent      = "drover"
)

// newTransport makes the engine's own transport: no other engine uses it, and
// there is no jar and no cache.
func (e *Engine) newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  e.proxy,
		OnProxyConnectResponse: proxyAnswered,
		DialContext:            e.dial,
		TLSHandshakeTimeout:    e.opts.Limits.Connect,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        idleConnection,
		MaxResponseHeaderBytes: maxHeader,
	}
}

// proxy asks the configured function, but never about this machine.
func (e *Engine) proxy(req *http.Request) (*url.URL, error) {
	if e.opts.Proxy == nil || e.saved.IsLoopback() {
		return nil, nil
	}
	return e.opts.Proxy(req)
}

// proxyError is the answer of a proxy that does not connect to an engine.
type proxyError struct{ status int }

func (e *proxyError) Error() string {
	text := fmt.Sprintf("the proxy answered %d", e.status)
	if e.status == http.StatusProxyAuthRequired {
		text += ": it wants a user name and a password"
	}
	return text
}

// proxyAnswered looks at what a proxy answers when it is asked for a connection.
func proxyAnswered(_ context.Context, _ *url.URL, _ *http.Request, res *http.Response) error {
	if res.StatusCode == http.StatusOK {
		return nil
	}
	return &proxyError{res.StatusCode}
}

// dial connects to an engine or to a proxy. localhost is tried on both loopback
// addresses: engines listen on either, and resolvers know one or both.
func (e *Engine) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	hosts := []string{host}
	if (Endpoint{host: host}).isLocalhost() {
		hosts = []string{"127.0.0.1", "::1"}
	}
	var failures []error
	for _, h := range hosts {
		conn, err := e.dialAddress(ctx, network, net.JoinHostPort(h, port))
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if err := e.checkPeer(conn); err != nil {
			conn.Close()
			return nil, err
		}
		return conn, nil
	}
	if len(failures) == 1 {
		return nil, failures[0]
	}
	return nil, errors.Join(failures...)
}

func (e *Engine) dialAddress(ctx context.Context, network, address string) (net.Conn, error) {
	if e.opts.Dial != nil {
		return e.opts.Dial(ctx, network, address)
	}
	d := net.Dialer{Timeout: e.opts.Limits.Connect}
	return d.DialContext(ctx, network, address)
}

// newRequest makes a request to a path below an endpoint's root. The key is set
// only for the origin that it was configured for.
func (e *Engine) newRequest(ctx context.Context, ep Endpoint, method, path string, body []byte) (*http.Request, error) {
	// A reader of bytes lets the transport send the body again when a kept
	// connection turns out to be closed before anything was written.
	req, err := http.NewRequestWithContext(ctx, method, ep.Root()+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body == nil {
		req.Body, req.GetBody, req.ContentLength = nil, nil, 0
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, values := range e.opts.Header {
		req.Header[name] = values
	}
	req.Header.Set("User-Agent", userAgent)
	if e.opts.Key != "" && ep.Origin() == e.saved.Origin() {
		req.Header.Set("Authorization", "Bearer "+e.opts.Key)
	}
	return req, nil
}

// redirectWithin follows a redirect that stays at the origin and keeps the
// method. Any other is given back as the answer it is.
func redirectWithin(ep Endpoint) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects || !ep.sameOrigin(next.URL) || next.URL.User != nil || next.Method != via[0].Method {
			return http.ErrUseLastResponse
		}
		return nil
	}
}

// noRedirects gives a redirect back as the answer it is.
func noRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
