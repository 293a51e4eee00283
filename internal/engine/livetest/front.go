package livetest

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// Front passes requests on to the engine at an address, which is asked for with
// each of them. To a client an engine that is gone looks as it does without Front.
func Front(engine func() *url.URL) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(p *httputil.ProxyRequest) { p.SetURL(engine()) },
		FlushInterval: -1,                         // each delta at once
		ErrorLog:      log.New(io.Discard, "", 0), // a cancel breaks the connection
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// An engine may answer before the proxy has come to the end of the body; the
		// server takes the body away then, and the proxy breaks the answer off.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client left
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	})
}
