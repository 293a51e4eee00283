package openai

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
)

func TestDecodeModels(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"data", `{"object":"list","data":[{"id":"brook","object":"model","owned_by":"vllm"},{"id":"ridge/9b:q4","name":"Ridge"}]}`, "brook|brook|vllm ridge/9b:q4|Ridge|"},
		{"models beside data", `{"models":[{"name":"other","model":"other"}],"object":"list","data":[{"id":"brook.gguf","owned_by":"llamacpp"}]}`, "brook.gguf|brook.gguf|llamacpp"},
		{"models alone", `{"models":[{"name":"brook:latest","model":"brook:latest"},{"key":"mill/brook"}]}`, "brook:latest|brook:latest| mill/brook|mill/brook|"},
		{"an array", `[{"id":"a"},"b"]`, "a|a| b|b|"},
		{"a byte order mark", "\ufeff" + `{"data":[{"id":"a"}]}`, "a|a|"},
		{"null", `null`, ""},
		{"data of null", `{"object":"list","data":null}`, ""},
		{"models of null", `{"models":null}`, ""},
		{"nothing", `{"data":[]}`, ""},
		{"unusable entries", `{"data":[{"id":""},{"id":7},{"id":null},{},null,5,[],{"id":"a\nb"},{"id":"a\u200bb"},{"id":"a\ud800"},{"id":"good"}]}`, "good|good|"},
		{"blank ids", `{"data":[{"id":" "},{"id":"\u00a0\u3000"},{"id":"\u2028","name":"Line"},"\u2003",{"id":" good "}]}`, " good | good |"},
		{"duplicates", `{"data":[{"id":"a","owned_by":"x"},{"id":"b"},{"id":"a","owned_by":"y"}]}`, "a|a|x b|b|"},
		{"names differ in case", `{"Data":[{"id":"no"}],"data":[{"ID":"no","id":"yes","Owned_By":"no"}]}`, "yes|yes|"},
		{"no chat models", `{"data":[{"id":"a","type":"embeddings"},{"id":"b","type":"llm"},{"id":"c","model_type":"Reranker"},{"id":"embed-d"},{"id":"e","mode":"chat"},{"id":"f","type":["embedding"]}]}`,
			"a|a||not b|b| c|c||not embed-d|embed-d| e|e| f|f|"},
		{"display name", `{"data":[{"id":"a","display_name":"A"},{"id":"b","name":" "},{"id":"c","display_name":"no","name":"C"}]}`, "a|A| b|b| c|C|"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := DecodeModels([]byte(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range c.Entries {
				s := e.ID + "|" + e.Name + "|" + e.OwnedBy
				if e.NotChat {
					s += "|not"
				}
				got = append(got, s)
			}
			if s := strings.Join(got, " "); s != tt.want || c.Omitted != 0 {
				t.Errorf("got %q, want %q, omitted %d", s, tt.want, c.Omitted)
			}
		})
	}
}

func TestDecodeModelsKeepsEvidence(t *testing.T) {
	c, err := DecodeModels([]byte(`{"data":[ {"id":"a", "meta":{"n_ctx":2048.0}} ]}`))
	if err != nil || string(c.Entries[0].Raw) != `{"id":"a", "meta":{"n_ctx":2048.0}}` {
		t.Errorf("%v %s", err, c.Entries[0].Raw)
	}
}

func TestDecodeModelsLimits(t *testing.T) {
	var b strings.Builder
	for i := range MaxCatalogueEntries + 3 {
		fmt.Fprintf(&b, `{"id":"m%d"},{"id":"m%d"},`, i, i)
	}
	body := `{"data":[` + b.String() + `{"id":"m0"}]}`
	c, err := DecodeModels([]byte(body))
	if err != nil || len(c.Entries) != MaxCatalogueEntries || c.Omitted != 3 {
		t.Errorf("%v: %d entries, %d omitted", err, len(c.Entries), c.Omitted)
	}
	for n, want := range map[int]int{MaxModelIDBytes: 1, MaxModelIDBytes + 1: 0} {
		c, err := DecodeModels([]byte(`[` + quote(strings.Repeat("x", n)) + `]`))
		if err != nil || len(c.Entries) != want {
			t.Errorf("an id of %d bytes: %v, %d entries", n, err, len(c.Entries))
		}
	}
}

func TestDecodeModelsErrors(t *testing.T) {
	for _, body := range []string{``, `{`, `{}`, `7`, `"x"`, `{"data":{}}`, `{"data":[]} x`, `{"error":"x"}`, `<html>`} {
		_, err := DecodeModels([]byte(body))
		if llm.CodeOf(err) != llm.CodeMalformedResponse {
			t.Errorf("%s: %v", body, err)
		}
	}
}
