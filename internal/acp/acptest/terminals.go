package acptest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os/exec"
	"sync"
)

// Terminals are terminals as a client has them: processes whose output it keeps.
// The zero value has none yet. Set [Editor.Serve] to its method.
type Terminals struct {
	// Before, if set, is called before a request is worked off. What it returns,
	// if not nil, is the answer.
	Before func(method string) *Error

	mu       sync.Mutex
	byID     map[string]*terminal
	created  []TerminalCommand
	released map[string]int
}

// TerminalCommand is what a terminal was asked to run.
type TerminalCommand struct {
	ID, Command, CWD string
	Args             []string
	Env              map[string]string
	OutputLimit      int
}

type terminal struct {
	cmd   *exec.Cmd
	limit int
	ended chan struct{}

	mu  sync.Mutex
	out bytes.Buffer
}

func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out.Write(p)
}

// Created lists the commands in their order.
func (s *Terminals) Created() []TerminalCommand {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]TerminalCommand(nil), s.created...)
}

// Released says how often a terminal was released.
func (s *Terminals) Released(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.released[id]
}

// Ended reports whether the command of a terminal has ended.
func (s *Terminals) Ended(id string) bool {
	s.mu.Lock()
	t := s.byID[id]
	s.mu.Unlock()
	select {
	case <-t.ended:
		return true
	default:
		return false
	}
}

// Serve answers the methods terminal/*.
func (s *Terminals) Serve(method string, params json.RawMessage) (any, *Error) {
	if s.Before != nil {
		if err := s.Before(method); err != nil {
			return nil, err
		}
	}
	if method == "terminal/create" {
		return s.create(params)
	}
	var p struct{ TerminalID string }
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &Error{Code: -32602, Message: err.Error()}
	}
	s.mu.Lock()
	t, gone := s.byID[p.TerminalID], s.released[p.TerminalID] > 0
	if method == "terminal/release" {
		s.released[p.TerminalID]++
	}
	s.mu.Unlock()
	if t == nil || gone {
		return nil, &Error{Code: -32002, Message: "no terminal " + p.TerminalID}
	}
	switch method {
	case "terminal/wait_for_exit":
		<-t.ended
		return t.status(), nil
	case "terminal/output":
		return t.output(), nil
	case "terminal/kill", "terminal/release":
		_ = t.cmd.Process.Kill() // it may have ended
		return map[string]any{}, nil
	}
	return nil, &Error{Code: -32601, Message: "method not found"}
}

func (s *Terminals) create(params json.RawMessage) (any, *Error) {
	var p struct {
		Command, CWD    string
		Args            []string
		Env             []struct{ Name, Value string }
		OutputByteLimit int
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &Error{Code: -32602, Message: err.Error()}
	}
	c := TerminalCommand{Command: p.Command, CWD: p.CWD, Args: p.Args, Env: make(map[string]string), OutputLimit: p.OutputByteLimit}
	t := &terminal{cmd: exec.Command(p.Command, p.Args...), ended: make(chan struct{}), limit: cmp.Or(p.OutputByteLimit, 1<<20)}
	t.cmd.Dir, t.cmd.Stdout, t.cmd.Stderr = p.CWD, t, t
	t.cmd.Env = t.cmd.Environ()
	for _, v := range p.Env {
		c.Env[v.Name] = v.Value
		t.cmd.Env = append(t.cmd.Env, v.Name+"="+v.Value)
	}
	if err := t.cmd.Start(); err != nil {
		return nil, &Error{Code: -32603, Message: err.Error()}
	}
	go func() {
		defer close(t.ended)
		_ = t.cmd.Wait() // ProcessState says how it went
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID, s.released = make(map[string]*terminal), make(map[string]int)
	}
	c.ID = fmt.Sprintf("term-%d", len(s.created)+1)
	s.byID[c.ID], s.created = t, append(s.created, c)
	return map[string]any{"terminalId": c.ID}, nil
}

// status is how the command ended, nil while it runs.
func (t *terminal) status() map[string]any {
	select {
	case <-t.ended:
	default:
		return nil
	}
	if code := t.cmd.ProcessState.ExitCode(); code >= 0 {
		return map[string]any{"exitCode": code, "signal": nil}
	}
	return map[string]any{"exitCode": nil, "signal": "SIGKILL"}
}

func (t *terminal) output() map[string]any {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.out.Bytes()
	cut := max(0, len(out)-t.limit)
	return map[string]any{"output": string(bytes.ToValidUTF8(out[cut:], nil)), "truncated": cut > 0, "exitStatus": t.status()}
}
