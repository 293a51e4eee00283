// Command drover lets any editor or terminal work with any language model.
//
// This package has one file for each command. It is the only place where the
// parts are put together, where errors become words with a hint, and where an
// exit status is chosen.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

// Exit statuses.
const (
	exitDone       = 0
	exitFailed     = 1 // the turn failed, or ended at its token limit
	exitUsage      = 2 // the command line or the configuration
	exitNoFit      = 3 // the request does not fit the model's window
	exitCancelled  = 130
	exitBrokenPipe = 141 // the reader of stdout is gone, as a shell counts it
)

func main() {
	os.Exit(runProcess())
}

// runProcess is run with the process's own arguments, streams and signals. The
// first interrupt cancels, the second ends the process and what runs below it.
func runProcess() int {
	if isSandboxExec(os.Args) {
		return sandboxExec(os.Args, os.Stderr)
	}
	keepPrivate()
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup asks for
		// A terminal that is closed ends the turn, with the commands that run in it.
		// It may tell so twice, by the shell and by the system: that must not end the
		// process before it has cleaned up.
		signals = append(signals, syscall.SIGHUP)
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	children := tool.NewChildren()
	context.AfterFunc(ctx, func() {
		again := make(chan os.Signal, 1)
		signal.Notify(again, os.Interrupt, syscall.SIGTERM)
		stop()
		<-again
		children.Kill()
		os.Exit(exitCancelled)
	})
	// A reader that is gone shall be an error of a write and not the end of the
	// process. Caught and not ignored: children would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return run(ctx, children, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// run is the whole program. stdin, stdout and stderr are those of the process
// or a test's.
func run(ctx context.Context, children *tool.Children, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, children: children}
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	a.close()
	if err == nil {
		return exitDone
	}
	chosen := status(ctx, err)
	if chosen == exitCancelled && err.Error() != "" {
		err = errCancelled
	}
	if text := explain(err); text != "" && !readerLeft(err) {
		fmt.Fprintln(stderr, "drover: "+text)
	}
	return chosen
}

// readerLeft reports whether an error is that of writing to a pipe whose reader has
// read enough, as head has: nobody has to be told.
func readerLeft(err error) bool {
	e, ok := errors.AsType[*fs.PathError](err)
	return ok && errors.Is(e, syscall.EPIPE)
}

// errCancelled is all there is to say of a command that was interrupted.
var errCancelled = errors.New("cancelled")

// statusError is an error whose exit status is chosen and whose text, if any,
// is all there is to say.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *statusError) Unwrap() error { return e.err }

// exit makes an error that only chooses the status: everything was said.
func exit(status int) error { return &statusError{status: status} }

// usageError makes an error of the command line.
func usageError(format string, args ...any) error {
	return &statusError{status: exitUsage, err: fmt.Errorf(format, args...)}
}

func status(ctx context.Context, err error) int {
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.status
	}
	switch {
	case errors.Is(err, syscall.EPIPE):
		return exitBrokenPipe
	case ctx.Err() != nil:
		return exitCancelled
	}
	switch overflow, _ := errors.AsType[*budget.OverflowError](err); {
	case overflow != nil && agent.Code(err) != llm.CodeContextWindowExceeded:
		return exitUsage // the conversation or the model is no valid one
	case agent.Code(err) == llm.CodeContextWindowExceeded:
		return exitNoFit
	}
	return exitFailed
}
