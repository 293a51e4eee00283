package engine

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
)

func chunk(text string) string {
	return fmt.Sprintf("data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", text)
}

// startHTTP2 serves a handler over HTTP/2 and makes an engine that trusts it.
func startHTTP2(t *testing.T, h http.HandlerFunc) *Engine {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	e := New("lab", mustParse(t, srv.URL), Custom, nil)
	t.Cleanup(e.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	e.transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	return e
}

// A reset of one stream of a connection is a lost connection: what had come is kept.
func TestHTTP2Reset(t *testing.T) {
	e := startHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("protocol %s", r.Proto)
		}
		for _, text := range []string{"one ", "two ", "three"} {
			io.WriteString(w, chunk(text))
			w.(http.Flusher).Flush()
		}
		panic(http.ErrAbortHandler) // RST_STREAM with INTERNAL_ERROR
	})
	r := collect(t, e, t.Context(), request("m", "hello"))
	checkError(t, r.err, llm.CodeTransport, e.Endpoint().String()+": connection reset")
	if r.text != "one two three" || r.finish != nil {
		t.Errorf("%+v", r)
	}
}

// promptly is in what time a stream has ended that is cancelled 10 ms after its
// first words.
const promptly = 110 * time.Millisecond

// A cancel reaches the server at once, whatever carries the answer.
func TestCancelReachesTheServer(t *testing.T) {
	for _, compressed := range []bool{false, true} {
		for _, proto := range []int{1, 2} {
			t.Run(fmt.Sprintf("HTTP %d, gzip %v", proto, compressed), func(t *testing.T) {
				gone := make(chan time.Time, 1)
				handler := func(w http.ResponseWriter, r *http.Request) {
					if r.ProtoMajor != proto {
						t.Errorf("protocol %s", r.Proto)
					}
					out, flush := io.Writer(w), func() {}
					if compressed {
						w.Header().Set("Content-Encoding", "gzip")
						z := gzip.NewWriter(w)
						out, flush = z, func() { z.Flush() }
					}
					io.WriteString(out, chunk("first"))
					flush()
					w.(http.Flusher).Flush()
					<-r.Context().Done() // says nothing more
					gone <- time.Now()
				}
				var e *Engine
				if proto == 2 {
					e = startHTTP2(t, handler)
				} else {
					srv := httptest.NewServer(http.HandlerFunc(handler))
					t.Cleanup(srv.Close)
					e = New("lab", mustParse(t, srv.URL), Custom, nil)
					t.Cleanup(e.Close)
				}
				took := llmtest.Quickest(promptly, func() time.Duration {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					var cancelled time.Time
					var failure error
					for event, err := range e.Stream(ctx, request("m", "hello")) {
						if event == llm.TextDelta("first") { // so it is told before the end of the answer
							cancelled = time.Now()
							time.AfterFunc(10*time.Millisecond, cancel)
						}
						failure = err
					}
					checkError(t, failure, llm.CodeAborted, "cancelled")
					if cancelled.IsZero() {
						t.Fatal("nothing came")
					}
					ended, heard := time.Since(cancelled), (<-gone).Sub(cancelled)
					t.Logf("the stream ended after %v, the server heard of it after %v", ended, heard)
					return max(ended, heard)
				})
				if took > promptly {
					t.Errorf("took %v", took)
				}
			})
		}
	}
}

// llama-server closes the connection behind every streamed answer without having
// said so. The next request must not run into that.
func TestNextRequestAfterAnUnannouncedClose(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				r, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				io.Copy(io.Discard, r.Body)
				body := chunk("ok") + "data: [DONE]\n\n"
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nKeep-Alive: timeout=5, max=100\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
				in.ReadByte() // the worst moment: the next request is on its way
			}()
		}
	}()
	e := New("lab", mustParse(t, "http://"+l.Addr().String()), Custom, nil)
	defer e.Close()
	for i := range 3 {
		if r := collect(t, e, t.Context(), request("m", "hello")); r.err != nil || r.text != "ok" {
			t.Errorf("request %d: %+v", i, r)
		}
	}
}
