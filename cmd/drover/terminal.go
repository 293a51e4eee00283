package main

import (
	"context"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// printable takes out what could change a terminal or the reading of a line:
// control characters, with which a model could paint over a question, and
// characters that turn the direction of text or show nothing at all.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Cf, r) && r != '\u200d', // joins emoji
			r == '\u2028', r == '\u2029':
			return '\uFFFD'
		}
		return r
	}, s)
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// sameTerminal reports whether what is written to one stream shows in the lines
// of the other: both are one, or terminals both.
func sameTerminal(a, b io.Writer) bool {
	if a == b || isTerminal(a) && isTerminal(b) {
		return true
	}
	fa, okA := a.(*os.File)
	fb, okB := b.(*os.File)
	if !okA || !okB {
		return false
	}
	sa, errA := fa.Stat()
	sb, errB := fb.Stat()
	return errA == nil && errB == nil && os.SameFile(sa, sb)
}

// isPipe reports whether somebody feeds stdin: a pipe or a file, no terminal
// and no /dev/null.
func isPipe(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return r != nil
	}
	st, err := f.Stat()
	return err == nil && (st.Mode()&os.ModeNamedPipe != 0 || st.Mode().IsRegular())
}

// readAll reads a stream of at most limit bytes, and gives up when ctx ends: the
// reading itself cannot be interrupted.
func readAll(ctx context.Context, r io.Reader, name string, limit int64) ([]byte, error) {
	type answer struct {
		data []byte
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(r, limit+1))
		done <- answer{data, err}
	}()
	select {
	case a := <-done:
		switch {
		case a.err != nil:
			return nil, usageError("%s: %w", name, a.err)
		case int64(len(a.data)) > limit:
			return nil, usageError("%s: more than %d bytes", name, limit)
		}
		return a.data, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
