package jsonrpc2

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

func TestCall(t *testing.T) {
	tests := []struct{ name, answer, want, err string }{
		{"result", `{"jsonrpc":"2.0","id":1,"result":"ok"}`, "ok", ""},
		{"id as a float", `{"result":"ok","id":1.0,"jsonrpc":"2.0"}`, "ok", ""},
		{"null", `{"jsonrpc":"2.0","id":1,"result":null,"error":null}`, "", ""},
		{"error", `{"jsonrpc":"2.0","id":1,"error":{"data":{"a":1},"message":"no","code":-32602,"Code":1}}`, "", "no (-32602)"},
		{"error as text", `{"jsonrpc":"2.0","id":1,"error":"no"}`, "", "no (-32603)"},
		{"error without a message", `{"jsonrpc":"2.0","id":1,"error":{"code":4.0,"message":5}}`, "", "error answer without a message (4)"},
		{"error as a number", `{"jsonrpc":"2.0","id":1,"error":7,"result":"ok"}`, "", "error answer without a message (-32603)"},
		{"null error alone", `{"jsonrpc":"2.0","id":1,"error":null}`, "", "jsonrpc2: answer to m has no result"},
		{"other type", `{"jsonrpc":"2.0","id":1,"result":5}`, "", "jsonrpc2: decode result of m: json: cannot unmarshal number into Go value of type string"},
		{"invalid utf-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}", "\uFFFD", ""},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			c, p := start(t, nil, nil)
			go func() {
				p.want(`{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}`)
				p.send(`{"jsonrpc":"2.0","id":"1","result":"foreign"}`, `{"jsonrpc":"2.0","id":2,"result":"foreign"}`, test.answer)
			}()
			var got, text string
			err := c.Call(t.Context(), "m", []int{1}, &got)
			if err != nil {
				text = err.Error()
			}
			if got != test.want || text != test.err {
				t.Errorf("%s: got %q, %v", test.name, got, err)
			}
		})
	}
}

func TestCallErrorKeepsData(t *testing.T) {
	e := decodeError([]byte(`{"code":1,"message":"m","data":{"a":1.0}}`))
	if got, ok := e.Data.(json.RawMessage); !ok || string(got) != `{"a":1.0}` {
		t.Errorf("got %#v", e.Data)
	}
}

func TestCallCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := start(t, nil, nil)
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error)
		go func() { errs <- c.Call(ctx, "m", nil, nil) }()
		p.want(request(1, "m"))
		cancel()
		if err := <-errs; err != context.Canceled { // although the peer reads nothing
			t.Errorf("Call = %v", err)
		}
		p.want(cancelOf("1"))
		p.send(result(1, "5")) // late
		go func() { errs <- c.Call(t.Context(), "m", nil, nil) }()
		p.want(request(2, "m"))
		p.send(result(2, "5"))
		if err := <-errs; err != nil {
			t.Errorf("Call = %v", err)
		}
		if err := c.Call(ctx, "m", nil, nil); err != context.Canceled {
			t.Errorf("Call = %v", err)
		}
		p.silent()
		if len(c.pending) != 0 {
			t.Errorf("%d calls kept", len(c.pending))
		}
	})
}

func TestCallsEndWithTheConnection(t *testing.T) {
	for name, end := range map[string]func(*Conn, *peer){
		"end of input": func(_ *Conn, p *peer) { p.rw.Close() },
		"close":        func(c *Conn, _ *peer) { c.Close() },
	} {
		synctest.Test(t, func(t *testing.T) {
			c, p := start(t, nil, nil)
			errs := make(chan error)
			go func() { errs <- c.Call(t.Context(), "m", nil, nil) }()
			p.want(request(1, "m"))
			end(c, p)
			if err := <-errs; err != ErrClosed {
				t.Errorf("%s: Call = %v", name, err)
			}
			if err := c.Call(t.Context(), "m", nil, nil); err != ErrClosed {
				t.Errorf("%s: later Call = %v", name, err)
			}
		})
	}
}

// TestResponseAfterNotifications holds that a Call returns after the handler has
// seen what came before its answer.
func TestResponseAfterNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notes int
		c, p := start(t, func(*Request) (any, error) { notes++; return nil, nil }, nil)
		go func() {
			p.want(request(1, "m"))
			note := `{"jsonrpc":"2.0","method":"n"}`
			p.send(note, note, note, result(1, "null"))
		}()
		if err := c.Call(t.Context(), "m", nil, nil); err != nil || notes != 3 {
			t.Errorf("%d notifications before the answer, %v", notes, err)
		}
	})
}

// TestBothDirections joins two connections whose handlers call back.
func TestBothDirections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		var left, right *Conn
		countdown := func(other **Conn) Handler {
			return func(r *Request) (any, error) {
				return r.Go(func(ctx context.Context) (any, error) {
					var n, below int
					if err := json.Unmarshal(r.Params, &n); err != nil || n == 0 {
						return 0, err
					}
					err := (*other).Call(ctx, "countdown", n-1, &below)
					return below + 1, err
				})
			}
		}
		left = New(a, a, countdown(&left), nil)
		right = New(b, b, countdown(&right), nil)
		go left.Run(t.Context())
		go right.Run(t.Context())
		var wg sync.WaitGroup
		for n := range 50 {
			wg.Go(func() {
				var got int
				if err := left.Call(t.Context(), "countdown", n, &got); err != nil || got != n {
					t.Errorf("countdown from %d: %d, %v", n, got, err)
				}
			})
		}
		wg.Wait()
		left.Close()
		right.Close()
	})
}

// TestCallWaitingForTheQueue ends calls that were never sent: no cancel goes out.
func TestCallWaitingForTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := start(t, nil, func(c *Conn) { c.maxQueued = 1 })
		if err := c.Notify("n", nil); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopped, ended := make(chan error), make(chan error)
		go func() { stopped <- c.Call(ctx, "m", nil, nil) }()
		go func() { ended <- c.Call(t.Context(), "m", nil, nil) }()
		synctest.Wait()
		cancel()
		if err := <-stopped; err != context.Canceled {
			t.Errorf("Call = %v", err)
		}
		c.end(nil) // as at the end of input
		if err := <-ended; err != ErrClosed {
			t.Errorf("Call = %v", err)
		}
		p.want(`{"jsonrpc":"2.0","method":"n"}`)
		p.silent()
	})
}

func TestCallThatDoesNotEncode(t *testing.T) {
	c := New(strings.NewReader(""), nil, nil, nil)
	if err := c.Call(t.Context(), "m", badJSON{}, nil); err == nil || len(c.pending) != 0 {
		t.Errorf("Call = %v, %d calls kept", err, len(c.pending))
	}
}
