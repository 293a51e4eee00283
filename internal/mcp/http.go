package mcp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/tool"
)

const (
	dialTimeout  = 10 * time.Second
	maxRedirects = 5
)

// webClient makes HTTP requests of one connection to a server. They end with
// the connection.
type webClient struct {
	life    context.Context
	origin  *url.URL
	headers map[string]string
	base    *http.Transport
}

// newWebClient checks the address.
func newWebClient(life context.Context, spec *tool.ServerSpec, proxy func(*http.Request) (*url.URL, error)) (*webClient, error) {
	u, err := url.Parse(spec.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("its url is not http://HOST or https://HOST")
	case u.User != nil:
		return nil, errors.New("its url must not hold a user name or password")
	}
	return &webClient{
		life: life, origin: u, headers: spec.Headers,
		base: &http.Transport{
			Proxy: proxy, DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSHandshakeTimeout: dialTimeout, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute,
		},
	}, nil
}

func (w *webClient) client() *http.Client {
	return &http.Client{
		Transport: w,
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return errors.New("too many redirects")
			}
			return nil
		},
	}
}

// RoundTrip implements [http.RoundTripper]. The headers of the settings go to
// the server's own origin alone.
func (w *webClient) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(w.life, cancel)
	end := func() { stop(); cancel() }
	req = req.Clone(ctx)
	if req.URL.Scheme == w.origin.Scheme && strings.EqualFold(req.URL.Host, w.origin.Host) {
		for name, value := range w.headers {
			if strings.EqualFold(name, "Host") {
				req.Host = value
				continue
			}
			req.Header.Set(name, value)
		}
	}
	resp, err := w.base.RoundTrip(req)
	if err != nil {
		end()
		return nil, err
	}
	resp.Body = &body{resp.Body, end}
	return resp, nil
}

// body is the body of an answer that frees its request when it is closed.
type body struct {
	io.ReadCloser
	end func()
}

func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
