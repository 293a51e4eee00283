package enginetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// Answer is what the engine says to one chat request.
type Answer struct {
	Reasoning string
	Text      string
	Calls     []Call
	// Finish is the finish_reason; empty is tool_calls or stop.
	Finish string
	// Chunk is the most bytes of text in one event, 0 for all of it. Delay comes
	// before each event, Prefill before the header.
	Chunk          int
	Delay, Prefill time.Duration
	// PromptTokens and CompletionTokens replace what was counted. NoUsage leaves
	// the counts out.
	PromptTokens, CompletionTokens int
	NoUsage                        bool
	// Cut ends the body before the finish.
	Cut bool
	// Raw replaces the body of the stream.
	Raw string
	// Status, when not 200 or 0, answers with Body instead of a stream.
	Status int
	Header http.Header
	Body   string
	// Fault makes the delivery fail.
	Fault *Fault
}

// Call is a tool call of an answer.
type Call struct{ ID, Name, Arguments string }

// Chat is a chat request that a server got.
type Chat struct {
	Request
	Model     string
	MaxTokens int
	Stream    bool
	// Fields are the members of the body.
	Fields map[string]json.RawMessage
	// PromptTokens is what the server counted, before any cut; Window what it
	// had, 0 if it enforces none.
	PromptTokens int
	Window       int
}

// Overflow is what an engine does with a prompt that does not fit.
type Overflow uint8

// The ways. ByPreset is that of the engine that is played.
const (
	ByPreset Overflow = iota
	// Reject answers 400 in the engine's words.
	Reject
	// CutSilently answers as if nothing was, with prompt_tokens at the window.
	CutSilently
	// Accept does not look at the length.
	Accept
)

// Script sets the answers to the next chats, in order, behind those that wait.
func (s *Server) Script(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, answers...)
}

// CountTokens is a simple count: a token for every four bytes of text and of the
// tools, rounded up, four a message and 256 an image.
func CountTokens(body []byte) int {
	var req struct {
		Messages []struct {
			Content   json.RawMessage   `json:"content"`
			ToolCalls []json.RawMessage `json:"tool_calls"`
		} `json:"messages"`
		Tools []json.RawMessage `json:"tools"`
	}
	_ = json.Unmarshal(body, &req) // what cannot be read counts nothing
	n := 0
	for _, m := range req.Messages {
		n += 4 + countContent(m.Content)
		for _, c := range m.ToolCalls {
			n += (len(c) + 3) / 4
		}
	}
	for _, t := range req.Tools {
		n += (len(t) + 3) / 4
	}
	return n
}

func countContent(raw json.RawMessage) int {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return (len(text) + 3) / 4
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &parts) // null is no content
	n := 0
	for _, p := range parts {
		if p.Type == "text" {
			n += (len(p.Text) + 3) / 4
		} else {
			n += 256
		}
	}
	return n
}

// chat answers a chat request.
func (s *Server) chat(w http.ResponseWriter, r *http.Request, body []byte, fault *Fault) {
	c := Chat{Request: Request{r.Method, r.RequestURI, r.Header.Clone(), body}}
	_ = json.Unmarshal(body, &c.Fields) // a broken body has no fields
	_ = json.Unmarshal(c.Fields["model"], &c.Model)
	_ = json.Unmarshal(c.Fields["max_tokens"], &c.MaxTokens)
	_ = json.Unmarshal(c.Fields["stream"], &c.Stream)
	c.PromptTokens = s.opts.CountTokens(body)

	s.mu.Lock()
	model, known := s.find(c.Model)
	if known {
		c.Window = model.Window
		s.load(model.ID)
	}
	s.chats = append(s.chats, c)
	refusal, refused := s.refuse(&c, model, known)
	var answer Answer
	scripted := !refused && len(s.script) > 0
	if scripted {
		answer, s.script = s.script[0], s.script[1:]
	}
	s.mu.Unlock()

	switch {
	case refused:
		s.deliver(w, r, refusal, fault)
		return
	case !scripted && s.opts.Answer != nil:
		answer = s.opts.Answer(&c)
	case !scripted:
		answer = Answer{Text: "ok"}
	}
	if answer.PromptTokens == 0 {
		answer.PromptTokens = c.PromptTokens
		if c.Window > 0 && s.overflow() == CutSilently {
			answer.PromptTokens = min(c.PromptTokens, c.Window)
		}
	}
	if answer.Fault != nil {
		fault = answer.Fault
	}
	if fault == nil {
		fault = &Fault{}
	}
	s.play(w, r, &c, answer, fault)
}

func (s *Server) overflow() Overflow {
	switch {
	case s.opts.Overflow != ByPreset:
		return s.opts.Overflow
	case s.opts.Preset == Ollama:
		return CutSilently
	}
	return Reject
}

// refuse answers what the engine does not do. The caller holds the lock.
func (s *Server) refuse(c *Chat, m Model, known bool) (reply, bool) {
	if s.opts.Preset == Ollama {
		if text := ollamaRefusal(c, m, known); text != "" {
			status := http.StatusBadRequest
			if !known {
				status = http.StatusNotFound
			}
			return jsonReply(status, marshal(map[string]any{"error": map[string]any{
				"message": text, "type": "api_error", "param": nil, "code": nil}})), true
		}
	}
	if s.opts.Preset == LlamaCpp && known && !m.Vision && bytes.Contains(c.Fields["messages"], []byte(`"image_url"`)) {
		return jsonReply(http.StatusInternalServerError, errorBody(http.StatusInternalServerError,
			"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", "server_error")), true
	}
	if c.Window == 0 || s.overflow() != Reject {
		return reply{}, false
	}
	return s.tooLong(c.PromptTokens, c.MaxTokens, c.Window)
}

func ollamaRefusal(c *Chat, m Model, known bool) string {
	effort := string(c.Fields["reasoning_effort"])
	switch {
	case !known:
		return fmt.Sprintf("model '%s' not found", c.Model)
	case len(c.Fields["tools"]) > 0 && !m.Tools:
		return "registry.ollama.ai/library/" + m.ID + " does not support tools"
	case effort != "" && effort != `"none"` && !m.Thinking:
		return fmt.Sprintf("%q does not support thinking", m.ID)
	}
	return ""
}

// tooLong is the engine's way to say that a prompt does not fit.
func (s *Server) tooLong(prompt, output, window int) (reply, bool) {
	over := prompt >= window
	var body any
	switch s.opts.Preset {
	case LlamaCpp:
		body = map[string]any{"error": map[string]any{
			"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": prompt, "n_ctx": window,
			"message": fmt.Sprintf("request (%d tokens) exceeds the available context size (%d tokens), try increasing it", prompt, window),
		}}
	case VLLM:
		over = prompt+output > window
		body = map[string]any{"error": map[string]any{
			"type": "BadRequestError", "param": "input_tokens", "code": 400,
			"message": fmt.Sprintf("This model's maximum context length is %d tokens. However, you requested %d output tokens and your prompt contains at least %d input tokens, for a total of at least %d tokens.",
				window, output, window-output+1, window+1),
		}}
	case SGLang:
		body = map[string]any{"object": "error", "type": "BadRequestError", "param": nil, "code": 400,
			"message": fmt.Sprintf("The input (%d tokens) is longer than the model's context length (%d tokens).", prompt, window)}
	case LMStudio:
		body = map[string]any{"error": fmt.Sprintf("Trying to keep the first %d tokens when context the overflows. However, the model is loaded with context length of only %d tokens, which is not enough.", prompt, window)}
	case OMLX:
		body = map[string]any{"error": map[string]any{"type": "invalid_request_error", "param": nil, "code": nil,
			"message": fmt.Sprintf("Prompt too long: %d tokens exceeds max context window of %d tokens", prompt, window)}}
	default:
		over = prompt+output > window
		body = map[string]any{"error": map[string]any{"type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded",
			"message": fmt.Sprintf("This model's maximum context length is %d tokens. However, you requested %d tokens (%d in the messages, %d in the completion).",
				window, prompt+output, prompt, output)}}
	}
	return jsonReply(http.StatusBadRequest, marshal(body)), over
}

// play streams an answer.
func (s *Server) play(w http.ResponseWriter, r *http.Request, c *Chat, a Answer, f *Fault) {
	if a.Status != 0 && a.Status != http.StatusOK {
		f := Fault{Status: a.Status, Header: a.Header, Body: a.Body}
		s.deliver(w, r, reply{}, &f)
		return
	}
	events := s.events(c, a)
	out := reply{http.StatusOK, http.Header{"Content-Type": {"text/event-stream"}}, ""}
	if f.replaces() || f.Pad+f.PadDeclared > 0 || f.Dribble > 0 || f.Stall || f.Break {
		out.body = strings.Join(events, "")
		s.deliver(w, r, out, f)
		return
	}
	if !s.sleep(r, a.Prefill+f.Wait) {
		return
	}
	for name, values := range out.header {
		w.Header()[name] = values
	}
	w.WriteHeader(http.StatusOK)
	flush(w)
	for _, e := range events {
		if !s.sleep(r, a.Delay) {
			return
		}
		if _, err := fmt.Fprint(w, e); err != nil {
			return
		}
		flush(w)
	}
}

// events are the events of an answer, each with its blank line.
func (s *Server) events(c *Chat, a Answer) []string {
	if a.Raw != "" {
		return []string{a.Raw}
	}
	if a.CompletionTokens == 0 {
		a.CompletionTokens = (len(a.Text) + len(a.Reasoning) + 3) / 4
	}
	var events []string
	chunk := func(choices []any, more map[string]any) {
		e := map[string]any{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": c.Model, "choices": choices}
		for k, v := range more {
			e[k] = v
		}
		events = append(events, "data: "+marshal(e)+"\n\n")
	}
	delta := func(d map[string]any, finish any) {
		chunk([]any{map[string]any{"index": 0, "delta": d, "finish_reason": finish}}, nil)
	}
	reasoning := "reasoning_content"
	if s.opts.Preset == Ollama {
		reasoning = "reasoning"
	} else {
		delta(map[string]any{"role": "assistant", "content": nil}, nil)
	}
	for _, p := range pieces(a.Reasoning, a.Chunk) {
		delta(map[string]any{reasoning: p}, nil)
	}
	for _, p := range pieces(a.Text, a.Chunk) {
		delta(map[string]any{"content": p}, nil)
	}
	for i, call := range a.Calls {
		delta(map[string]any{"tool_calls": []any{map[string]any{"index": i, "id": call.ID, "type": "function",
			"function": map[string]any{"name": call.Name, "arguments": call.Arguments}}}}, nil)
	}
	if a.Cut {
		return events
	}
	finish := a.Finish
	switch {
	case finish != "":
	case len(a.Calls) > 0:
		finish = "tool_calls"
	default:
		finish = "stop"
	}
	delta(map[string]any{}, finish)
	if !a.NoUsage && bytes.Contains(c.Fields["stream_options"], []byte("include_usage")) {
		more := map[string]any{"usage": map[string]any{"prompt_tokens": a.PromptTokens, "completion_tokens": a.CompletionTokens,
			"total_tokens": a.PromptTokens + a.CompletionTokens}}
		if s.opts.Preset == LlamaCpp {
			more["timings"] = map[string]any{"cache_n": 0, "prompt_n": a.PromptTokens, "prompt_ms": 1.5,
				"predicted_n": a.CompletionTokens, "predicted_ms": 2.5}
		}
		chunk([]any{}, more)
	}
	return append(events, "data: [DONE]\n\n")
}

// pieces cuts a text into pieces of at most n bytes, between characters.
func pieces(text string, n int) []string {
	if n <= 0 || len(text) <= n {
		if text == "" {
			return nil
		}
		return []string{text}
	}
	var out []string
	for text != "" {
		cut := min(n, len(text))
		for cut < len(text) && !utf8.RuneStart(text[cut]) {
			cut++
		}
		out, text = append(out, text[:cut]), text[cut:]
	}
	return out
}
