package jsonrpc2

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// peer is the other end of a connection under test, by hand.
type peer struct {
	t  *testing.T
	rw net.Conn
	br *bufio.Reader
}

// start runs a connection over a pipe without buffers and returns it with its
// peer. At the end of the test it must not have left a goroutine, which synctest
// checks, so start is for use inside a bubble.
func start(t *testing.T, handler Handler, adjust func(*Conn)) (*Conn, *peer) {
	t.Helper()
	a, b := net.Pipe()
	c := New(a, a, handler, nil)
	if adjust != nil {
		adjust(c)
	}
	go c.Run(context.Background())
	t.Cleanup(func() {
		c.Close()
		b.Close()
		synctest.Wait()
	})
	return c, &peer{t, b, bufio.NewReader(b)}
}

// send writes lines in one Write.
func (p *peer) send(lines ...string) {
	p.t.Helper()
	if _, err := io.WriteString(p.rw, strings.Join(lines, "\n")+"\n"); err != nil {
		p.t.Errorf("send: %v", err)
	}
}

// want reads lines and compares them.
func (p *peer) want(lines ...string) {
	p.t.Helper()
	for _, want := range lines {
		got, err := p.br.ReadString('\n')
		if err != nil || got != want+"\n" {
			p.t.Fatalf("got %s, %v, want %s", got, err, want)
		}
	}
}

// silent holds that nothing more comes.
func (p *peer) silent() {
	p.t.Helper()
	p.rw.SetReadDeadline(time.Now().Add(time.Minute)) // of the bubble's clock
	if got, err := p.br.ReadString('\n'); err == nil {
		p.t.Errorf("unexpected %s", got)
	}
	p.rw.SetReadDeadline(time.Time{})
}

func request(id int, method string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q}`, id, method)
}

func cancelOf(id string) string {
	return `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":` + id + `}}`
}

func result(id int, value string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, id, value)
}

func fault(id int, code int, message string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":%d,"message":%q}}`, id, code, message)
}

// untilCancelled answers when its context ends.
func untilCancelled(r *Request) (any, error) {
	if r.Method == "ping" {
		return "pong", nil
	}
	return r.Go(func(ctx context.Context) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
}

func TestRequestAndCancelInOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := start(t, untilCancelled, nil)
		for i := range 1000 {
			p.send(request(i, "m"), cancelOf(fmt.Sprint(i)))
			p.want(fault(i, CodeRequestCancelled, "request cancelled"))
		}
	})
}

// TestThousandRequestsAndCancelsInOneWrite is the same with all in one write and
// a peer that reads only afterwards.
func TestThousandRequestsAndCancelsInOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := start(t, untilCancelled, nil)
		var lines []string
		for i := range 1000 {
			lines = append(lines, request(i, "m"), cancelOf(fmt.Sprint(i)))
		}
		p.send(lines...)
		seen := make(map[int]bool)
		for range 1000 {
			line, err := p.br.ReadBytes('\n')
			if err != nil {
				t.Fatal(err)
			}
			var m struct {
				ID    int
				Error struct{ Code int }
			}
			if err := json.Unmarshal(line, &m); err != nil || m.Error.Code != CodeRequestCancelled || seen[m.ID] {
				t.Fatalf("%s %v", line, err)
			}
			seen[m.ID] = true
		}
		p.silent()
	})
}

func TestCancelFindsTheRequest(t *testing.T) {
	for _, test := range []struct{ id, cancel string }{
		{"1", "1"}, {"1", "1.0"}, {"1.0", "1"}, {"1e3", "1000"}, {"null", "null"}, {`"a"`, `"\u0061"`}, {`"\u0061"`, `"a"`},
		{"123456789012345678901234567890", "123456789012345678901234567890"},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, p := start(t, untilCancelled, nil)
			p.send(`{"jsonrpc":"2.0","method":"m","id":`+test.id+`}`, cancelOf(`"1"`), cancelOf("2"), cancelOf("[]"), cancelOf(test.cancel))
			p.want(`{"jsonrpc":"2.0","id":` + test.id + `,"error":{"code":-32800,"message":"request cancelled"}}`)
			p.send(cancelOf(test.cancel), request(2, "ping")) // too late is ignored
			p.want(result(2, `"pong"`))
		})
	}
}

func TestCancelWithAResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := start(t, func(r *Request) (any, error) {
			return r.Go(func(ctx context.Context) (any, error) {
				<-ctx.Done()
				if context.Cause(ctx) != ErrCancelled {
					t.Errorf("cause %v", context.Cause(ctx))
				}
				return "cancelled", nil
			})
		}, nil)
		p.send(request(1, "m"), cancelOf("1"))
		p.want(result(1, `"cancelled"`))
	})
}

// TestHandlersRunInOrder holds the contract a queue per session relies on: the
// handler sees everything in arrival order, and answers of one goroutine keep theirs.
func TestHandlersRunInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := make(chan *Request, 100)
		c, p := start(t, func(r *Request) (any, error) {
			queue <- r
			return nil, ErrDeferred
		}, nil)
		go func() {
			for r := range queue {
				r.Do(func(context.Context) (any, error) {
					if err := c.Notify("before", r.ID); err != nil {
						return nil, err
					}
					return r.Method, nil
				})
			}
		}()
		defer close(queue)
		var in, out []string
		for i := range 50 {
			in = append(in, request(i, "m"))
			out = append(out, fmt.Sprintf(`{"jsonrpc":"2.0","method":"before","params":%d}`, i), result(i, `"m"`))
		}
		p.send(in...)
		p.want(out...)
	})
}

func TestReaderDoesNotWaitForAsyncHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := start(t, untilCancelled, nil)
		p.send(request(1, "slow"), request(2, "ping"))
		p.want(result(2, `"pong"`))
	})
}

func TestReplyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var req *Request
		_, p := start(t, func(r *Request) (any, error) {
			req = r
			return nil, ErrDeferred
		}, nil)
		p.send(request(1, "m"))
		synctest.Wait()
		if err := req.Reply("first", nil); err != nil {
			t.Errorf("first Reply = %v", err)
		}
		if err := req.Reply("second", nil); err != ErrReplied {
			t.Errorf("second Reply = %v", err)
		}
		if req.Context().Err() == nil {
			t.Error("the context outlives the answer")
		}
		p.want(result(1, `"first"`))
		p.silent()
	})
}

func TestPanicInGo(t *testing.T) {
	for name, f := range map[string]func(){"panic": func() { panic("secret") }, "exit": runtime.Goexit} {
		synctest.Test(t, func(t *testing.T) {
			var logged bytes.Buffer
			_, p := start(t, func(r *Request) (any, error) {
				return r.Go(func(context.Context) (any, error) { f(); return nil, nil })
			}, func(c *Conn) { c.log = slog.New(slog.NewTextHandler(&logged, nil)) })
			p.send(`{"jsonrpc":"2.0","method":"note"}`, request(1, "m"))
			p.want(fault(1, CodeInternalError, "internal error"))
			synctest.Wait()
			if n := strings.Count(logged.String(), "async_test.go"); n == 0 {
				t.Errorf("%s: no stack in the log:\n%s", name, logged.String())
			}
		})
	}
}

func TestMaxOpenRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := start(t, untilCancelled, nil)
		for i := range MaxOpenRequests {
			p.send(request(i, "m"))
		}
		p.send(request(MaxOpenRequests, "m"))
		p.want(fault(MaxOpenRequests, CodeTooManyOpen, "too many open requests"))
		p.send(cancelOf("7"))
		p.want(fault(7, CodeRequestCancelled, "request cancelled"))
		p.send(request(MaxOpenRequests, "ping"))
		p.want(result(MaxOpenRequests, `"pong"`))
	})
}

func TestMaxOpenBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line := request(1, "m")
		_, p := start(t, untilCancelled, func(c *Conn) { c.maxOpenBytes = 2*len(line) + 1 })
		p.send(line, request(2, "m"), request(3, "m"))
		p.want(fault(3, CodeTooManyOpen, "too many open requests"))
		p.send(cancelOf("1"))
		p.want(fault(1, CodeRequestCancelled, "request cancelled"))
		p.send(request(4, "mm"), cancelOf("4")) // exactly what is left
		p.want(fault(4, CodeRequestCancelled, "request cancelled"))
		p.send(request(5, "mmm"))
		p.want(fault(5, CodeTooManyOpen, "too many open requests"))
	})
}

func TestRunningNotificationsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		ran := 0
		release := make(chan struct{})
		c, p := start(t, func(r *Request) (any, error) {
			return r.Go(func(context.Context) (any, error) {
				mu.Lock()
				ran++
				mu.Unlock()
				<-release
				return nil, nil
			})
		}, nil)
		note := `{"jsonrpc":"2.0","method":"n"}`
		for range MaxOpenRequests + 1 {
			p.send(note)
		}
		synctest.Wait()
		if ran != MaxOpenRequests {
			t.Errorf("%d ran", ran)
		}
		close(release)
		if err := c.Wait(t.Context()); err != nil {
			t.Errorf("Wait = %v", err)
		}
		p.send(note)
		synctest.Wait()
		if ran != MaxOpenRequests+1 {
			t.Errorf("%d ran", ran)
		}
	})
}

// TestPeerThatDoesNotRead holds that notifications to it wait at MaxQueued, while
// requests are read and answered, and cancels found, nevertheless.
func TestPeerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cancelled := make(chan struct{})
		c, p := start(t, func(r *Request) (any, error) {
			if r.Method == "ping" {
				return "pong", nil
			}
			return r.Go(func(ctx context.Context) (any, error) {
				<-ctx.Done()
				close(cancelled)
				return nil, nil
			})
		}, nil)
		sent := 0
		overhead := len(`{"jsonrpc":"2.0","method":"n","params":""}` + "\n")
		pad := strings.Repeat("x", 1<<20-overhead) // lines of 1 MiB
		stopped := make(chan error)
		go func() {
			for {
				if err := c.Notify("n", pad); err != nil {
					stopped <- err
					return
				}
				sent++
			}
		}()
		synctest.Wait()
		if sent != MaxQueued>>20 {
			t.Errorf("%d MiB queued", sent)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Call(ctx, "m", nil, nil); err != context.DeadlineExceeded {
			t.Errorf("Call = %v", err)
		}
		p.send(request(1, "m"), request(2, "ping"), cancelOf("1"))
		<-cancelled
		c.Close()
		if err := <-stopped; err != ErrClosed {
			t.Errorf("Notify = %v", err)
		}
	})
}

func TestQueueLimitIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line := `{"jsonrpc":"2.0","method":"n"}` + "\n"
		for over := range 2 {
			c, p := start(t, nil, func(c *Conn) { c.maxQueued = len(line) + 1 - over })
			var done [3]bool
			go func() {
				for i := range done {
					c.Notify("n", nil)
					done[i] = true
				}
			}()
			synctest.Wait()
			// Below the limit a line is admitted, at the limit it waits.
			if want := [3]bool{true, over == 0, false}; done != want {
				t.Errorf("%d: %v", over, done)
			}
			p.want(strings.TrimSpace(line), strings.TrimSpace(line), strings.TrimSpace(line))
			synctest.Wait()
			if done != [3]bool{true, true, true} {
				t.Errorf("%d: after reading %v", over, done)
			}
		}
	})
}

// TestEndOfInput holds the orderly end: contexts end, answers still go out.
func TestEndOfInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, feed := io.Pipe()
		var out bytes.Buffer
		var causes []error
		c := New(r, &out, func(r *Request) (any, error) {
			return r.Go(func(ctx context.Context) (any, error) {
				<-ctx.Done()
				causes = append(causes, context.Cause(ctx))
				time.Sleep(300 * time.Millisecond) // tidying up, by the bubble's clock
				return "ended", nil
			})
		}, nil)
		run := make(chan error)
		go func() { run <- c.Run(context.Background()) }()
		io.WriteString(feed, request(1, "m")+"\n")
		feed.Close()
		if err := <-run; err != nil {
			t.Errorf("Run = %v", err)
		}
		<-c.Done()
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := c.Wait(short); err != context.DeadlineExceeded {
			t.Errorf("Wait = %v", err)
		}
		if err := c.Wait(t.Context()); err != nil {
			t.Errorf("Wait = %v", err)
		}
		c.Close()
		if want := result(1, `"ended"`) + "\n"; out.String() != want {
			t.Errorf("got %s", out.String())
		}
		if len(causes) != 1 || causes[0] != ErrClosed {
			t.Errorf("causes %v", causes)
		}
		if err := c.Notify("n", nil); err != ErrClosed {
			t.Errorf("Notify = %v", err)
		}
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer b.Close()
		stop := errors.New("stop")
		var cause error
		c := New(a, a, func(r *Request) (any, error) {
			return r.Go(func(ctx context.Context) (any, error) {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return "ended", nil
			})
		}, nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		run := make(chan error)
		go func() { run <- c.Run(ctx) }()
		p := &peer{t, b, bufio.NewReader(b)}
		p.send(request(1, "m"))
		synctest.Wait()
		cancel(stop)
		if err := <-run; err != context.Canceled {
			t.Errorf("Run = %v", err)
		}
		p.want(result(1, `"ended"`))
		if err := c.Wait(t.Context()); err != nil || cause != stop {
			t.Errorf("Wait = %v, cause %v", err, cause)
		}
		p.send(request(2, "m")) // read by the Read that was under way, and dropped
		p.silent()
		if err := c.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("second Close = %v", err)
		}
	})
}

func TestCloseDropsWhatIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := start(t, nil, nil)
		for range 3 {
			if err := c.Notify("n", nil); err != nil {
				t.Errorf("Notify = %v", err)
			}
		}
		waited := make(chan error)
		go func() { waited <- c.Wait(t.Context()) }()
		synctest.Wait()
		c.Close()
		if err := <-waited; err != nil {
			t.Errorf("Wait = %v", err)
		}
	})
}
