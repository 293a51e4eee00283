// Package acptest is a fake editor for tests of package acp, and of whatever
// else serves the Agent Client Protocol over a reader and a writer.
//
// An [Editor] sends what a test says and records everything that comes back, in
// order. It checks each message against the rules that hold in every
// conversation: one JSON object a line, lines under 1 MiB, one answer a request,
// a tool call announced once and closed once, nothing of a turn after its
// answer, nothing that the client's capabilities do not ask for.
package acptest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"
)

// Patience is how long a test waits for something that should come at once. It is
// generous: what takes a moment may take a busy machine with the race detector long.
const Patience = 3 * time.Minute

// maxLine is the longest line that an editor takes.
const maxLine = 1 << 20

// Message is one message of the agent.
type Message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"`
	Raw    string          `json:"-"`

	update *Update // nil if it is none
}

// Error is an error answer.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    struct {
		Code    string `json:"code"`
		Details string `json:"details"`
	} `json:"data"`
}

func (e *Error) Error() string { return fmt.Sprintf("%d %s (%s)", e.Code, e.Message, e.Data.Code) }

// Update is one session/update.
type Update struct {
	Session string
	Kind    string
	Body    json.RawMessage
	// Place is its place among all messages of the agent.
	Place int
}

// Text is the text of a chunk.
func (u *Update) Text() string {
	var body struct {
		Content struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	_ = json.Unmarshal(u.Body, &body)
	return body.Content.Text
}

// Editor is the client's side of a connection.
type Editor struct {
	t  testing.TB
	in io.WriteCloser

	// Permission answers session/request_permission: an option id, "cancelled",
	// or "" for never. Default: allow_once. Set it before the conversation.
	Permission func(params json.RawMessage) string
	// Serve answers the agent's other requests. Default: method not found, or no
	// answer where Scripted says that a conversation gives it.
	Serve func(method string, params json.RawMessage) (result any, err *Error)

	Scripted bool

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced with every message
	messages []Message
	ended    bool
	lastID   int
	methods  map[string]string // of requests, by id
	sessions map[string]string // of prompts, by id
	rules    rules
	waitErr  chan error
}

// Connect starts serve with pipes and returns the editor at their other end.
// When the test ends, the input is closed and serve has to return.
func Connect(t testing.TB, serve func(ctx context.Context, in io.Reader, out io.Writer) error) *Editor {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	e := Attach(t, outR, inW)
	go func() {
		e.waitErr <- serve(context.Background(), inR, outW)
		outW.Close()
	}()
	t.Cleanup(func() { e.Close() })
	return e
}

// Attach makes an editor that reads the agent's messages from out and writes to
// in, the standard streams of a process, say.
func Attach(t testing.TB, out io.Reader, in io.WriteCloser) *Editor {
	e := &Editor{
		t: t, in: in, changed: make(chan struct{}), waitErr: make(chan error, 1),
		methods: make(map[string]string), sessions: make(map[string]string),
	}
	e.rules.t = t
	go e.read(out)
	return e
}

// Close ends the input, as an editor does that goes away, and waits until the
// agent has returned. It may be called more than once.
func (e *Editor) Close() {
	e.t.Helper()
	e.in.Close()
	e.await("the agent's end", func() bool { return e.ended })
}

// Returned is what serve returned. Call it after Close.
func (e *Editor) Returned() error { return <-e.waitErr }

func (e *Editor) read(out io.Reader) {
	r := bufio.NewReaderSize(out, 64<<10)
	for {
		text, err := r.ReadString('\n')
		if text != "" {
			e.take(text)
		}
		if err != nil {
			e.mu.Lock()
			e.ended = true
			e.wake()
			e.mu.Unlock()
			return
		}
	}
}

func (e *Editor) take(text string) {
	var m Message
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		e.t.Errorf("not a message: %v: %.200q", err, text)
		return
	}
	if len(text) >= maxLine {
		e.t.Errorf("line of %d bytes: %.100q", len(text), text)
	}
	m.Raw = text
	e.mu.Lock()
	if u, ok := updateOf(&m); ok {
		u.Place = len(e.messages)
		m.update = &u
	}
	e.rules.check(&m, e.methods, e.sessions)
	e.messages = append(e.messages, m)
	e.wake()
	e.mu.Unlock()
	if m.Method != "" && m.ID != nil {
		go e.serve(m)
	}
}

// wake tells whoever waits; it needs the lock.
func (e *Editor) wake() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// serve answers a request of the agent.
func (e *Editor) serve(m Message) {
	if m.Method == "session/request_permission" {
		answer := "allow_once"
		if e.Permission != nil {
			answer = e.Permission(m.Params)
		}
		switch answer {
		case "":
		case "cancelled":
			e.reply(m.ID, map[string]any{"outcome": map[string]any{"outcome": "cancelled"}}, nil)
		default:
			e.reply(m.ID, map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": answer}}, nil)
		}
		return
	}
	if e.Serve == nil {
		if e.Scripted {
			return
		}
		e.reply(m.ID, nil, &Error{Code: -32601, Message: "method not found"})
		return
	}
	result, err := e.Serve(m.Method, m.Params)
	e.reply(m.ID, result, err)
}

func (e *Editor) reply(id json.RawMessage, result any, err *Error) {
	answer := map[string]any{"jsonrpc": "2.0", "id": id}
	if err != nil {
		answer["error"] = map[string]any{"code": err.Code, "message": err.Message}
	} else {
		answer["result"] = result
	}
	e.Write(encode(answer))
}

// Write sends bytes as they are. After the agent's end it does nothing.
func (e *Editor) Write(data string) {
	_, _ = io.WriteString(e.in, data)
}

func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data) + "\n"
}

// expect takes note of a request that is written as it is, so that its answer is
// one.
func (e *Editor) expect(line string) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct{ SessionID string }
	}
	if json.Unmarshal([]byte(line), &m) != nil || m.ID == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.methods[string(m.ID)] = m.Method
	if m.Method == "session/prompt" {
		e.sessions[string(m.ID)] = m.Params.SessionID
	}
}

// Request is a request on its way. Line is what is to be written.
type Request struct {
	e      *Editor
	ID     int
	Method string
	Line   string
}

// Prepare makes a request without sending it.
func (e *Editor) Prepare(method string, params any) *Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lastID++
	r := &Request{e: e, ID: e.lastID, Method: method}
	key := fmt.Sprint(r.ID)
	e.methods[key] = method
	r.Line = encode(map[string]any{"jsonrpc": "2.0", "id": r.ID, "method": method, "params": params})
	if p, ok := params.(map[string]any); ok && method == "session/prompt" {
		e.sessions[key], _ = p["sessionId"].(string)
	}
	return r
}

// Note is the line of a notification.
func Note(method string, params any) string {
	return encode(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// Start sends a request.
func (e *Editor) Start(method string, params any) *Request {
	r := e.Prepare(method, params)
	e.Write(r.Line)
	return r
}

// Notify sends a notification.
func (e *Editor) Notify(method string, params any) { e.Write(Note(method, params)) }

// Answer waits for the answer and returns its place among all messages.
func (r *Request) Answer() (Message, int) {
	r.e.t.Helper()
	var found Message
	place := 0
	r.e.await("the answer to "+r.Method, func() bool {
		for i, m := range r.e.messages {
			if m.Method == "" && string(m.ID) == fmt.Sprint(r.ID) {
				found, place = m, i
				return true
			}
		}
		return false
	})
	return found, place
}

// Wait waits for the answer and reads its result into result unless that is nil.
func (r *Request) Wait(result any) error {
	r.e.t.Helper()
	m, _ := r.Answer()
	if m.Error != nil {
		return m.Error
	}
	if result != nil {
		if err := json.Unmarshal(m.Result, result); err != nil {
			r.e.t.Fatalf("answer to %s: %v: %s", r.Method, err, m.Raw)
		}
	}
	return nil
}

// Answered reports whether the answer has come.
func (r *Request) Answered() bool {
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	for _, m := range r.e.messages {
		if m.Method == "" && string(m.ID) == fmt.Sprint(r.ID) {
			return true
		}
	}
	return false
}

// Call sends a request, waits, and fails the test if the answer is an error.
func (e *Editor) Call(method string, params, result any) {
	e.t.Helper()
	if err := e.Start(method, params).Wait(result); err != nil {
		e.t.Fatalf("%s: %v", method, err)
	}
}

// Refused sends a request and fails the test unless the answer is an error.
func (e *Editor) Refused(method string, params any) *Error {
	e.t.Helper()
	m, _ := e.Start(method, params).Answer()
	if m.Error == nil {
		e.t.Fatalf("%s was accepted: %s", method, m.Raw)
	}
	return m.Error
}

// Await waits until a condition holds. It is asked again after each message.
func (e *Editor) Await(what string, holds func() bool) {
	e.t.Helper()
	e.await(what, func() bool {
		e.mu.Unlock()
		defer e.mu.Lock()
		return holds()
	})
}

// await is Await for a condition that needs the lock.
func (e *Editor) await(what string, holds func() bool) {
	e.t.Helper()
	timeout := time.NewTimer(Patience)
	defer timeout.Stop()
	for {
		e.mu.Lock()
		changed := e.changed
		ok, ended := holds(), e.ended
		e.mu.Unlock()
		if ok {
			return
		}
		if ended {
			e.t.Fatalf("the agent ended before %s", what)
		}
		select {
		case <-changed:
		case <-timeout.C:
			e.t.Fatalf("waited %v for %s; messages so far:\n%s", Patience, what, e.Transcript())
		}
	}
}

// Messages returns everything that came so far.
func (e *Editor) Messages() []Message {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]Message(nil), e.messages...)
}

// Transcript is what came so far, cut to readable lines.
func (e *Editor) Transcript() string {
	text := ""
	for _, m := range e.Messages() {
		text += fmt.Sprintf("  %.300s\n", m.Raw)
	}
	return text
}

// Updates returns the updates of a session, or of all for "", of the kinds
// given, or of all.
func (e *Editor) Updates(session string, kinds ...string) []Update {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []Update
	for _, m := range e.messages {
		u := m.update
		if u == nil || session != "" && u.Session != session || len(kinds) > 0 && !slices.Contains(kinds, u.Kind) {
			continue
		}
		list = append(list, *u)
	}
	return list
}

func updateOf(m *Message) (Update, bool) {
	if m.Method != "session/update" {
		return Update{}, false
	}
	var p struct {
		SessionID string          `json:"sessionId"`
		Update    json.RawMessage `json:"update"`
	}
	var kind struct {
		Kind string `json:"sessionUpdate"`
	}
	if json.Unmarshal(m.Params, &p) != nil || json.Unmarshal(p.Update, &kind) != nil {
		return Update{}, false
	}
	return Update{Session: p.SessionID, Kind: kind.Kind, Body: p.Update}, true
}

// AwaitUpdate waits for an update of a kind.
func (e *Editor) AwaitUpdate(session, kind string) Update {
	e.t.Helper()
	var found Update
	e.Await("a "+kind, func() bool {
		list := e.Updates(session, kind)
		if len(list) > 0 {
			found = list[len(list)-1]
		}
		return len(list) > 0
	})
	return found
}

// Text is the text of the session's chunks of a kind, joined.
func (e *Editor) Text(session, kind string) string {
	text := ""
	for _, u := range e.Updates(session, kind) {
		text += u.Text()
	}
	return text
}
