package tui

import (
	"bufio"
	"context"
	"io"
)

// readLines reads lines until the end of the input. The goroutine ends with the
// process at the latest: a read of a terminal cannot be interrupted.
func readLines(in io.Reader, life context.Context) <-chan string {
	lines := make(chan string, maxTyped)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(in)
		s.Buffer(nil, maxPrompt)
		for s.Scan() {
			select {
			case lines <- s.Text():
			case <-life.Done():
				return
			}
		}
	}()
	return lines
}

// interruptible gives a context that an interrupt ends, as long as done is not called:
// a keyring or an engine may let a person wait before there is a turn.
func (p *plain) interruptible() (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(p.life)
	over := make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-p.stops:
			p.again()
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel()
		<-over
	}
}
