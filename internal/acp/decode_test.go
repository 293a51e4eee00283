package acp

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

var objects = []string{
	`{}`, ` { } `, `{"a":1}`, `{"a":1,"b":[1,{"c":"]}"}],"d":null}`, "{\n \"a\" : \"x\\\"y\\\\\" ,\t\"b\":true}",
	`{"a":{"b":{"c":[[],[{}],"\\"]}},"e":-1.5e+9}`, `{"\u0061":"\u00e4","b c":""}`, `{"a":1,"a":2}`, `{"A":1,"a":2}`,
	`[]`, `[1]`, `"x"`, `5`, `null`, ``, ` `, `{"a":"\\\\"}`, `{"a":[1 , 2],"b" : {"x":1 } }`,
}

// FuzzReadObject compares the reader with encoding/json.
func FuzzReadObject(f *testing.F) {
	for _, s := range objects {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := parseObject(text)
		var want map[string]json.RawMessage
		if strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") && json.Unmarshal([]byte(text), &want) != nil {
			want = nil
		}
		if (got == nil) != (want == nil) || len(got) != len(want) {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
		for name, raw := range want {
			if string(got[name]) != string(raw) {
				t.Fatalf("%q: member %q is %q, want %q", text, name, got[name], raw)
			}
			var elements []json.RawMessage
			isArray := len(raw) > 0 && raw[0] == '[' && json.Unmarshal(raw, &elements) == nil
			if list, ok := got.array(name); ok != isArray || ok && !reflect.DeepEqual(list, elements) {
				t.Fatalf("%q: elements %q, want %q", raw, list, elements)
			}
			var s string
			isText := len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil
			if text, ok := got.text(name); ok != isText || text != s {
				t.Fatalf("%q: text %q %v, want %q", raw, text, ok, s)
			}
		}
	})
}

// A prompt with images is read at the speed of looking for quotes: encoding/json
// looks at every byte several times.
func BenchmarkReadObject(b *testing.B) {
	raw := json.RawMessage(`{"sessionId":"s","prompt":[{"type":"image","data":"` + strings.Repeat("A", 8<<20) + `"}]}`)
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		blocks, _ := readObject(raw).array("prompt")
		if data := readObject(blocks[0]).textOr("data"); len(data) != 8<<20 {
			b.Fatalf("%d bytes", len(data))
		}
	}
}
