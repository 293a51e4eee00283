package enginetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

func marshal(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // only this package's own values come here
	}
	return string(b)
}

// metadata answers everything but a chat.
func (s *Server) metadata(r *http.Request, body []byte) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := r.URL.EscapedPath()
	if path == "/v1/models" || s.opts.Preset == LlamaCpp && path == "/models" {
		return jsonReply(http.StatusOK, s.list())
	}
	if id, ok := strings.CutPrefix(path, "/v1/models/"); ok {
		if out, ok := s.model(id); ok {
			return out
		}
	}
	answer := map[string]func(*http.Request, []byte) (reply, bool){
		Ollama: s.ollama, LlamaCpp: s.llamaCpp, LMStudio: s.lmStudio, VMLX: s.vMLX,
	}[s.opts.Preset]
	if answer != nil {
		if out, ok := answer(r, body); ok {
			return out
		}
	}
	return s.notFound(r)
}

func (s *Server) find(id string) (Model, bool) {
	for _, m := range s.models {
		if m.ID == id || s.opts.Preset == Ollama && strings.TrimSuffix(m.ID, ":latest") == strings.TrimSuffix(id, ":latest") {
			return m, true
		}
	}
	return Model{}, false
}

// entry is a model in the list.
func (s *Server) entry(m Model) map[string]any {
	e := map[string]any{"id": m.ID, "object": "model", "created": 1700000000}
	owner := map[string]string{
		Ollama: "library", LlamaCpp: "llamacpp", LMStudio: "organization_owner", OMLX: "omlx", VMLX: "vmlx-engine",
		VLLM: "vllm", SGLang: "sglang",
	}[s.opts.Preset]
	if owner != "" {
		e["owned_by"] = owner
	}
	switch s.opts.Preset {
	case VLLM, SGLang:
		if m.Window > 0 {
			e["max_model_len"] = m.Window
		}
	case LlamaCpp:
		s.llamaCppEntry(m, e)
	case OMLX:
		e["capabilities"] = map[string]any{"function_calling": true}
	case Custom:
		if m.Window > 0 {
			e["max_model_len"] = m.Window
		}
		if m.Declared > 0 {
			e["context_length"] = m.Declared
		}
	}
	maps.Copy(e, m.Entry)
	return e
}

func (s *Server) llamaCppEntry(m Model, e map[string]any) {
	if s.opts.Router {
		state, modalities := "loaded", []string{"text"}
		if m.Unloaded {
			state = "unloaded"
		}
		if m.Vision {
			modalities = append(modalities, "image")
		}
		args := []string{"llama-server", "--model", "/m/" + m.ID}
		if m.Declared > 0 {
			args = append(args, "--ctx-size", fmt.Sprint(m.Declared))
		}
		e["status"] = map[string]any{"value": state, "args": args}
		e["architecture"] = map[string]any{"input_modalities": modalities}
	}
	if !m.Unloaded && m.Window > 0 {
		e["meta"] = map[string]any{"n_ctx": m.Window, "n_ctx_train": max(m.Declared, m.Window)}
	}
}

func (s *Server) list() string {
	data := make([]any, 0, len(s.models))
	for _, m := range s.models {
		data = append(data, s.entry(m))
	}
	out := map[string]any{"object": "list", "data": data}
	if s.opts.NoModels && len(data) == 0 {
		out["data"] = nil // as Ollama and LocalAI do
	}
	return marshal(out)
}

// model answers below /v1/models/.
func (s *Server) model(escaped string) (reply, bool) {
	if s.opts.Preset == OMLX && escaped == "status" {
		var models []any
		for _, m := range s.models {
			kind := "llm"
			if m.Vision {
				kind = "vlm"
			}
			e := map[string]any{"id": m.ID, "loaded": !m.Unloaded, "model_type": kind}
			if m.Window > 0 {
				e["max_context_window"] = m.Window
			}
			if m.OutputLimit > 0 {
				e["max_tokens"] = m.OutputLimit
			}
			models = append(models, e)
		}
		return jsonReply(http.StatusOK, marshal(map[string]any{"models": models})), true
	}
	id, err := url.PathUnescape(escaped)
	if err != nil {
		return reply{}, false
	}
	switch s.opts.Preset {
	case Ollama, VLLM, SGLang, Custom:
		if m, ok := s.find(id); ok {
			return jsonReply(http.StatusOK, marshal(s.entry(m))), true
		}
	}
	return reply{}, false
}

func (s *Server) notFound(r *http.Request) reply {
	switch s.opts.Preset {
	case LlamaCpp:
		return jsonReply(http.StatusNotFound, errorBody(http.StatusNotFound, "File Not Found", "not_found_error"))
	case LMStudio:
		return jsonReply(http.StatusOK, marshal(map[string]any{
			"error": fmt.Sprintf("Unexpected endpoint or method. (%s %s)", r.Method, r.URL.Path),
		}))
	}
	return reply{http.StatusNotFound, http.Header{"Content-Type": {"text/plain"}}, "404 page not found"}
}

func (s *Server) ollama(r *http.Request, body []byte) (reply, bool) {
	switch r.Method + " " + r.URL.Path {
	case "GET /":
		return reply{http.StatusOK, http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, "Ollama is running"}, true
	case "GET /api/version":
		return jsonReply(http.StatusOK, `{"version":"0.17.4"}`), true
	case "POST /api/show":
		return s.ollamaShow(body), true
	case "GET /api/ps":
		running := []any{}
		for _, m := range s.models {
			if m.Unloaded {
				continue
			}
			name := m.ID
			if m.RunsAs != "" {
				name = m.RunsAs
			}
			running = append(running, map[string]any{
				"name": name, "model": name, "details": ollamaDetails(m), "context_length": m.Window,
			})
		}
		return jsonReply(http.StatusOK, marshal(map[string]any{"models": running})), true
	}
	return reply{}, false
}

func ollamaDetails(Model) map[string]any {
	return map[string]any{"format": "gguf", "family": "acme", "parameter_size": "7B", "quantization_level": "Q4_K_M"}
}

func (s *Server) ollamaShow(body []byte) reply {
	var asked struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal(body, &asked) // an unreadable name is an unknown model
	m, ok := s.find(asked.Model)
	if !ok {
		return jsonReply(http.StatusNotFound, marshal(map[string]any{"error": fmt.Sprintf("model '%s' not found", asked.Model)}))
	}
	capabilities := []string{"completion"}
	for name, has := range map[string]bool{"tools": m.Tools, "vision": m.Vision, "thinking": m.Thinking} {
		if has {
			capabilities = append(capabilities, name)
		}
	}
	slices.Sort(capabilities)
	out := map[string]any{
		"details": ollamaDetails(m), "capabilities": capabilities,
		"parameters": "num_thread                     1\nstop                           \"<|end|>\"",
		"model_info": map[string]any{"general.architecture": "acme", "acme.embedding_length": 64},
	}
	if m.NumCtx > 0 {
		out["parameters"] = fmt.Sprintf("num_ctx                        %d\n%s", m.NumCtx, out["parameters"])
	}
	if m.Declared > 0 {
		out["model_info"].(map[string]any)["acme.context_length"] = m.Declared
	}
	return jsonReply(http.StatusOK, marshal(out))
}

func (s *Server) llamaCpp(r *http.Request, _ []byte) (reply, bool) {
	switch r.URL.Path {
	case "/health":
		return jsonReply(http.StatusOK, `{"status":"ok"}`), true
	case "/slots":
		return jsonReply(http.StatusOK, `[]`), true
	case "/props":
	default:
		return reply{}, false
	}
	query := r.URL.Query()
	if s.opts.Router {
		if query.Get("model") == "" {
			return jsonReply(http.StatusOK, `{"role":"router","default_generation_settings":{"params":null,"n_ctx":0}}`), true
		}
		m, ok := s.find(query.Get("model"))
		switch {
		case !ok:
			return jsonReply(http.StatusBadRequest, errorBody(http.StatusBadRequest, "model not found", "invalid_request_error")), true
		case m.Unloaded && query.Get("autoload") == "false":
			return jsonReply(http.StatusBadRequest, errorBody(http.StatusBadRequest, "model is not loaded", "invalid_request_error")), true
		}
		s.load(m.ID)
		return jsonReply(http.StatusOK, llamaCppProps(m)), true
	}
	if len(s.models) == 0 {
		return reply{}, false
	}
	return jsonReply(http.StatusOK, llamaCppProps(s.models[0])), true // whatever name is asked for
}

func llamaCppProps(m Model) string {
	return marshal(map[string]any{
		"default_generation_settings": map[string]any{"n_ctx": m.Window},
		"total_slots":                 1,
		"model_alias":                 m.ID,
		"modalities":                  map[string]any{"vision": m.Vision, "audio": false},
		"chat_template_caps": map[string]any{
			"supports_tools": m.Tools, "supports_tool_calls": m.Tools, "supports_reasoning_effort": m.Effort,
		},
		"build_info": "b1-0000000",
	})
}

// load puts a model into memory. The caller holds the lock.
func (s *Server) load(id string) {
	for i := range s.models {
		if s.models[i].ID == id && s.models[i].Unloaded {
			s.models[i].Unloaded = false
			s.loads = append(s.loads, id)
		}
	}
}

func (s *Server) lmStudio(r *http.Request, _ []byte) (reply, bool) {
	if r.Method+" "+r.URL.Path != "GET /api/v1/models" {
		return reply{}, false
	}
	models := []any{}
	for _, m := range s.models {
		instances := []any{}
		if !m.Unloaded {
			instances = append(instances, map[string]any{"id": m.ID, "config": map[string]any{"context_length": m.Window}})
		}
		capabilities := map[string]any{"vision": m.Vision, "trained_for_tool_use": m.Tools}
		if m.Thinking {
			capabilities["reasoning"] = map[string]any{"allowed_options": []string{"off", "on"}, "default": "on"}
		}
		e := map[string]any{"type": "llm", "key": m.ID, "loaded_instances": instances, "capabilities": capabilities}
		if m.Declared > 0 {
			e["max_context_length"] = m.Declared
		}
		models = append(models, e)
	}
	return jsonReply(http.StatusOK, marshal(map[string]any{"models": models})), true
}

// vMLX has its own description of a model and poses as Ollama besides.
func (s *Server) vMLX(r *http.Request, _ []byte) (reply, bool) {
	path := r.URL.EscapedPath()
	if path == "/api/show" {
		return jsonReply(http.StatusOK, `{"capabilities":["completion","tools","insert"],"model_info":{"name":"x"}}`), true
	}
	escaped, ok := strings.CutSuffix(strings.TrimPrefix(path, "/v1/models/"), "/capabilities")
	if !ok {
		return reply{}, false
	}
	id, _ := url.PathUnescape(escaped) // an unreadable id is an unknown model
	m, ok := s.find(id)
	if !ok {
		return reply{}, false
	}
	modalities := []string{"text"}
	if m.Vision {
		modalities = append(modalities, "vision")
	}
	efforts := []string{}
	if m.Effort {
		efforts = []string{"low", "medium", "high"}
	}
	return jsonReply(http.StatusOK, marshal(map[string]any{
		"id": m.ID, "supports_tools": m.Tools, "supports_thinking": m.Thinking, "modalities": modalities,
		"reasoning_efforts": efforts,
	})), true
}
