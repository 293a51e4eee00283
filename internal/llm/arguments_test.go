package llm_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
)

func TestRepairArguments(t *testing.T) {
	tests := []struct{ name, raw, want string }{
		{"object", `{"a":1}`, `{"a":1}`},
		{"spaces around", " {\"a\":1}\n", " {\"a\":1}\n"},
		{"nothing", "", "{}"},
		{"null", "null", "{}"},
		{"raw line feed in a string", "{\"a\":\"x\ny\"}", `{"a":"x\ny"}`},
		{"line feeds between members stay", "{\n\"a\":\t1\n}", "{\n\"a\":\t1\n}"},
		{"encoded twice", `"{\"a\":\"b\"}"`, `{"a":"b"}`},
		{"quote after a backslash", "{\"a\":\"\\\\\",\"b\":\"\t\"}", `{"a":"\\","b":"\t"}`},
	}
	for _, tt := range tests {
		got, err := llm.RepairArguments(tt.raw)
		if err != nil || got != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("%s: %q is no JSON", tt.name, got)
		}
	}
	for raw, offset := range map[string]int{
		`{"path": oops`: 9, `{"a":1`: 5, `[1]`: 0, `3`: 0, `"text"`: 0, `{"a":1}{"b":2}`: 7, `"\"{}\""`: 0,
		`"null"`: 0, ` "{\"a\":"`: 1, "{\"a\":\"x\ny\",}": 11, `{'a':1}`: 1, `{"a":01}`: 6, "{\"a\":1\x00}": 6,
		`{"path":"a","content":"half`: 26, "{\"command\":\"echo one \\\n two\"}": 22,
	} {
		got, err := llm.RepairArguments(raw)
		bad, ok := errors.AsType[*llm.ArgumentsError](err)
		if !ok || bad.Offset != offset {
			t.Errorf("%s: %q, %v; want an error at byte %d", raw, got, err, offset)
		}
	}
}

func TestCoerceArguments(t *testing.T) {
	schema := `{"type":"object","properties":{
		"plan":{"type":"array","items":{"type":"object","properties":{"opts":{"type":"object"}}}},
		"content":{"type":"string"},
		"either":{"type":["array","string"]},
		"maybe":{"anyOf":[{"type":"array"},{"type":"null"}]},
		"free":{}}}`
	tests := []struct{ name, args, want string }{
		{"an array", `{"plan":"[{\"step\":\"s\"}]","n":1.0}`, `{"n":1.0,"plan":[{"step":"s"}]}`},
		{"a string stays", `{"content":"[1]"}`, `{"content":"[1]"}`},
		{"a string is allowed as well", `{"either":"[1]"}`, `{"either":"[1]"}`},
		{"an alternative", `{"maybe":"[1]"}`, `{"maybe":[1]}`},
		{"of another type", `{"plan":"{\"a\":1}"}`, `{"plan":"{\"a\":1}"}`},
		{"no JSON", `{"plan":"[1,"}`, `{"plan":"[1,"}`},
		{"no schema for it", `{"free":"[1]", "other":"{}"}`, `{"free":"[1]", "other":"{}"}`},
		{"nested", `{"plan":[{"opts":"{\"a\":1}"},{"opts":{}}],"content":"x"}`, `{"content":"x","plan":[{"opts":{"a":1}},{"opts":{}}]}`},
		{"nothing to do keeps the bytes", ` {"plan" : [ ] } `, ` {"plan" : [ ] } `},
		{"no arguments", `{`, `{`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := llm.CoerceArguments(tt.args, schema); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	if got := llm.CoerceArguments(`{"a":"[]"}`, `{`); got != `{"a":"[]"}` {
		t.Errorf("broken schema: %s", got)
	}
}

func FuzzRepairArguments(f *testing.F) {
	for _, seed := range []string{`{"a":"b"}`, `"{}"`, "{\"a\":\"\n\"}", `{"a`, "\\\"\x01"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		object, err := llm.RepairArguments(raw)
		if err != nil {
			return
		}
		if !json.Valid([]byte(object)) || strings.TrimSpace(object)[0] != '{' {
			t.Fatalf("%q became %q", raw, object)
		}
		if again, err := llm.RepairArguments(object); err != nil || again != object {
			t.Fatalf("%q became %q, then %q (%v)", raw, object, again, err)
		}
	})
}
