package jsonrpc2

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// badJSON is a result that cannot be encoded.
type badJSON struct{}

func (badJSON) MarshalJSON() ([]byte, error) { panic("cannot") }

// brokenError panics in its methods when nil.
type brokenError struct{ cause error }

func (e *brokenError) Error() string { return e.cause.Error() }
func (e *brokenError) Unwrap() error { return e.cause }

// testHandler serves the methods the conversations use, all on the read loop.
func testHandler(r *Request) (any, error) {
	switch r.Method {
	case "echo":
		return r.Params, nil
	case "nothing":
		return nil, nil
	case "html":
		return "<a href=\"x\">&", nil
	case "fail":
		return nil, errors.New("disk full")
	case "refuse":
		return nil, &Error{Code: CodeInvalidParams, Message: "bad cwd", Data: map[string]string{"code": "CWD"}}
	case "refuse bad data":
		return nil, &Error{Code: CodeInvalidParams, Message: "bad cwd", Data: badJSON{}}
	case "nil error value":
		return nil, (*Error)(nil)
	case "broken error value":
		return nil, (*brokenError)(nil)
	case "panic":
		panic("secret")
	case "bad result":
		return badJSON{}, nil
	case "unencodable":
		return make(chan int), nil
	}
	return nil, ErrMethodNotFound
}

// converse runs a connection over the input to its end and returns what it wrote.
// The limits are lowered where adjust says so.
func converse(t testing.TB, input string, handler Handler, adjust func(*Conn)) string {
	t.Helper()
	var out bytes.Buffer
	c := New(strings.NewReader(input), &out, handler, nil)
	if adjust != nil {
		adjust(c)
	}
	if err := c.Run(t.Context()); err != nil {
		t.Fatalf("Run = %v", err)
	}
	if err := c.Wait(t.Context()); err != nil {
		t.Fatalf("Wait = %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatalf("Close = %v", err)
	}
	return out.String()
}

func TestConversations(t *testing.T) {
	const (
		req     = `{"jsonrpc":"2.0","id":1,"method":"nothing"}` + "\n"
		ok      = `{"jsonrpc":"2.0","id":1,"result":null}` + "\n"
		parse   = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error: the line is not a JSON text"}}` + "\n"
		batch   = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: batches are not supported"}}` + "\n"
		scalar  = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: not an object"}}` + "\n"
		version = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: \"jsonrpc\" is not \"2.0\""}}` + "\n"
		empty   = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: no method, result or error"}}` + "\n"
		badID   = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: the id is not a string, number or null, or is too long"}}` + "\n"
	)
	tests := []struct{ name, in, out string }{
		{"nothing", "", ""},
		{"request", req, ok},
		{"last line without its ending", strings.TrimSuffix(req, "\n"), ok},
		{"crlf", strings.ReplaceAll(req+req, "\n", "\r\n"), ok + ok},
		{"blank lines", "\n\r\n  \t\n" + req + "\n\n", ok},
		{"byte order mark", "\uFEFF" + req, ok},
		{"space everywhere", " { \"id\" : 1 ,\t\"method\" : \"echo\" , \"params\" : [ 1 , { \"a\" : \"}\" } ] , \"jsonrpc\" : \"2.0\" } \n",
			`{"jsonrpc":"2.0","id":1,"result":[1,{"a":"}"}]}` + "\n"},
		{"shell greeting and fragment", "Welcome back user\n\n{broken\n" + req, parse + parse + ok},
		{"several values on a line", `{"jsonrpc":"2.0","id":1,"method":"nothing"} {}` + "\n" + req, parse + ok},
		{"scalars, arrays, strangers", "5\n\"x\"\n[]\n[" + strings.TrimSpace(req) + "]\n" +
			`{"level":"info","id":1}` + "\n" + `{"jsonrpc":"1.0"}` + "\n" + `{}` + "\n" + req,
			scalar + scalar + batch + batch + version + version + version + ok},
		{"version not a string", `{"jsonrpc":2.0,"id":1,"method":"nothing"}` + "\n", version},
		{"neither request nor response", `{"jsonrpc":"2.0","id":7}` + "\n", empty},
		{"names count in their exact case", `{"JSONRPC":"2.0","jsonrpc":"2.0","ID":5,"id":1,"Method":"fail","method":"echo","Params":[0],"params":[1],"PARAMS":[2]}` + "\n",
			`{"jsonrpc":"2.0","id":1,"result":[1]}` + "\n"},
		{"names may be escaped", `{"jsonrpc":"2.0","\u0069d":1,"meth\u006fd":"noth\u0069ng"}` + "\n", ok},
		{"the last of repeated names", `{"jsonrpc":"2.0","id":9,"id":1,"method":"x","method":"nothing"}` + "\n", ok},
		{"escaped quotes", `{"jsonrpc":"2.0","id":"a\\","method":"echo","params":["\"}\\\\\"",{"\\\"":"]"}]}` + "\n",
			`{"jsonrpc":"2.0","id":"a\\","result":["\"}\\\\\"",{"\\\"":"]"}]}` + "\n"},
		{"unknown method", `{"jsonrpc":"2.0","id":1,"method":"_x"}` + "\n",
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found: \"_x\""}}` + "\n"},
		{"unknown notification", `{"jsonrpc":"2.0","method":"_x"}` + "\n" + req, ok},
		{"failing notifications", `{"jsonrpc":"2.0","method":"fail"}` + "\n" + `{"jsonrpc":"2.0","method":"panic"}` + "\n" + req, ok},
		{"method not a string", `{"jsonrpc":"2.0","id":3,"method":1}` + "\n" + `{"jsonrpc":"2.0","method":1}` + "\n",
			`{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"invalid request: the method is not a string"}}` + "\n" +
				`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: the method is not a string"}}` + "\n"},
		{"ids that are none", `{"jsonrpc":"2.0","id":{},"method":"nothing"}` + "\n" + `{"jsonrpc":"2.0","id":[1],"method":"nothing"}` + "\n" + `{"jsonrpc":"2.0","id":true,"method":"nothing"}` + "\n", badID + badID + badID},
		{"no html escapes", `{"jsonrpc":"2.0","id":1,"method":"html"}` + "\n", `{"jsonrpc":"2.0","id":1,"result":"<a href=\"x\">&"}` + "\n"},
		{"error text", `{"jsonrpc":"2.0","id":1,"method":"fail"}` + "\n", `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"disk full"}}` + "\n"},
		{"error value", `{"jsonrpc":"2.0","id":1,"method":"refuse"}` + "\n", `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"bad cwd","data":{"code":"CWD"}}}` + "\n"},
		{"error data that does not encode", `{"jsonrpc":"2.0","id":1,"method":"refuse bad data"}` + "\n", `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"bad cwd"}}` + "\n"},
		{"nil error value", `{"jsonrpc":"2.0","id":1,"method":"nil error value"}` + "\n" + req, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}` + "\n" + ok},
		{"broken error value", `{"jsonrpc":"2.0","id":1,"method":"broken error value"}` + "\n" + `{"jsonrpc":"2.0","method":"nil error value"}` + "\n" + req,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}` + "\n" + ok},
		{"panic", `{"jsonrpc":"2.0","id":1,"method":"panic"}` + "\n" + req, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}` + "\n" + ok},
		{"panic while encoding", `{"jsonrpc":"2.0","id":1,"method":"bad result"}` + "\n" + req,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"jsonrpc2: encode result of \"bad result\": encoding jsonrpc2.badJSON panicked: cannot"}}` + "\n" + ok},
		{"result that does not encode", `{"jsonrpc":"2.0","id":1,"method":"unencodable"}` + "\n" + req,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"jsonrpc2: encode result of \"unencodable\": json: unsupported type: chan int"}}` + "\n" + ok},
		{"responses to nothing", `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}` + "\n" +
			`{"jsonrpc":"2.0","result":{}}` + "\n" + `{"jsonrpc":"2.0","id":{},"error":5}` + "\n" + req, ok},
		{"cancel of nothing", `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}` + "\n" +
			`{"jsonrpc":"2.0","method":"$/cancel_request"}` + "\n" + `{"jsonrpc":"2.0","method":"$/cancel_request","params":[1]}` + "\n" +
			`{"jsonrpc":"2.0","method":"$/cancel_request","params":{}}` + "\n" + req, ok},
		{"invalid utf-8 in a string", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[\"a\xffb\"]}\n", `{"jsonrpc":"2.0","id":1,"result":["a` + "\uFFFD" + `b"]}` + "\n"},
		{"invalid utf-8 in the method", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}\n", `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found: \"` + "\uFFFD" + `\""}}` + "\n"},
		{"invalid utf-8 in the id", "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"echo\"}\n" + req, badID + ok},
		{"invalid utf-8 elsewhere", "\xff{}\n" + req, parse + ok},
		{"nul bytes", "\x00\n" + req, parse + ok},
		{"nesting beyond reason", strings.Repeat("[", 20000) + "\n" + req, parse + ok},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := converse(t, test.in, testHandler, nil); got != test.out {
				t.Errorf("got:\n%swant:\n%s", got, test.out)
			}
		})
	}
}

func TestIDsAreEchoedAsWritten(t *testing.T) {
	for _, id := range []string{
		"0", "-0", "1", "1.0", "1e3", "1E+3", "-12.50", "123456789012345678901234567890", "1e999999999",
		`""`, `"a"`, `"\u0061"`, `"1"`, `"<&>"`, `"ünï"`, `"\ud800"`, "null",
		strings.Repeat("1", MaxID),
		`"` + strings.Repeat("a", MaxID-2) + `"`,
	} {
		got := converse(t, `{"method":"nothing","id":`+id+`,"jsonrpc":"2.0"}`+"\n", testHandler, nil)
		if want := `{"jsonrpc":"2.0","id":` + id + `,"result":null}` + "\n"; got != want {
			t.Errorf("got %.200s, want %.200s", got, want)
		}
	}
	got := converse(t, `{"method":"nothing","id":`+strings.Repeat("1", MaxID+1)+`,"jsonrpc":"2.0"}`+"\n", testHandler, nil)
	if !strings.Contains(got, `"id":null,"error":{"code":-32600`) {
		t.Errorf("one byte over the longest id: got %.200s", got)
	}
}

func TestNilHandlerKnowsNoMethod(t *testing.T) {
	got := converse(t, `{"jsonrpc":"2.0","id":1,"method":"m"}`, nil, nil)
	if !strings.Contains(got, "-32601") {
		t.Errorf("got %s", got)
	}
}

func TestLongMethodIsCutInTheAnswer(t *testing.T) {
	got := converse(t, `{"jsonrpc":"2.0","id":1,"method":"`+strings.Repeat("m", 1<<20)+`"}`, testHandler, nil)
	if len(got) > 300 || !strings.Contains(got, "-32601") {
		t.Errorf("got %d bytes: %.300s", len(got), got)
	}
}

func TestTooLongLinesAreSkipped(t *testing.T) {
	const limit = 3 * readBuffer / 2
	const ok = `{"jsonrpc":"2.0","id":1,"result":null}` + "\n"
	const long = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: line longer than 98304 bytes"}}` + "\n"
	line := func(n int) string {
		s := `{"jsonrpc":"2.0","id":1,"method":"nothing","params":["` + `"]}`
		return strings.Replace(s, `[""]`, `["`+strings.Repeat("x", n-len(s))+`"]`, 1)
	}
	tests := []struct{ name, in, out string }{
		{"at the limit", line(limit) + "\n" + line(100) + "\n", ok + ok},
		{"at the limit, crlf", line(limit) + "\r\n" + line(100) + "\n", ok + ok},
		{"at the limit, end of input", line(limit), ok},
		{"one over", line(limit+1) + "\n" + line(100) + "\n", long + ok},
		{"one over, crlf", line(limit+1) + "\r\n" + line(100) + "\n", long + ok},
		{"one over, end of input", line(limit + 1), long},
		{"far over", line(10*limit) + "\n" + line(100) + "\n" + line(5*limit) + "\n" + line(limit) + "\n", long + ok + long + ok},
		{"far over, end of input at the buffer's end", strings.Repeat("x", 4*readBuffer), long},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := converse(t, test.in, testHandler, func(c *Conn) { c.in.max = limit })
			if got != test.out {
				t.Errorf("got:\n%swant:\n%s", got, test.out)
			}
		})
	}
}

func TestMaxLine(t *testing.T) {
	content := bytes.Repeat([]byte("7"), MaxLine+1)
	for over := range 2 {
		l := newLineReader(io.MultiReader(bytes.NewReader(content[:MaxLine+over]), strings.NewReader("\nnext\n")), MaxLine)
		line, owned, err := l.next()
		if over == 0 && (err != nil || len(line) != MaxLine || !owned) || over == 1 && err != errLineTooLong {
			t.Errorf("%d over: %d bytes, owned %v, %v", over, len(line), owned, err)
		}
		if line, _, err := l.next(); string(line) != "next" || err != nil {
			t.Errorf("%d over: next line %q, %v", over, line, err)
		}
	}
}

func TestLineOf20MB(t *testing.T) {
	text := strings.Repeat("0123456789abcde\\", 20<<20/16)
	params, err := json.Marshal([]string{text})
	if err != nil {
		t.Fatal(err)
	}
	got := converse(t, `{"jsonrpc":"2.0","id":1,"method":"echo","params":`+string(params)+"}\n", testHandler, nil)
	if want := `{"jsonrpc":"2.0","id":1,"result":` + string(params) + "}\n"; got != want {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
}

// TestParamsAreKept holds that parameters survive the read buffer's reuse.
func TestParamsAreKept(t *testing.T) {
	var kept []json.RawMessage
	line := `{"jsonrpc":"2.0","method":"n","params":["` + strings.Repeat("a", 100) + `"]}` + "\n"
	input := line + strings.Repeat(strings.ReplaceAll(line, "a", "b"), 2000)
	converse(t, input, func(r *Request) (any, error) {
		kept = append(kept, r.Params)
		return nil, nil
	}, nil)
	if got, want := string(kept[0]), `["`+strings.Repeat("a", 100)+`"]`; got != want {
		t.Errorf("got %s", got)
	}
}

func TestHandlerThatExitsEndsReading(t *testing.T) {
	var out bytes.Buffer
	c := New(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"m"}`), &out,
		func(*Request) (any, error) { runtime.Goexit(); return nil, nil }, nil)
	if err := c.Run(t.Context()); err == nil {
		t.Error("Run = nil")
	}
	if err := c.Wait(t.Context()); err != nil {
		t.Errorf("Wait = %v", err)
	}
	if !strings.Contains(out.String(), "internal error") {
		t.Errorf("got %s", out.String())
	}
}

func TestReadErrorEndsRun(t *testing.T) {
	broken := errors.New("broken")
	c := New(io.MultiReader(strings.NewReader(`{"jsonrpc":"2.0",`), errReader{broken}), io.Discard, testHandler, nil)
	if err := c.Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Run = %v", err)
	}
	if err := c.Run(t.Context()); err == nil {
		t.Error("second Run = nil")
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

type errWriter struct{ err error }

func (w errWriter) Write([]byte) (int, error) { return 0, w.err }

func TestWriteErrorClosesTheConnection(t *testing.T) {
	broken := errors.New("broken")
	r, w := io.Pipe()
	defer w.Close()
	c := New(r, errWriter{broken}, testHandler, nil)
	go c.Notify("n", nil)
	if err := c.Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Run = %v", err)
	}
	if err := c.Wait(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Wait = %v", err)
	}
	if err := c.Notify("n", nil); !errors.Is(err, broken) {
		t.Errorf("Notify = %v", err)
	}
	if err := c.Call(t.Context(), "m", nil, nil); err != ErrClosed {
		t.Errorf("Call = %v", err)
	}
	if _, err := w.Write([]byte("\n")); err != io.ErrClosedPipe {
		t.Errorf("the reader is not closed: %v", err)
	}
}

func TestShortWriteClosesTheConnection(t *testing.T) {
	c := New(strings.NewReader(""), shortWriter{}, nil, nil)
	if err := c.Notify("n", nil); err != nil {
		t.Errorf("Notify = %v", err)
	}
	<-c.Done()
	if err := c.Run(t.Context()); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("Run = %v", err)
	}
}

type shortWriter struct{}

func (shortWriter) Write(p []byte) (int, error) { return len(p) - 1, nil }

// TestSendersDoNotInterleave has many goroutines send lines of many sizes and
// checks that each line is whole and each goroutine's are in order.
func TestSendersDoNotInterleave(t *testing.T) {
	const senders, messages = 8, 300
	r, w := io.Pipe()
	c := New(strings.NewReader(""), w, nil, nil)
	type params struct {
		Sender, N int
		Pad       string
	}
	var wg sync.WaitGroup
	for sender := range senders {
		wg.Go(func() {
			for n := range messages {
				if err := c.Notify("n", &params{sender, n, strings.Repeat("x", n*(sender+1))}); err != nil {
					t.Errorf("Notify = %v", err)
				}
			}
		})
	}
	go func() {
		wg.Wait()
		c.Wait(context.Background())
		c.Close()
	}()
	next := make([]int, senders)
	lines := newLineReader(r, MaxLine)
	for {
		line, _, err := lines.next()
		if err != nil {
			break
		}
		var m struct{ Params params }
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatalf("%v in %.100s", err, line)
		}
		if m.Params.N != next[m.Params.Sender] {
			t.Fatalf("sender %d: message %d, want %d", m.Params.Sender, m.Params.N, next[m.Params.Sender])
		}
		next[m.Params.Sender]++
	}
	for sender, n := range next {
		if n != messages {
			t.Errorf("sender %d: %d messages", sender, n)
		}
	}
}

func TestMessagesAreOneLine(t *testing.T) {
	var out bytes.Buffer
	c := New(strings.NewReader(""), &out, nil, nil)
	if err := c.Notify("a\n\"b", json.RawMessage("{\n\"k\":\r\n\"<\xff\"\n}")); err != nil {
		t.Fatal(err)
	}
	if err := c.Notify("n", json.RawMessage("{")); err == nil {
		t.Error("parameters that are no JSON were sent")
	}
	if err := c.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := `{"jsonrpc":"2.0","method":"a\n\"b","params":{"k":"<` + "\uFFFD" + `"}}` + "\n"; out.String() != want {
		t.Errorf("got %s", out.String())
	}
}

func TestIDEncodes(t *testing.T) {
	got, err := json.Marshal([]ID{{}, {"null"}, {"1.0"}, {`"a"`}})
	if string(got) != `[null,null,1.0,"a"]` || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	if (ID{}).String() != "" || (ID{"1.0"}).String() != "1.0" {
		t.Error("String is not the lexeme")
	}
}
