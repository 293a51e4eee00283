package openai

import (
	"strings"
	"testing"
)

// reasoningCases are about reasoning that the engine separated.
func reasoningCases() []streamCase {
	d := delta
	details := func(entries string) string { return d(`{"reasoning_details":[` + entries + `]}`) }
	return []streamCase{
		{"reasoning_content", ended(d(`{"reasoning_content":"hm"}`), content("ok")), nil, lines("think hm", "text ok", "finish stop from reasoning_content")},
		{"reasoning", ended(d(`{"content":"","reasoning":"hm "}`), content("ok")), nil, lines("think hm ", "text ok", "finish stop from reasoning")},
		{"thinking", ended(d(`{"thinking":"hm"}`), content("ok")), nil, lines("think hm", "text ok", "finish stop from thinking")},
		{"a whole message", `{"choices":[{"message":{"content":"ok","reasoning":"because"},"finish_reason":"stop"}]}`, nil, lines("think because", "text ok", "finish stop from reasoning")},
		{"the same in two members", ended(d(`{"content":"","reasoning":"Hm","reasoning_content":"Hm"}`), d(`{"reasoning":", so","reasoning_content":", so"}`), content("ok")), nil,
			lines("think Hm, so", "text ok", "finish stop from reasoning_content")},
		{"the same in two deltas", ended(d(`{"reasoning":"abc"}`), d(`{"reasoning_content":"abc"}`), content("ok")), nil, lines("think abc", "text ok", "finish stop from reasoning")},
		{"different members in turn", ended(d(`{"reasoning":"abc"}`), d(`{"reasoning_content":"xyz"}`), d(`{"reasoning":"d"}`), content("ok")), nil, lines("think abcxyzd", "text ok", "finish stop from reasoning")},
		{"a member and its details", ended(d(`{"reasoning":"Plan","reasoning_details":[{"type":"reasoning.summary","summary":"Plan"}]}`), content("ok")), nil,
			lines("think Plan", "text ok", `finish stop from reasoning details [{"type":"reasoning.summary","summary":"Plan"}]`)},
		{"details in a delta of their own", ended(d(`{"reasoning":"abc"}`), details(`{"type":"reasoning.text","text":"abc"}`), content("ok")), nil,
			lines("think abc", "text ok", `finish stop from reasoning details [{"type":"reasoning.text","text":"abc"}]`)},
		{"details first", ended(details(`{"type":"reasoning.text","text":"abc"}`), d(`{"reasoning":"abc"}`), content("ok")), nil,
			lines("think abc", "text ok", `finish stop from reasoning_details details [{"type":"reasoning.text","text":"abc"}]`)},
		{"several details", ended(details(`{"type":"reasoning.text","text":"a","index":0},{"type":"reasoning.text","text":"b","index":1}`), content("ok")), nil,
			lines("think ab", "text ok", `finish stop from reasoning_details details [{"type":"reasoning.text","text":"a","index":0},{"type":"reasoning.text","text":"b","index":1}]`)},
		{"details in pieces", ended(details(`{"type":"reasoning.text","text":"ab","index":0}`), details(`{"type":"reasoning.text","text":"cd","index":0}`), details(`{"type":"reasoning.text","index":0,"signature":"S/1"}`), content("ok")), nil,
			lines("think abcd", "text ok", `finish stop from reasoning_details details [{"type":"reasoning.text","text":"abcd","index":0,"signature":"S/1"}]`)},
		{"details that grow", ended(details(`{"type":"reasoning.text","text":"ab","index":0}`), details(`{"type":"reasoning.text","text":"abcd","index":0}`), content("ok")), nil,
			lines("think abcd", "text ok", `finish stop from reasoning_details details [{"type":"reasoning.text","text":"abcd","index":0}]`)},
		{"details in pieces without an index", ended(details(`{"type":"reasoning.text","text":"ab"}`), details(`{"type":"reasoning.text","text":"cd"}`), content("ok")), nil,
			lines("think abcd", "text ok", `finish stop from reasoning_details details [{"type":"reasoning.text","text":"abcd"}]`)},
		{"encrypted details are not shown", ended(details(`{ "type":"reasoning.encrypted", "data":"AA\/A=" }`), content("ok")), nil,
			lines("text ok", `finish stop from reasoning_details details [{ "type":"reasoning.encrypted", "data":"AA\/A=" }]`)},
		{"details of a whole message keep their bytes", `{"choices":[{"message":{"content":"ok","reasoning_details":[ {"type":"reasoning.text","text":"a","index":0}, {"type":"reasoning.text","text":"b","index":0} ]}}]}`, nil,
			lines("think ab", "text ok", `finish stop from reasoning_details details [ {"type":"reasoning.text","text":"a","index":0}, {"type":"reasoning.text","text":"b","index":0} ]`)},
		{"wrong types", ended(d(`{"reasoning_content":null,"reasoning":7,"thinking":{},"reasoning_details":"x","content":"ok"}`)), nil, lines("text ok", "finish stop")},
		{"reasoning and tags", ended(d(`{"content":"<think>a</think>b","reasoning_content":"a"}`)), nil, lines("think a", "text b", "finish stop from reasoning_content")},
		{"reasoning that used up the answer", d(`{"reasoning_content":"hm"}`) + d(`{"content":""}`) + finish("length") + `data: {"choices":[],"usage":{"prompt_tokens":37,"completion_tokens":8153,"completion_tokens_details":{"reasoning_tokens":8153}}}` + "\n\n" + done, nil,
			lines("think hm", "usage 37 8153 cached 0 reasoning 8153", "finish length from reasoning_content")},
	}
}

// thinkCases are about tags inside the content.
func thinkCases() []streamCase {
	var cases []streamCase
	add := func(name string, opts *StreamOptions, want string, texts ...string) {
		cases = append(cases, streamCase{name, ended(contents(texts...)), opts, want})
	}
	far := strings.Repeat("x", orphanBytes)
	near := strings.Repeat("x", orphanBytes-1)
	add("a block", nil, lines("think plan", "text RESULT", "finish stop from tags"), "<think>plan</think>RESULT")
	add("tags split", nil, lines("think x", "text y", "finish stop from tags"), "<think", ">x</th", "ink>y")
	add("white space around the tags", nil, lines("think \nx\n", "text y\n", "finish stop from tags"), "\n\n<think>\nx\n</think>\n", "\ny\n")
	add("two blocks", nil, lines("think ab", "text c", "finish stop from tags"), "<think>a</think>\n<think>b</think>c")
	add("an empty block", nil, lines("text y", "finish stop"), "<think></think>\n\ny")
	add("unclosed", nil, lines("think The result is 4.", "finish stop from tags"), "<think>The result", " is 4.")
	add("unclosed, the beginning of a closing tag", nil, lines("think a</thin", "finish stop from tags"), "<think>a</thin")
	add("unclosed inside an answer", nil, lines("text pre ", "think still thinking", "finish stop from tags"), "pre <think>still", " thinking")
	add("closed inside an answer", nil, lines("text say <think>aloud</think> and (<think>)", "finish stop"), "say <think>aloud</thi", "nk> and (<think>)")
	add("quoted in a span", nil, lines("text the ` <think>` tag", "finish stop"), "the ` <think>` tag")
	add("quoted in a fence", nil, lines("text ```\n <think>x\n```", "finish stop"), "```\n <think>x\n```")
	add("not after white space", nil, lines("text a<think>b", "finish stop"), "a<think>b")
	add("the beginning of a tag alone", nil, lines("text <thi", "finish stop"), "<thi")
	add("the beginning of a tag behind white space", nil, lines("text  <thi", "finish stop"), " <thi")
	add("the beginning of a tag behind a block", nil, lines("think a", "text <thi", "finish stop from tags"), "<think>a</think> <thi")
	add("a literal less-than", nil, lines("text 1 < 2 <th", "finish stop"), "1 <", " 2 <th")
	add("no tags", nil, lines("text Okay, so I look first.", "finish stop"), "Okay, so I", " look first.")
	add("a closing tag of a model that is not known to reason", nil, lines("text plan</think>Done", "finish stop"), "plan</think>Done")

	add("an orphan", thinker(), lines("think plan...", "text Done", "finish stop from tags"), "plan...</th", "ink>\n\nDone")
	add("an orphan with nothing before it", thinker(), lines("text Done", "finish stop"), "\n</think>\n\nDone")
	add("a line feed decides", thinker(), lines("text plan\n</think>Done", "finish stop"), "plan\n</think>Done")
	add("the length decides, near", thinker(), lines("think "+near, "text Done", "finish stop from tags"), near+"</think>Done")
	add("the length decides, far", thinker(), lines("text "+far+"</think>Done", "finish stop"), far+"</think>Done")
	add("an orphan in code", thinker(), lines("text the `</think>` tag", "finish stop"), "the `</think>` tag")
	add("not an orphan", thinker(), lines("text a <think>b</think> c", "finish stop"), "a <think>b</think> c")
	add("an answer held back to its end", thinker(), lines("text short", "finish stop"), "sho", "rt")
	add("a block of a model that reasons", thinker(), lines("think x", "text y</think>", "finish stop from tags"), "<think>x</think>y</think>")
	cases = append(cases,
		streamCase{"the engine separates already", ended(delta(`{"reasoning_content":"hm"}`), content("plan</think>Done")), thinker(),
			lines("think hm", "text plan</think>Done", "finish stop from reasoning_content")},
		streamCase{"a stray tag although the engine separates", ended(delta(`{"reasoning_content":"hm"}`), content("</think>\nDone")), thinker(),
			lines("think hm", "text Done", "finish stop from reasoning_content")},
		streamCase{"an orphan far in a whole message", `{"choices":[{"message":{"content":"one\ntwo` + far + `</think>\n\nDone"},"finish_reason":"stop"}]}`, thinker(),
			lines("think one\ntwo"+far, "text Done", "finish stop from tags")},
		streamCase{"the stream breaks while text is held back", content("short"), thinker(), lines("text short", closedEarly)},
		streamCase{"the stream breaks inside a block", content("<think>hm </th"), nil, lines("think hm </th", closedEarly)},
		streamCase{"white space before a call", content("\n\n") + calls(`{"index":0,"id":"a","function":{"name":"stat","arguments":"{}"}}`) + finish("tool_calls") + done, nil,
			lines("call a stat {}", "finish tool_calls")},
	)
	return cases
}

// While text streams, no more is held back than may still become a tag.
func TestTextIsNotHeldBack(t *testing.T) {
	tests := []struct {
		in   []string
		want []string // what has been forwarded after each piece
	}{
		{[]string{"a < b", " and"}, []string{"a < b", "a < b and"}},
		{[]string{"a <", " b"}, []string{"a ", "a < b"}},
		{[]string{"a <thi", "s>"}, []string{"a ", "a <this>"}},
		{[]string{"a[T", "]"}, []string{"a", "a[T]"}},
		{[]string{"x<", "y"}, []string{"x", "x<y"}},
	}
	for _, tt := range tests {
		var got string
		m := markupScanner{out: func(s string) { got += s }}
		s := thinkSplitter{out: func(text string, reasoning bool) { m.write(text) }}
		for i, piece := range tt.in {
			s.write(piece)
			if got != tt.want[i] {
				t.Errorf("%q: %q was forwarded after piece %d, want %q", tt.in, got, i, tt.want[i])
			}
		}
	}
}

func TestCodeTracker(t *testing.T) {
	// A caret stands before each byte that is in code.
	tests := []string{
		"a `^b^ ^c` d", "``^a^`^b`` c", "~~~\n^x\n~~~\ny", "```go\n^x\n```\ny", "```^x``` y",
		"    ``` ^x", "   ```\n^x\n   ```\ny", "a ``` ^b\nc", "~~~~\n^x\n~~~\n^y\n~~~~\nz", "a ~~~ b", "```\n^x\n```^z\n^y",
	}
	for _, tt := range tests {
		var c codeTracker
		code := false
		for i := range len(tt) {
			if tt[i] == '^' {
				code = true
				continue
			}
			if b := tt[i]; 'a' <= b && b <= 'z' && tt[max(0, i-1)] != 'g' && b != 'g' && b != 'o' {
				if c.inCode() != code {
					t.Errorf("%q, byte %d: in code %v", tt, i, !code)
				}
			}
			c.writeByte(tt[i])
			code = false
		}
	}
}
