package openai

import (
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
)

func TestDecodeRequest(t *testing.T) {
	body := `{
  "model": "brook-4b", "stream": true, "temperature": 1, "max_completion_tokens": 700,
  "tools": [{"type": "function", "function": {"name": "list", "parameters": {"type": "object", "b": 1.0, "a": []}}}],
  "messages": [
    {"role": "system", "content": "Be brief."},
    {"role": "developer", "content": [{"type": "text", "text": "Use "}, {"type": "text", "text": "tools."}]},
    {"role": "user", "content": [{"type": "text", "text": "What "}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}}]},
    {"role": "assistant", "content": null, "reasoning_content": "hm", "reasoning_details": [{"a": 1}],
     "tool_calls": [{"id": "k1", "type": "function", "index": 0, "function": {"name": "list", "arguments": "{\"p\":1}"}, "extra_content": {"s": 1}},
                    {"id": "k2", "function": {"name": "list", "arguments": {"p": 2.0}}}]},
    {"role": "tool", "tool_call_id": "k1", "content": "a.go"},
    {"role": "tool", "tool_call_id": "k2", "content": ""},
    {"role": "system", "content": "late"}
  ]
}`
	req, err := DecodeRequest([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if req.Snapshot.Target != (llm.Target{Model: "brook-4b"}) || req.MaxTokens != 700 || req.System != "Be brief.\n\nUse tools." {
		t.Errorf("head: %+v, %d, %q", req.Snapshot.Target, req.MaxTokens, req.System)
	}
	if len(req.Tools) != 1 || req.Tools[0].Parameters != `{"a":[],"b":1.0,"type":"object"}` {
		t.Errorf("tools: %+v", req.Tools)
	}
	if len(req.Messages) != 5 {
		t.Fatalf("%d messages", len(req.Messages))
	}
	user, answer, result, late := req.Messages[0], req.Messages[1], req.Messages[2], req.Messages[4]
	if user.Text() != "What " || len(user.Images()) != 1 || user.Images()[0].Width != 1 {
		t.Errorf("user: %+v", user)
	}
	if answer.Text() != "" || len(answer.Calls) != 2 || answer.Calls[0].Arguments != `{"p":1}` || string(answer.Calls[0].Extra) != `{"extra_content":{"s": 1}}` ||
		answer.Calls[1].Arguments != `{"p": 2.0}` || answer.Calls[1].Extra != nil {
		t.Errorf("calls: %+v", answer.Calls)
	}
	if r := answer.Reasoning; r == nil || r.Text != "hm" || r.Field != "reasoning_content" || string(r.Details) != `[{"a": 1}]` {
		t.Errorf("reasoning: %+v", r)
	}
	if result.CallID != "k1" || result.Text() != "a.go" || req.Messages[3].Text() != "" {
		t.Errorf("result: %+v", result)
	}
	if late.Role != llm.System || late.Text() != "late" {
		t.Errorf("late system message: %+v", late)
	}
}

func TestDecodeRequestErrors(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"no JSON", "{\n \"messages\": [}", "line 2, column 15: no JSON: want a value"},
		{"cut", "{\"messages\": [", "line 1, column 15: no JSON: unexpected end"},
		{"empty", "", "line 1, column 1: no JSON: unexpected end"},
		{"two values", "{} {}", "line 1, column 4: no JSON: more than one value"},
		{"no object", " []", "line 1, column 2: want an object with model and messages"},
		{"no messages", `{"model":"m"}`, "line 1, column 1: messages: missing; want an array"},
		{"messages of another type", `{"messages":"x"}`, "line 1, column 13: messages: want an array"},
		{"model of another type", `{"model":7,"messages":[]}`, "line 1, column 10: model: want a string"},
		{"no output", `{"max_tokens":0,"messages":[]}`, "line 1, column 15: max_tokens: want a positive number"},
		{"output of another type", `{"max_completion_tokens":"9","messages":[]}`, "line 1, column 26: max_completion_tokens: want a positive number"},
		{"unknown role", "{\"messages\": [\n {\"role\":\"user\",\"content\":\"é\"},\n {\"role\":\"user\",\"content\":\"é\"},\n {\"content\":\"é\",\"role\":\"narrator\"}]}", `line 4, column 24: messages[2].role: unknown role "narrator"`},
		{"no role", `{"messages":[{"content":"x"}]}`, "line 1, column 14: messages[0].role: missing; want a role"},
		{"role of another type", `{"messages":[{"role":7}]}`, "line 1, column 22: messages[0].role: want a role"},
		{"message of another type", `{"messages":["x"]}`, "line 1, column 14: messages[0]: want an object"},
		{"no content", `{"messages":[{"role":"user"}]}`, "line 1, column 14: messages[0].content: missing; want a string or an array of parts"},
		{"content of null", `{"messages":[{"role":"user","content":null}]}`, "line 1, column 39: messages[0].content: want a string or an array of parts"},
		{"unknown part", `{"messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"sound"}]}]}`, `line 1, column 75: messages[0].content[1].type: unknown type "sound"`},
		{"part without a type", `{"messages":[{"role":"user","content":["x"]}]}`, "line 1, column 40: messages[0].content[0].type: missing; want text or image_url"},
		{"part without text", `{"messages":[{"role":"user","content":[{"type":"text"}]}]}`, "line 1, column 40: messages[0].content[0].text: missing; want a string"},
		{"image elsewhere", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://barn/x.png"}}]}]}`, "line 1, column 79: messages[0].content[0].image_url.url: want a data URL in base64; images are not fetched"},
		{"image that is none", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":"data:image/png;base64,AAAA"}]}]}`, "line 1, column 72: messages[0].content[0].image_url: image : not a PNG, JPEG, GIF or WebP file"},
		{"image that is no base64", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":"data:image/png;base64,!"}]}]}`, "line 1, column 72: messages[0].content[0].image_url: illegal base64 data at input byte 0"},
		{"image missing", `{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, "line 1, column 40: messages[0].content[0].image_url: missing; want a data URL"},
		{"result without an id", `{"messages":[{"role":"tool","content":"x"}]}`, "line 1, column 14: messages[0].tool_call_id: missing; want a string"},
		{"calls of another type", `{"messages":[{"role":"assistant","tool_calls":{}}]}`, "line 1, column 47: messages[0].tool_calls: want an array"},
		{"call without an id", `{"messages":[{"role":"assistant","tool_calls":[{}]}]}`, "line 1, column 48: messages[0].tool_calls[0].id: missing; want a string"},
		{"call without a function", `{"messages":[{"role":"assistant","tool_calls":[{"id":"a"}]}]}`, "line 1, column 48: messages[0].tool_calls[0].function: missing; want an object"},
		{"call without a name", `{"messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{}}]}]}`, "line 1, column 69: messages[0].tool_calls[0].function.name: missing; want a string"},
		{"arguments of another type", `{"messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":7}}]}]}`, "line 1, column 93: messages[0].tool_calls[0].function.arguments: want a string"},
		{"tools of another type", `{"tools":{},"messages":[]}`, "line 1, column 10: tools: want an array"},
		{"tool without a function", `{"tools":[{"type":"x"}],"messages":[]}`, "line 1, column 11: tools[0].function: missing; want an object"},
		{"tool without a name", `{"tools":[{"function":{"name":""}}],"messages":[]}`, "line 1, column 31: tools[0].function.name: want a name"},
		{"tool with a wrong description", `{"tools":[{"function":{"name":"f","description":1}}],"messages":[]}`, "line 1, column 49: tools[0].function.description: want a string"},
		{"tool with wrong parameters", `{"tools":[{"function":{"name":"f","parameters":[]}}],"messages":[]}`, "line 1, column 48: tools[0].function.parameters: want an object"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := DecodeRequest([]byte(tt.body))
			if llm.CodeOf(err) != llm.CodeInvalidRequest || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestDecodeRequestWithoutSystem(t *testing.T) {
	req, err := DecodeRequest([]byte(`{"messages":[{"role":"system","content":""},{"role":"user","content":"x"}]}`))
	if err != nil || req.System != "" || len(req.Messages) != 1 || strings.TrimSpace(req.Messages[0].Text()) != "x" {
		t.Errorf("%+v, %v", req, err)
	}
}

func TestMessageLines(t *testing.T) {
	body := []byte(`{"model": "m", "tools": [
		{"messages": [{"role": "system"}]}], "messages":
	[{"role": "system", "content": "a\nb"}, {"content": "c", "role": "developer"},

	 {"role": "user", "content": "d"}, {"role": "system", "content": "late"}]
	}`)
	lines, joined := MessageLines(body)
	if want := []int{3, 3, 5, 5}; !slices.Equal(lines, want) || joined != 2 {
		t.Errorf("lines %v, want %v; %d joined", lines, want, joined)
	}
	if lines, joined := MessageLines([]byte(`{"messages": []}`)); len(lines) != 0 || joined != 0 {
		t.Errorf("no messages: %v, %d", lines, joined)
	}
}
