package openai

import (
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
	"pgregory.net/rapid"
)

// Whatever an engine says in which deltas: text and reasoning arrive whole and
// in order, and calls as they were cut.
func TestDecodeStreamProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var body, text, think strings.Builder
		args := rapid.SliceOfN(rapid.StringMatching(`[a-z "\\\n{}]{0,9}`), 0, 3).Draw(t, "arguments")
		piece := rapid.StringMatching(`[a-z]([a-zA-Z0-9 .,\n"\\äß🌍]{0,20})`)
		if n := rapid.IntRange(0, 5).Draw(t, "thoughts"); n > 0 {
			for range n {
				s := piece.Draw(t, "thought")
				think.WriteString(s)
				body.WriteString(delta(`{"reasoning":` + quote(s) + `}`))
			}
		}
		for range rapid.IntRange(1, 5).Draw(t, "texts") {
			s := piece.Draw(t, "text")
			text.WriteString(s)
			body.WriteString(content(s))
		}
		for i, a := range args {
			raw := `{"s":` + quote(a) + `}`
			cut := rapid.IntRange(0, len(raw)).Draw(t, "cut")
			index := `"index":` + string(rune('0'+i))
			body.WriteString(calls(`{` + index + `,"id":"k` + string(rune('0'+i)) + `","function":{"name":"f","arguments":` + quote(raw[:cut]) + `}}`))
			body.WriteString(calls(`{` + index + `,"function":{"arguments":` + quote(raw[cut:]) + `}}`))
		}
		body.WriteString(finish("stop") + done)
		if rapid.Bool().Draw(t, "CRLF") {
			b := strings.ReplaceAll(body.String(), "\n", "\r\n")
			body.Reset()
			body.WriteString(b)
		}
		events, err := checkStream(t, strings.NewReader(body.String()), nil, limits{1 << 20, 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		var gotText, gotThink string
		var gotCalls llm.ToolCalls
		for _, e := range events {
			switch e := e.(type) {
			case llm.TextDelta:
				gotText += string(e)
			case llm.ReasoningDelta:
				gotThink += string(e)
			case llm.ToolCalls:
				gotCalls = e
			}
		}
		if gotText != text.String() || gotThink != think.String() || len(gotCalls) != len(args) {
			t.Fatalf("text %q, want %q; reasoning %q, want %q; %d calls", gotText, text.String(), gotThink, think.String(), len(gotCalls))
		}
		for i, c := range gotCalls {
			if want := `{"s":` + quote(args[i]) + `}`; c.Arguments != want {
				t.Fatalf("arguments %q, want %q", c.Arguments, want)
			}
		}
	})
}
