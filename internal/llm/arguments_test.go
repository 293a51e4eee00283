package llm_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
)

func TestRepairArguments(t *testing.T) {
	tests := []struct{ name, raw, want string }{
		{"object", `{"a":1}`, `{"a":1}`},
		{"spaces around", " {\"a\":1}\n", `{"a":1}`},
		{"nothing", "", "{}"},
		{"null", "null", "{}"},
		{"raw line feed in a string", "{\"a\":\"x\ny\"}", `{"a":"x\u000ay"}`},
		{"line feeds between members stay", "{\n\"a\":\t1\n}", "{\n\"a\":\t1\n}"},
		{"encoded twice", `"{\"a\":\"b\"}"`, `{"a":"b"}`},
		{"quote after a backslash", "{\"a\":\"\\\\\",\"b\":\"\t\"}", `{"a":"\\","b":"\u0009"}`},
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
		`{"path": oops`: 10, `{"a":1`: 6, `[1]`: 0, `3`: 0, `"text"`: 0, `{"a":1}{"b":2}`: 8, `"\"{}\""`: 0,
	} {
		got, err := llm.RepairArguments(raw)
		bad, ok := errors.AsType[*llm.ArgumentsError](err)
		if !ok || bad.Offset != offset {
			t.Errorf("%s: %q, %v; want an error at byte %d", raw, got, err, offset)
		}
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
		if !json.Valid([]byte(object)) || object[0] != '{' {
			t.Fatalf("%q became %q", raw, object)
		}
		if again, err := llm.RepairArguments(object); err != nil || again != object {
			t.Fatalf("%q became %q, then %q (%v)", raw, object, again, err)
		}
	})
}
