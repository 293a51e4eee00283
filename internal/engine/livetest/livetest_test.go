//go:build engines

package livetest_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/engine/livetest"
	"github.com/drover-dev/drover/internal/llm/llmtest"
)

const (
	helloText = "Hello from the scripted model: no marker was seen."
	finalText = "The tool answered, so this is the final answer."
	loopText  = "tick tock tack tick"
)

type object = map[string]any

// A message has what the two engines answer, and what is sent to them.
type message struct {
	Role             string `json:"role"`
	Content          any    `json:"content"`
	ReasoningContent string `json:"reasoning_content,omitempty"` // llama-server
	Reasoning        string `json:"reasoning,omitempty"`         // Ollama
	ToolCalls        []call `json:"tool_calls,omitempty"`
	ToolCallID       string `json:"tool_call_id,omitempty"`
}

type call struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type completion struct {
	Choices []struct {
		Message      message `json:"message"`
		Delta        message `json:"delta"`
		FinishReason string  `json:"finish_reason"`
	} `json:"choices"`
	Usage struct {
		PromptTokens int `json:"prompt_tokens"`
	} `json:"usage"`
}

func user(content any) message { return message{Role: "user", Content: content} }

func tool(name string, properties ...string) object {
	var fields []string
	for _, p := range properties {
		fields = append(fields, `"`+p+`":{"type":"string"}`)
	}
	return object{"type": "function", "function": object{
		"name": name, "description": "Do " + name + ".",
		"parameters": object{
			"type": "object", "required": properties,
			// Not a map: the order matters to llama-server.
			"properties": json.RawMessage("{" + strings.Join(fields, ",") + "}"),
		},
	}}
}

var (
	tools = []object{tool("write", "path", "content"), tool("read", "path"), tool("shell", "command")}
	// sortedTools have the canonical order of properties.
	sortedTools = []object{tool("write", "content", "path"), tool("read", "path"), tool("shell", "command")}
)

// ask sends a request and returns the status and the body.
func ask(t *testing.T, method, url string, body any) (int, []byte) {
	t.Helper()
	var content bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&content).Encode(body); err != nil {
			t.Fatal(err)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), method, url, &content)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, answer
}

// chat asks for a completion and returns the message, why it ended, and the tokens of the prompt.
func chat(t *testing.T, s *livetest.Server, model string, tools []object, messages ...message) (message, string, int) {
	t.Helper()
	body := object{"model": model, "messages": messages, "max_tokens": 40}
	if tools != nil {
		body["tools"] = tools
	}
	status, answer := ask(t, http.MethodPost, s.URL+"/v1/chat/completions", body)
	var c completion
	if err := json.Unmarshal(answer, &c); err != nil || status != http.StatusOK || len(c.Choices) != 1 {
		t.Fatalf("status %d, %v: %s", status, err, answer)
	}
	return c.Choices[0].Message, c.Choices[0].FinishReason, c.Usage.PromptTokens
}

// wantCalls checks that a message has just these calls: names and arguments alternate.
func wantCalls(t *testing.T, m message, finish string, want ...string) {
	t.Helper()
	var got []string
	for _, c := range m.ToolCalls {
		var arguments object
		if err := json.Unmarshal([]byte(c.Function.Arguments), &arguments); err != nil {
			t.Errorf("arguments %q: %v", c.Function.Arguments, err)
		}
		sorted, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, c.Function.Name, string(sorted))
	}
	if !reflect.DeepEqual(got, want) || finish != "tool_calls" {
		t.Errorf("calls %q, finish %q, want %q", got, finish, want)
	}
}

// conversation is what both engines must do with both models.
func conversation(t *testing.T, s *livetest.Server, model string) {
	m, finish, _ := chat(t, s, model, tools, user("Hi."))
	if m.Content != helloText || finish != "stop" {
		t.Errorf("default reply: %+v, finish %q", m, finish)
	}
	if thought := m.ReasoningContent + m.Reasoning; strings.Contains(thought, "There is a question") != (model == "think") {
		t.Errorf("reasoning %q", thought)
	}

	history := []message{user("Please [[write]] it.")}
	m, finish, _ = chat(t, s, model, tools, history...)
	wantCalls(t, m, finish, "write", `{"content":"written by the scripted model\n","path":"drover-was-here.txt"}`)
	again, finish, _ := chat(t, s, model, sortedTools, history...)
	wantCalls(t, again, finish, "write", `{"content":"written by the scripted model\n","path":"drover-was-here.txt"}`)
	edited, finish, _ := chat(t, s, model, []object{tool("edit", "new", "old", "path")}, user("Please [[call]] it."))
	wantCalls(t, edited, finish, "edit", `{"new":"written by the scripted model\n","old":"","path":"drover-was-here.txt"}`)
	if len(m.ToolCalls) != 1 {
		t.FailNow()
	}
	history = append(history, m, message{Role: "tool", Content: "written", ToolCallID: m.ToolCalls[0].ID})
	m, finish, _ = chat(t, s, model, tools, history...)
	if m.Content != finalText || len(m.ToolCalls) > 0 || finish != "stop" {
		t.Errorf("after the tool: %+v, finish %q", m, finish)
	}
	history = append(history, m, user("Now [[shell]]."))
	m, finish, _ = chat(t, s, model, tools, history...)
	wantCalls(t, m, finish, "shell", `{"command":"echo scripted; ls"}`)

	m, finish, _ = chat(t, s, model, tools, user("[[read]]"))
	wantCalls(t, m, finish, "read", `{"path":"README.md"}`)
	m, finish, _ = chat(t, s, model, tools, user("[[two]]"))
	wantCalls(t, m, finish, "read", `{"path":"a.txt"}`, "read", `{"path":"b.txt"}`)
	if text, _ := m.Content.(string); strings.TrimSpace(text) != "Two calls follow." {
		t.Errorf("text before two calls: %q", text)
	}
	m, finish, _ = chat(t, s, model, tools, user("[[loop]]"))
	if text, _ := m.Content.(string); !strings.HasPrefix(text, loopText) || finish != "length" {
		t.Errorf("loop: %q, finish %q", text, finish)
	}
	stream(t, s, model)
}

// stream checks that an answer comes in pieces.
func stream(t *testing.T, s *livetest.Server, model string) {
	t.Helper()
	status, answer := ask(t, http.MethodPost, s.URL+"/v1/chat/completions",
		object{"model": model, "messages": []message{user("Hi.")}, "stream": true})
	var text strings.Builder
	pieces, done := 0, false
	for line := range strings.Lines(string(answer)) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok {
			continue
		}
		if done = data == "[DONE]"; done {
			break
		}
		var c completion
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		for _, choice := range c.Choices {
			if piece, _ := choice.Delta.Content.(string); piece != "" {
				text.WriteString(piece)
				pieces++
			}
		}
	}
	if status != http.StatusOK || text.String() != helloText || pieces < 3 || !done {
		t.Errorf("stream: status %d, %q in %d pieces, done %t", status, text.String(), pieces, done)
	}
}

func TestLlamaConversation(t *testing.T) {
	for _, model := range []string{"plain", "think"} {
		t.Run(model, func(t *testing.T) { conversation(t, livetest.Llama(t, model), model) })
	}
}

func TestOllamaConversation(t *testing.T) {
	s := livetest.Ollama(t)
	for _, model := range []string{"plain", "think"} {
		t.Run(model, func(t *testing.T) { conversation(t, s, model) })
	}
}

func TestOllamaCapabilities(t *testing.T) {
	s := livetest.Ollama(t)
	s.Create(t, "bare")
	s.Create(t, "vision")
	for model, want := range map[string][]string{
		"plain":  {"completion", "tools"},
		"think":  {"completion", "tools", "thinking"},
		"bare":   {"completion"},
		"vision": {"completion", "tools", "vision"},
	} {
		status, answer := ask(t, http.MethodPost, s.URL+"/api/show", object{"model": model})
		var show struct {
			Capabilities []string `json:"capabilities"`
		}
		if err := json.Unmarshal(answer, &show); err != nil || status != http.StatusOK {
			t.Fatalf("%s: status %d, %v: %s", model, status, err, answer)
		}
		got, wanted := map[string]bool{}, map[string]bool{}
		for _, c := range show.Capabilities {
			got[c] = true
		}
		for _, c := range want {
			wanted[c] = true
		}
		if !reflect.DeepEqual(got, wanted) {
			t.Errorf("%s: capabilities %v, want %v", model, show.Capabilities, want)
		}
	}
	picture(t, s, "vision")
	status, answer := ask(t, http.MethodPost, s.URL+"/v1/chat/completions",
		object{"model": "bare", "messages": []message{user("Hi.")}, "tools": tools})
	if status != http.StatusBadRequest || !strings.Contains(string(answer), "does not support tools") {
		t.Errorf("tools for bare: status %d: %s", status, answer)
	}
}

// TestOllamaTruncates shows that a marker which Ollama has cut away is no longer obeyed.
func TestOllamaTruncates(t *testing.T) {
	const window = 1024
	s := livetest.Ollama(t, "OLLAMA_CONTEXT_LENGTH=1024")
	m, finish, tokens := chat(t, s, "plain", nil, user("[[loop]]"))
	if text, _ := m.Content.(string); !strings.HasPrefix(text, loopText) || finish != "length" || tokens >= window {
		t.Errorf("short: %+v, finish %q, %d tokens", m, finish, tokens)
	}
	m, _, tokens = chat(t, s, "plain", nil, user("[[loop]]"+strings.Repeat(" and so on", window)))
	if m.Content != helloText || tokens != window {
		t.Errorf("long: %+v, %d tokens", m, tokens)
	}
}

func TestLlamaOverflow(t *testing.T) {
	s := livetest.Llama(t, "plain", "-c", "1024")
	status, answer := ask(t, http.MethodPost, s.URL+"/v1/chat/completions",
		object{"messages": []message{user(strings.Repeat("word ", 2000))}})
	var failure struct {
		Error struct {
			Type   string `json:"type"`
			Prompt int    `json:"n_prompt_tokens"`
			Window int    `json:"n_ctx"`
		} `json:"error"`
	}
	if err := json.Unmarshal(answer, &failure); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	if e := failure.Error; status != http.StatusBadRequest || e.Type != "exceed_context_size_error" || e.Window != 1024 || e.Prompt < 2000 {
		t.Errorf("status %d: %s", status, answer)
	}
}

// TestLlamaWholeWindow has two markers at the far end of each window, and
// little between them: the later one must win still.
func TestLlamaWholeWindow(t *testing.T) {
	for model, tokens := range map[string]int{"plain": 8192, "vocab": 32768} {
		t.Run(model, func(t *testing.T) {
			s := livetest.Llama(t, model)
			// Each repetition is three tokens.
			filler := strings.Repeat(" and so on", tokens*9/10/3)
			m, finish, used := chat(t, s, model, tools, user("[[shell]] The files, the tests, and then [[read]]"+filler))
			wantCalls(t, m, finish, "read", `{"path":"README.md"}`)
			if used < tokens*9/10 {
				t.Errorf("%d tokens", used)
			}
		})
	}
}

// TestLlamaVocabulary counts with the vocabulary of Qwen2.
func TestLlamaVocabulary(t *testing.T) {
	s := livetest.Llama(t, "vocab", "-c", "32768")
	_, answer := ask(t, http.MethodGet, s.URL+"/v1/models", nil)
	var models struct {
		Data []struct {
			Meta struct {
				Window     int `json:"n_ctx"`
				Vocabulary int `json:"n_vocab"`
			} `json:"meta"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &models); err != nil || len(models.Data) != 1 {
		t.Fatalf("%v: %s", err, answer)
	}
	if meta := models.Data[0].Meta; meta.Window != 32768 || meta.Vocabulary < 150_000 {
		t.Errorf("window %d, vocabulary %d", meta.Window, meta.Vocabulary)
	}

	status, answer := ask(t, http.MethodPost, s.URL+"/tokenize",
		object{"content": "func main() { fmt.Println(\"Hello, world!\") }", "with_pieces": true})
	var tokenized struct {
		Tokens []struct {
			Piece string `json:"piece"`
		} `json:"tokens"`
	}
	if err := json.Unmarshal(answer, &tokenized); err != nil || status != http.StatusOK {
		t.Fatalf("status %d, %v: %s", status, err, answer)
	}
	var pieces []string
	for _, token := range tokenized.Tokens {
		pieces = append(pieces, token.Piece)
	}
	if got, want := strings.Join(pieces, "|"), `func| main|()| {| fmt|.Println|("|Hello|,| world|!")| }`; got != want {
		t.Errorf("tokens %s, want %s", got, want)
	}

	request := object{"messages": []message{user("Please [[write]] it.")}, "tools": tools}
	status, answer = ask(t, http.MethodPost, s.URL+"/v1/chat/completions/input_tokens", request)
	var count struct {
		Tokens int `json:"input_tokens"`
	}
	if err := json.Unmarshal(answer, &count); err != nil || status != http.StatusOK {
		t.Fatalf("status %d, %v: %s", status, err, answer)
	}
	m, finish, tokens := chat(t, s, "vocab", tools, user("Please [[write]] it."))
	wantCalls(t, m, finish, "write", `{"content":"written by the scripted model\n","path":"drover-was-here.txt"}`)
	if count.Tokens != tokens {
		t.Errorf("%d tokens counted before, %d used", count.Tokens, tokens)
	}
}

// TestLlamaBroken has the two ways in which a call can be unusable.
func TestLlamaBroken(t *testing.T) {
	s := livetest.Llama(t, "plain")
	status, answer := ask(t, http.MethodPost, s.URL+"/v1/chat/completions",
		object{"messages": []message{user("[[bad]]")}, "tools": tools})
	if status != http.StatusInternalServerError {
		t.Errorf("bad: status %d: %s", status, answer)
	}
	m, finish, _ := chat(t, s, "plain", tools, user("[[cut]]"))
	if len(m.ToolCalls) != 1 || finish != "length" || json.Valid([]byte(m.ToolCalls[0].Function.Arguments)) {
		t.Errorf("cut: %+v, finish %q", m, finish)
	}
}

func TestLlamaVision(t *testing.T) { picture(t, livetest.Llama(t, "vision"), "vision") }

// picture checks that an image changes the answer.
func picture(t *testing.T, s *livetest.Server, model string) {
	t.Helper()
	var file bytes.Buffer
	if err := png.Encode(&file, image.NewGray(image.Rect(0, 0, 40, 30))); err != nil {
		t.Fatal(err)
	}
	url := "data:image/png;base64," + base64.StdEncoding.EncodeToString(file.Bytes())
	m, _, _ := chat(t, s, model, nil, user("What is this?"))
	if m.Content != helloText {
		t.Errorf("without a picture: %q", m.Content)
	}
	m, _, _ = chat(t, s, model, nil, user([]object{
		{"type": "text", "text": "What is this?"},
		{"type": "image_url", "image_url": object{"url": url}},
	}))
	if m.Content != "I was shown a picture and cannot tell what it shows." {
		t.Errorf("with a picture: %q", m.Content)
	}
}

func TestLlamaRouter(t *testing.T) {
	s := livetest.Llama(t, "", "--models-dir", livetest.Models())
	status, answer := ask(t, http.MethodGet, s.URL+"/v1/models", nil)
	for _, id := range []string{`"plain"`, `"think"`, `"vocab"`} {
		if status != http.StatusOK || !strings.Contains(string(answer), id) {
			t.Errorf("status %d, no %s in %s", status, id, answer)
		}
	}
	if m, _, _ := chat(t, s, "plain", nil, user("Hi.")); m.Content != helloText {
		t.Errorf("routed: %+v", m)
	}
}

func TestStopAndKill(t *testing.T) {
	for name, end := range map[string]func(*livetest.Server){"Stop": (*livetest.Server).Stop, "Kill": (*livetest.Server).Kill} {
		t.Run(name, func(t *testing.T) {
			const limit = 4 * time.Second
			took := llmtest.Quickest(limit, func() time.Duration {
				s := livetest.Llama(t, "plain")
				// What the engine writes last may come after its first answer.
				if !strings.Contains(s.Log(), "loading model") {
					t.Errorf("log %q", s.Log())
				}
				started := time.Now()
				end(s)
				end(s)
				took := time.Since(started)
				if response, err := http.Get(s.URL + "/health"); err == nil {
					response.Body.Close()
					t.Error("still answers")
				}
				return took
			})
			if took > limit {
				t.Errorf("took %v", took)
			}
		})
	}
}

// helperVariable makes TestHelper start an engine and wait to be killed.
const helperVariable = "LIVETEST_HELPER"

func TestHelper(t *testing.T) {
	if os.Getenv(helperVariable) == "" {
		return
	}
	fmt.Println(livetest.Llama(t, "plain").URL)
	select {}
}

// TestEngineEndsWithKilledTest kills a test process, after which no cleanup runs.
func TestEngineEndsWithKilledTest(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	helper := exec.CommandContext(t.Context(), program, "-test.run=^TestHelper$")
	helper.Env = append(os.Environ(), helperVariable+"=1")
	out, err := helper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	if err := errors.Join(err, helper.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	_ = helper.Wait() // killed
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		response, err := http.Get(strings.TrimSpace(url) + "/health")
		if err != nil {
			return
		}
		response.Body.Close()
		if time.Now().After(deadline) {
			t.Fatal("the engine still answers")
		}
	}
}
