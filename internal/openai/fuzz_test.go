package openai

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/drover-dev/drover/internal/llm"
)

// checkStream holds an answer, whatever its bytes, to what DecodeStream
// promises, and gives what was said.
func checkStream(t interface{ Fatalf(string, ...any) }, r io.Reader, opts *StreamOptions, max limits) ([]llm.Event, error) {
	var events []llm.Event
	var failure error
	counts := map[string]int{}
	last := ""
	for e, err := range decodeStream(r, opts, max) {
		if failure != nil {
			t.Fatalf("something follows the error %v", failure)
		}
		if last == "finish" {
			t.Fatalf("something follows the finish")
		}
		if err != nil {
			var typed *llm.Error
			if e != nil || !errors.As(err, &typed) || typed.Code == "" || typed.Message == "" {
				t.Fatalf("error %#v beside event %v", err, e)
			}
			failure = err
			continue
		}
		switch e := e.(type) {
		case llm.TextDelta:
			last = "delta"
			if e == "" || !utf8.ValidString(string(e)) {
				t.Fatalf("text %q", e)
			}
		case llm.ReasoningDelta:
			last = "delta"
			if e == "" || !utf8.ValidString(string(e)) {
				t.Fatalf("reasoning %q", e)
			}
		case llm.ToolCallDelta:
			last = "delta"
		case llm.ToolCalls:
			last = "calls"
			if len(e) == 0 || len(e) > maxCalls {
				t.Fatalf("%d calls", len(e))
			}
			for _, c := range e {
				if c.Extra != nil && !json.Valid(c.Extra) {
					t.Fatalf("extra %q", c.Extra)
				}
			}
		case llm.Usage:
			last = "usage"
			if e.PromptTokens < 0 || e.CompletionTokens < 0 || e.CachedTokens < 0 || e.ReasoningTokens < 0 {
				t.Fatalf("usage %+v", e)
			}
		case llm.Finish:
			last = "finish"
			if r := e.Reasoning; r != nil && r.Details != nil && !json.Valid(r.Details) {
				t.Fatalf("details %q", r.Details)
			}
		}
		if last != "delta" {
			if counts[last]++; counts[last] > 1 {
				t.Fatalf("%s twice", last)
			}
		}
		events = append(events, e)
	}
	if (failure == nil) != (last == "finish") {
		t.Fatalf("ended with %v after %q", failure, last)
	}
	return events, failure
}

func FuzzDecodeStream(f *testing.F) {
	for _, c := range allStreamCases() {
		f.Add(c.body, false)
		f.Add(c.body, true)
	}
	f.Fuzz(func(t *testing.T, body string, supported bool) {
		opts := offer("run_line", "list_dir", "read")
		opts.ReasoningSupported = supported
		max := limits{line: 4096, response: 32768}
		want, wantErr := checkStream(t, strings.NewReader(body), opts, max)
		got, err := checkStream(t, iotest.OneByteReader(strings.NewReader(body)), opts, max)
		if !reflect.DeepEqual(got, want) || llm.CodeOf(err) != llm.CodeOf(wantErr) {
			t.Fatalf("byte by byte\n%s\nat once\n%s", summary(got, err), summary(want, wantErr))
		}
	})
}

// FuzzContent sends a text as content in two pieces: nothing of it is lost, and
// where it is cut changes nothing.
func FuzzContent(f *testing.F) {
	for _, s := range []string{"a < b", "<think>x</think>y", "  <think>", "a <think>b", "<tool_call>{", "``` `<think>", "x</think>y", "[TOOL_CALLS]", "\n\n", "<think</think>>"} {
		f.Add(s, 1, true)
		f.Add(s, 3, false)
	}
	f.Fuzz(func(t *testing.T, text string, cut int, supported bool) {
		if !utf8.ValidString(text) || strings.Count(text, "`") > 100 {
			return
		}
		cut = max(0, min(len(text), cut))
		for cut < len(text) && !utf8.RuneStart(text[cut]) {
			cut++
		}
		opts := &StreamOptions{ReasoningSupported: supported}
		whole := said(ended(content(text)), opts)
		if got := said(ended(contents(text[:cut], text[cut:])), opts); got != whole {
			t.Fatalf("%q cut at %d: %s, whole %s", text, cut, got, whole)
		}
		events, err := record(DecodeStream(strings.NewReader(ended(content(text))), opts))
		if err != nil {
			if llm.CodeOf(err) != llm.CodeEmptyResponse && !strings.Contains(text, "<|channel|>") {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		var all strings.Builder
		for _, e := range events {
			switch e := e.(type) {
			case llm.TextDelta:
				all.WriteString(string(e))
			case llm.ReasoningDelta:
				all.WriteString(string(e))
			}
		}
		if !onlyTagsTaken(text, all.String()) {
			t.Fatalf("%q became %q", text, all.String())
		}
	})
}

// onlyTagsTaken reports whether what is left of a text is the text without some
// of its tags and some of its white space. The tags are those of the text:
// taking one away may leave another ("<think</think>>").
func onlyTagsTaken(text, left string) bool {
	// reached[i] has every length of left that the first i bytes may have become.
	reached := make([]map[int]bool, len(text)+1)
	reach := func(i, n int) {
		if reached[i] == nil {
			reached[i] = make(map[int]bool)
		}
		reached[i][n] = true
	}
	reach(0, 0)
	for i := range len(text) {
		for n := range reached[i] {
			if n < len(left) && left[n] == text[i] {
				reach(i+1, n+1)
			}
			if isSpace(text[i]) {
				reach(i+1, n)
			}
			for _, tag := range []string{openTag, closeTag} {
				if strings.HasPrefix(text[i:], tag) {
					reach(i+len(tag), n)
				}
			}
		}
		reached[i] = nil
	}
	return reached[len(text)][len(left)]
}

func FuzzDecodeModels(f *testing.F) {
	f.Add([]byte(`{"data":[{"id":"a","type":"llm"}]}`))
	f.Add([]byte(`[{"name":"a"},"b",null]`))
	f.Add([]byte(`{"models":null}`))
	f.Add([]byte(`{"data":[{"id":" "},{"id":"\u00a0","name":"\u3000"},{"id":"a","name":"\u2028"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := DecodeModels(body)
		if err != nil {
			if llm.CodeOf(err) != llm.CodeMalformedResponse {
				t.Fatal(err)
			}
			return
		}
		seen := map[string]bool{}
		for _, e := range c.Entries {
			if strings.TrimSpace(e.ID) == "" || strings.TrimSpace(e.Name) == "" || len(e.ID) > MaxModelIDBytes || seen[e.ID] || !json.Valid(e.Raw) {
				t.Fatalf("entry %+v", e)
			}
			seen[e.ID] = true
		}
		if len(c.Entries) > MaxCatalogueEntries {
			t.Fatalf("%d entries", len(c.Entries))
		}
	})
}

func FuzzDecodeError(f *testing.F) {
	f.Add(400, `{"error":{"message":"request (3 tokens) exceeds the available context size (2 tokens)"}}`)
	f.Add(500, `{"error":"x"}`)
	f.Add(422, `{"detail":[{"loc":["a",1],"msg":"b"}]}`)
	f.Add(502, `<html>`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		e := DecodeError(status, nil, []byte(body))
		if e.Code == "" || e.Message == "" || utf8.RuneCountInString(e.Message) > MaxMessageRunes || !utf8.ValidString(e.Message) ||
			e.Window < 0 || e.PromptTokens < 0 || strings.ContainsAny(e.Message, "\x00\n\x1b") {
			t.Fatalf("%+v", e)
		}
	})
}

func FuzzDecodeRequest(f *testing.F) {
	f.Add([]byte(`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}]}`))
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"tools":[{"function":{"name":"f"}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := DecodeRequest(body)
		if err != nil {
			if llm.CodeOf(err) != llm.CodeInvalidRequest || !strings.HasPrefix(err.Error(), "line ") {
				t.Fatal(err)
			}
			return
		}
		out, err := EncodeRequest(req)
		if err != nil {
			return // a late system message, an image in the wrong place
		}
		again, err := DecodeRequest(out)
		if err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		if out2, err := EncodeRequest(again); err != nil || string(out2) != string(out) {
			t.Fatalf("%v\n%s\n%s", err, out, out2)
		}
	})
}

// FuzzScanner compares the grammar with the standard library's.
func FuzzScanner(f *testing.F) {
	for _, s := range []string{`{"a":[1,-0.5e+3,true,null,"\u00e9\n"]}`, `[01]`, `"` + "\x01" + `"`, `{"a" :1 , "b":[ ]}`, `1.`, `-`, `[1,]`, `{,}`, ` 7 `} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, bad := parseDocument(data)
		if (bad == nil) != json.Valid(data) {
			t.Fatalf("%q: %v, the standard library says %v", data, bad, json.Valid(data))
		}
		if bad != nil || !utf8.Valid(data) { // what replaces invalid bytes differs
			return
		}
		var want any
		dec := json.NewDecoder(strings.NewReader(string(data)))
		dec.UseNumber()
		if err := dec.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if got := standard(v); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %#v, want %#v", data, got, want)
		}
	})
}

// standard turns a value into what encoding/json makes of it.
func standard(v value) any {
	switch v.kind() {
	case '{':
		m := map[string]any{}
		for name, e := range v.members() {
			m[string(name)] = standard(e)
		}
		return m
	case '[':
		a := []any{}
		for e := range v.elements() {
			a = append(a, standard(e))
		}
		return a
	case '"':
		return v.str()
	case 't', 'f':
		return v.kind() == 't'
	case 'n':
		return nil
	}
	return json.Number(v.raw)
}
