package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/tool"
)

// editorTerminal runs commands in terminals of the client, where the person sees
// them as they run. It is a [tool.Terminal].
//
// Every terminal that the client makes is released exactly once, which also ends
// what still runs in it.
type editorTerminal struct{ c *conversation }

// createTerminal is the parameters of terminal/create.
type createTerminal struct {
	SessionID   string        `json:"sessionId"`
	Command     string        `json:"command"`
	Args        []string      `json:"args"`
	Env         []envVariable `json:"env"`
	CWD         string        `json:"cwd"`
	OutputLimit int           `json:"outputByteLimit"`
}

type envVariable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// RunCommand implements [tool.Terminal].
func (e *editorTerminal) RunCommand(ctx context.Context, cmd *tool.Command) (tool.Exit, error) {
	id, err := e.create(ctx, cmd)
	if err != nil {
		return tool.Exit{}, err
	}
	defer e.release(ctx, id)
	if t := e.c.workbench().runningTurn(); t != nil {
		t.inTerminal(id)
	}
	status, err := e.call(ctx, "terminal/wait_for_exit", id)

	// What follows is asked for although the command was cancelled.
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), terminalPatience)
	defer cancel()
	if err != nil { // cancelled, or nobody could watch the command
		if _, killErr := e.call(after, "terminal/kill", id); killErr == nil {
			status, _ = e.call(after, "terminal/wait_for_exit", id)
		}
	}
	out, outErr := e.call(after, "terminal/output", id)
	if status == nil {
		status = out.object("exitStatus")
	}
	exit := exitOf(status)
	exit.Output, exit.Truncated = out.textOr("output"), out.yes("truncated")
	if failed := errors.Join(err, outErr); failed != nil && ctx.Err() == nil {
		exit.Lost = "the editor's terminal: " + line(failed.Error())
	}
	return exit, nil
}

// create makes a terminal that runs the command. When ctx ends first, one that
// the client still makes is released as soon as it says so.
func (e *editorTerminal) create(ctx context.Context, cmd *tool.Command) (id string, err error) {
	if err := ctx.Err(); err != nil {
		return "", context.Cause(ctx)
	}
	params := createTerminal{
		SessionID: e.c.id, Command: cmd.Argv[0], Args: cmd.Argv[1:], CWD: cmd.Dir, OutputLimit: cmd.OutputLimit,
		Env: terminalEnviron(cmd.Environ, e.c.srv.opts.Secrets),
	}
	type terminal struct {
		id  string
		err error
	}
	made := make(chan terminal, 1)
	go func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateTerminal)
		defer cancel()
		var answer json.RawMessage
		err := e.c.srv.conn.Call(late, "terminal/create", params, &answer)
		id := readObject(answer).textOr("terminalId")
		if err == nil && id == "" {
			err = errors.New("its answer to terminal/create names no terminal")
		}
		made <- terminal{id, err}
	}()
	select {
	case t := <-made:
		if t.err != nil {
			return "", fmt.Errorf("the editor's terminal: %w", t.err)
		}
		return t.id, nil
	case <-ctx.Done():
		go func() {
			if t := <-made; t.err == nil {
				e.release(ctx, t.id)
			}
		}()
		return "", context.Cause(ctx)
	}
}

// release gives a terminal back.
func (e *editorTerminal) release(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), terminalPatience)
	defer cancel()
	if _, err := e.call(ctx, "terminal/release", id); err != nil {
		e.c.srv.log.Debug("acp: release a terminal", "session", e.c.id, "error", err)
	}
}

// call calls a method that is about one terminal. The object is nil when it
// fails.
func (e *editorTerminal) call(ctx context.Context, method, id string) (object, error) {
	var answer json.RawMessage
	err := e.c.srv.conn.Call(ctx, method, struct {
		SessionID  string `json:"sessionId"`
		TerminalID string `json:"terminalId"`
	}{e.c.id, id}, &answer)
	if err != nil {
		return nil, err
	}
	return readObject(answer), nil
}

// exitOf reads how a command ended.
func exitOf(status object) tool.Exit {
	exit := tool.Exit{Code: -1, Signal: line(status.textOr("signal"))}
	var code uint32
	if raw, ok := status["exitCode"]; ok && string(raw) != "null" && json.Unmarshal(raw, &code) == nil {
		exit.Code = int(code)
	} else if exit.Signal == "" {
		exit.Lost = "the editor's terminal did not say"
	}
	return exit
}

// terminalEnviron is an environment for a client, which adds it to its own: the
// variables that a command must not see are empty.
func terminalEnviron(environ, secrets []string) []envVariable {
	list := make([]envVariable, 0, len(environ)+len(secrets))
	for _, e := range environ {
		if name, value, ok := strings.Cut(e, "="); ok && name != "" && !slices.Contains(secrets, name) {
			list = append(list, envVariable{name, value})
		}
	}
	for _, name := range secrets {
		list = append(list, envVariable{Name: name})
	}
	return list
}

// inTerminal shows the command that runs in a terminal of the client. It is the
// only one: calls that change something run alone.
func (t *turn) inTerminal(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, oc := range t.order {
		if oc.kind == tool.KindExecute && oc.running && !oc.finished {
			oc.embedded = true
			update := oc.update(statusRunning)
			update.Content = []any{terminalContent{"terminal", id}}
			t.c.update(update)
			return
		}
	}
}
