package openai

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
)

var (
	here  = llm.Target{Provider: "barn", Model: "brook-4b"}
	there = llm.Target{Provider: "barn", Model: "ridge-9b"}
)

// dot is a picture of one pixel.
func dot(t testing.TB) *llm.Image {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	if err != nil {
		t.Fatal(err)
	}
	img, err := llm.NewImage("dot.png", data)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

var grep = llm.NewToolDef("grep", "Search <files>", []byte(`{"type":"object","properties":{"pattern":{"type":"string","pattern":"^.+$"},
	"ids":{"type":"array","items":{"type":"string","pattern":"^\\d+$","format":"uuid"}}},"required":["pattern"]}`))

// conversation is a history with everything that a message can have.
func conversation(t testing.TB) *llm.Request {
	answer := llm.AssistantText("", llm.ToolCall{ID: "k1", Name: "grep", Arguments: `{"pattern": "a<b"}`, Extra: json.RawMessage(`{"extra_content":{"b":1,"a":"</s>"}}`)},
		llm.ToolCall{ID: "k2", Name: "grep", Arguments: `{"pattern":"cut`})
	answer.Origin = here
	answer.Reasoning = &llm.Reasoning{Text: "first look", Field: "reasoning", Details: json.RawMessage(`[ {"type":"reasoning.text", "text":"first look", "signature":"S\/1"} ]`)}
	final := llm.AssistantText("Two lines match.")
	final.Origin = here
	final.Reasoning = &llm.Reasoning{Text: "done", Field: "reasoning"}
	return &llm.Request{
		Snapshot: llm.Snapshot{Target: here, Effort: llm.Climb},
		System:   "You are \"drover\".\nBe brief.",
		Tools:    []llm.ToolDef{grep},
		Messages: []llm.Message{
			llm.UserText("Find a/b & <c>"),
			answer,
			llm.ToolText("k1", "x.go:1: a<b"),
			llm.ToolText("k2", ""),
			final,
			{Role: llm.User, Parts: []llm.Part{llm.Text("And "), dot(t), llm.Text("this?")}},
		},
		MaxTokens: 2048,
	}
}

func encode(t testing.TB, req *llm.Request) string {
	t.Helper()
	body, err := EncodeRequest(req)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(body) {
		t.Fatalf("no JSON: %s", body)
	}
	return string(body)
}

func TestEncodeRequestGolden(t *testing.T) {
	effort := func(values ...string) llm.Capabilities {
		return llm.Capabilities{
			Reasoning:       llm.Fact{Support: llm.Supported},
			ReasoningEffort: llm.EffortField{Advertised: true, Values: values},
		}
	}
	tests := []struct {
		name   string
		change func(*llm.Request)
	}{
		{"generic", func(*llm.Request) {}},
		{"effort", func(r *llm.Request) { r.Snapshot.Capabilities = effort("none", "low", "medium", "high") }},
		{"qwen", func(r *llm.Request) { r.Snapshot.Profile = llm.Qwen }},
		{"qwen-graze", func(r *llm.Request) { r.Snapshot.Profile, r.Snapshot.Effort = llm.Qwen, llm.Graze }},
		{"deepseek", func(r *llm.Request) { r.Snapshot.Profile = llm.DeepSeek }},
		{"deepseek-graze", func(r *llm.Request) { r.Snapshot.Profile, r.Snapshot.Effort = llm.DeepSeek, llm.Graze }},
		{"replay", func(r *llm.Request) { r.Snapshot.Profile = llm.Replay }},
		{"replay-elsewhere", func(r *llm.Request) { r.Snapshot.Profile, r.Snapshot.Target = llm.Replay, there }},
		{"refusals", func(r *llm.Request) {
			for _, o := range []llm.Refusal{llm.RefusedSampling, llm.RefusedStreamOptions, llm.RefusedMaxTokens, llm.RefusedNullContent, llm.RefusedPattern, llm.RefusedImages} {
				r.Snapshot.Refusals = r.Snapshot.Refusals.With(o)
			}
		}},
		{"least", func(r *llm.Request) {
			r.Snapshot.EngineSampling = true
			r.Snapshot.Capabilities.Tools.Support = llm.Unsupported
			r.System, r.MaxTokens, r.Messages = "", 0, r.Messages[:1]
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := conversation(t)
			tt.change(req)
			got := encode(t, req) + "\n"
			file := filepath.Join("testdata", "request", tt.name+".json")
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%swant\n%s", got, want)
			}
			if again := encode(t, req) + "\n"; again != got {
				t.Error("the same request gives other bytes")
			}
		})
	}
}

// object reads a body for assertions about single members.
func object(t testing.TB, body string) value {
	t.Helper()
	v, bad := parseDocument([]byte(body))
	if bad != nil {
		t.Fatal(bad)
	}
	return v
}

// sent gives the messages of a request as they are sent.
func sent(t testing.TB, req *llm.Request) []value {
	t.Helper()
	return slices.Collect(object(t, encode(t, req)).get("messages").elements())
}

func TestEncodeRequestMembers(t *testing.T) {
	capable := llm.Capabilities{Reasoning: llm.Fact{Support: llm.Supported},
		ReasoningEffort: llm.EffortField{Advertised: true, Values: []string{"none", "low", "medium", "high", "max"}}}
	tests := []struct {
		name   string
		change func(*llm.Request)
		path   []string
		want   string // raw, "" for absent
	}{
		{"streamed", nil, []string{"stream"}, "true"},
		{"usage asked for", nil, []string{"stream_options", "include_usage"}, "true"},
		{"usage refused", refuse(llm.RefusedStreamOptions), []string{"stream_options"}, ""},
		{"output limit", nil, []string{"max_tokens"}, "2048"},
		{"output limit renamed", refuse(llm.RefusedMaxTokens), []string{"max_completion_tokens"}, "2048"},
		{"output limit renamed, old name", refuse(llm.RefusedMaxTokens), []string{"max_tokens"}, ""},
		{"no output limit", func(r *llm.Request) { r.MaxTokens = 0 }, []string{"max_tokens"}, ""},
		{"temperature", nil, []string{"temperature"}, "0.6"},
		{"temperature of little effort", func(r *llm.Request) { r.Snapshot.Effort = llm.Graze }, []string{"temperature"}, "0.7"},
		{"temperature refused", refuse(llm.RefusedSampling), []string{"temperature"}, ""},
		{"temperature left to the engine", func(r *llm.Request) { r.Snapshot.EngineSampling = true }, []string{"temperature"}, ""},
		{"no tools", func(r *llm.Request) { r.Tools = nil }, []string{"tools"}, ""},
		{"tools unsupported", func(r *llm.Request) { r.Snapshot.Capabilities.Tools.Support = llm.Unsupported }, []string{"tools"}, ""},
		{"effort unproven", nil, []string{"reasoning_effort"}, ""},
		{"effort proven", func(r *llm.Request) { r.Snapshot.Capabilities = capable }, []string{"reasoning_effort"}, `"high"`},
		{"least effort", func(r *llm.Request) { r.Snapshot.Capabilities, r.Snapshot.Effort = capable, llm.Graze }, []string{"reasoning_effort"}, `"none"`},
		{"most effort", func(r *llm.Request) { r.Snapshot.Capabilities, r.Snapshot.Effort = capable, llm.Summit }, []string{"reasoning_effort"}, `"max"`},
		{"effort without reasoning", func(r *llm.Request) {
			r.Snapshot.Capabilities = capable
			r.Snapshot.Capabilities.Reasoning.Support = llm.Unknown
		}, []string{"reasoning_effort"}, ""},
		{"effort refused", func(r *llm.Request) { r.Snapshot.Capabilities = capable; refuse(llm.RefusedEffort)(r) }, []string{"reasoning_effort"}, ""},
		{"one effort refused", func(r *llm.Request) {
			r.Snapshot.Capabilities = capable
			refuse(llm.RefusedEffortValue("high"))(r)
		}, []string{"reasoning_effort"}, `"medium"`},
		{"levels refused", func(r *llm.Request) { r.Snapshot.Capabilities = capable; refuse(llm.RefusedEffortLevels)(r) }, []string{"reasoning_effort"}, ""},
		{"levels refused, none stays", func(r *llm.Request) {
			r.Snapshot.Capabilities, r.Snapshot.Effort = capable, llm.Graze
			refuse(llm.RefusedEffortLevels)(r)
		}, []string{"reasoning_effort"}, `"none"`},
		{"the template's switch", profile(llm.Qwen, llm.Trot), []string{"chat_template_kwargs"}, `{"enable_thinking":true,"preserve_thinking":true}`},
		{"the template's switch, off", profile(llm.Qwen, llm.Graze), []string{"chat_template_kwargs", "enable_thinking"}, "false"},
		{"no switch", nil, []string{"chat_template_kwargs"}, ""},
		{"the API's switch", profile(llm.DeepSeek, llm.Summit), []string{"thinking"}, `{"type":"enabled"}`},
		{"the API's switch, off", profile(llm.DeepSeek, llm.Graze), []string{"thinking"}, `{"type":"disabled"}`},
		{"the API's effort", profile(llm.DeepSeek, llm.Summit), []string{"reasoning_effort"}, `"max"`},
		{"the API's effort, nearest", profile(llm.DeepSeek, llm.Trot), []string{"reasoning_effort"}, `"low"`},
		{"the API's effort, off", profile(llm.DeepSeek, llm.Graze), []string{"reasoning_effort"}, ""},
		{"the API's effort, advertised", func(r *llm.Request) {
			profile(llm.DeepSeek, llm.Trot)(r)
			r.Snapshot.Capabilities = capable
		}, []string{"reasoning_effort"}, `"medium"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := conversation(t)
			if tt.change != nil {
				tt.change(req)
			}
			if got := object(t, encode(t, req)).path(tt.path...); string(got.raw) != tt.want {
				t.Errorf("%s = %q, want %q", strings.Join(tt.path, "."), got.raw, tt.want)
			}
		})
	}
}

func refuse(options ...llm.Refusal) func(*llm.Request) {
	return func(r *llm.Request) {
		for _, o := range options {
			r.Snapshot.Refusals = r.Snapshot.Refusals.With(o)
		}
	}
}

func profile(p llm.Profile, e llm.Effort) func(*llm.Request) {
	return func(r *llm.Request) { r.Snapshot.Profile, r.Snapshot.Effort = p, e }
}

func TestEncodeContentOfCalls(t *testing.T) {
	tests := []struct {
		name    string
		profile llm.Profile
		refused []llm.Refusal
		want    string
	}{
		{"generic", llm.Generic, nil, "null"},
		{"null refused", llm.Generic, []llm.Refusal{llm.RefusedNullContent}, `""`},
		{"deepseek", llm.DeepSeek, nil, `""`},
		{"empty refused", llm.DeepSeek, []llm.Refusal{llm.RefusedEmptyContent}, "null"},
		{"both refused", llm.Generic, []llm.Refusal{llm.RefusedEmptyContent, llm.RefusedNullContent}, `""`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := conversation(t)
			req.Snapshot.Profile = tt.profile
			refuse(tt.refused...)(req)
			if got := string(sent(t, req)[2].get("content").raw); got != tt.want {
				t.Errorf("content %s, want %s", got, tt.want)
			}
		})
	}
}

// TestEncodePromptsInARow: they are sent as they are, and as one where the engine
// wants the roles to alternate.
func TestEncodePromptsInARow(t *testing.T) {
	picture, err := llm.NewImage("dot.gif", []byte("GIF89a\x01\x00\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x00;"))
	if err != nil {
		t.Fatal(err)
	}
	shown := llm.UserText("three")
	shown.Parts = append([]llm.Part{picture}, shown.Parts...)
	messages := []llm.Message{
		llm.UserText("one"), llm.AssistantText(""), llm.UserText("two"), llm.AssistantText("yes"),
		llm.UserText("a"), shown, llm.UserText("four"),
	}
	const one = `"data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAACADs="`
	for _, tt := range []struct {
		refused []llm.Refusal
		want    string
	}{
		{nil, `user "one" | user "two" | assistant "yes" | user "a" | ` +
			`user [{"type":"image_url","image_url":{"url":` + one + `}},{"type":"text","text":"three"}] | user "four"`},
		{[]llm.Refusal{llm.RefusedUserRuns}, `user "one\n\ntwo" | assistant "yes" | ` +
			`user [{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":` + one + `}},{"type":"text","text":"three"},{"type":"text","text":"four"}]`},
		{[]llm.Refusal{llm.RefusedUserRuns, llm.RefusedImages}, `user "one\n\ntwo" | assistant "yes" | ` +
			`user "a\n\n[image 1 not sent: m takes no images]\nthree\n\nfour"`},
		{[]llm.Refusal{llm.RefusedUserRuns, llm.RefusedImage(picture)}, `user "one\n\ntwo" | assistant "yes" | ` +
			`user "a\n\n[image 1 not sent: it is damaged]\nthree\n\nfour"`},
	} {
		req := &llm.Request{Messages: messages}
		req.Snapshot.Target = llm.Target{Provider: "p", Model: "m"}
		refuse(tt.refused...)(req)
		var got []string
		for _, m := range sent(t, req) {
			got = append(got, m.get("role").str()+" "+string(m.get("content").raw))
		}
		if text := strings.Join(got, " | "); text != tt.want {
			t.Errorf("refused %v:\n%s\nwant\n%s", tt.refused, text, tt.want)
		}
	}
}

// Of several images the damaged ones stay behind, each at its number.
func TestDamagedImages(t *testing.T) {
	pixel := func(gray byte) *llm.Image {
		data := []byte("GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00" + string(gray) + "\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;")
		img, err := llm.NewImage("", data)
		if err != nil {
			t.Fatal(err)
		}
		return img
	}
	req := &llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{pixel(1), llm.Text("Which?"), pixel(2), pixel(3)}}}}
	refuse(llm.RefusedImage(pixel(1)), llm.RefusedImage(pixel(3)))(req)
	url := "data:image/gif;base64," + base64.StdEncoding.EncodeToString(pixel(2).Data)
	want := `[{"type":"image_url","image_url":{"url":"` + url + `"}},` +
		`{"type":"text","text":"[image 1 not sent: it is damaged]\n[image 3 not sent: it is damaged]\nWhich?"}]`
	if got := string(sent(t, req)[0].get("content").raw); got != want {
		t.Errorf("sent %s\nwant %s", got, want)
	}
}

func TestEncodeMessages(t *testing.T) {
	req := conversation(t)
	m := sent(t, req)
	if len(m) != 7 {
		t.Fatalf("%d messages", len(m))
	}
	calls := slices.Collect(m[2].get("tool_calls").elements())
	if got := calls[0].path("function", "arguments").str(); got != `{"pattern": "a<b"}` {
		t.Errorf("valid arguments changed: %s", got)
	}
	if got := calls[1].path("function", "arguments").str(); got != "{}" {
		t.Errorf("cut arguments sent: %s", got)
	}
	if got := string(calls[0].get("extra_content").raw); got != `{"a":"</s>","b":1}` {
		t.Errorf("opaque members: %s", got)
	}
	if got := m[4].get("content").str(); got != emptyResult {
		t.Errorf("empty result sent as %q", got)
	}
	parts := slices.Collect(m[6].get("content").elements())
	if len(parts) != 2 || !strings.HasPrefix(parts[0].path("image_url", "url").str(), "data:image/png;base64,iVBOR") || parts[1].get("text").str() != "And this?" {
		t.Errorf("content with an image: %s", m[6].raw)
	}
	if body := encode(t, req); strings.Contains(body, "first look") {
		t.Error("the generic profile sends reasoning")
	}

	req.Snapshot.Target = there
	if body := encode(t, req); strings.Contains(body, "extra_content") {
		t.Error("opaque members go to another model")
	}

	req = conversation(t)
	refuse(llm.RefusedImages)(req)
	if got := sent(t, req)[6].get("content").str(); got != "[image 1 not sent: brook-4b takes no images]\nAnd this?" {
		t.Errorf("placeholder: %q", got)
	}

	req = conversation(t)
	req.Messages = []llm.Message{llm.UserText(""), {Role: llm.Assistant, Reasoning: &llm.Reasoning{Text: "hm"}}, llm.UserText("go on"),
		llm.AssistantText("", llm.ToolCall{ID: "a", Extra: json.RawMessage(`{"id":"x","function":{"name":"y","arguments":"z"}}`)})}
	m = sent(t, req)
	if len(m) != 4 || m[1].get("content").str() != "" || m[2].get("content").str() != "go on" {
		t.Errorf("an answer with nothing in it was sent: %v", m)
	}
	if got := string(m[3].get("tool_calls").raw); got != `[{"id":"a","type":"function","function":{"name":"unknown","arguments":"{}"}}]` {
		t.Errorf("a call without a name: %s", got)
	}
}

func TestEncodeArgumentsAsTheModelWroteThem(t *testing.T) {
	tests := []struct{ raw, want string }{
		{` {"b":1, "a":2} `, ` {"b":1, "a":2} `},
		{"{\"a\":\"x\ny\"}", `{"a":"x\ny"}`},
		{`"{\"a\": 1}"`, `{"a": 1}`},
		{"", "{}"}, {"null", "{}"}, {"[1]", "{}"}, {"7", "{}"}, {`{"a":`, "{}"},
	}
	for _, tt := range tests {
		req := conversation(t)
		req.Messages = []llm.Message{llm.UserText("x"), llm.AssistantText("", llm.ToolCall{ID: "a", Name: "f", Arguments: tt.raw}), llm.ToolText("a", "y")}
		for call := range sent(t, req)[2].get("tool_calls").elements() {
			if got := call.path("function", "arguments").str(); got != tt.want {
				t.Errorf("arguments %q sent as %q, want %q", tt.raw, got, tt.want)
			}
		}
	}
}

func TestEncodeReplay(t *testing.T) {
	tests := []struct {
		name    string
		profile llm.Profile
		effort  llm.Effort
		field   string
		origin  llm.Target
		member  string
		first   string // of the turn with calls, raw
		plain   string // of a turn of the same model without reasoning, raw
	}{
		{"qwen", llm.Qwen, llm.Climb, "reasoning", here, "reasoning_content", `"look"`, ""},
		{"qwen, not thinking", llm.Qwen, llm.Graze, "reasoning", here, "reasoning_content", "", ""},
		{"qwen, from inline tags", llm.Qwen, llm.Climb, "", here, "reasoning_content", `"look"`, ""},
		{"deepseek", llm.DeepSeek, llm.Climb, "reasoning_content", here, "reasoning_content", `"look"`, `""`},
		{"deepseek, not thinking", llm.DeepSeek, llm.Graze, "reasoning_content", here, "reasoning_content", "", ""},
		{"deepseek, of another model", llm.DeepSeek, llm.Climb, "reasoning_content", there, "reasoning_content", `""`, `""`},
		{"replay in its own field", llm.Replay, llm.Climb, "reasoning", here, "reasoning", `"look"`, ""},
		{"replay in its own field, the other one", llm.Replay, llm.Climb, "reasoning_content", here, "reasoning_content", `"look"`, ""},
		{"replay never in the wrong field", llm.Replay, llm.Climb, "reasoning", here, "reasoning_content", "", ""},
		{"replay, from inline tags", llm.Replay, llm.Climb, "", here, "reasoning_content", "", ""},
		{"replay, of another model", llm.Replay, llm.Climb, "reasoning", there, "reasoning", "", ""},
		{"replay, not known of whom", llm.Replay, llm.Climb, "reasoning", llm.Target{}, "reasoning", `"look"`, ""},
		{"generic", llm.Generic, llm.Climb, "reasoning_content", here, "reasoning_content", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			first := llm.AssistantText("", llm.ToolCall{ID: "a", Name: "f", Arguments: "{}"})
			first.Origin, first.Reasoning = tt.origin, &llm.Reasoning{Text: "look", Field: tt.field}
			plain := llm.AssistantText("fine")
			plain.Origin = here
			req := &llm.Request{Snapshot: llm.Snapshot{Target: here, Profile: tt.profile, Effort: tt.effort},
				Messages: []llm.Message{llm.UserText("x"), first, llm.ToolText("a", "y"), plain, llm.UserText("z")}}
			m := sent(t, req)
			if got := string(m[1].get(tt.member).raw); got != tt.first {
				t.Errorf("%s of the calls: %s, want %s", tt.member, got, tt.first)
			}
			if got := string(m[3].get(tt.member).raw); got != tt.plain {
				t.Errorf("%s of the answer: %s, want %s", tt.member, got, tt.plain)
			}
		})
	}
}

func TestEncodeDetailsAreByteEqual(t *testing.T) {
	req := conversation(t)
	req.Snapshot.Profile = llm.Replay
	details := string(req.Messages[1].Reasoning.Details)
	if got := string(sent(t, req)[2].get("reasoning_details").raw); got != details {
		t.Errorf("got %s, want %s", got, details)
	}
	req.Messages[1].Reasoning.Details = json.RawMessage(`{"no":"array"}`)
	if got := sent(t, req)[2].get("reasoning_details"); got.raw != nil {
		t.Errorf("sent %s", got.raw)
	}
}

func TestEncodeSchemaRefusals(t *testing.T) {
	schema := `{"type":"object","properties":{
		"pattern":{"type":"string","pattern":"^a$","format":"regex"},
		"format":{"enum":["format",{"pattern":"x"}]},
		"ids":{"type":"array","items":{"type":"string","pattern":"^\\d$","format":"uuid","properties":{"pattern":{"type":"string","format":"date"}}}},
		"alt":{"anyOf":[{"type":"string","pattern":"x"},true]},
		"map":{"additionalProperties":{"format":"uri","pattern":7}}},
		"$defs":{"pattern":{"type":"string","pattern":"y"}},"additionalProperties":false}`
	tool := llm.NewToolDef("t", "", []byte(schema))
	strip := func(pattern, format bool) string {
		s, _ := stripKeywords(tool.Parameters, pattern, format)
		return s
	}
	want := `{"$defs":{"pattern":{"type":"string"}},"additionalProperties":false,"properties":{` +
		`"alt":{"anyOf":[{"type":"string"},true]},"format":{"enum":["format",{"pattern":"x"}]},` +
		`"ids":{"items":{"properties":{"pattern":{"type":"string"}},"type":"string"},"type":"array"},` +
		`"map":{"additionalProperties":{"pattern":7}},"pattern":{"format":"regex","pattern":"^a$","type":"string"}},"type":"object"}`
	if got := strip(true, true); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := strip(false, true); strings.Contains(got, "uuid") || !strings.Contains(got, `\\d`) {
		t.Errorf("format alone: %s", got)
	}
	if _, changed := stripKeywords(`{"type":"object","properties":{"a":{"type":"string","pattern":"x"}}}`, true, true); changed {
		t.Error("a direct property lost its pattern")
	}
	req := conversation(t)
	before := encode(t, req)
	if !strings.Contains(before, `"pattern":"^\\d+$"`) || !strings.Contains(before, `"format":"uuid"`) {
		t.Errorf("keywords are missing without a refusal: %s", before)
	}
	refuse(llm.RefusedFormat)(req)
	if after := encode(t, req); strings.Contains(after, "uuid") || !strings.Contains(after, `"pattern":"^\\d+$"`) {
		t.Errorf("format refused: %s", after)
	}
}

func TestEncodeRequestErrors(t *testing.T) {
	tests := []struct {
		name string
		msg  llm.Message
		want string
	}{
		{"role", llm.Message{Role: "narrator"}, `encode request: message 1: role "narrator"`},
		{"late system message", llm.Message{Role: llm.System}, `encode request: message 1: role "system"`},
		{"image in an answer", llm.Message{Role: llm.Assistant, Parts: []llm.Part{dot(t)}}, "encode request: message 1: an image in an assistant message"},
		{"image in a result", llm.Message{Role: llm.Tool, Parts: []llm.Part{dot(t)}}, "encode request: message 1: an image in a tool message"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := EncodeRequest(&llm.Request{Messages: []llm.Message{llm.UserText("x"), tt.msg}})
			if llm.CodeOf(err) != llm.CodeInvalidRequest || err.Error() != tt.want {
				t.Errorf("error %v", err)
			}
		})
	}
}
