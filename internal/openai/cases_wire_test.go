package openai

import (
	"strings"
	"testing"
	"testing/iotest"

	"github.com/drover-dev/drover/internal/llm"
)

// Answers in which several oddities of engines meet.
func TestDecodeStreamCombined(t *testing.T) {
	raw := func(chunk string) string { return "data:" + chunk + "\n\n" }
	cases := []streamCase{
		{"no spaces, usage behind the finish reason, no end marker",
			raw(`{"choices":[{"index":0,"delta":{"content":"over"},"finish_reason":"stop"}]}`) +
				raw(`{"choices":[],"usage":{"prompt_tokens":21,"completion_tokens":4,"total_tokens":25}}`), nil,
			lines("text over", "usage 21 4", "finish stop")},
		{"a keep-alive with another id, then a call",
			raw(`{"id":"keep-1","choices":[{"index":0,"delta":{"content":""},"finish_reason":null}]}`) +
				raw(`{"id":"answer-2","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"q1","function":{"name":"stat","arguments":"{}"}}]}}]}`) +
				raw(`{"id":"answer-3","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":5,"completion_tokens":6}}`), nil,
			lines("call q1 stat {}", "usage 5 6", "finish tool_calls")},
		{"usage of zeros with a call that has no index",
			`data: {"choices":[{"delta":{"role":"assistant","content":"","tool_calls":[{"id":"z","type":"function","function":{"name":"stat","arguments":""}}]}}],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}` + "\n\n" +
				`data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{\"d\":\"x\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":31,"completion_tokens":8,"total_tokens":39}}` + "\n\n" + done, nil,
			lines(`call z stat {"d":"x"}`, "usage 31 8", "finish tool_calls")},
		{"text on both sides of arguments that are an object",
			content("I look ") + calls(`{"index":0,"id":"a","function":{"name":"stat","arguments":{"p":"x","deep":{"n":[1,2.50]}}}}`) + content("now.") + finish("tool_calls") + done, nil,
			lines("text I look now.", `call a stat {"p":"x","deep":{"n":[1,2.50]}}`, "finish tool_calls")},
		{"a thought that the length cut, behind a text",
			contents("Well. <think>it is", " far") + finish("length") + done, nil,
			lines("text Well. ", "think it is far", "finish length from tags")},
		{"a whole message with an orphaned closing tag",
			`{"choices":[{"index":0,"message":{"role":"assistant","content":"first I look</think>\n\nSeven."},"finish_reason":"stop"}]}`, thinker(),
			lines("think first I look", "text Seven.", "finish stop from tags")},
		{"a stream of another kind of object",
			`data: {"id":"cmpl-4","object":"text_completion.chunk","choices":[{"delta":{"content":"moo"},"index":0,"finish_reason":null}]}` + "\n\n" + done, nil,
			lines("text moo", "finish stop")},
		{"running counts", content("a") +
			raw(`{"choices":[{"index":0,"delta":{"content":"b"}}],"usage":{"prompt_tokens":50,"completion_tokens":1}}`) +
			raw(`{"choices":[{"index":0,"delta":{"content":"c"},"finish_reason":"stop"}],"usage":{"prompt_tokens":50,"completion_tokens":2}}`) +
			raw(`{"choices":[],"usage":{"prompt_tokens":50,"completion_tokens":3}}`) + done, nil,
			lines("text abc", "usage 50 3", "finish stop")},
		{"a call in pieces under several names of the same call, cut by the end",
			calls(`{"index":0,"id":"a","function":{"name":"write","arguments":"{\"path\":"}}`) + calls(`{"index":0,"id":"b","function":{"arguments":"\"x"}}`), nil, closedEarly},
	}
	runStreamCases(t, cases)
	for _, c := range cases {
		if got := summary(record(DecodeStream(iotest.OneByteReader(strings.NewReader(c.body)), c.opts))); got != c.want {
			t.Errorf("%s, byte by byte: got\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// The thinking of an API that wants every turn's reasoning back: a turn of calls
// alone has an empty one, and with thinking off and on again the members go and
// come back with the same bytes.
func TestEncodeThinkingOffAndOn(t *testing.T) {
	bare := llm.AssistantText("", llm.ToolCall{ID: "a", Name: "f", Arguments: "{}"})
	bare.Origin = here
	thought := llm.AssistantText("fine")
	thought.Origin, thought.Reasoning = here, &llm.Reasoning{Text: "so", Field: "reasoning_content"}
	req := &llm.Request{
		Snapshot: llm.Snapshot{Target: here, Profile: llm.DeepSeek, Effort: llm.Trot},
		Messages: []llm.Message{llm.UserText("x"), bare, llm.ToolText("a", "y"), thought, llm.UserText("z")},
	}
	on := encode(t, req)
	m := sent(t, req)
	if got := string(m[1].get("reasoning_content").raw); got != `""` {
		t.Errorf("a turn of calls alone: %q", got)
	}
	if got := string(m[1].get("content").raw); got != `""` {
		t.Errorf("content of a turn of calls alone: %q", got)
	}
	if got := string(m[3].get("reasoning_content").raw); got != `"so"` {
		t.Errorf("a turn that thought: %q", got)
	}
	req.Snapshot.Effort = llm.Graze
	if off := encode(t, req); strings.Contains(off, "reasoning_content") {
		t.Errorf("thinking is off: %s", off)
	}
	req.Snapshot.Effort = llm.Trot
	if again := encode(t, req); again != on {
		t.Errorf("on again:\n%s\nbefore:\n%s", again, on)
	}
}
