package tool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/drover-dev/drover/internal/llm"
)

const (
	// defaultTimeout and maxTimeout bound one command, in seconds.
	defaultTimeout = 120
	maxTimeout     = 600
	// killDelay is how long a command has to end after it was asked to.
	killDelay = 3 * time.Second
	// endDelay is the same when the process itself is about to end.
	endDelay = 500 * time.Millisecond
	// drainDelay is how long a child of a command that has ended may keep the
	// output open.
	drainDelay = time.Second
	// maxOutputBytes is how much output a result holds, half of it from the start
	// and half from the end.
	maxOutputBytes = 64 << 10
	// maxProgressBytes bounds one piece of output that is shown while a command
	// runs.
	maxProgressBytes = 4 << 10
	// maxTitleBytes bounds a title that is a command or a pattern.
	maxTitleBytes = 200
)

type shellTool struct {
	w   *Workspace
	def llm.ToolDef
	// As the constants of these names; tests shorten them.
	killDelay, drainDelay time.Duration
}

// Shell makes the tool that runs a command line.
func Shell(w *Workspace) Tool {
	return &shellTool{w: w, killDelay: killDelay, drainDelay: drainDelay, def: llm.NewToolDef("shell",
		"Run a "+shellName+" command in the working directory. timeout is in seconds (default 120, at most 600).",
		[]byte(`{"type":"object","properties":{"command":{"type":"string"},
			"timeout":{"type":"integer"}},"required":["command"]}`))}
}

func (t *shellTool) Def() llm.ToolDef { return t.def }

func (t *shellTool) Prepare(ctx context.Context, text string) (*Action, error) {
	a := parseArguments(text, "command", "timeout")
	command := a.text("command")
	seconds := min(maxTimeout, a.number("timeout", defaultTimeout, 1))
	if err := a.err(); err != nil {
		return nil, err
	}
	switch {
	case strings.TrimSpace(command) == "":
		return nil, errors.New("command must not be empty")
	case strings.ContainsRune(command, 0):
		return nil, errors.New("command must not hold a NUL byte")
	}
	argv, scopes := shellArgv(t.w.Environ, command, t.w.roots()...), []string(nil)
	if argv[1] == "-c" { // a shell whose language is known
		scopes = commandScopes(command)
	}
	c := &Command{Argv: argv, Dir: t.w.Dir, Environ: commandEnviron(t.w.Environ, t.w.Dir), OutputLimit: maxOutputBytes}
	return &Action{
		Title: oneLine(command, maxTitleBytes), Kind: KindExecute, Access: AccessExecute,
		Command: command, Scopes: scopes,
		Run: func(ctx context.Context, progress func(string)) Result {
			return t.run(ctx, t.wrap(c), time.Duration(seconds)*time.Second, progress)
		},
	}, nil
}

// wrap changes a command as the workspace wants it at this moment.
func (t *shellTool) wrap(c *Command) *Command {
	if t.w.Wrap == nil {
		return c
	}
	wrapped := *c
	wrapped.Argv = t.w.Wrap(c.Argv)
	wrapped.confined = len(wrapped.Argv) > len(c.Argv)
	return &wrapped
}

// run runs the command and says how it ended.
func (t *shellTool) run(ctx context.Context, c *Command, timeout time.Duration, progress func(string)) Result {
	limited, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	start := t.start
	if t.w.Terminal != nil {
		start = t.startInTerminal
	}
	e, err := start(limited, c, progress)
	if err != nil {
		return Failed("The command could not be started: " + err.Error())
	}
	status := StatusError
	switch {
	case e.lost:
		status = StatusUnknown
	case e.stopped && context.Cause(limited) == errTimeout:
		e.note = fmt.Sprintf("stopped after %d seconds; timeout can be up to %d", int(timeout.Seconds()), maxTimeout)
	case e.stopped:
		e.note = "stopped: cancelled"
	case e.ok:
		status = StatusOK
	case c.confined:
		if len(c.Argv) > 2 {
			writable, _, _ := sandboxArguments(c.Argv[2:])
			e.note += sandboxNote(e.output, c.Dir, writable)
		}
	}
	if e.output == "" {
		e.note += ", no output"
	} else if !strings.HasSuffix(e.output, "\n") {
		e.output += "\n"
	}
	return Result{Status: status, Text: e.output + "[" + e.note + "]"}
}

// errTimeout is why a command's context ended when it took too long.
var errTimeout = errors.New("timeout")

func (t *shellTool) startInTerminal(ctx context.Context, c *Command, _ func(string)) (ended, error) {
	exit, err := t.w.Terminal.RunCommand(ctx, c)
	if err != nil {
		return ended{}, err
	}
	e := ended{
		note: exit.note(), stopped: ctx.Err() != nil, lost: exit.Lost != "",
		ok: exit.Code == 0 && exit.Signal == "",
	}
	e.output = t.w.Bound(strings.ToValidUTF8(exit.Output, "\uFFFD"), maxOutputBytes, "shell")
	if exit.Truncated {
		e.output = "[... earlier output is left out ...]\n" + e.output
	}
	return e, nil
}

func (e *Exit) note() string {
	switch {
	case e.Lost != "":
		return "nobody knows how it ended: " + e.Lost
	case e.Signal != "":
		return "ended by signal " + e.Signal
	case e.Code < 0:
		return "ended by a signal"
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// teller passes output on in pieces of whole characters.
type teller struct {
	to   func(string)
	rest []byte // the start of a character that has not come whole
}

func (w *teller) Write(p []byte) (int, error) {
	n := len(p)
	if w.to == nil {
		return n, nil
	}
	data := append(w.rest, p...)
	for len(data) > maxProgressBytes {
		k := runeStart(string(data[:min(len(data), maxProgressBytes+utf8.UTFMax)]), maxProgressBytes)
		w.tell(data[:k])
		data = data[k:]
	}
	whole := len(data)
	for i := 1; i < utf8.UTFMax && i <= len(data); i++ {
		if utf8.RuneStart(data[len(data)-i]) {
			if !utf8.FullRune(data[len(data)-i:]) {
				whole = len(data) - i
			}
			break
		}
	}
	w.tell(data[:whole])
	w.rest = append([]byte(nil), data[whole:]...)
	return n, nil
}

func (w *teller) tell(p []byte) {
	if len(p) == 0 || w.to == nil {
		return
	}
	// This is no goroutine of the caller, who could not recover himself.
	defer func() {
		if recover() != nil {
			w.to = nil
		}
	}()
	w.to(strings.ToValidUTF8(string(p), "\uFFFD"))
}

func (w *teller) close() { w.tell(w.rest) }
