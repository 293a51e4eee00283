package openai

import (
	"errors"
	"strconv"
	"strings"
	"testing"
)

// toolCallCases are about which deltas make up which call.
func toolCallCases() []streamCase {
	end := finish("tool_calls") + done
	one := func(want string, chunks ...string) (string, *StreamOptions, string) {
		return strings.Join(chunks, "") + end, nil, lines(want, "finish tool_calls")
	}
	c := func(name string, body string, opts *StreamOptions, want string) streamCase {
		return streamCase{name, body, opts, want}
	}
	var cases []streamCase
	add := func(name, want string, chunks ...string) {
		body, opts, w := one(want, chunks...)
		cases = append(cases, c(name, body, opts, w))
	}
	add("one a chunk without an index", lines("call a stat {}", "call b list {}"),
		calls(`{"id":"a","function":{"name":"stat","arguments":"{}"}}`),
		calls(`{"id":"b","function":{"name":"list","arguments":"{}"}}`))
	add("an index of null", "call a stat {}",
		calls(`{"index":null,"id":"a","function":{"name":"stat","arguments":"{}"}}`))
	add("pieces without index and id", `call a stat {"q":"z"}`,
		calls(`{"id":"a","function":{"name":"stat","arguments":"{\"q\":"}}`),
		calls(`{"function":{"arguments":"\"z\"}"}}`))
	add("head without index, empty arguments", `call a stat {"p":"."}`,
		calls(`{"id":"a","type":"function","function":{"name":"stat","arguments":""}}`),
		calls(`{"function":{"arguments":"{\"p\":\".\"}"}}`))
	add("three calls of one index", lines(`call k1 stat {"p":"A"}`, `call k2 stat {"p":"B"}`, `call k3 stat {"p":"C"}`),
		calls(`{"index":0,"id":"k1","function":{"name":"stat","arguments":"{\"p\":\"A\"}"}}`),
		calls(`{"index":0,"id":"k2","function":{"name":"stat","arguments":"{\"p\":\"B\"}"}}`),
		calls(`{"index":0,"id":"k3","function":{"name":"stat","arguments":"{\"p\":\"C\"}"}}`))
	add("an index used twice, then a piece of the first call", lines(`call k1 stat {"p":"A"} `, `call k2 stat {"p":"B"}`),
		calls(`{"index":0,"id":"k1","function":{"name":"stat","arguments":"{\"p\":\"A\"}"}}`),
		calls(`{"index":0,"id":"k2","function":{"name":"stat","arguments":"{\"p\":"}}`),
		calls(`{"index":0,"id":"k1","function":{"arguments":" "}}`),
		calls(`{"index":0,"id":"k2","function":{"arguments":"\"B\"}"}}`))
	add("the id of one call changes", `call tmp-1 shell {"cmd":"ls"}`,
		calls(`{"index":0,"id":"tmp-1","function":{"name":"shell","arguments":""}}`),
		calls(`{"index":0,"id":"real-9","function":{"arguments":"{\"cmd\":"}}`),
		calls(`{"index":0,"id":"real-9","function":{"arguments":"\"ls\"}"}}`))
	add("an index first, then only the id", `call r1 stat {"a":1}`,
		calls(`{"index":1,"id":"r1","function":{"name":"stat","arguments":"{\"a\""}}`),
		calls(`{"id":"r1","function":{"arguments":":1}"}}`))
	add("the id first, then an index", `call r1 stat {"a":1}`,
		calls(`{"id":"r1","function":{"name":"stat","arguments":"{\"a\""}}`),
		calls(`{"index":0,"id":"r1","function":{"arguments":":"}}`),
		calls(`{"index":0,"function":{"arguments":"1}"}}`))
	add("a call without an index, then one with", lines("call a stat {}", "call  list {}"),
		calls(`{"id":"a","function":{"name":"stat","arguments":"{}"}}`),
		calls(`{"index":1,"function":{"name":"list","arguments":"{}"}}`))
	add("head and piece in one chunk", `call r1 stat {"a":1}`,
		calls(`{"index":0,"id":"r1","function":{"name":"stat","arguments":""}}`, `{"index":0,"function":{"arguments":"{\"a\":"}}`),
		calls(`{"index":0,"function":{"arguments":"1}"}}`))
	add("interleaved", lines(`call p stat {"a":1}`, `call q list {"b":2}`),
		calls(`{"index":0,"id":"p","function":{"name":"stat","arguments":""}}`),
		calls(`{"index":1,"id":"q","function":{"name":"list","arguments":""}}`),
		calls(`{"index":0,"function":{"arguments":"{\"a\""}}`), calls(`{"index":1,"function":{"arguments":"{\"b\""}}`),
		calls(`{"index":0,"function":{"arguments":":1}"}}`), calls(`{"index":1,"function":{"arguments":":2}"}}`))
	add("missing and empty ids", lines("call  stat {}", "call  stat {}"),
		calls(`{"index":0,"id":"","function":{"name":"stat","arguments":"{}"}}`, `{"index":1,"id":null,"function":{"name":"stat","arguments":"{}"}}`))
	add("the name repeated, then null", `call a shell {"c":1}`,
		calls(`{"index":0,"id":"a","function":{"name":"shell","arguments":""}}`),
		calls(`{"index":0,"function":{"name":"shell","arguments":"{\"c\":"}}`),
		calls(`{"index":0,"function":{"name":null,"arguments":"1}"}}`))
	add("the name in pieces", "call a list_dir {}",
		calls(`{"index":0,"id":"a","function":{"name":"list","arguments":""}}`),
		calls(`{"index":0,"function":{"name":"_dir","arguments":"{}"}}`))
	add("the name late", `call a shell {"command":"ls"}`,
		calls(`{"index":0,"id":"a","function":{"arguments":"{\"command\":"}}`),
		calls(`{"index":0,"function":{"name":"shell","arguments":"\"ls\"}"}}`))
	add("an empty name first", "call a shell {}",
		calls(`{"index":0,"id":"a","function":{"name":"","arguments":""}}`),
		calls(`{"index":0,"function":{"name":"shell","arguments":"{}"}}`))
	add("the name again with the last piece, id null", `call a stat {"x":1}`,
		calls(`{"index":0,"id":"a","function":{"name":"stat","arguments":"{\"x\":1"}}`),
		calls(`{"index":0,"id":null,"function":{"name":"stat","arguments":"}"}}`))
	add("template markup behind the name", "call a stat {}",
		calls(`{"index":0,"id":"a","function":{"name":"stat<|channel|>json","arguments":"{}"}}`))
	add("arguments as an object", `call a stat {"path":"x.go","n":2.0}`,
		calls(`{"index":0,"id":"a","function":{"name":"stat","arguments":{"path":"x.go","n":2.0}}}`))
	add("arguments of null", "call a stat {}", calls(`{"index":0,"id":"a","function":{"name":"stat","arguments":null}}`))
	add("the text null as arguments", "call a stat {}", calls(`{"index":0,"id":"a","function":{"name":"stat","arguments":" null "}}`))
	add("the whole call once more", `call a stat {"p":1}`,
		calls(`{"index":0,"id":"a","function":{"name":"stat","arguments":"{\"p\":"}}`),
		calls(`{"index":0,"function":{"arguments":"1}"}}`),
		calls(`{"index":0,"id":"a","function":{"name":"stat","arguments":"{\"p\":1}"}}`))
	add("a signature beside the function", `call t1 stat {} extra {"extra_content":{"maker":{"signature":"S2"}}}`,
		calls(`{"index":0,"id":"t1","type":"function","function":{"name":"stat","arguments":"{}"},"extra_content":{"maker":{"signature":"S1"}}}`),
		calls(`{"index":0,"extra_content":{"maker":{"signature":"S2"}},"note":null}`))
	add("a signature inside the function", `call t1 stat {} extra {"function":{"signature":"S3"}}`,
		calls(`{"index":0,"id":"t1","function":{"name":"stat","arguments":"{}","signature":"S3"}}`))
	add("nothing in an entry", "call a stat {}",
		calls(`{"index":0,"id":"a","function":{"name":"stat","arguments":"{}"}}`, `{"index":1}`, `7`, `{"index":2,"id":"x","function":{"name":" "}}`))
	add("text beside a chunk with arguments as an object", lines(`call a stat {"p":"x"}`),
		calls(`{"index":0,"id":"a","function":{"name":"stat","arguments":{"p":"x"}}}`))

	legacy := delta(`{"function_call":{"name":"stat","arguments":"{\"a\""}}`) + delta(`{"function_call":{"arguments":":1}"}}`)
	cut := calls(`{"index":0,"id":"a","function":{"name":"write","arguments":"{\"path\":\"a.md\",\"content\":\"# Title\\nfirst ha"}}`)
	return append(cases,
		c("text around a call", contents("let me ", "see")+calls(`{"index":0,"id":"a","function":{"name":"stat","arguments":"{}"}}`)+content(" now")+end, nil,
			lines("text let me see now", "call a stat {}", "finish tool_calls")),
		c("the form before tool_calls", legacy+finish("function_call")+done, nil, lines(`call  stat {"a":1}`, "finish tool_calls raw function_call")),
		c("cut by the length", cut+finish("length")+done, nil, lines(`call a write {"path":"a.md","content":"# Title\nfirst ha`, "finish length")),
		c("cut, called complete", cut+finish("stop")+done, nil, lines(`call a write {"path":"a.md","content":"# Title\nfirst ha`, "finish tool_calls raw stop")),
	)
}

const hint = "; the engine did not parse it; turn on its tool parser: llama.cpp --jinja, vLLM --enable-auto-tool-choice with --tool-call-parser, " +
	"SGLang --tool-call-parser, Ollama and LM Studio a model whose template knows tools"

// markupCases are about tool calls that were printed as text.
func markupCases() []streamCase {
	printed := func(marker string) string {
		return "error MALFORMED_RESPONSE: the model printed a call of the tool run_line (" + marker + ") as text" + hint
	}
	nameless := func(marker string) string {
		return "error MALFORMED_RESPONSE: the model printed a tool call (" + marker + ") as text" + hint
	}
	text := func(s string) string { return lines("text "+s, "finish stop") }
	var cases []streamCase
	add := func(name, want string, texts ...string) {
		cases = append(cases, streamCase{name, ended(contents(texts...)), offer("run_line", "read"), want})
	}
	add("XML in pieces", printed("<tool_call>"), "<tool", "_call>\n<func", "tion=run_line>\n<parameter=line>\ntrue\n</para", "meter>\n</function>\n</tool_", "call>")
	add("JSON", lines("text Sure. ", printed("<tool_call>")), "Sure. <tool_call>\n{\"arguments\": {\"line\": \"true\"}, \"name\" : \"run_line\"}\n</tool_call>")
	add("a bare name", printed("<tool_call>"), "<tool_call>run_line\n<arg_key>line</arg_key>")
	add("a function alone", printed("<function="), "<function=run_line>{\"line\": \"true\"}</function>")
	add("an invocation", printed("<function_calls>"), "<function_calls>\n<invoke name=\"run_line\">\n</invoke>")
	add("an invocation alone", printed(`<invoke name="`), "<invoke name=\"run_line\">\n</invoke>")
	add("Mistral, name and arguments", printed("[TOOL_CALLS]"), "[TOOL_CALLS]run_line[ARGS]{\"line\":\".\"}")
	add("Mistral, a list", printed("[TOOL_CALLS]"), "[TOOL_CALLS] [{\"name\":\"run_line\",\"arguments\":{}}]")
	add("Kimi", printed("<|tool_calls_section_begin|>"), "<|tool_calls_section_begin|><|tool_call_begin|>functions.run_line:0<|tool_call_argument_begin|>{}")
	add("DeepSeek", printed("<｜tool▁calls▁begin｜>"), "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>run_line\n")
	add("DSML, a block", printed("<｜DSML｜"), "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"run_line\">\n</｜DSML｜invoke>")
	add("DSML, bare", printed("<｜DSML｜"), "<｜DSML｜invoke name=\"run_line\">")
	add("DSML, cut", printed("<｜DSML｜"), "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"run_line\">tr")
	add("DSML, double bars in two pieces, no name", lines("text hi ", nameless("<‖DSML‖")), "hi <‖D", "SML‖tool_calls>")
	add("DSML, other bars", nameless("<｜｜DSML｜｜"), "<｜｜DSML｜｜tool_calls>")
	add("DSML, ASCII bars", nameless("<|DSML|"), "<|DSML|tool_calls>")
	add("harmony commentary without a name", nameless("<|channel|>"), "<|channel|>commentary<|message|>{\"path\":\"/\"}<|end|>")
	add("harmony with an address", printed("<|channel|>"), "<|channel|>analysis to=functions.run_line <|message|>{}")
	add("harmony at the end", nameless("<|channel|>"), "<|channel|>commentary")

	add("harmony, addressed to a tool that is not on offer", text("<|channel|>analysis to=functions.fly <|message|>{}"), "<|channel|>analysis to=functions.fly <|message|>{}")
	add("harmony, another channel", text("<|channel|>final<|message|>hello"), "<|channel|>final<|message|>hello")
	add("a tool that is not on offer", text("<tool_call>\n{\"name\": \"fly\"}\n</tool_call>"), "<tool_call>\n{\"name\": \"fly\"}\n</tool_call>")
	add("talk about the tag", text("Use <tool_call> tags to read. [TOOL_CALLS] too, <function=x> no."), "Use <tool_call> tags to read. [TOOL_CALLS] too, <function=x> no.")
	add("talk with a tool's name", text("Write <tool_call> read the file"), "Write <tool_call> read the file")
	add("in a fence", text("```xml\n<tool_call>\n{\"name\": \"run_line\"}\n```\ndone"), "```xml\n<tool", "_call>\n{\"name\": \"run_line\"}\n```\ndone")
	add("in a span", text("as `<tool_call>{\"name\": \"run_line\"}` shows"), "as `<tool_call>{\"name\": \"run_line\"}` shows")
	add("behind a fence", lines("text ~~~\ncode\n~~~\n", printed("<tool_call>")), "~~~\ncode\n~~~\n<tool_call>{\"name\": \"run_line\"}")
	add("the beginning of a marker at the end", text("so [TOOL_"), "so [TOOL_")
	add("undecided at the end", text("so <tool_call>\n"), "so <tool_call>\n")
	add("undecided for long", text("<tool_call>{"+strings.Repeat("x", 5000)), "<tool_call>{"+strings.Repeat("x", 5000))

	return append(cases,
		streamCase{"no tools on offer", ended(content("<｜DSML｜tool_calls> <tool_call>{\"name\": \"run_line\"}")), nil, text("<｜DSML｜tool_calls> <tool_call>{\"name\": \"run_line\"}")},
		streamCase{"a real call beside it", content("<tool_call>{\"name\": \"run_line\"}") + calls(`{"index":0,"id":"a","function":{"name":"run_line","arguments":"{}"}}`) + finish("tool_calls") + done,
			offer("run_line"), lines("call a run_line {}", "finish tool_calls")},
		streamCase{"cut by the length", content("<tool_call>{\"name\": \"run_line\"") + finish("length") + done, offer("run_line"), printed("<tool_call>")},
		streamCase{"the stream broke", content("x <tool_call>{\"name\": \"run_line\""), offer("run_line"), lines("text x ", closedEarly)},
	)
}

func TestPrintedCallKeepsItsText(t *testing.T) {
	markup := "<tool_call>\n{\"name\": \"run_line\"}\n</tool_call>"
	_, err := record(DecodeStream(strings.NewReader(ended(contents("a ", markup[:15], markup[15:]))), offer("run_line")))
	var printed *PrintedCallError
	if !errors.As(err, &printed) || printed.Text != markup || printed.Tool != "run_line" || printed.Marker != "<tool_call>" {
		t.Errorf("cause %+v of %v", printed, err)
	}
	_, err = record(DecodeStream(strings.NewReader(ended(content(markup+strings.Repeat("é", maxMarkupBytes)))), offer("run_line")))
	if !errors.As(err, &printed) || len(printed.Text) > maxMarkupBytes || !strings.HasPrefix(printed.Text, markup) {
		t.Errorf("%d bytes of markup kept", len(printed.Text))
	}
}

func TestToolCallBounds(t *testing.T) {
	var b callBuilder
	entry := func(s string) {
		v, _, bad := parseValue([]byte(s), 0)
		if bad != nil {
			t.Fatal(bad)
		}
		b.add(v, "")
	}
	for range maxCalls + 1 {
		entry(`{"id":"` + strings.Repeat("i", len(b.calls)+1) + `","function":{"name":"f","arguments":"{}"}}`)
	}
	if got := len(b.finish()); got != maxCalls || !b.tooMany {
		t.Errorf("%d calls, want %d", got, maxCalls)
	}
	var body strings.Builder
	for i := range maxCalls + 1 {
		if i == maxCalls {
			if got := summary(record(DecodeStream(strings.NewReader(body.String()+finish("stop")), nil))); !strings.HasPrefix(got, "call ") {
				t.Errorf("%d calls: %.80s", i, got)
			}
		}
		body.WriteString(calls(`{"index":` + strconv.Itoa(i) + `,"function":{"name":"f","arguments":"{}"}}`))
	}
	if got, want := summary(record(DecodeStream(strings.NewReader(body.String()), nil))), "error MALFORMED_RESPONSE: the answer has more than 256 tool calls"; got != want {
		t.Errorf("got %.80s, want %s", got, want)
	}
	b = callBuilder{}
	for i := range maxExtra + 1 {
		entry(`{"index":0,"function":{"name":"f"},"` + strings.Repeat("m", i+1) + `":1}`)
	}
	if got := len(b.calls[0].extra); got != maxExtra {
		t.Errorf("%d unknown members, want %d", got, maxExtra)
	}
}
