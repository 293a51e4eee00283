package acptest

import (
	"encoding/json"
	"strings"
	"testing"
)

// rules are what holds in every conversation.
type rules struct {
	t        testing.TB
	answered map[string]bool // requests, by id
	calls    map[string]bool // announced tool calls, by session and id: true while open
	caps     capabilities
}

// streamed are the updates that belong to a turn or a replay. Outside of both
// only updates of state may come.
func streamed(kind string) bool {
	switch kind {
	case "available_commands_update", "session_info_update", "usage_update", "config_option_update",
		"current_mode_update", "notice":
		return false
	}
	return true
}

// capabilities are those of the client that bind the agent.
type capabilities struct {
	FS struct {
		ReadTextFile, WriteTextFile bool
	}
	Terminal bool
	Session  struct{ Notices *struct{} }
}

// Advertise tells the rules which clientCapabilities the client sends.
func (e *Editor) Advertise(clientCapabilities json.RawMessage) {
	var caps capabilities
	_ = json.Unmarshal(clientCapabilities, &caps) // what is wrong in it is not offered
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rules.caps = caps
}

func (r *rules) check(m *Message, methods, sessions map[string]string) {
	if r.answered == nil {
		r.answered, r.calls = make(map[string]bool), make(map[string]bool)
	}
	if !strings.HasPrefix(m.Raw, `{"jsonrpc":"2.0"`) {
		r.t.Errorf("no jsonrpc 2.0: %.200s", m.Raw)
	}
	switch {
	case m.Method == "session/update":
		if m.update != nil {
			r.update(m.update, methods, sessions)
		} else {
			r.t.Errorf("not an update: %.200s", m.Raw)
		}
	case m.Method == "session/request_permission":
		r.permission(m)
	case strings.HasPrefix(m.Method, "fs/") && !(r.caps.FS.ReadTextFile && r.caps.FS.WriteTextFile):
		r.t.Errorf("%s although the client has no files", m.Method)
	case strings.HasPrefix(m.Method, "terminal/") && !r.caps.Terminal:
		r.t.Errorf("%s although the client has no terminals", m.Method)
	case m.Method == "" && string(m.ID) != "null":
		id := string(m.ID)
		if _, ok := methods[id]; !ok {
			r.t.Errorf("answer to no request: %.200s", m.Raw)
		}
		if r.answered[id] {
			r.t.Errorf("second answer to %s: %.200s", methods[id], m.Raw)
		}
		r.answered[id] = true
		if methods[id] == "session/prompt" {
			r.closed(sessions[id])
		}
	}
}

func (r *rules) update(u *Update, methods, sessions map[string]string) {
	if u.Kind == "notice" && r.caps.Session.Notices == nil {
		r.t.Errorf("a notice although the client takes none: %s", u.Body)
	}
	if streamed(u.Kind) && !r.inTurn(u.Session, methods, sessions) {
		r.t.Errorf("%s outside of a turn: %.200s", u.Kind, u.Body)
	}
	var call struct {
		ID     string `json:"toolCallId"`
		Title  string `json:"title"`
		Status string `json:"status"`
	}
	if json.Unmarshal(u.Body, &call) != nil || call.ID == "" {
		return
	}
	key := u.Session + " " + call.ID
	open, known := r.calls[key]
	switch {
	case u.Kind == "tool_call" && known && r.inLoad(methods):
	case u.Kind == "tool_call" && known:
		r.t.Errorf("tool call %s announced twice", call.ID)
	case u.Kind == "tool_call" && call.Title == "":
		r.t.Errorf("tool call %s without a title", call.ID)
	case u.Kind == "tool_call_update" && !open:
		r.t.Errorf("update of tool call %s, which is not open: %.200s", call.ID, u.Body)
	}
	r.calls[key] = call.Status != "completed" && call.Status != "failed"
}

// inTurn reports whether a prompt or a replay of the session has no answer yet.
func (r *rules) inTurn(session string, methods, sessions map[string]string) bool {
	for id, s := range sessions {
		if s == session && !r.answered[id] {
			return true
		}
	}
	return r.inLoad(methods)
}

func (r *rules) inLoad(methods map[string]string) bool {
	for id, method := range methods {
		if method == "session/load" && !r.answered[id] {
			return true
		}
	}
	return false
}

// closed checks that an answered turn has left no call open.
func (r *rules) closed(session string) {
	for key, open := range r.calls {
		if open && strings.HasPrefix(key, session+" ") {
			r.t.Errorf("tool call %s is open after the answer", key)
		}
	}
}

func (r *rules) permission(m *Message) {
	var p struct {
		SessionID string `json:"sessionId"`
		ToolCall  struct {
			ID    string `json:"toolCallId"`
			Title string `json:"title"`
		} `json:"toolCall"`
		Options []struct {
			Kind string `json:"kind"`
		} `json:"options"`
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		r.t.Errorf("permission request: %v", err)
		return
	}
	if !r.calls[p.SessionID+" "+p.ToolCall.ID] {
		r.t.Errorf("permission for tool call %q, which is not open", p.ToolCall.ID)
	}
	once := 0
	for _, o := range p.Options {
		if o.Kind == "allow_once" {
			once++
		}
	}
	if once != 1 || p.ToolCall.Title == "" {
		r.t.Errorf("permission request with %d allow_once and title %q", once, p.ToolCall.Title)
	}
}
