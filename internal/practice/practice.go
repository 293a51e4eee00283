// Package practice is the scripted practice engine of drover demo: a real HTTP
// server on loopback that speaks the Chat Completions dialect.
//
// It is no model and says so in its answers. What it does for real is what a
// client can get wrong: it advertises a window, counts every prompt and refuses
// one that is too long, streams reasoning, text and a tool call, and wants each
// tool result to answer its call.
package practice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Model is the id of the only model.
const Model = "practice"

// Window is the context window in tokens: small, so that a demo conversation
// has to be trimmed.
const Window = 4096

// maxBody bounds a request. The window refuses far smaller ones.
const maxBody = 8 << 20

// Server is a running practice engine.
type Server struct {
	url    string
	http   *http.Server
	served chan error
}

// Start starts an engine on a free loopback port.
func Start(ctx context.Context) (*Server, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the practice engine: %w", err)
	}
	s := &Server{
		url:    "http://" + l.Addr().String(),
		http:   &http.Server{Handler: Handler(), ReadHeaderTimeout: 10 * time.Second},
		served: make(chan error, 1),
	}
	go func() { s.served <- s.http.Serve(l) }()
	return s, nil
}

// URL is the root of the engine.
func (s *Server) URL() string { return s.url }

// Close stops the engine and its connections.
func (s *Server) Close() error {
	err := s.http.Close()
	if e := <-s.served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// Handler is the engine without a listener, for tests.
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{card()}})
	})
	mux.HandleFunc("GET /v1/models/{id}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") != Model {
			refuse(w, http.StatusNotFound, "no such model", nil)
			return
		}
		writeJSON(w, http.StatusOK, card())
	})
	mux.HandleFunc("POST /v1/chat/completions", chat)
	return mux
}

// card is the metadata of the model, in the members of the generic dialect.
func card() map[string]any {
	return map[string]any{
		"id": Model, "object": "model", "owned_by": "drover-practice",
		"max_model_len": Window,
		"capabilities":  map[string]any{"tools": true, "vision": false, "reasoning": true},
	}
}

type message struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
	Calls   []struct {
		ID string `json:"id"`
	} `json:"tool_calls"`
	CallID string `json:"tool_call_id"`
}

type request struct {
	Model     string            `json:"model"`
	Messages  []message         `json:"messages"`
	Tools     []json.RawMessage `json:"tools"`
	MaxTokens int               `json:"max_tokens"`
	Stream    bool              `json:"stream"`
}

func chat(w http.ResponseWriter, r *http.Request) {
	var req request
	var size countingWriter
	body := http.MaxBytesReader(w, r.Body, maxBody)
	if err := json.NewDecoder(io.TeeReader(body, &size)).Decode(&req); err != nil {
		refuse(w, http.StatusBadRequest, "the request is no JSON of a chat completion: "+err.Error(), nil)
		return
	}
	tokens := size.n / bytesPerToken
	switch reason := invalid(req.Messages); {
	case req.Model != Model:
		refuse(w, http.StatusNotFound, fmt.Sprintf("model %q not found", req.Model), nil)
	case tokens+req.MaxTokens > Window:
		refuse(w, http.StatusBadRequest,
			fmt.Sprintf("request (%d tokens) exceeds the available context size (%d tokens)", tokens+req.MaxTokens, Window),
			map[string]any{"type": "exceed_context_size_error", "n_prompt_tokens": tokens, "n_ctx": Window})
	case reason != "":
		refuse(w, http.StatusBadRequest, reason, nil)
	default:
		answer(w, r, &req, tokens)
	}
}

// bytesPerToken is how the engine counts: real vocabularies need one token for
// three to four bytes of a request.
const bytesPerToken = 3

// invalid says what is wrong with the order of messages, "" if nothing is.
func invalid(messages []message) string {
	open := make(map[string]bool)
	for i, m := range messages {
		if m.Role != "tool" && len(open) > 0 {
			return fmt.Sprintf("messages[%d]: a tool call before it has no result", i)
		}
		switch m.Role {
		case "assistant":
			for _, c := range m.Calls {
				open[c.ID] = true
			}
		case "tool":
			if !open[m.CallID] {
				return fmt.Sprintf("messages[%d]: a result for no call", i)
			}
			delete(open, m.CallID)
		}
	}
	if len(open) > 0 {
		return "a tool call has no result"
	}
	return ""
}

// answer streams what the script has for the last message.
func answer(w http.ResponseWriter, r *http.Request, req *request, tokens int) {
	s := &stream{w: w, r: r}
	w.Header().Set("Content-Type", "text/event-stream")
	var last message
	if n := len(req.Messages); n > 0 {
		last = req.Messages[n-1]
	}
	finish := "stop"
	switch {
	case last.Role == "tool":
		s.words("content", afterTool(last))
	case len(req.Tools) > 0:
		s.words("reasoning_content", "The person wants to see how drover works. I ask for the files of this folder first.")
		s.words("content", "I look at what is in this folder.")
		s.delta(map[string]any{"tool_calls": []any{map[string]any{
			"index": 0, "id": "practice-1", "type": "function",
			"function": map[string]any{"name": "read", "arguments": `{"path":"."}`},
		}}})
		finish = "tool_calls"
	default:
		s.words("content", "I am the practice engine, a script and no model. Without tools I can only say this.")
	}
	s.send(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": finish}}})
	s.send(map[string]any{"choices": []any{}, "usage": map[string]any{
		"prompt_tokens": tokens, "completion_tokens": s.tokens, "total_tokens": tokens + s.tokens,
	}})
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func afterTool(result message) string {
	text, _ := result.Content.(string)
	lines := "1 line"
	if n := strings.Count(strings.TrimSpace(text), "\n"); n > 0 {
		lines = fmt.Sprintf("%d lines", n+1)
	}
	return fmt.Sprintf("The tool gave me %s, from your real folder. "+
		"I am the practice engine, a script and no model, so that is all I can tell. "+
		"What you saw was real: the probe, the plan, what was left out, the tool and the log.", lines)
}

// pause between two words makes streaming visible.
const pause = 15 * time.Millisecond

type stream struct {
	w      http.ResponseWriter
	r      *http.Request
	tokens int
}

func (s *stream) words(field, text string) {
	for i, word := range strings.Fields(text) {
		if i > 0 {
			word = " " + word
		}
		s.delta(map[string]any{field: word})
		select {
		case <-time.After(pause):
		case <-s.r.Context().Done():
			return
		}
	}
}

func (s *stream) delta(d map[string]any) {
	s.tokens++
	s.send(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": d, "finish_reason": nil}}})
}

func (s *stream) send(chunk map[string]any) {
	chunk["object"] = "chat.completion.chunk"
	chunk["model"] = Model
	data, err := json.Marshal(chunk)
	if err != nil {
		return // values of our own making: cannot happen
	}
	fmt.Fprintf(s.w, "data: %s\n\n", data)
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client is gone: nobody to tell
}

func refuse(w http.ResponseWriter, status int, message string, more map[string]any) {
	e := map[string]any{"message": message, "code": status, "type": "invalid_request_error"}
	for k, v := range more {
		e[k] = v
	}
	writeJSON(w, status, map[string]any{"error": e})
}

type countingWriter struct{ n int }

func (c *countingWriter) Write(p []byte) (int, error) { c.n += len(p); return len(p), nil }
