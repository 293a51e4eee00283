package openai

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/drover-dev/drover/internal/llm"
)

const (
	closedEarly = "error STREAM_CLOSED: the engine closed the stream before the answer was complete"
	closedEmpty = "error STREAM_CLOSED: the engine closed the stream without any data"
	nothingSaid = "error EMPTY_RESPONSE: the engine ended its answer with nothing in it; a prompt larger than its context can do that"
)

// framingCases are about how the bytes of an answer are cut into events.
func framingCases() []streamCase {
	hi := `{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`
	hiDone := lines("text hi", "finish stop")
	return []streamCase{
		{"no space after the colon", "data:" + hi + "\n\ndata:[DONE]\n\n", nil, hiDone},
		{"both end markers", "data: " + hi + "\n\ndata: [DONE]\n\ndata:[DONE]\n\n", nil, hiDone},
		{"nothing is read behind the end marker", "data: " + hi + "\n\n" + done + content("late") + "data: {broken\n\n", nil, hiDone},
		{"only one space is stripped", "data:   " + hi + "\n\n" + done, nil, hiDone},
		{"event field without spaces, no end marker", "event:message\ndata:" + hi + "\n\n", nil, hiDone},
		{"CRLF", strings.ReplaceAll("data: "+hi+"\n\n"+done, "\n", "\r\n"), nil, hiDone},
		{"CR alone", strings.ReplaceAll("data: "+hi+"\n\n"+done, "\n", "\r"), nil, hiDone},
		{"comments", ": warming up\n\n:\n\n: still\ndata: " + hi + "\n\n" + done, nil, hiDone},
		{"comments above the end marker", "data: " + hi + "\n\n: cache=no\n: ms=7\ndata: [DONE]\n\n", nil, hiDone},
		{"a comment wrapped into data", "data: : working\n\ndata: " + hi + "\n\n" + done, nil, hiDone},
		{"empty data", "data: \n\ndata:\n\ndata\n\ndata: " + hi + "\n\n", nil, hiDone},
		{"blocks without data", "retry: 3000\n\n: wait\n\nevent: x\n\nid: 9\n\nid\n\ndata: " + hi + "\n\n", nil, hiDone},
		{"ids and a comment between events", "id: 1\ndata: " + hi + "\n\n: ping\n\nid: 2\n" + done, nil, hiDone},
		{"data that is no chunk", "event: ping\ndata: \"\"\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\ndata: 7\n\ndata: null\n\ndata: " + hi + "\n\n", nil, hiDone},
		{"several data lines make one payload", "data: {\"choices\":[{\"index\":0,\ndata: \"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n", nil, hiDone},
		{"several values in one payload", "data: " + `{"choices":[{"delta":{"content":"h"}}]}` + hi[:strings.Index(hi, "hi")] + `i"},"finish_reason":"stop"}]}` + "\n\n", nil, hiDone},
		{"events one line apart", "data: " + hi + "\ndata: [DONE]\n", nil, hiDone},
		{"byte order mark", "\ufeffdata: " + hi + "\n\n", nil, hiDone},
		{"last event without a blank line", "data: " + hi, nil, hiDone},
		{"end marker without a line ending", "data: " + hi + "\n\ndata: [DONE]", nil, hiDone},
		{"characters of several bytes", ended(contents("你好", "🌍 — ", "né\u0301")), nil, lines("text 你好🌍 — né\u0301", "finish stop")},
		{"escaped characters of several bytes", ended(delta(`{"content":"\u4f60\ud83c\udf0d\/\ud83c"}`)), nil, lines("text 你🌍/\ufffd", "finish stop")},
		{"comments alone", ": beat\n\n: beat\n\n", nil, closedEmpty},
		{"nothing", "", nil, closedEmpty},
		{"blank lines alone", "\n\n\r\n", nil, closedEmpty},
		{"a chunk that is no JSON", content("a") + "data: {oops}\n\n", nil, lines("text a", `error MALFORMED_RESPONSE: the engine sent a chunk that is no JSON (want a member name at byte 1): "{oops}"`)},
		{"a chunk cut by the end", content("abc") + `data: {"choices":[{"index":0,"del`, nil, lines("text abc", closedEarly)},
		{"a chunk cut behind the finish reason", content("abc") + finish("stop") + `data: {"usage":{"prompt`, nil, lines("text abc", "finish stop")},
	}
}

// endCases are about how an answer ends.
func endCases() []streamCase {
	call := `{"index":0,"id":"k1","type":"function","function":{"name":"list_dir","arguments":"{}"}}`
	return []streamCase{
		{"neither finish reason nor marker", content("Hi"), nil, lines("text Hi", closedEarly)},
		{"marker without a finish reason", content("Hi") + done, nil, lines("text Hi", "finish stop")},
		{"marker after empty choices", content("Hi") + `data: {"choices":[]}` + "\n\n" + done, nil, lines("text Hi", "finish stop")},
		{"marker without a finish reason, with calls", calls(call) + done, nil, lines("call k1 list_dir {}", "finish tool_calls")},
		{"finish reason without a marker", content("Hi") + finish("stop"), nil, lines("text Hi", "finish stop")},
		{"a call cut off is not told", calls(call), nil, closedEarly},
		{"an unknown reason", content("a") + finish("end_turn") + done, nil, lines("text a", "finish stop raw end_turn")},
		{"an unknown reason with calls", calls(call) + finish("end_turn") + done, nil, lines("call k1 list_dir {}", "finish tool_calls raw end_turn")},
		{"stop with calls", calls(call) + finish("stop") + done, nil, lines("call k1 list_dir {}", "finish tool_calls raw stop")},
		{"tool_calls without calls", content("a") + finish("tool_calls") + done, nil, lines("text a", "finish stop raw tool_calls")},
		{"upper case", content("a") + finish("STOP") + done, nil, lines("text a", "finish stop raw STOP")},
		{"length", content("a") + finish("length") + done, nil, lines("text a", "finish length")},
		{"length by another name", content("a") + finish("MAX_TOKENS") + done, nil, lines("text a", "finish length raw MAX_TOKENS")},
		{"length without text", finish("length") + done, nil, "finish length"},
		{"length is not taken back", calls(call) + finish("length") + finish("stop") + done, nil, lines("call k1 list_dir {}", "finish length")},
		{"an empty answer", delta(`{"role":"assistant","content":""}`) + finish("stop") + done, nil, nothingSaid},
		{"usage alone, and no end", `data: {"usage":{"prompt_tokens":9,"completion_tokens":1}}` + "\n\n", nil, lines("usage 9 1", closedEarly)},
		{"usage alone", `data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}` + "\n\n" + done, nil, lines("usage 9 1", nothingSaid)},
		{"white space alone", contents("\n", " ") + finish("stop") + done, nil, nothingSaid},
		{"reasoning alone", delta(`{"reasoning_content":"hm"}`) + finish("stop") + done, nil, lines("think hm", "finish stop from reasoning_content")},
		{"a filter", content("a") + finish("sensitive") + done, nil, lines("text a", `error INVALID_REQUEST: the engine's content filter ended the answer (finish reason "sensitive")`)},
		{"a filter with calls", calls(call) + finish("content_filter") + done, nil, `error INVALID_REQUEST: the engine's content filter ended the answer (finish reason "content_filter")`},
		{"a broken engine", content("par") + finish("error") + done, nil, lines("text par", `error SERVER: the engine failed while it answered (finish reason "error")`)},
		{"a broken network behind the engine", finish("network_error") + finish("stop") + done, nil, `error SERVER: the engine failed while it answered (finish reason "network_error")`},
	}
}

// errorCases are errors inside an answer that began with success.
func streamErrorCases() []streamCase {
	return []streamCase{
		{"a string", "data: {\"error\":\"GEARBOX_BROKE\"}\n\n" + done, nil, "error UNKNOWN: GEARBOX_BROKE"},
		{"an object after text", content("tick") + `data: {"error":{"code":500,"message":"gearbox broke","type":"server_error"}}` + "\n\n", nil,
			lines("text tick", "error SERVER: gearbox broke")},
		{"no code but a type", `data: {"error":{"message":"slow down","type":"rate_limit_error"}}` + "\n\n", nil, "error RATE_LIMIT: slow down"},
		{"neither code nor type", `data: {"error":{"message":"who knows"},"message":"who knows"}` + "\n\n", nil, "error UNKNOWN: who knows"},
		{"event of type error", "event: error\ndata: {\"message\":\"gone\",\"code\":\"503\"}\n\n", nil, "error SERVER: gone"},
		{"event of type error with text", content("a") + "event: error\ndata: upstream went away\n\n", nil, lines("text a", "error UNKNOWN: upstream went away")},
		{"object of type error", `data: {"object":"error","message":"no such adapter","code":400}` + "\n\n", nil, "error INVALID_REQUEST: no such adapter"},
		{"a mark and the text beside it", content("a") + `data: {"error":true,"message":"gearbox broke","code":500}` + "\n\n" + done, nil, lines("text a", "error SERVER: gearbox broke")},
		{"a list", content("a") + `data: {"error":[{"message":"gearbox broke","code":500}]}` + "\n\n" + done, nil, lines("text a", "error SERVER: gearbox broke")},
		{"in a choice", `data: {"choices":[{"index":0,"delta":{"content":"a"},"error":{"code":502,"message":"bad upstream"}}]}` + "\n\n", nil,
			lines("text a", "error SERVER: bad upstream")},
		{"after the finish reason", content("a") + finish("stop") + `data: {"error":"late"}` + "\n\n", nil, lines("text a", "error UNKNOWN: late")},
		{"usage before it is told", `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}` + "\n\n" + `data: {"error":"late"}` + "\n\n", nil,
			lines("usage 3 1", "error UNKNOWN: late")},
		{"null, empty and false are none", `data: {"error":null,"choices":[{"delta":{"content":"a"},"error":{},"finish_reason":"stop"}]}` + "\n\n" + `data: {"error":"","choices":[]}` + "\n\n" + `data: {"error":false}` + "\n\n" + `data: {"error":[]}` + "\n\n" + `data: {"error":0}` + "\n\n", nil,
			lines("text a", "finish stop")},
		{"the model's own output", content("a") + `data: {"error":{"code":500,"message":"The model produced output that does not match the expected format","type":"server_error"}}` + "\n\n", nil,
			lines("text a", "error SERVER: The model produced output that does not match the expected format")},
		{"failed to parse the output, called invalid", `data: {"error":{"message":"Failed to parse input at pos 12: <tool","type":"invalid_request_error"}}` + "\n\n", nil,
			"error SERVER: Failed to parse input at pos 12: <tool"},
		{"overflow while writing", content("tick") + `data: {"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}` + "\n\n", nil,
			lines("text tick", "error CONTEXT_WINDOW_EXCEEDED: Context size has been exceeded. (requests that run at the same time share the engine's context)")},
		{"overflow without a type", `data: {"error":{"message":"The number of tokens to keep from the initial prompt is greater than the context length."}}` + "\n\n", nil,
			"error CONTEXT_WINDOW_EXCEEDED: The number of tokens to keep from the initial prompt is greater than the context length."},
		{"outside of events", `{"error":{"code":500,"message":"model crashed","type":"server_error"}}`, nil, "error SERVER: model crashed"},
		{"outside of events, after some", content("a") + `{"error":{"code":500,"message":"model crashed"}}` + "\n", nil, lines("text a", "error SERVER: model crashed")},
		{"as the whole body, a string", `{"error":"Unexpected endpoint or method. (POST /chat/completions)"}`, nil,
			"error UNKNOWN: Unexpected endpoint or method. (POST /chat/completions) (is the base URL right? the engine's API usually begins at /v1)"},
		{"as the whole body, an overflow", `{"error":{"code":500,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":1400,"n_ctx":256}}`, nil,
			"error CONTEXT_WINDOW_EXCEEDED: the request exceeds the available context size"},
		{"as the whole body, unwrapped", `{"code":500,"message":"gearbox broke","type":"server_error"}`, nil, "error SERVER: gearbox broke"},
		{"as the whole body, in a list", `[{"error":{"code":429,"message":"slow down"}}]`, nil, "error RATE_LIMIT: slow down"},
		{"a web page", "<!DOCTYPE html>\n<html><script>\ndata: {\"choices\":[]}\n</script></html>", nil,
			"error MALFORMED_RESPONSE: the engine answered with a web page instead of a completion; is its base URL right?"},
		{"text", "Bad gateway\nplease try again\n", nil, `error MALFORMED_RESPONSE: the engine answered with text instead of a completion: "Bad gateway please try again"`},
		{"compressed", "\x1f\x8b\x08\x00\x00", nil, "error MALFORMED_RESPONSE: the engine sent a compressed answer that was not asked for"},
		{"JSON of another kind", `{"models":[]}`, nil, `error MALFORMED_RESPONSE: the engine's answer is JSON but no completion: "{\"models\":[]}"`},
		{"JSON of another dialect", `{"model":"m","message":{"role":"assistant","content":"hi"},"done":true}`, nil, `error MALFORMED_RESPONSE: the engine's answer is JSON but no completion: "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"hi\"},\"done\":true}"`},
		{"JSON that is broken", `{"choices":[}`, nil, `error MALFORMED_RESPONSE: the engine's answer is no JSON (want a value at byte 12): "{\"choices\":[}"`},
		{"JSON that is cut", `{"choices":[{"message":{"content":"ab`, nil, closedEarly},
	}
}

// chunkCases are about the shape of chunks and of whole completions.
func chunkCases() []streamCase {
	return []streamCase{
		{"empty choices first", `data: {"choices":[],"prompt_filter_results":[]}` + "\n\n" + ended(content("v")), nil, lines("text v", "finish stop")},
		{"no choices", `data: {"id":"c","choices":null}` + "\n\n" + `data: {"id":"c"}` + "\n\n" + ended(content("v")), nil, lines("text v", "finish stop")},
		{"progress of the prompt", `data: {"choices":[{"index":0,"delta":{}}],"prompt_progress":{"total":9000,"processed":4096}}` + "\n\n" + ended(content("v")), nil, lines("text v", "finish stop")},
		{"a keep-alive with another id", `data: {"id":"keepalive","choices":[{"index":0,"delta":{"content":""},"finish_reason":null}]}` + "\n\n" + ended(content("v")), nil, lines("text v", "finish stop")},
		{"a delta and the same as a message", `data: {"choices":[{"delta":{"content":"Sa","function_call":null,"tool_calls":[]},"message":{"content":"Sa"},"finish_reason":null}],"usage":null,"error":null}` + "\n\n" +
			`data: {"choices":[{"delta":{"content":"nd"},"message":{"content":"nd"},"finish_reason":"stop"}]}` + "\n\n" +
			`data: {"choices":[{"message":{"content":"Sand"},"finish_reason":"stop"}]}` + "\n\n" + done, nil, lines("text Sand", "finish stop")},
		{"unknown members of any type", `data: {"choices":[{"index":0,"delta":{"content":"k","x":[{}]},"logprobs":{},"finish_reason":"stop"}],"stats":{},"x":[1,{"y":null}],"system_fingerprint":null}` + "\n\n", nil, lines("text k", "finish stop")},
		{"members of the wrong type", `data: {"choices":[{"delta":{"content":7,"reasoning":{"a":1},"reasoning_content":["x"],"tool_calls":"no"}}],"usage":"none"}` + "\n\n" + ended(content("v")), nil, lines("text v", "finish stop")},
		{"names differ in case", `data: {"Choices":[{"delta":{"content":"no"}}],"choices":[{"Delta":{"content":"no"},"delta":{"Content":"no","content":"v"},"finish_reason":"stop"}]}` + "\n\n", nil, lines("text v", "finish stop")},
		{"the old text member", `data: {"object":"text_completion","choices":[{"text":"hi","index":0}]}` + "\n\n" + done, nil, lines("text hi", "finish stop")},
		{"a refusal", ended(delta(`{"refusal":"I will not"}`)), nil, lines("text I will not", "finish stop")},
		{"typed parts", ended(delta(`{"content":[{"type":"reasoning","summary":[{"type":"summary_text","text":"look"}]},{"type":"thinking","thinking":[{"type":"text","text":" twice"}]},{"type":"text","text":"Fine"},{"type":"mystery","text":"?"},5]}`)), nil,
			lines("think look twice", "text Fine", "finish stop from tags")},
		{"a whole completion", "\n\n\n" + `{"choices":[{"index":0,"finish_reason":"STOP","message":{"role":"assistant","content":"hey"}}],"object":"chat.completion"}`, nil, lines("text hey", "finish stop raw STOP")},
		{"a whole completion after spaces, over several lines", "   " + "{\n \"choices\": [\n  {\"message\":\n {\"content\": \"hey\"}}]\n}\n", nil, lines("text hey", "finish stop")},
		{"a whole completion with everything", `{"choices":[{"message":{"role":"assistant","content":null,"reasoning_content":"think","tool_calls":[{"id":"c1","type":"function","function":{"name":"grep","arguments":"{\"q\":\"x\"}"}},{"id":"c2","type":"function","function":{"name":"grep","arguments":""}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`, nil,
			lines("think think", `call c1 grep {"q":"x"}`, "call c2 grep {}", "usage 3 4", "finish tool_calls from reasoning_content")},
		{"a whole completion inside an event", `data: {"choices":[{"message":{"content":"hey"},"finish_reason":"stop"}]}` + "\n\n", nil, lines("text hey", "finish stop")},
		{"a whole completion without choices", `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":0}}`, nil, lines("usage 3 0", closedEarly)},
	}
}

// usageCases are about what the engine counted.
func usageCases() []streamCase {
	usage := func(u string) string { return `data: {"choices":[],"usage":` + u + "}\n\n" }
	a := content("a")
	end := finish("stop") + done
	return []streamCase{
		{"behind the finish reason", a + finish("stop") + usage(`{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}`), nil, lines("text a", "usage 7 2", "finish stop")},
		{"the last counts", a + usage(`{"prompt_tokens":100,"completion_tokens":1}`) + usage(`{"prompt_tokens":100,"completion_tokens":5}`) + end, nil, lines("text a", "usage 100 5", "finish stop")},
		{"zeros say nothing", usage(`{"prompt_tokens":40,"completion_tokens":9}`) + a + usage(`{"prompt_tokens":0,"completion_tokens":0}`) + end, nil, lines("text a", "usage 40 9", "finish stop")},
		{"a prompt of nothing is not counted", a + usage(`{"prompt_tokens":0,"completion_tokens":5}`) + end, nil, lines("text a", "usage 0 5 estimated", "finish stop")},
		{"a prompt of nothing behind a count", a + usage(`{"prompt_tokens":40,"completion_tokens":1}`) + usage(`{"prompt_tokens":0,"completion_tokens":5}`) + end, nil, lines("text a", "usage 40 5", "finish stop")},
		{"a prompt of nothing beside timings", a + usage(`{"prompt_tokens":0,"completion_tokens":5}`) + `data: {"choices":[],"timings":{"cache_n":14,"prompt_n":1,"predicted_n":5}}` + "\n\n" + end, nil, lines("text a", "usage 15 5 cached 14 reasoning 0 timings 14+1 5", "finish stop")},
		{"details", a + usage(`{"prompt_tokens":40,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":30},"completion_tokens_details":{"reasoning_tokens":5}}`) + end, nil, lines("text a", "usage 40 9 cached 30 reasoning 5", "finish stop")},
		{"other names of cached tokens", a + usage(`{"prompt_tokens":40,"completion_tokens":9,"prompt_cache_hit_tokens":12,"reasoning_tokens":2}`) + end, nil, lines("text a", "usage 40 9 cached 12 reasoning 2", "finish stop")},
		{"never negative", a + usage(`{"prompt_tokens":40,"completion_tokens":-9}`) + end, nil, lines("text a", "usage 40 0", "finish stop")},
		{"numbers of another kind", a + usage(`{"prompt_tokens":"40","completion_tokens":9.0}`) + end, nil, lines("text a", "usage 0 9 estimated", "finish stop")},
		{"nonsense", a + usage(`{"prompt_tokens":1e300,"completion_tokens":true}`) + end, nil, lines("text a", "finish stop")},
		{"without the prompt", a + usage(`{"completion_tokens":3}`) + end, nil, lines("text a", "usage 0 3 estimated", "finish stop")},
		{"in the choice", `data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop","usage":{"prompt_tokens":4,"completion_tokens":1}}]}` + "\n\n" + done, nil, lines("text a", "usage 4 1", "finish stop")},
		{"timings alone", a + `data: {"choices":[{"delta":{},"finish_reason":"stop"}],"timings":{"cache_n":14,"prompt_n":1,"prompt_ms":0.3,"predicted_n":6,"predicted_ms":1.9}}` + "\n\n" + done, nil,
			lines("text a", "usage 15 6 cached 14 reasoning 0 timings 14+1 6", "finish stop")},
		{"timings beside usage", a + `data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":99,"completion_tokens":7},"timings":{"cache_n":14,"prompt_n":1,"predicted_n":6}}` + "\n\n" + done, nil,
			lines("text a", "usage 99 7 timings 14+1 6", "finish stop")},
		{"none", a + end, nil, lines("text a", "finish stop")},
	}
}

func TestDecodeStream(t *testing.T) {
	t.Run("framing", func(t *testing.T) { runStreamCases(t, framingCases()) })
	t.Run("end", func(t *testing.T) { runStreamCases(t, endCases()) })
	t.Run("error", func(t *testing.T) { runStreamCases(t, streamErrorCases()) })
	t.Run("chunk", func(t *testing.T) { runStreamCases(t, chunkCases()) })
	t.Run("usage", func(t *testing.T) { runStreamCases(t, usageCases()) })
	t.Run("toolcall", func(t *testing.T) { runStreamCases(t, toolCallCases()) })
	t.Run("markup", func(t *testing.T) { runStreamCases(t, markupCases()) })
	t.Run("reasoning", func(t *testing.T) { runStreamCases(t, reasoningCases()) })
	t.Run("think", func(t *testing.T) { runStreamCases(t, thinkCases()) })
}

func allStreamCases() []streamCase {
	return slices.Concat(framingCases(), endCases(), streamErrorCases(), chunkCases(), usageCases(),
		toolCallCases(), markupCases(), reasoningCases(), thinkCases())
}

// However the bytes arrive, the events are the same ones, one by one.
func TestDecodeStreamCuts(t *testing.T) {
	for _, c := range allStreamCases() {
		want, wantErr := record(DecodeStream(strings.NewReader(c.body), c.opts))
		check := func(how string, r io.Reader) {
			t.Helper()
			got, err := record(DecodeStream(r, c.opts))
			if !reflect.DeepEqual(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Fatalf("%s, %s: got\n%s\nwant\n%s", c.name, how, summary(got, err), summary(want, wantErr))
			}
		}
		check("byte by byte", iotest.OneByteReader(strings.NewReader(c.body)))
		check("data with the error", iotest.DataErrReader(strings.NewReader(c.body)))
		step := 1 + len(c.body)/400 // long bodies are cut at some places
		for i := 0; i < len(c.body); i += step {
			check(fmt.Sprintf("cut at %d", i), &chunkReader{parts: []string{c.body[:i], c.body[i:]}})
		}
	}
}

// What is forwarded may depend on how an engine cuts the content into deltas;
// what is said in all may not.
func TestDecodeStreamContentCuts(t *testing.T) {
	texts := []string{
		"<think>plan</think>RESULT", "  <think>\nplan\n</think>\n\nRESULT", "1 < 2 <th", "pre <think>still thinking",
		"say <think>aloud</think> and go on", "a `<think>` b", "```\n <think>x\n```\n<tool_call>\n{\"name\": \"list_dir\"}",
		"see <tool_call>\n<function=list_dir>\n</function>", "[TOOL_CALLS]list_dir[ARGS]{}", "hi <‖DSML‖tool_calls>",
		"use <tool_call> tags, [TOOL_CALLS] too", "thought</think>answer", "line\nthought</think>answer", "</think>answer",
		strings.Repeat("x", 250) + "</think>answer", strings.Repeat("x", 255) + "</think>answer", strings.Repeat("x", 256) + "</think>answer",
		"<think>a</think><think>b</think>c", "<think>a</thin</think>b", "<|channel|>commentary to=functions.list_dir<|message|>{}",
		"a `` `<think> `` <think>b",
	}
	for _, supported := range []bool{false, true} {
		opts := offer("list_dir")
		opts.ReasoningSupported = supported
		for _, text := range texts {
			want := said(ended(content(text)), opts)
			runes := strings.Split(text, "")
			if got := said(ended(contents(runes...)), opts); got != want {
				t.Errorf("%q in single characters, reasoning %v: got %s, want %s", text, supported, got, want)
			}
			for i := 1; i < len(runes); i++ {
				got := said(ended(contents(strings.Join(runes[:i], ""), strings.Join(runes[i:], ""))), opts)
				if got != want {
					t.Errorf("%q cut at %d, reasoning %v: got %s, want %s", text, i, supported, got, want)
				}
			}
		}
	}
}

// said gives all text and all reasoning of an answer, and how it ended.
func said(body string, opts *StreamOptions) string {
	events, err := record(DecodeStream(strings.NewReader(body), opts))
	var text, think string
	for _, e := range events {
		switch e := e.(type) {
		case llm.TextDelta:
			text += string(e)
		case llm.ReasoningDelta:
			think += string(e)
		}
	}
	return fmt.Sprintf("text %q think %q code %q", text, think, llm.CodeOf(err))
}

func TestDecodeStreamProgress(t *testing.T) {
	body := calls(`{"index":0,"id":"a","function":{"name":"write","arguments":""}}`) +
		calls(`{"index":0,"function":{"arguments":"{\"p\":"}}`, `{"index":1,"id":"b","function":{"name":"read","arguments":"{}"}}`) +
		calls(`{"index":0,"function":{"arguments":"1}"}}`) + finish("tool_calls") + done
	events, err := record(DecodeStream(strings.NewReader(body), nil))
	if err != nil {
		t.Fatal(err)
	}
	want := []llm.Event{
		llm.ToolCallDelta{Index: 0, Name: "write"},
		llm.ToolCallDelta{Index: 0, Name: "write", Bytes: 5},
		llm.ToolCallDelta{Index: 1, Name: "read", Bytes: 2},
		llm.ToolCallDelta{Index: 0, Name: "write", Bytes: 2},
		llm.ToolCalls{{ID: "a", Name: "write", Arguments: `{"p":1}`}, {ID: "b", Name: "read", Arguments: "{}"}},
		llm.Finish{Reason: llm.FinishToolCalls},
	}
	if !reflect.DeepEqual(events, want) {
		t.Errorf("got %#v\nwant %#v", events, want)
	}
}

func TestDecodeStreamReadErrors(t *testing.T) {
	reset := errors.New("connection reset by peer")
	known := &llm.Error{Code: llm.CodeTimeout, Message: "nothing came for a while"}
	tests := []struct {
		name string
		body string
		err  error
		code llm.Code
		text string
	}{
		{"a reset", content("ab"), reset, llm.CodeTransport, "the connection broke while the answer was read: connection reset by peer"},
		{"a body cut short", content("ab"), io.ErrUnexpectedEOF, llm.CodeStreamClosed, "the engine closed the stream before the answer was complete"},
		{"a reset inside a chunk", content("ab") + `data: {"choi`, reset, llm.CodeTransport, "the connection broke while the answer was read: connection reset by peer"},
		{"a reset before anything", "", reset, llm.CodeTransport, "the connection broke while the answer was read: connection reset by peer"},
		{"an error of the caller's own", content("ab"), fmt.Errorf("read: %w", known), llm.CodeTimeout, "nothing came for a while"},
		{"a reset behind the finish reason", content("ab") + finish("stop"), reset, "", ""},
		{"a reset behind the end", content("ab") + done, reset, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			events, err := record(DecodeStream(&chunkReader{parts: []string{tt.body}, err: tt.err}, nil))
			if llm.CodeOf(err) != tt.code {
				t.Fatalf("code %q, want %q (%v)", llm.CodeOf(err), tt.code, err)
			}
			if tt.body != "" && (len(events) == 0 || events[0] != llm.TextDelta("ab")) {
				t.Errorf("the text before the error is lost: %v", events)
			}
			if tt.code == "" {
				return
			}
			if err.Error() != tt.text {
				t.Errorf("message %q, want %q", err, tt.text)
			}
			if tt.code == llm.CodeTransport && !errors.Is(err, tt.err) {
				t.Errorf("the cause is lost")
			}
		})
	}
}

func TestDecodeStreamStopsWithItsConsumer(t *testing.T) {
	body := contents("a", "b") + calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`) +
		`data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}` + "\n\n" + finish("stop") + done
	all, _ := record(DecodeStream(strings.NewReader(body), nil))
	for stop := range all {
		n := 0
		for range DecodeStream(strings.NewReader(body), nil) { // a yield after break panics
			if n++; n > stop {
				break
			}
		}
	}
	r := &countingReader{r: strings.NewReader(contents("a") + strings.Repeat(": wait\n", 1<<20))}
	for range DecodeStream(r, nil) {
		break
	}
	if r.n > 4*readSize {
		t.Errorf("read %d bytes after the consumer left", r.n)
	}
}

type countingReader struct {
	r io.Reader
	n int
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

func TestDecodeStreamLimits(t *testing.T) {
	head, tail := `data: {"choices":[{"index":0,"delta":{"content":"`, `"},"finish_reason":"stop"}]}`
	fill := func(line int) string { return head + strings.Repeat("a", line-len(head)-len(tail)) + tail }
	small := limits{line: 500, response: 2000}
	padded := func(n int) string {
		body := ended(content("a"))
		return strings.Repeat(":\n", (n-len(body))/2) + body + strings.Repeat("\n", (n-len(body))%2)
	}
	tests := []struct {
		name  string
		max   limits
		body  string
		fails string
	}{
		{"line of the limit", small, fill(500) + "\n\n", ""},
		{"line of the limit, CRLF", small, fill(500) + "\r\n\r\n", ""},
		{"line of the limit, at the end", small, fill(500), ""},
		{"line beyond the limit", small, fill(501) + "\n\n", "the engine sent a line of more than 500 bytes"},
		{"line beyond the limit, at the end", small, fill(501), "the engine sent a line of more than 500 bytes"},
		{"answer of the limit", small, padded(2000), ""},
		{"answer beyond the limit", small, strings.Repeat(":\n", 1000) + "\n", "the engine's answer has more than 2000 bytes"},
		{"128 KiB in one line", limits{MaxLineBytes, MaxResponseBytes}, fill(128<<10) + "\n\n" + done, ""},
		{"real line limit", limits{MaxLineBytes, MaxResponseBytes}, fill(MaxLineBytes) + "\n\n", ""},
		{"beyond the real line limit", limits{MaxLineBytes, MaxResponseBytes}, fill(MaxLineBytes+1) + "\n\n", "the engine sent a line of more than 16777216 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			readers := []io.Reader{strings.NewReader(tt.body)}
			if len(tt.body) < 1<<16 {
				readers = append(readers, iotest.OneByteReader(strings.NewReader(tt.body)))
			}
			for _, r := range readers {
				_, err := record(decodeStream(r, nil, tt.max))
				switch {
				case tt.fails == "" && err != nil:
					t.Errorf("error %v", err)
				case tt.fails != "" && (llm.CodeOf(err) != llm.CodeMalformedResponse || err.Error() != tt.fails):
					t.Errorf("error %v, want %q", err, tt.fails)
				}
			}
		})
	}
}

func TestDecodeStreamResponseLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 128 MiB")
	}
	comment := []byte(":" + strings.Repeat(" ", 1022) + "\n")
	body := content("a") // no end: only the limit can be wrong with it
	for extra, want := range map[int]llm.Code{0: llm.CodeStreamClosed, 1: llm.CodeMalformedResponse} {
		pad := MaxResponseBytes - len(body) + extra
		r := io.MultiReader(strings.NewReader(body), &repeatReader{unit: comment, left: pad})
		events, err := record(DecodeStream(r, nil))
		if llm.CodeOf(err) != want || len(events) != 1 {
			t.Errorf("%d bytes beyond the limit: %v after %d events, want %q", extra, err, len(events), want)
		}
	}
}

// repeatReader gives a unit over and over, left bytes in all.
type repeatReader struct {
	unit []byte
	left int
	at   int
}

func (r *repeatReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(len(p), r.left)]
	n := 0
	for n < len(p) {
		m := copy(p[n:], r.unit[r.at:])
		r.at = (r.at + m) % len(r.unit)
		n += m
	}
	r.left -= n
	return n, nil
}

func TestLineReader(t *testing.T) {
	body := "a\nb\r\nc\rd\r\r\n\ne"
	want := []string{"a", "b", "c", "d", "", "", "e"}
	for i := range len(body) + 1 {
		l := lineReader{r: &chunkReader{parts: []string{body[:i], body[i:]}}, max: limits{line: 100, response: 100}}
		var got []string
		for {
			line, err := l.next()
			if err != nil {
				break
			}
			got = append(got, string(line))
		}
		if !slices.Equal(got, want) {
			t.Errorf("cut at %d: %q, want %q", i, got, want)
		}
	}
	stuck := lineReader{r: iotest.ErrReader(nil), max: limits{line: 9, response: 9}}
	if _, err := stuck.next(); err != io.ErrNoProgress {
		t.Errorf("a reader that gives nothing: %v", err)
	}
}

func TestExcerptShowsNoControls(t *testing.T) {
	got := excerpt([]byte("a\x1b[31m\tb\u202e" + strings.Repeat("x", 300)))
	if bytes.ContainsAny([]byte(got), "\x1b\t\u202e") || len(got) > 140 {
		t.Errorf("excerpt %q", got)
	}
}
