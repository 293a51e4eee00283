package acp

import (
	"io"
	"strings"
	"testing"
)

// Attempts to open a session that fail one behind the other do not keep its mailbox
// busy, whatever stands between and behind them: it is over when nothing is left in
// it, and goes on when the last attempt went well.
func TestAttemptsThatFailInARow(t *testing.T) {
	for _, failures := range []int{1, 2, 3, 10} {
		for _, opens := range []bool{false, true} {
			s := NewServer(strings.NewReader(""), io.Discard, nil)
			c := s.newConversation("id")
			if _, ok := s.publish(c); !ok {
				t.Fatal("the server is closed")
			}
			held, left := make(chan struct{}), make(chan int)
			c.post(func() { <-held })
			for range failures {
				c.post(c.abandon)
			}
			if opens {
				c.post(func() {
					c.mu.Lock()
					defer c.mu.Unlock()
					c.open = new(workbench)
				})
			}
			// With a message behind them, at most one look at whether it is over is left.
			c.post(func() {
				c.post(func() {
					c.mu.Lock()
					defer c.mu.Unlock()
					left <- len(c.jobs)
				})
			})
			close(held)
			if n := <-left; n > 1 {
				t.Fatalf("%d failures, opened behind them %v: %d jobs are left", failures, opens, n)
			}
			if !opens {
				<-c.done
			}
			s.mu.Lock()
			if known := s.sessions["id"] == c; known != opens {
				t.Errorf("%d failures: the session is known: %v, want %v", failures, known, opens)
			}
			s.mu.Unlock()
		}
	}
}
