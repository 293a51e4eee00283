package session

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
)

// anyText draws texts with everything that JSON and terminals treat specially,
// and bytes that are no UTF-8.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"", "x", "a\u2028b\u2029<&>", "\xff\xfe", "\x00\x1b[0m", `{"seq":1,"time":"`, "line\r\nline", "\\ufffd \ufffd"}),
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) string { return string(b) }),
	)
}

func anyRaw() *rapid.Generator[[]byte] {
	return rapid.Map(rapid.SampledFrom([]string{"", `{"a": 1.50}`, `[ ]`, `{"sig":"<\u2028>"}`, `not json`}), func(s string) []byte {
		if s == "" {
			return nil
		}
		return []byte(s)
	})
}

// callIDs are few, so that records meet each other, and bad ones are among them.
var callIDs = []string{"a", "b", "c", "a_2", ""}

func anyID() *rapid.Generator[string] { return rapid.SampledFrom(callIDs) }

func anyCall() *rapid.Generator[llm.ToolCall] {
	return rapid.Custom(func(t *rapid.T) llm.ToolCall {
		return llm.ToolCall{
			ID: anyID().Draw(t, "id"), Name: anyText().Draw(t, "name"),
			Arguments: anyText().Draw(t, "arguments"), Extra: anyRaw().Draw(t, "extra"),
		}
	})
}

func anyUsage(t *rapid.T) *llm.Usage {
	if rapid.Bool().Draw(t, "no usage") {
		return nil
	}
	u := &llm.Usage{PromptTokens: rapid.IntRange(0, 1e6).Draw(t, "prompt"), CompletionTokens: rapid.IntRange(0, 1e4).Draw(t, "completion")}
	if rapid.Bool().Draw(t, "timings") {
		u.Timings = &llm.Timings{CacheN: 3, PromptMS: rapid.Float64Range(0, 1e6).Draw(t, "ms")}
	}
	return u
}

func anyUser(pictures []*llm.Image) *rapid.Generator[*UserMessage] {
	return rapid.Custom(func(t *rapid.T) *UserMessage {
		m := &UserMessage{Continuation: rapid.Bool().Draw(t, "continuation")}
		for range rapid.IntRange(0, 3).Draw(t, "parts") {
			if rapid.IntRange(0, 3).Draw(t, "image") == 0 {
				m.Parts = append(m.Parts, rapid.SampledFrom(pictures).Draw(t, "picture"))
			} else {
				m.Parts = append(m.Parts, llm.Text(anyText().Draw(t, "text")))
			}
		}
		return m
	})
}

func anyAnswer() *rapid.Generator[*AssistantMessage] {
	return rapid.Custom(func(t *rapid.T) *AssistantMessage {
		m := &AssistantMessage{
			Text: anyText().Draw(t, "text"), Calls: rapid.SliceOfN(anyCall(), 0, 3).Draw(t, "calls"),
			Finish: llm.FinishStop, Interrupted: rapid.IntRange(0, 5).Draw(t, "interrupted") == 0,
			Discarded: rapid.IntRange(0, 5).Draw(t, "discarded") == 0, Usage: anyUsage(t),
			Target: llm.Target{Provider: "p", Model: anyText().Draw(t, "model")},
		}
		if rapid.Bool().Draw(t, "reasoning") {
			m.Reasoning = &llm.Reasoning{Text: anyText().Draw(t, "thought"), Field: "reasoning", Details: anyRaw().Draw(t, "details")}
		}
		return m
	})
}

func anyRequestHeader() *rapid.Generator[*RequestHeader] {
	return rapid.Custom(func(t *rapid.T) *RequestHeader {
		h := testHeader(anyText().Draw(t, "model"))
		h.System, h.Memory = anyText().Draw(t, "system"), anyText().Draw(t, "memory")
		h.Snapshot.Effort = rapid.SampledFrom(append(llm.Efforts(), 0)).Draw(t, "effort")
		h.Snapshot.Refusals = h.Snapshot.Refusals.With(llm.RefusedEffortValue(anyText().Draw(t, "refused")))
		h.Snapshot.Window.Evidence = []llm.Evidence{{Field: anyText().Draw(t, "field"), Value: "1e3"}}
		h.Snapshot.Capabilities.Vision.Support = rapid.SampledFrom([]llm.Support{llm.Unknown, llm.Supported, llm.Unsupported}).Draw(t, "vision")
		if rapid.Bool().Draw(t, "no temperature") {
			h.Temperature = nil
		}
		return h
	})
}

// anyRecord draws records of every type.
func anyRecord(pictures []*llm.Image) *rapid.Generator[Record] {
	return rapid.Custom(func(t *rapid.T) Record {
		switch rapid.IntRange(0, 16).Draw(t, "kind") {
		case 0:
			return &TurnStart{}
		case 1, 2:
			return anyUser(pictures).Draw(t, "user")
		case 3:
			return anyRequestHeader().Draw(t, "header")
		case 4:
			p := &RequestPlan{MaxTokens: 5, Policy: 2, PreviousUsed: rapid.Bool().Draw(t, "used")}
			p.Report.OmittedNotes = rapid.SliceOfN(anyText(), 0, 2).Draw(t, "notes")
			if rapid.Bool().Draw(t, "next") {
				p.Next = &budget.Previous{Policy: 2, Shape: budget.Shape{Digest: rapid.Uint64().Draw(t, "digest")}}
			}
			return p
		case 5, 6, 7:
			return anyAnswer().Draw(t, "answer")
		case 8:
			return &ToolCall{ID: anyID().Draw(t, "id"), Name: "n", Arguments: anyText().Draw(t, "arguments"), Started: rapid.Bool().Draw(t, "started")}
		case 9, 10, 11:
			return &ToolResult{
				ID: anyID().Draw(t, "id"), Text: anyText().Draw(t, "text"),
				Status: rapid.SampledFrom([]Status{StatusOK, StatusError, StatusDenied, StatusNotExecuted, StatusUnknown}).Draw(t, "status"),
			}
		case 12:
			return &PermissionDecision{CallID: anyID().Draw(t, "id"), Decision: "allow_once", Allowed: rapid.Bool().Draw(t, "allowed"), Scopes: rapid.SliceOfN(anyText(), 0, 2).Draw(t, "scopes")}
		case 13:
			return &PlanNotice{Text: anyText().Draw(t, "text"), Groups: 4}
		case 14:
			return &TurnEnd{Reason: EndError, Code: llm.CodeServer, Message: anyText().Draw(t, "message")}
		case 15:
			return &SessionInfo{Title: anyText().Draw(t, "title")}
		default:
			return rapid.SampledFrom([]Record{
				&Retry{Attempt: 1, Code: llm.CodeRateLimit, WaitMS: 500},
				&Unknown{Type: "future/thing", Data: []byte(`{"a": [1, 2]}`)},
				&Unknown{Type: "od\"d \u2028", Data: []byte(`"text"`)},
			}).Draw(t, "other")
		}
	})
}

// What Append leaves in a record is what its line reads back as.
func TestRecordRoundTrip(t *testing.T) {
	pictures := []*llm.Image{picture(t, 1), picture(t, 2)}
	rapid.Check(t, func(t *rapid.T) {
		l := Memory("/w")
		rec := anyRecord(pictures).Draw(t, "record")
		if err := l.Append(rec); err != nil {
			t.Fatal(err)
		}
		var last Record
		for r, err := range l.Records() {
			if err != nil {
				t.Fatal(err)
			}
			last = r
		}
		if !reflect.DeepEqual(last, rec) {
			t.Fatalf("got %#v\nwant %#v", last, rec)
		}
	})
}

// The set of records is known to the decoder, each by its own name.
func TestEveryKindDecodesToItsType(t *testing.T) {
	all := []Record{
		&TurnStart{}, &UserMessage{}, &RequestHeader{}, &RequestPlan{}, &AssistantMessage{}, &ToolCall{}, &ToolResult{},
		&PermissionDecision{}, &PlanNotice{}, &Retry{}, &TurnEnd{}, &SessionInfo{}, &Attachment{},
	}
	for _, rec := range all {
		if got := newRecord(rec.Kind()); reflect.TypeOf(got) != reflect.TypeOf(rec) {
			t.Errorf("%s decodes to %T", rec.Kind(), got)
		}
	}
	if got := newRecord("future/thing"); got.Kind() != "future/thing" {
		t.Errorf("an unknown type decodes to %T %q", got, got.Kind())
	}
}

// A tool comes back byte for byte, with the size of the schema as it was given.
func TestToolDefsComeBack(t *testing.T) {
	defs := []llm.ToolDef{
		llm.NewToolDef("a", "spaced <schema>", []byte("{ \"b\": 1.50, \"a\": \"\\u003c\u2028\" }        ")),
		llm.NewToolDef("b", "", []byte(`{}`)),
		llm.NewToolDef("c", "no object", []byte(`not a schema that is long enough`)),
	}
	h := testHeader("m")
	h.Tools = NewTools(defs)
	l := Memory("/w")
	s := l.NewState()
	appendAll(t, l, s, h)
	reloaded, err := l.Fold()
	if err != nil {
		t.Fatal(err)
	}
	if got := reloaded.Header.ToolDefs(); !reflect.DeepEqual(got, defs) {
		t.Errorf("got %+v\nwant %+v", got, defs)
	}
	if !h.Equal(reloaded.Header) || h.Equal(testHeader("m")) || (*RequestHeader)(nil).Equal(h) {
		t.Error("headers compare wrong")
	}
	if got := NewTools([]llm.ToolDef{{Name: "hand-made"}}); string(got[0].Parameters) != `{"type":"object"}` {
		t.Errorf("a tool without a schema is logged as %s", got[0].Parameters)
	}
}

func TestAppendRefusesWhatCannotBeLogged(t *testing.T) {
	l := Memory("/w")
	before := text(t, l)
	for name, rec := range map[string]Record{
		"no type":         &Unknown{Data: []byte(`{}`)},
		"type of another": &Unknown{Type: "turn/end", Data: []byte(`{}`)},
		"no data":         &Unknown{Type: "x"},
		"bad data":        &Unknown{Type: "x", Data: []byte(`{`)},
		"nil part":        &UserMessage{Parts: []llm.Part{nil}},
	} {
		if err := l.Append(rec); err == nil || l.Unsaved() != nil {
			t.Errorf("%s: error %v, unsaved %v", name, err, l.Unsaved())
		}
	}
	if !bytes.Equal(before, text(t, l)) {
		t.Error("a refused record left something in the log")
	}
}

func TestLineLimit(t *testing.T) {
	st := &Stamp{}
	empty, err := appendLine(nil, st, "x", []byte(`""`))
	if err != nil {
		t.Fatal(err)
	}
	room := MaxLine - len(empty)
	data := make([]byte, room+3) // room for quotes and one byte too many; appendLine does not look inside
	buffer := make([]byte, 0, MaxLine+1)
	line, err := appendLine(buffer, st, "x", data[:room+2])
	if err != nil || len(line) != MaxLine {
		t.Fatalf("a line of %d bytes: %v", len(line), err)
	}
	if _, err := appendLine(buffer, st, "x", data); err == nil {
		t.Error("a longer line is taken")
	}
	if limit := NewReader(bytes.NewReader(nil), nil).lines.max; limit != MaxLine { // see TestLineReaderAtItsLimit
		t.Errorf("lines of up to %d bytes are read", limit)
	}
}

func TestLineReaderAtItsLimit(t *testing.T) {
	for _, test := range []struct {
		in   string
		want string
	}{
		{"abc\nd\n", "[abc 0][d 4]"},
		{"abcd\nd\n", "[long 0][d 5]"},
		{"abcdefgh", "[long 0]"},
		{"\r\n\nabc", "[ 0][ 2][abc 3 open]"},
		{"", ""},
	} {
		var got strings.Builder
		rd := newLineReader(strings.NewReader(test.in), 4)
		for {
			line, err := rd.next()
			if err != nil {
				break
			}
			s := string(line.text)
			if line.tooLong {
				s = "long"
			}
			open := ""
			if !line.ended && !line.tooLong {
				open = " open"
			}
			fmt.Fprintf(&got, "[%s %d%s]", s, line.start, open)
		}
		if got.String() != test.want {
			t.Errorf("%q: %s, want %s", test.in, got.String(), test.want)
		}
	}
}
