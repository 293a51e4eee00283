package probe

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/openai"
)

// listOf is a list of models with the given JSON entries.
func listOf(tb testing.TB, entries ...string) *openai.Catalogue {
	tb.Helper()
	c := &openai.Catalogue{}
	for _, raw := range entries {
		var e struct {
			ID      string `json:"id"`
			OwnedBy string `json:"owned_by"`
		}
		if err := json.Unmarshal([]byte(raw), &e); err != nil {
			tb.Fatalf("entry %s: %v", raw, err)
		}
		c.Entries = append(c.Entries, openai.Entry{ID: e.ID, OwnedBy: e.OwnedBy, Raw: json.RawMessage(raw)})
	}
	return c
}

// want is the part of a result that a table compares. A capability that is not
// named is unknown.
type want struct {
	tokens, declared, output int
	source                   llm.WindowSource
	tools, vision, reasoning llm.Support
	efforts                  string // of an advertised reasoning_effort, joined by blanks
	advertised               bool
	note                     string // a part of some note
}

const (
	yes = llm.Supported
	no  = llm.Unsupported
)

func (w want) check(t *testing.T, r Result) {
	t.Helper()
	c := r.Capabilities
	got := want{
		tokens: r.Window.Tokens, declared: r.Window.Declared, output: r.Window.OutputLimit, source: r.Window.Source,
		tools: c.Tools.Support, vision: c.Vision.Support, reasoning: c.Reasoning.Support,
		efforts: strings.Join(c.ReasoningEffort.Values, " "), advertised: c.ReasoningEffort.Advertised, note: w.note,
	}
	if got != w {
		t.Errorf("got  %+v\nwant %+v", got, w)
	}
	if w.note != "" && !strings.Contains(strings.Join(r.Notes, "\n"), w.note) {
		t.Errorf("notes %q do not say %q", r.Notes, w.note)
	}
	if r.Window.Tokens > 0 && len(r.Window.Evidence) == 0 {
		t.Error("a window without evidence")
	}
	checkShown(t, &r)
	for _, f := range []llm.Fact{c.Tools, c.Vision, c.Reasoning} {
		if f.Support != llm.Unknown && len(f.Evidence) == 0 {
			t.Error("a fact without evidence")
		}
	}
}

func TestGenericFields(t *testing.T) {
	tests := map[string]struct {
		entry string
		want  want
	}{
		"nothing":           {`{"id":"m"}`, want{}},
		"vllm window":       {`{"id":"m","max_model_len":32768}`, want{tokens: 32768, source: llm.Effective}},
		"gateway window":    {`{"id":"m","effective_max_context":9000}`, want{tokens: 9000, source: llm.Effective}},
		"llama.cpp window":  {`{"id":"m","meta":{"n_ctx":2048,"n_ctx_train":4096}}`, want{tokens: 2048, source: llm.Effective}},
		"lora has null":     {`{"id":"m","max_model_len":null}`, want{}},
		"context_length":    {`{"id":"m","context_length":8192}`, want{tokens: 8192, declared: 8192, source: llm.Declared}},
		"max_context":       {`{"id":"m","max_context_length":8192}`, want{tokens: 8192, declared: 8192, source: llm.Declared}},
		"context_window":    {`{"id":"m","context_window":8192}`, want{tokens: 8192, declared: 8192, source: llm.Declared}},
		"max_input_tokens":  {`{"id":"m","max_input_tokens":8192}`, want{tokens: 8192, declared: 8192, source: llm.Declared}},
		"max_context_token": {`{"id":"m","max_context_tokens":8192}`, want{tokens: 8192, declared: 8192, source: llm.Declared}},
		"provider's window": {`{"id":"m","context_length":9000,"top_provider":{"context_length":8192}}`, want{tokens: 8192, declared: 8192, source: llm.Declared}},
		"smallest effective": {`{"id":"m","max_model_len":9000,"meta":{"n_ctx":700},"context_length":500}`,
			want{tokens: 700, declared: 500, source: llm.Effective}},
		"output limits": {`{"id":"m","max_output_tokens":900,"max_completion_tokens":800,"top_provider":{"max_completion_tokens":700}}`, want{output: 700}},

		"vision object":      {`{"id":"m","capabilities":{"vision":true}}`, want{vision: yes}},
		"multimodal object":  {`{"id":"m","capabilities":{"multimodal":true}}`, want{vision: yes}},
		"no vision":          {`{"id":"m","capabilities":{"vision":false}}`, want{vision: no}},
		"vision member":      {`{"id":"m","vision":true}`, want{vision: yes}},
		"supports_vision":    {`{"id":"m","supports_vision":false}`, want{vision: no}},
		"vision in list":     {`{"id":"m","capabilities":["completion","vision"]}`, want{vision: yes}},
		"not in list":        {`{"id":"m","capabilities":["completion"]}`, want{}},
		"architecture":       {`{"id":"m","architecture":{"input_modalities":["text","image"]}}`, want{vision: yes}},
		"text only":          {`{"id":"m","architecture":{"input_modalities":["text"]}}`, want{}},
		"input_modalities":   {`{"id":"m","input_modalities":["image"]}`, want{vision: yes}},
		"modalities":         {`{"id":"m","modalities":["vision"]}`, want{vision: yes}},
		"vision conflict":    {`{"id":"m","vision":true,"supports_vision":false}`, want{note: "contradicts itself about vision"}},
		"vision equal twice": {`{"id":"m","vision":true,"supports_vision":true}`, want{vision: yes}},

		"tools":               {`{"id":"m","capabilities":{"tools":true}}`, want{tools: yes}},
		"tool_calling":        {`{"id":"m","capabilities":{"tool_calling":false}}`, want{tools: no}},
		"function_calling":    {`{"id":"m","capabilities":{"function_calling":true}}`, want{tools: yes}},
		"supports_tools":      {`{"id":"m","supports_tools":false}`, want{tools: no}},
		"tools in list":       {`{"id":"m","capabilities":["tools"]}`, want{tools: yes}},
		"tools parameter":     {`{"id":"m","supported_parameters":["tools"]}`, want{tools: yes}},
		"no tools parameter":  {`{"id":"m","supported_parameters":["stop"]}`, want{}},
		"reasoning object":    {`{"id":"m","capabilities":{"reasoning":true}}`, want{reasoning: yes}},
		"reasoning":           {`{"id":"m","reasoning":false}`, want{reasoning: no}},
		"reasoning parameter": {`{"id":"m","supported_parameters":["reasoning"]}`, want{reasoning: yes}},

		"effort, no list": {`{"id":"m","reasoning":true,"supported_parameters":["reasoning_effort"]}`,
			want{reasoning: yes, advertised: true, efforts: "low medium high"}},
		"effort alone": {`{"id":"m","supported_parameters":["reasoning_effort"]}`, want{advertised: true, efforts: "low medium high"}},
		"effort values": {`{"id":"m","supported_parameters":["reasoning_effort"],"reasoning_effort_values":["max","low"]}`,
			want{advertised: true, efforts: "low max"}},
		"effort twice": {`{"id":"m","supported_parameters":["reasoning_effort"],"reasoning_effort_values":["low","low"]}`,
			want{advertised: true, efforts: "low"}},
		"effort levels": {`{"id":"m","supported_parameters":["reasoning_effort"],"reasoning_effort_levels":["xhigh"]}`,
			want{advertised: true, efforts: "xhigh"}},
		"effort intersection": {`{"id":"m","supported_parameters":["reasoning_effort"],"supported_reasoning_efforts":["low","high"],"reasoning":{"allowed_options":["high","max"]}}`,
			want{advertised: true, efforts: "high"}},
		"effort empty": {`{"id":"m","supported_parameters":["reasoning_effort"],"supported_reasoning_efforts":["low"],"reasoning_effort_values":["high"]}`,
			want{advertised: true}},
		"unknown values":  {`{"id":"m","supported_parameters":["reasoning_effort"],"reasoning_effort_values":["on","off"]}`, want{advertised: true}},
		"values alone":    {`{"id":"m","reasoning":true,"reasoning_effort_values":["low"]}`, want{reasoning: yes}},
		"malformed lists": {`{"id":"m","supported_parameters":["reasoning_effort"],"reasoning_effort_values":"low"}`, want{advertised: true, efforts: "low medium high"}},

		"wrong case":     {`{"id":"m","Max_Model_Len":1,"Vision":true,"SUPPORTS_TOOLS":true}`, want{}},
		"wrong types":    {`{"id":"m","max_model_len":{},"vision":"true","supports_tools":1,"capabilities":7,"modalities":"image"}`, want{}},
		"mixed list":     {`{"id":"m","capabilities":[1,null,"vision"]}`, want{vision: yes}},
		"number strings": {`{"id":"m","max_model_len":"4096"}`, want{tokens: 4096, source: llm.Effective}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.want.check(t, Resolve(Input{Model: "m", Catalogue: listOf(t, test.entry, `{"id":"other"}`)}))
			// The same members in the model's own document count the same.
			test.want.check(t, Resolve(Input{Model: "m", Documents: []Document{{Endpoint: endpointModel, Body: []byte(test.entry)}}}))
		})
	}
}

func TestSizes(t *testing.T) {
	tests := map[string]int{
		`1`: 1, `4096`: 4096, `4096.0`: 4096, `4.096e3`: 4096, `4096.9`: 4096, `"4096"`: 4096, `2147483647`: 2147483647,
		`0`: 0, `-1`: 0, `0.5`: 0, `1e30`: 0, `1e999`: 0, `2147483648`: 0, `"2147483648"`: 0, `"99999999999999999999"`: 0,
		`"-1"`: 0, `"+1"`: 0, `" 1"`: 0, `"1.5"`: 0, `""`: 0, `"NaN"`: 0, `null`: 0, `true`: 0, `[1]`: 0, `{}`: 0, ``: 0,
	}
	for lexeme, want := range tests {
		if got, ok := tokens(json.RawMessage(lexeme)); got != want || ok != (want > 0) {
			t.Errorf("tokens(%s) = %d, %v, want %d", lexeme, got, ok, want)
		}
	}
}

func TestConflictKeepsBothClaims(t *testing.T) {
	r := Resolve(Input{
		Model:     "m",
		Catalogue: listOf(t, `{"id":"m","supports_tools":true}`),
		Documents: []Document{{Endpoint: endpointModel, Body: []byte(`{"supports_tools":false}`)}},
	})
	want := []llm.Evidence{
		{Endpoint: "GET /v1/models", Field: "data[].supports_tools", Value: "true"},
		{Endpoint: "GET /v1/models/{id}", Field: "supports_tools", Value: "false"},
	}
	if got := r.Capabilities.Tools; got.Support != llm.Unknown || !slices.Equal(got.Evidence, want) {
		t.Errorf("got %+v", got)
	}
}

func TestOnlyEntryStandsForAnyName(t *testing.T) {
	one := listOf(t, `{"id":"brook","max_model_len":4096}`)
	want{tokens: 4096, source: llm.Effective, note: `described by "brook"`}.check(t, Resolve(Input{Model: "mine", Catalogue: one}))
	two := listOf(t, `{"id":"brook","max_model_len":4096}`, `{"id":"creek"}`)
	want{}.check(t, Resolve(Input{Model: "mine", Catalogue: two}))
	one.Omitted = 1
	want{}.check(t, Resolve(Input{Model: "mine", Catalogue: one}))
	one.Omitted = 0
	want{}.check(t, Resolve(Input{Adapter: LMStudio, Model: "mine", Catalogue: one}))
}

func TestLMStudio(t *testing.T) {
	model := func(members string) string {
		return `{"models":[{"key":"other","max_context_length":1},{"type":"llm","key":"acme/brook-4b",` + members + `}]}`
	}
	tests := map[string]struct {
		model, body string
		want        want
	}{
		"loaded": {"acme/brook-4b", model(`"max_context_length":131072,"loaded_instances":[{"id":"a","config":{"context_length":8192}},{"id":"b","config":{"context_length":4096}}]`),
			want{tokens: 4096, declared: 131072, source: llm.Effective}},
		"one instance": {"a", model(`"max_context_length":131072,"loaded_instances":[{"id":"a","config":{"context_length":8192}},{"id":"b","config":{"context_length":4096}}]`),
			want{tokens: 8192, declared: 131072, source: llm.Effective}},
		"not loaded": {"acme/brook-4b", model(`"max_context_length":131072,"loaded_instances":[]`),
			want{tokens: 4096, declared: 131072, source: llm.Assumed, note: "4096 are assumed"}},
		"small and not loaded": {"acme/brook-4b", model(`"max_context_length":2048`), want{tokens: 2048, declared: 2048, source: llm.Assumed}},
		"capabilities": {"acme/brook-4b", model(`"capabilities":{"vision":true,"trained_for_tool_use":true,"reasoning":{"allowed_options":["off","on"],"default":"on"}}`),
			want{vision: yes, tools: yes, reasoning: yes}},
		"not trained":      {"acme/brook-4b", model(`"capabilities":{"vision":false,"trained_for_tool_use":false}`), want{vision: no}},
		"odd other fields": {"acme/brook-4b", model(`"quantization":null,"format":7,"max_context_length":4096`), want{tokens: 4096, declared: 4096, source: llm.Assumed}},
		"unknown model":    {"nope", model(`"max_context_length":4096`), want{}},
		"error with 200":   {"acme/brook-4b", `{"error":"Unexpected endpoint or method. (GET /api/v1/models)"}`, want{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.want.check(t, Resolve(Input{Adapter: LMStudio, Model: test.model,
				Documents: []Document{{Endpoint: endpointLMStudio, Body: []byte(test.body)}}}))
		})
	}
	// The hint stays visible although it proves nothing.
	r := Resolve(Input{Adapter: LMStudio, Model: "acme/brook-4b", Documents: []Document{{Endpoint: endpointLMStudio,
		Body: []byte(model(`"capabilities":{"trained_for_tool_use":false}`))}}})
	if len(r.Capabilities.Tools.Evidence) != 1 {
		t.Errorf("tools: %+v", r.Capabilities.Tools)
	}
}

func TestOllama(t *testing.T) {
	const info = `"model_info":{"general.architecture":"acme","acme.context_length":262144,"acme.block_count":1}`
	show := func(members string) string {
		return `{` + members + `,"details":{"family":"acme","parameter_size":"7B"}}`
	}
	running := func(name string, n string) string {
		return `{"models":[{"name":"` + name + `","model":"` + name + `","digest":"d1","details":{"family":"acme","parameter_size":"7B"},"context_length":` + n + `}]}`
	}
	tests := map[string]struct {
		model, show, ps string
		want            want
	}{
		"loaded":           {"brook:7b", show(info), running("brook:7b", "8192"), want{tokens: 8192, declared: 262144, source: llm.Effective}},
		"loaded, latest":   {"brook", show(info), running("brook:latest", "8192"), want{tokens: 8192, declared: 262144, source: llm.Effective}},
		"num_ctx":          {"brook", show(info + `,"parameters":"num_ctx 123904\ntop_k 20"`), `{"models":[]}`, want{tokens: 123904, declared: 262144, source: llm.Declared}},
		"num_ctx too big":  {"brook", show(info + `,"parameters":"top_k 20\nnum_ctx      999999"`), `{"models":[]}`, want{tokens: 262144, declared: 262144, source: llm.Declared}},
		"num_ctx alone":    {"brook", show(`"parameters":"num_ctx 512"`), `{"models":[]}`, want{tokens: 512, declared: 512, source: llm.Declared}},
		"num_ctx loaded":   {"brook", show(info + `,"parameters":"num_ctx 512"`), running("brook:latest", "700"), want{tokens: 700, declared: 262144, source: llm.Effective}},
		"not loaded":       {"brook", show(info), `{"models":[]}`, want{tokens: 4096, declared: 262144, source: llm.Assumed, note: "not loaded"}},
		"no ps":            {"brook", show(info), ``, want{tokens: 4096, declared: 262144, source: llm.Assumed}},
		"no show":          {"brook", ``, running("brook:latest", "700"), want{tokens: 700, source: llm.Effective}},
		"no show, other":   {"brook", ``, running("creek:latest", "700"), want{}},
		"other name":       {"brook", show(info), running("creek:latest", "8192"), want{tokens: 8192, declared: 262144, source: llm.Effective, note: "creek:latest"}},
		"other name, ctx":  {"brook", show(info + `,"parameters":"num_ctx 512"`), running("creek:latest", "8192"), want{tokens: 512, declared: 262144, source: llm.Effective}},
		"other digest":     {"brook", show(info + `,"digest":"d1"`), running("creek:latest", "8192"), want{tokens: 8192, declared: 262144, source: llm.Effective}},
		"another model":    {"brook", show(info), strings.Replace(running("creek", "8192"), "7B", "70B", 1), want{tokens: 4096, declared: 262144, source: llm.Assumed}},
		"two runners":      {"brook", show(info), `{"models":[{"name":"a","context_length":1000},{"name":"b","context_length":2000}]}`, want{tokens: 4096, declared: 262144, source: llm.Assumed}},
		"runner, no size":  {"brook", show(info), `{"models":[{"name":"brook:latest","size":1}]}`, want{tokens: 4096, declared: 262144, source: llm.Assumed}},
		"automatic":        {"brook", show(`"model_info":{"general.architecture":"acme","acme.context_length":-1}`), ``, want{}},
		"own architecture": {"brook", show(`"model_info":{"general.architecture":"acme","acme.context_length":900,"clip.context_length":77}`), ``, want{tokens: 900, declared: 900, source: llm.Assumed}},
		"odd member":       {"brook", show(`"model_info":{"a\ntools supported.context_length":900}`), ``, want{}},
		"any architecture": {"brook", show(`"model_info":{"b.context_length":900,"a.context_length":800}`), ``, want{tokens: 800, declared: 800, source: llm.Assumed}},

		"all": {"brook", show(`"capabilities":["completion","tools","vision","thinking"]`), ``,
			want{tools: yes, vision: yes, reasoning: yes, advertised: true, efforts: "none low medium high max"}},
		"plain":        {"brook", show(`"capabilities":["completion"]`), ``, want{tools: no, vision: no, reasoning: no}},
		"embedding":    {"brook", show(`"capabilities":["embedding"]`), ``, want{tools: no, vision: no, reasoning: no, note: "does not list this model"}},
		"old version":  {"brook", show(`"license":"x"`), ``, want{}},
		"null":         {"brook", show(`"capabilities":null`), ``, want{}},
		"not a list":   {"brook", show(`"capabilities":"tools"`), ``, want{}},
		"damaged list": {"brook", show(`"capabilities":["tools",1]`), ``, want{tools: yes}},
		"garbage":      {"brook", `<html>`, `[]`, want{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			docs := []Document{{endpointRunning, []byte(test.ps)}, {endpointShow, []byte(test.show)}}
			test.want.check(t, Resolve(Input{Adapter: Ollama, Model: test.model, Documents: docs}))
		})
	}
}

func TestLlamaCpp(t *testing.T) {
	props := func(caps string) string {
		return `{"default_generation_settings":{"n_ctx":2048},"modalities":{"vision":false},"chat_template_caps":{` + caps + `}}`
	}
	const loaded = `{"id":"m","meta":{"n_ctx":1024,"n_ctx_train":65536}}`
	tests := map[string]struct {
		entry, props string
		want         want
	}{
		"tools":       {``, props(`"supports_tools":true,"supports_tool_calls":true`), want{tokens: 2048, source: llm.Effective, vision: no, tools: yes}},
		"no tools":    {``, props(`"supports_tools":false,"supports_tool_calls":false`), want{tokens: 2048, source: llm.Effective, vision: no, tools: no}},
		"half":        {``, props(`"supports_tools":true,"supports_tool_calls":false`), want{tokens: 2048, source: llm.Effective, vision: no, tools: no}},
		"other half":  {``, props(`"supports_tools":false`), want{tokens: 2048, source: llm.Effective, vision: no, tools: no}},
		"one told":    {``, props(`"supports_tools":true`), want{tokens: 2048, source: llm.Effective, vision: no}},
		"effort":      {``, props(`"supports_reasoning_effort":true`), want{tokens: 2048, source: llm.Effective, vision: no, reasoning: yes, advertised: true, efforts: "none low medium high"}},
		"no effort":   {``, props(`"supports_reasoning_effort":false`), want{tokens: 2048, source: llm.Effective, vision: no}},
		"vision":      {``, `{"modalities":{"vision":true}}`, want{vision: yes}},
		"trained":     {`{"id":"m","meta":{"n_ctx_train":65536}}`, `{"default_generation_settings":{"n_ctx":128000}}`, want{tokens: 128000, source: llm.Effective}},
		"entry alone": {loaded, ``, want{tokens: 1024, source: llm.Effective}},
		"smallest":    {loaded, props(``), want{tokens: 1024, source: llm.Effective, vision: no}},
		"router":      {``, `{"role":"router","default_generation_settings":{"params":null,"n_ctx":0}}`, want{}},
		"not loaded": {`{"id":"m","status":{"value":"unloaded","args":["x","--ctx-size","32768","--model","/m"]},"architecture":{"input_modalities":["text","image"]}}`, ``,
			want{tokens: 4096, declared: 32768, source: llm.Assumed, vision: yes}},
		"not loaded, slots": {`{"id":"m","status":{"value":"unloaded","args":["-c","4096","-np","4"]}}`, ``,
			want{tokens: 1024, declared: 1024, source: llm.Assumed}},
		"router, another":     {`{"id":"x","status":{"value":"loaded"},"meta":{"n_ctx":1024}}`, ``, want{}},
		"not loaded, silent":  {`{"id":"m","status":{"value":"unloaded"}}`, ``, want{}},
		"loaded by router":    {`{"id":"m","status":{"value":"loaded","args":["-c","512"]},"meta":{"n_ctx":1024}}`, props(``), want{tokens: 1024, source: llm.Effective, vision: no}},
		"alias":               {`{"id":"file.gguf","aliases":["m"],"meta":{"n_ctx":1024}}`, ``, want{tokens: 1024, source: llm.Effective}},
		"any name, one model": {`{"id":"file.gguf","meta":{"n_ctx":1024}}`, ``, want{tokens: 1024, source: llm.Effective}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := Input{Adapter: LlamaCpp, Model: "m"}
			if test.entry != "" {
				in.Catalogue = listOf(t, test.entry)
			}
			if test.props != "" {
				in.Documents = []Document{{endpointProps, []byte(test.props)}}
			}
			test.want.check(t, Resolve(in))
		})
	}
	// The command line of a router holds paths, and perhaps a key.
	r := Resolve(Input{Adapter: LlamaCpp, Model: "m", Catalogue: listOf(t,
		`{"id":"m","status":{"value":"unloaded","args":["--api-key","hush","--ctx-size","2048"]}}`)})
	if got := r.Window.Evidence[0].Value; got != `["--ctx-size","2048"]` {
		t.Errorf("evidence %s", got)
	}
}

func TestMLX(t *testing.T) {
	omlx := func(model, entry, status string) Result {
		return Resolve(Input{Adapter: OMLX, Model: model, Catalogue: listOf(t, entry),
			Documents: []Document{{endpointStatus, []byte(status)}}})
	}
	const status = `{"models":[{"id":"creek","max_context_window":1},{"id":"brook","model_type":"vlm","max_context_window":131072,"max_tokens":32768}]}`
	want{tokens: 131072, output: 32768, source: llm.Effective, vision: yes}.check(t,
		omlx("brook", `{"id":"brook","capabilities":{"function_calling":true}}`, status))
	want{tokens: 1, source: llm.Effective}.check(t, omlx("creek", `{"id":"brook"}`, status))
	want{}.check(t, omlx("nope", `{"id":"brook"}`, status))

	vmlx := func(body string) Result {
		return Resolve(Input{Adapter: VMLX, Model: "m", Documents: []Document{{endpointCapabilities, []byte(body)}}})
	}
	want{tools: yes, reasoning: yes, vision: yes}.check(t,
		vmlx(`{"supports_tools":true,"supports_thinking":true,"reasoning_efforts":[],"modalities":["text","vision"]}`))
	want{tools: no, reasoning: no}.check(t, vmlx(`{"supports_tools":false,"supports_thinking":false,"modalities":["text"]}`))
	want{reasoning: yes, advertised: true, efforts: "low high"}.check(t,
		vmlx(`{"supports_thinking":true,"reasoning_efforts":["high","low","on"]}`))
}

func TestCalls(t *testing.T) {
	const id = `org/m b:7+q"`
	const escaped = "org%2Fm%20b%3A7%2Bq%22"
	tests := map[Adapter][]string{
		Generic:  {"GET /v1/models/" + escaped},
		LMStudio: {"GET /api/v1/models"},
		Ollama:   {`POST /api/show {"model":"org/m b:7+q\""}`, "GET /api/ps"},
		LlamaCpp: {"GET /props?model=" + escaped + "&autoload=false"},
		OMLX:     {"GET /v1/models/status"},
		VMLX:     {"GET /v1/models/" + escaped + "/capabilities"},
	}
	for adapter, want := range tests {
		var got []string
		for _, c := range adapter.Calls(id, listOf(t, `{"id":"m"}`)) {
			got = append(got, strings.TrimSpace(c.Method+" "+c.Path+" "+string(c.Body)))
			if c.Limit != MaxDocument && (c.Endpoint != endpointShow || c.Limit != MaxLargeDocument) {
				t.Errorf("%s: limit %d", c.Endpoint, c.Limit)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", adapter, got, want)
		}
	}
}

func TestRouterIsAskedAboutLoadedModelsOnly(t *testing.T) {
	list := listOf(t,
		`{"id":"up","status":{"value":"loaded"}}`, `{"id":"down","status":{"value":"unloaded"}}`,
		`{"id":"soon","status":{"value":"loading"}}`, `{"id":"bad","status":{"value":"unloaded","failed":true}}`)
	for model, want := range map[string]int{"up": 1, "down": 0, "soon": 0, "bad": 0, "typed": 0} {
		if got := len(LlamaCpp.Calls(model, list)); got != want {
			t.Errorf("%s: %d calls, want %d", model, got, want)
		}
	}
}

func TestEscapeID(t *testing.T) {
	for id, want := range map[string]string{
		".": "%2E", "..": "%2E%2E", "...": "...", "a.b": "a.b", "org/m": "org%2Fm", "a b": "a%20b", "é": "%C3%A9",
		"x?y#z": "x%3Fy%23z", "100%": "100%25", "a+b": "a%2Bb", "~-_": "~-_", `a\b`: "a%5Cb", "": "",
	} {
		if got := EscapeID(id); got != want {
			t.Errorf("EscapeID(%q) = %q, want %q", id, got, want)
		}
	}
}

func TestIdentify(t *testing.T) {
	tests := []struct {
		server  string
		entries []string
		want    Kind
	}{
		{"llama.cpp", nil, KindLlamaCpp},
		{"llama.cpp", []string{`{"id":"m","owned_by":"vllm"}`}, KindLlamaCpp},
		{"", []string{`{"id":"m","owned_by":"llamacpp"}`}, KindLlamaCpp},
		{"", []string{`{"id":"m","owned_by":"vmlx-engine"}`}, KindVMLX},
		{"", []string{`{"id":"m","owned_by":"omlx"}`}, KindOMLX},
		{"uvicorn", []string{`{"id":"m","owned_by":"vllm"}`, `{"id":"n","owned_by":"vllm"}`}, KindVLLM},
		{"", []string{`{"id":"m","owned_by":"sglang"}`}, KindSGLang},
		{"", []string{`{"id":"m","owned_by":"tabbyAPI"}`}, "tabbyapi"},
		{"", []string{`{"id":"m","owned_by":"library"}`}, KindUnknown},
		{"", []string{`{"id":"m","owned_by":"library"}`, `{"id":"vllm/m","owned_by":"vllm"}`}, KindUnknown},
		{"", []string{`{"id":"vllm/m","owned_by":"vllm"}`, `{"id":"m","owned_by":"library"}`}, KindUnknown},
		{"", []string{`{"id":"m"}`}, KindUnknown},
		{"", nil, KindUnknown},
	}
	for _, test := range tests {
		if got := Identify(test.server, listOf(t, test.entries...)); got != test.want {
			t.Errorf("Identify(%q, %q) = %q, want %q", test.server, test.entries, got, test.want)
		}
	}
	if !IsOllama([]byte("Ollama is running")) || IsOllama([]byte("<p>Ollama is running")) {
		t.Error("IsOllama")
	}
	for body, want := range map[string]bool{
		`{"models":[{"key":"a"}]}`: true, `{"models":[]}`: false, `{"models":[{"name":"a"}]}`: false, `x`: false, `{"error":"e"}`: false,
	} {
		if IsLMStudio([]byte(body)) != want {
			t.Errorf("IsLMStudio(%s) = %v", body, !want)
		}
	}
}

func TestEvidenceIsOneShortLine(t *testing.T) {
	long := `{"id":"m","reasoning_effort_values":[` + strings.Repeat(`"é",`+"\n", 100) + `"low"],"supported_parameters":["reasoning_effort"]}`
	r := Resolve(Input{Model: "m", Catalogue: listOf(t, long)})
	for _, e := range r.Capabilities.ReasoningEffort.Evidence {
		if len(e.Value) > maxValue+len("…") || strings.ContainsAny(e.Value, "\n\r") || strings.ContainsRune(e.Value, '\uFFFD') {
			t.Errorf("evidence %q", e.Value)
		}
	}
}

// The capabilities of a model do not depend on its name.
func TestNamesNeverDecide(t *testing.T) {
	const body = `"context_length":8192,"capabilities":["tools","vision"]}`
	base := Resolve(Input{Model: "m", Catalogue: listOf(t, `{"id":"m",`+body)})
	for _, name := range []string{"qwen3-coder", "gpt-oss-20b", "llava", "deepseek-r1", "embed"} {
		r := Resolve(Input{Model: name, Catalogue: listOf(t, `{"id":"`+name+`",`+body)})
		a, _ := json.Marshal(base)
		b, _ := json.Marshal(r)
		if string(a) != string(b) {
			t.Errorf("%s: %s", name, b)
		}
	}
}

// What an engine calls its models is quoted in a note and cut, and a size that
// counts in two ways stands in the evidence once.
func TestNamesInNotes(t *testing.T) {
	ps := `{"models":[{"name":"creek\u001b[31m\nnote: all is well ` + strings.Repeat("é", 200) + `","context_length":8192}]}`
	r := Resolve(Input{Adapter: Ollama, Model: "brook", Documents: []Document{
		{endpointShow, []byte(`{"model_info":{"general.architecture":"acme","acme.context_length":262144},"parameters":"num_ctx 512"}`)},
		{endpointRunning, []byte(ps)},
	}})
	if len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], `window of the only loaded model, "creek\x1b[31m\nnote: all is well é`) ||
		!strings.HasSuffix(r.Notes[0], `…", which may share its weights`) {
		t.Errorf("notes %q", r.Notes)
	}
	want := []llm.Evidence{
		{Endpoint: endpointRunning, Field: "models[].context_length", Value: "8192"},
		{Endpoint: endpointShow, Field: "parameters.num_ctx", Value: "512"},
		{Endpoint: endpointShow, Field: "model_info.acme.context_length", Value: "262144"},
	}
	if !slices.Equal(r.Window.Evidence, want) {
		t.Errorf("evidence %q", r.Window.Evidence)
	}
	checkShown(t, &r)
}

// vLLM tells the window of an adapter (LoRA) at the model below it.
func TestParentsWindow(t *testing.T) {
	list := listOf(t, `{"id":"brook","parent":null,"max_model_len":32768,"supports_tools":true}`,
		`{"id":"lora","parent":"brook","max_model_len":null}`, `{"id":"own","parent":"brook","max_model_len":512}`,
		`{"id":"orphan","parent":"gone"}`, `{"id":"second","parent":"lora"}`, `{"id":"self","parent":"self"}`, `{"id":"odd","parent":7}`)
	for model, want := range map[string]want{
		"lora": {tokens: 32768, source: llm.Effective}, "own": {tokens: 512, source: llm.Effective},
		"orphan": {}, "second": {}, "self": {}, "odd": {},
	} {
		t.Run(model, func(t *testing.T) { want.check(t, Resolve(Input{Model: model, Catalogue: list})) })
	}
	r := Resolve(Input{Model: "lora", Catalogue: list})
	if want := []llm.Evidence{{Endpoint: "GET /v1/models", Field: `data["brook"].max_model_len`, Value: "32768"}}; !slices.Equal(r.Window.Evidence, want) {
		t.Errorf("evidence %q", r.Window.Evidence)
	}
	own := Document{endpointModel, []byte(`{"id":"lora","max_model_len":1024}`)}
	want{tokens: 1024, source: llm.Effective}.check(t, Resolve(Input{Model: "lora", Catalogue: list, Documents: []Document{own}}))
	want{}.check(t, Resolve(Input{Adapter: LMStudio, Model: "lora", Catalogue: list}))
}
