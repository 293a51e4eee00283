package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/drover-dev/drover/internal/tool"
)

// terminalApprover asks on the terminal of the process, also when stdin and
// stdout are something else.
type terminalApprover struct {
	stderr io.Writer
	tty    *os.File // opened at the first question, nil while there is none
	lines  chan string
}

func newTerminalApprover(stderr io.Writer) *terminalApprover {
	return &terminalApprover{stderr: stderr}
}

// errNoTerminal tells the model and the person what would allow a call.
var errNoTerminal = errors.New("there is no terminal to ask on: started with --mode edit, drover may change files in the folder, with --mode full it may do everything")

// maxQuestionDiff bounds the lines of a diff in a question.
const maxQuestionDiff = 60

// Approve implements [tool.Approver].
func (t *terminalApprover) Approve(ctx context.Context, q *tool.Question) (tool.Decision, error) {
	if err := t.open(); err != nil {
		return tool.RejectOnce, errNoTerminal
	}
	fmt.Fprintf(t.tty, "\n%s\n", questionText(q))
	for {
		always := ""
		if len(q.Action.Scopes) > 0 {
			always = fmt.Sprintf(", a = always for %s", strings.Join(q.Action.Scopes, ", "))
		}
		fmt.Fprintf(t.tty, "Allow? [y = yes%s, n = no, never] ", always)
		select {
		case line, ok := <-t.lines:
			if !ok {
				return tool.RejectOnce, errNoTerminal
			}
			if d, ok := readDecision(line, always != ""); ok {
				return d, nil
			}
		case <-ctx.Done():
			fmt.Fprintln(t.tty)
			return tool.Cancelled, nil
		}
	}
}

// open opens the terminal and starts reading its lines.
func (t *terminalApprover) open() error {
	if t.tty != nil {
		return nil
	}
	tty, err := openTerminal()
	if err != nil {
		return err
	}
	if !term.IsTerminal(int(tty.Fd())) {
		tty.Close()
		return errNoTerminal
	}
	t.tty, t.lines = tty, make(chan string)
	// The goroutine ends with the process: a read of a terminal cannot be
	// interrupted.
	go func() {
		defer close(t.lines)
		for s := bufio.NewScanner(tty); s.Scan(); {
			t.lines <- s.Text()
		}
	}()
	return nil
}

func readDecision(line string, always bool) (tool.Decision, bool) {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return tool.AllowOnce, true
	case "a", "always":
		return tool.AllowAlways, always
	case "n", "no":
		return tool.RejectOnce, true
	case "never":
		return tool.RejectAlways, true
	}
	return tool.RejectOnce, false
}

// questionText shows what would happen: the command, or the diff of a write.
func questionText(q *tool.Question) string {
	a := q.Action
	if a.Command != "" {
		return fmt.Sprintf("%s wants to run:\n  %s", q.Tool, strings.ReplaceAll(printable(a.Command), "\n", "\n  "))
	}
	text := fmt.Sprintf("%s wants to do: %s", q.Tool, printable(a.Title))
	if a.Diff == nil {
		return text
	}
	lines := strings.Split(strings.TrimRight(printable(a.Diff.Unified(strings.TrimPrefix(a.Title, "/"))), "\n"), "\n")
	if more := len(lines) - maxQuestionDiff; more > 0 {
		lines = append(lines[:maxQuestionDiff], fmt.Sprintf("[%d more lines]", more))
	}
	return text + "\n" + strings.Join(lines, "\n")
}

// printable takes out control characters, with which a model could paint over
// the question.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r < ' ', r >= 0x7f && r < 0xa0, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return '\uFFFD'
		}
		return r
	}, s)
}

// sameTerminal reports whether both streams are one, or terminals both, so that
// what is written to one is seen in the lines of the other.
func sameTerminal(a, b io.Writer) bool {
	if a == b {
		return true
	}
	fa, okA := a.(*os.File)
	fb, okB := b.(*os.File)
	return okA && okB && term.IsTerminal(int(fa.Fd())) && term.IsTerminal(int(fb.Fd()))
}
