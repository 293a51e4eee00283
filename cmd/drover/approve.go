package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/drover-dev/drover/internal/tool"
)

// terminalApprover asks on the terminal of the process, also when stdin and
// stdout are something else. One question is asked at a time.
type terminalApprover struct {
	out   *os.File // opened at the first question, nil while there is none
	lines chan string
	asked bool
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
	// What was typed before the question was there is no answer to it.
	for t.asked && len(t.lines) > 0 {
		<-t.lines
	}
	t.asked = true
	always := ""
	if len(q.Action.Scopes) > 0 {
		always = fmt.Sprintf(", a = always for %s", printable(strings.Join(q.Action.Scopes, ", ")))
	}
	fmt.Fprintf(t.out, "\n%s\n", questionText(q))
	for {
		fmt.Fprintf(t.out, "Allow? [y = yes%s, n = no, never] ", always)
		select {
		case line, ok := <-t.lines:
			if !ok {
				return tool.RejectOnce, errNoTerminal
			}
			if d, ok := readDecision(line, always != ""); ok {
				return d, nil
			}
		case <-ctx.Done():
			fmt.Fprintln(t.out)
			return tool.Cancelled, nil
		}
	}
}

// maxTyped is how many lines are kept that nobody asked for yet.
const maxTyped = 16

// open opens the terminal and starts reading its lines.
func (t *terminalApprover) open() error {
	if t.out != nil {
		return nil
	}
	in, out, err := openTerminal()
	if err != nil {
		return err
	}
	if !isTerminal(in) {
		return errors.Join(errNoTerminal, in.Close())
	}
	t.out, t.lines = out, make(chan string, maxTyped)
	// The goroutine ends with the process: a read of a terminal cannot be
	// interrupted.
	go func() {
		defer close(t.lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			select {
			case t.lines <- s.Text():
			default: // more than anybody was asked for
			}
		}
	}()
	return nil
}

// maxQuestionArguments bounds what a question shows of arguments, in bytes.
const maxQuestionArguments = 8 << 10

// argumentsText is all that another program's tool would be given: its title is
// cut.
func argumentsText(arguments string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(arguments), "", "  ") != nil {
		b.Reset()
		b.WriteString(arguments)
	}
	if more := b.Len() - maxQuestionArguments; more > 0 {
		b.Truncate(maxQuestionArguments)
		fmt.Fprintf(&b, "\n[%d more bytes that are not shown]", more)
	}
	return b.String()
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
	if a.Access == tool.AccessExternal {
		return text + "\n  " + strings.ReplaceAll(printable(argumentsText(q.Arguments)), "\n", "\n  ")
	}
	if a.Diff == nil {
		return text
	}
	lines := strings.Split(strings.TrimRight(printable(a.Diff.Unified(strings.TrimPrefix(a.Title, "/"))), "\n"), "\n")
	if more := len(lines) - maxQuestionDiff; more > 0 {
		lines = append(lines[:maxQuestionDiff], fmt.Sprintf("[%d more lines]", more))
	}
	return text + "\n" + strings.Join(lines, "\n")
}
