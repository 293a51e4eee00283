package llm_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-dev/drover/internal/llm"
)

func TestParseTarget(t *testing.T) {
	tests := []struct {
		in   string
		want llm.Target
		ok   bool
	}{
		{"ollama/qwen3-coder:30b", llm.Target{Provider: "ollama", Model: "qwen3-coder:30b"}, true},
		{"lab/some/model/with slashes", llm.Target{Provider: "lab", Model: "some/model/with slashes"}, true},
		{"", llm.Target{}, false},
		{"noslash", llm.Target{}, false},
		{"/model", llm.Target{}, false},
		{"provider/", llm.Target{}, false},
	}
	for _, tt := range tests {
		got, err := llm.ParseTarget(tt.in)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("ParseTarget(%q) = %v, %v", tt.in, got, err)
		}
		if tt.ok && got.String() != tt.in {
			t.Errorf("%q comes back as %q", tt.in, got)
		}
	}
}

// TestEnumerationsRoundTrip holds every enumeration's text form together.
func TestEnumerationsRoundTrip(t *testing.T) {
	type all struct {
		S []llm.Support
		W []llm.WindowSource
		E []llm.Effort
		P []llm.Profile
	}
	in := all{
		S: []llm.Support{llm.Unknown, llm.Supported, llm.Unsupported},
		W: []llm.WindowSource{llm.Fallback, llm.Assumed, llm.Configured, llm.Declared, llm.Effective},
		E: append([]llm.Effort{0}, llm.Efforts()...),
		P: []llm.Profile{llm.Generic, llm.Qwen, llm.DeepSeek, llm.Replay},
	}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out all
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(in.S, out.S) || !slices.Equal(in.W, out.W) || !slices.Equal(in.E, out.E) || !slices.Equal(in.P, out.P) {
		t.Errorf("%s came back as %+v", data, out)
	}
	for _, bad := range []string{`{"S":["maybe"]}`, `{"W":["huge"]}`, `{"E":["gallop"]}`, `{"P":["llama"]}`} {
		if err := json.Unmarshal([]byte(bad), &out); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func TestWireEffort(t *testing.T) {
	supported := llm.Fact{Support: llm.Supported}
	field := func(values ...string) llm.Capabilities {
		return llm.Capabilities{Reasoning: supported, ReasoningEffort: llm.EffortField{Advertised: true, Values: values}}
	}
	tests := []struct {
		name    string
		caps    llm.Capabilities
		refused llm.Refusals
		want    [4]string // graze, trot, climb, summit; "" is not sent
	}{
		{"all seven", field("none", "minimal", "low", "medium", "high", "xhigh", "max"), nil, [4]string{"none", "medium", "high", "max"}},
		{"low to high", field("low", "medium", "high"), nil, [4]string{"low", "medium", "high", "high"}},
		{"order of the list does not matter", field("high", "low", "medium"), nil, [4]string{"low", "medium", "high", "high"}},
		{"ties go lower", field("low", "high"), nil, [4]string{"low", "low", "high", "high"}},
		{"tie for climb", field("medium", "xhigh"), nil, [4]string{"medium", "medium", "medium", "xhigh"}},
		{"unknown values are no values", field("on", "off"), nil, [4]string{}},
		{"empty set", field(), nil, [4]string{}},
		{"not advertised", llm.Capabilities{Reasoning: supported, ReasoningEffort: llm.EffortField{Values: []string{"low"}}}, nil, [4]string{}},
		{"reasoning unknown", llm.Capabilities{ReasoningEffort: llm.EffortField{Advertised: true, Values: []string{"low"}}}, nil, [4]string{}},
		{"field refused", field("low", "high"), llm.Refusals{llm.RefusedEffort}, [4]string{}},
		{"value refused", field("none", "low", "high"), llm.Refusals(nil).With(llm.RefusedEffortValue("low")), [4]string{"none", "high", "high", "high"}},
	}
	for _, tt := range tests {
		for i, e := range llm.Efforts() {
			got, ok := tt.caps.WireEffort(e, tt.refused)
			if got != tt.want[i] || ok != (tt.want[i] != "") {
				t.Errorf("%s: %v gives %q, %v; want %q", tt.name, e, got, ok, tt.want[i])
			}
		}
	}
}

func TestRefusalsAreASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		options := rapid.SliceOf(rapid.SampledFrom([]llm.Refusal{"a", "b", "c", "d"})).Draw(t, "options")
		var r llm.Refusals
		for _, o := range options {
			before := slices.Clone(r)
			next := r.With(o)
			if !slices.Equal(before, r) {
				t.Fatal("With changed its receiver")
			}
			r = next
		}
		for _, o := range []llm.Refusal{"a", "b", "c", "d"} {
			if r.Has(o) != slices.Contains(options, o) {
				t.Fatalf("Has(%s) = %v after %v", o, r.Has(o), options)
			}
		}
		if !slices.IsSorted(r) || len(slices.Compact(slices.Clone(r))) != len(r) {
			t.Fatalf("%v is not a sorted set", r)
		}
	})
}

func TestNewToolDef(t *testing.T) {
	d := llm.NewToolDef("grep", `Find <text> & "more"`, []byte(`{ "type":"object", "properties": {"b":{"maximum":1e3,"type":"number"},"a":[3,1.0,2]} }`))
	if want := `{"properties":{"a":[3,1.0,2],"b":{"maximum":1e3,"type":"number"}},"type":"object"}`; d.Parameters != want {
		t.Errorf("parameters %s, want %s", d.Parameters, want)
	}
	if want := `{"type":"function","function":{"name":"grep","description":"Find <text> & \"more\"","parameters":` + d.Parameters + `}}`; d.Wire != want {
		t.Errorf("wire %s, want %s", d.Wire, want)
	}
	if !json.Valid([]byte(d.Wire)) {
		t.Error("the wire object is no JSON")
	}
	if d.ParameterBytes <= len(d.Parameters) {
		t.Errorf("%d parameter bytes: the raw schema was longer", d.ParameterBytes)
	}
	for _, bad := range []string{"", "null", "[]", `"x"`, "{", `{"a":1} {"b":2}`, "nonsense"} {
		if d := llm.NewToolDef("x", "", []byte(bad)); d.Parameters != `{"type":"object"}` {
			t.Errorf("schema %q became %s", bad, d.Parameters)
		}
	}
}

func TestSortTools(t *testing.T) {
	in := []llm.ToolDef{llm.NewToolDef("b", "", nil), llm.NewToolDef("a", "2", nil), llm.NewToolDef("a", "1", nil)}
	got := llm.SortTools(in)
	if got[0].Description != "1" || got[1].Description != "2" || got[2].Name != "b" {
		t.Errorf("sorted as %+v", got)
	}
	if in[0].Name != "b" {
		t.Error("the caller's slice was changed")
	}
}

// TestJSONStringIsReadBack checks the own string encoder against the decoder.
func TestJSONStringIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		var b bytes.Buffer
		llm.AppendJSONString(&b, s)
		var got string
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatalf("%q: %v", b.Bytes(), err)
		}
		if want := strings.ToValidUTF8(s, "\x00"); strings.ReplaceAll(got, "\uFFFD", "") != strings.ReplaceAll(strings.ReplaceAll(want, "\x00", ""), "\uFFFD", "") && !strings.Contains(s, "\x00") {
			t.Fatalf("%q came back as %q", s, got)
		}
	})
}

func TestCanonicalJSONIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.MapOf(rapid.String(), rapid.SliceOf(rapid.Int())).Draw(t, "value")
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		once, err := llm.CanonicalJSON(data)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := llm.CanonicalJSON([]byte(once))
		if err != nil || once != twice {
			t.Fatalf("%s became %s (%v)", once, twice, err)
		}
	})
}

func TestNewImage(t *testing.T) {
	pixels := image.NewGray(image.Rect(0, 0, 31, 17))
	encode := func(f func(b *bytes.Buffer) error) []byte {
		var b bytes.Buffer
		if err := f(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	files := map[string][]byte{
		"image/png":  encode(func(b *bytes.Buffer) error { return png.Encode(b, pixels) }),
		"image/jpeg": encode(func(b *bytes.Buffer) error { return jpeg.Encode(b, pixels, nil) }),
		"image/gif":  encode(func(b *bytes.Buffer) error { return gif.Encode(b, pixels, nil) }),
		// A lossless WebP header: 31x17, the rest of the data is not read.
		"image/webp": []byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x1e\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
	}
	for media, data := range files {
		img, err := llm.NewImage("x", data)
		if err != nil {
			t.Errorf("%s: %v", media, err)
			continue
		}
		if img.MediaType != media || img.Width != 31 || img.Height != 17 || len(img.SHA256) != 64 {
			t.Errorf("%s: got %s %dx%d", media, img.MediaType, img.Width, img.Height)
		}
		broken, err := llm.NewImage("x", data[:12])
		if err != nil || broken.Width != 0 || broken.Height != 0 {
			t.Errorf("%s: a cut header gives %+v, %v", media, broken, err)
		}
	}
	if _, err := llm.NewImage("notes.txt", []byte("hello")); err == nil || !strings.Contains(err.Error(), "notes.txt") {
		t.Errorf("a text gives %v", err)
	}
	limit := append(slices.Clone(files["image/png"]), make([]byte, llm.MaxImageBytes-len(files["image/png"]))...)
	if _, err := llm.NewImage("x", limit); err != nil {
		t.Errorf("an image of the largest size: %v", err)
	}
	if _, err := llm.NewImage("x", append(limit, 0)); err == nil {
		t.Error("an image one byte over the largest size was accepted")
	}
}

func TestErrorCodes(t *testing.T) {
	cause := errors.New("below")
	err := llm.Errorf(llm.CodeTransport, "connect to local:1: %w", cause)
	if !errors.Is(err, cause) || err.Error() != "connect to local:1: below" {
		t.Errorf("%v does not hold its cause", err)
	}
	if got := llm.CodeOf(errors.Join(errors.New("x"), err)); got != llm.CodeTransport {
		t.Errorf("code %s of a joined error", got)
	}
	if llm.CodeOf(nil) != "" || llm.CodeOf(cause) != llm.CodeUnknown || llm.HTTPCode(418) != "HTTP_418" {
		t.Error("codes of nil, of another error or of a status are wrong")
	}
}

func TestMessageText(t *testing.T) {
	img := &llm.Image{Name: "i"}
	m := llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text("a"), img, llm.Text("b")}}
	if m.Text() != "ab" || len(m.Images()) != 1 || m.Images()[0] != img {
		t.Errorf("text %q, images %v", m.Text(), m.Images())
	}
}

func TestUniqueIDs(t *testing.T) {
	ids := func(ids ...string) (calls []llm.ToolCall) {
		for _, id := range ids {
			calls = append(calls, llm.ToolCall{ID: id})
		}
		return calls
	}
	long := strings.Repeat("x", llm.MaxToolCallIDBytes)
	in := ids("", "keep-1", "keep-1", "call-read", long, long+"x", "drover001")
	taken := func(id string) bool { return id == "call-read" || id == "drover003" }
	got := llm.UniqueIDs(in, taken)
	want := []string{"drover002", "keep-1", "drover004", "drover005", long, "drover006", "drover001"}
	for i, c := range got {
		if c.ID != want[i] {
			t.Errorf("id %d: %q, want %q", i, c.ID, want[i])
		}
	}
	if in[0].ID != "" {
		t.Error("the input was changed")
	}
	if got := llm.UniqueIDs(ids("", ""), nil); got[0].ID == got[1].ID || len(got[0].ID) != 9 {
		t.Errorf("made ids %q, %q", got[0].ID, got[1].ID)
	}
}

func TestCost(t *testing.T) {
	tests := []struct {
		prices llm.Prices
		usage  llm.Usage
		want   float64
	}{
		{llm.Prices{}, llm.Usage{PromptTokens: 1000, CompletionTokens: 1000}, 0},
		{llm.Prices{Input: 2, Output: 8}, llm.Usage{PromptTokens: 1_000_000, CompletionTokens: 500_000}, 6},
		{llm.Prices{Input: 2, Output: 8, Cached: 0.5}, llm.Usage{PromptTokens: 1_000_000, CachedTokens: 500_000}, 1.25},
		{llm.Prices{Input: 2, Output: 8}, llm.Usage{PromptTokens: 1_000_000, CachedTokens: 500_000}, 2},
		// A provider that counts what cannot be.
		{llm.Prices{Input: 2, Output: 8, Cached: 1}, llm.Usage{PromptTokens: 1_000_000, CachedTokens: 5_000_000}, 1},
	}
	for _, tt := range tests {
		if got := tt.prices.Cost(&tt.usage); got != tt.want {
			t.Errorf("%+v for %+v: %v, want %v", tt.prices, tt.usage, got, tt.want)
		}
	}
}

// TestACloneSharesNothing fills every slice of a description, wherever it
// stands, and changes the clone's.
func TestACloneSharesNothing(t *testing.T) {
	var m llm.ModelInfo
	found := 0
	each(reflect.ValueOf(&m).Elem(), func(v reflect.Value) {
		found++
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	})
	if found < 7 {
		t.Fatalf("found %d slices: the test does not reach what it is about", found)
	}
	before, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	c := m.Clone()
	if !reflect.DeepEqual(c, m) {
		t.Errorf("cloned as %+v", c)
	}
	each(reflect.ValueOf(&c).Elem(), func(v reflect.Value) {
		switch e := v.Index(0); e.Kind() {
		case reflect.String:
			e.SetString("changed")
		default:
			e.Field(0).SetString("changed")
		}
	})
	if after, err := json.Marshal(m); err != nil || string(after) != string(before) {
		t.Errorf("changed to %s, %v", after, err)
	}
}

// each visits the slices of a struct and of the structs in it.
func each(v reflect.Value, visit func(reflect.Value)) {
	for _, f := range v.Fields() {
		switch f.Kind() {
		case reflect.Struct:
			each(f, visit)
		case reflect.Slice:
			visit(f)
		case reflect.Pointer, reflect.Map, reflect.Interface:
			panic("a kind that the test does not know: " + f.Kind().String())
		}
	}
}

// What stands twice in a set is said once: two damaged images are one kind of thing.
func TestRefusalsDescribe(t *testing.T) {
	r := llm.Refusals(nil).With(llm.RefusedImage(&llm.Image{SHA256: "a"})).With(llm.RefusedSampling).With(llm.RefusedImage(&llm.Image{SHA256: "b"}))
	if got, want := r.Describe(), "a damaged image (a line of text stands in its place); a temperature"; len(r) != 3 || got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
