package enginetest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Fault is one way to fail. The members combine. Without Status and Body the
// engine's own answer is the one that is delivered badly.
type Fault struct {
	// Times is how often it happens, 0 for always.
	Times int
	// Wait comes before the header.
	Wait time.Duration
	// Hang never answers, until the client leaves. Reset ends the connection
	// instead of answering.
	Hang, Reset bool
	// Status, Header and Body are the answer.
	Status int
	Header http.Header
	Body   string
	// Pad lengthens the body with spaces to this many bytes, without a declared
	// length; PadDeclared with one.
	Pad, PadDeclared int
	// Dribble is the pause before each byte of the body.
	Dribble time.Duration
	// Stall sends half the body, then nothing until the client leaves. Break
	// sends half the body and ends the connection.
	Stall, Break bool
	// Chunked declares no length where a fault would.
	Chunked bool
}

// Faults by what they look like.

// Redirect sends the client to another URL.
func Redirect(status int, location string) Fault {
	return Fault{Status: status, Header: http.Header{"Location": {location}}}
}

// Refuse answers with a status and an error in the form of the API.
func Refuse(status int, message, kind string) Fault {
	return Fault{Status: status, Body: errorBody(status, message, kind)}
}

// Loading is llama.cpp while it loads its model.
func Loading() Fault {
	return Refuse(http.StatusServiceUnavailable, "Loading model", "unavailable_error")
}

// HTML is a web page.
func HTML(status int) Fault {
	return Fault{Status: status, Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}},
		Body: "<!doctype html><html><body>It works</body></html>"}
}

// Body answers 200 with this JSON, or with something that is none.
func Body(body string) Fault { return Fault{Status: http.StatusOK, Body: body} }

func (f *Fault) replaces() bool { return f.Hang || f.Reset || f.Status != 0 || f.Body != "" }

// armed is a fault that waits for a request.
type armed struct {
	method, path string
	fault        Fault
	left         int // how often yet, negative for always
}

// Fault arms a fault for the requests of a pattern: a path, or method and path,
// without the query; "" is every request. The newest pattern that matches wins.
func (s *Server) Fault(pattern string, f Fault) {
	a := &armed{path: pattern, fault: f, left: f.Times}
	if method, path, ok := strings.Cut(pattern, " "); ok {
		a.method, a.path = method, path
	}
	if f.Times == 0 {
		a.left = -1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, a)
}

// Heal takes all faults away.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// takeFault finds the fault of a request. The caller holds the lock.
func (s *Server) takeFault(r *http.Request) *Fault {
	for i := len(s.faults) - 1; i >= 0; i-- {
		a := s.faults[i]
		if a.left == 0 || a.method != "" && a.method != r.Method || a.path != "" && a.path != r.URL.EscapedPath() {
			continue
		}
		if a.left > 0 {
			a.left--
		}
		return &a.fault
	}
	return nil
}

// reply is an answer before it is delivered.
type reply struct {
	status int
	header http.Header
	body   string
}

func jsonReply(status int, body string) reply {
	return reply{status, http.Header{"Content-Type": {"application/json; charset=utf-8"}}, body}
}

func errorBody(code int, message, kind string) string {
	return marshal(map[string]any{"error": map[string]any{"message": message, "type": kind, "code": code}})
}

// deliver sends a reply, the way of the fault if there is one.
func (s *Server) deliver(w http.ResponseWriter, r *http.Request, out reply, f *Fault) {
	if f == nil {
		f = &Fault{}
	}
	if f.Status != 0 || f.Body != "" {
		out = jsonReply(max(f.Status, http.StatusOK), f.Body)
	}
	if !s.sleep(r, f.Wait) {
		return
	}
	switch {
	case f.Hang:
		s.hang(r)
		return
	case f.Reset:
		hangUp(w)
		return
	}
	for name, values := range out.header {
		w.Header()[name] = values
	}
	for name, values := range f.Header {
		w.Header()[name] = values
	}
	if n := max(f.Pad, f.PadDeclared); len(out.body) < n {
		out.body += strings.Repeat(" ", n-len(out.body))
	}
	if !f.Chunked && (f.Dribble > 0 || f.Stall || f.Break || f.PadDeclared > 0) {
		w.Header().Set("Content-Length", strconv.Itoa(len(out.body)))
	}
	w.WriteHeader(out.status)
	switch {
	case f.Dribble > 0:
		s.dribble(w, r, out.body, f.Dribble)
	case f.Stall:
		fmt.Fprint(w, out.body[:len(out.body)/2])
		flush(w)
		s.hang(r)
	case f.Break:
		fmt.Fprint(w, out.body[:len(out.body)/2])
		flush(w)
		panic(http.ErrAbortHandler)
	case f.Pad > 0:
		flush(w) // the header goes without a length
		fmt.Fprint(w, out.body)
	default:
		fmt.Fprint(w, out.body)
	}
}

func (s *Server) dribble(w http.ResponseWriter, r *http.Request, body string, pause time.Duration) {
	flush(w)
	for i := range len(body) {
		if !s.sleep(r, pause) {
			return
		}
		if _, err := fmt.Fprint(w, body[i:i+1]); err != nil {
			return
		}
		flush(w)
	}
}

// sleep waits unless the client leaves or the server ends.
func (s *Server) sleep(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
	case <-s.quit:
	}
	return false
}

func (s *Server) hang(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.quit:
	}
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// hangUp ends the connection with a reset where the network has one.
func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if lingerer, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = lingerer.SetLinger(0)
	}
	conn.Close()
}
