package session

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/llm"
)

// The sample was written by the first release of format version 1 and is never
// to be changed: logs of that form are on people's disks. It holds a record of
// every type.
func TestFormatVersion1(t *testing.T) {
	const id = "01m8p570kv0000000000000001"
	root := fastDir(t)
	if err := os.CopyFS(filepath.Join(root, "folder"), os.DirFS("testdata/v1")); err != nil {
		t.Fatal(err)
	}
	store := NewStore(root)
	s, err := store.Read(id)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Warnings) > 0 {
		t.Errorf("warnings %v", s.Warnings)
	}
	validHistory(t, s)
	want := []string{
		"u(what is in this picture?)", "a(Let me look. call_1 call_2)",
		"t(call_1: package a\n)", "t!(call_2: The user refused this call.)", "U(and be quick)", "a(It is a)", "u(go on)", "a(A picture.)",
	}
	if got := short(s.Messages); !reflect.DeepEqual(got, want) {
		t.Errorf("messages\n%q, want\n%q", got, want)
	}
	if img := s.Messages[0].Images(); len(img) != 1 || img[0].Name != "w3.png" || img[0].Width != 3 || img[0].MediaType != "image/png" {
		t.Errorf("images %+v", img)
	}
	if s.CWD != "/home/ann/site" || s.Title != "what is in this picture?" || s.Turns != 2 || s.NextSeq != 25 || s.OpenTurn {
		t.Errorf("state %+v", s)
	}
	if want := time.Date(2026, 11, 30, 12, 0, 0, 123e6, time.UTC); !s.Created.Equal(want) {
		t.Errorf("created %v", s.Created)
	}
	h := s.Header
	if h.Snapshot.Target != (llm.Target{Provider: "local", Model: "qwen"}) || h.Snapshot.Effort != llm.Climb || h.Snapshot.Window.Source != llm.Effective || *h.Temperature != 0.6 {
		t.Errorf("header %+v", h)
	}
	tool := llm.NewToolDef("read", "Read a <file>", []byte(`{ "type": "object", "properties": {"path": {"type":"string"}}, "x": 1.50 }`))
	if got := h.ToolDefs(); !reflect.DeepEqual(got, []llm.ToolDef{tool}) {
		t.Errorf("tools %+v", got)
	}
	if s.Usage != (Totals{Requests: 2, PromptTokens: 320, CompletionTokens: 50, CachedTokens: 90, ReasoningTokens: 9}) {
		t.Errorf("usage %+v", s.Usage)
	}
	if p := s.Previous; p == nil || p.PromptTokens != 200 || p.Window != 8192 || p.Shape.Digest != 1<<63 || p.Shape.FirstTurn != 1 {
		t.Errorf("previous %+v", s.Previous)
	}
	if s.Notice == nil || s.Notice.Exchanges != 3 || s.End == nil || s.End.Reason != EndMaxTokens {
		t.Errorf("notice %+v, end %+v", s.Notice, s.End)
	}
	infos, err := store.List(nil)
	if err != nil || len(infos) != 1 || infos[0].Title != s.Title || infos[0].Turns != 2 || infos[0].Target != h.Snapshot.Target {
		t.Errorf("list %+v, %v", infos, err)
	}
}

// What this version writes is what the sample holds, byte for byte. The report
// of a plan is package budget's, and may grow.
func TestFormatVersion1IsWritten(t *testing.T) {
	data, err := os.ReadFile("testdata/v1/01m8p570kv0000000000000001.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	rd := NewReader(bytes.NewReader(data), nil)
	lines := bytes.SplitAfter(data, []byte("\n"))
	seen := make(map[string]bool)
	for i := 1; ; i++ {
		rec, err := rd.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		seen[rec.Kind()] = true
		if rec.Kind() == "request/plan" {
			continue
		}
		encoded, err := settle(rec)
		if err != nil {
			t.Fatal(err)
		}
		line, err := appendLine(nil, rec.stamp(), rec.Kind(), encoded)
		if err != nil || !bytes.Equal(line, lines[i]) {
			t.Errorf("%v\n got %s\nwant %s", err, line, lines[i])
		}
	}
	if header := rd.header.line(); !bytes.Equal(header, lines[0]) {
		t.Errorf("header\n got %s\nwant %s", header, lines[0])
	}
	if len(seen) != 14 {
		t.Errorf("the sample has records of %d types", len(seen))
	}
}

// What version 1 may still get: this program, too, reads a log with all of that
// without a warning and goes on with it. A name that it does not know where only
// some are allowed costs the record; so such names are no part of what may come.
func TestWhatVersion1MayGet(t *testing.T) {
	line := func(seq int, kind, data string) string {
		return fmt.Sprintf(`{"seq":%d,"time":"2027-01-01T00:00:00.000Z","type":%q,"data":%s}`+"\n", seq, kind, data)
	}
	s := foldLines(t,
		line(0, "turn/start", `{"turn":1,"new":true}`),
		line(1, "user/message", `{"parts":[{"text":"q"},{"sound":{"sha256":""}}],"new":[]}`),
		line(2, "request/header", `{"snapshot":{"target":{"provider":"p","model":"m"},"effort":"climb","new":{}},"system":"s","new":1}`),
		line(3, "request/plan", `{"maxTokens":1,"policy":99,"report":{"new":1}}`),
		line(4, "assistant/message", `{"calls":[{"id":"a","name":"n","arguments":"{}","new":1}],"finish":"a new reason"}`),
		line(5, "tool/call", `{"id":"a","name":"n","arguments":"{}","started":true,"new":1}`),
		line(6, "a new/type", `"anything"`),
		line(7, "tool/result", `{"id":"a","status":"a new status","text":"r"}`),
		line(8, "turn/end", `{"reason":"a new reason","code":"A_NEW_CODE","turn":1}`),
	)
	if len(s.Warnings) > 0 || !s.Intact() || s.OpenTurn || s.NextSeq != 9 {
		t.Errorf("state %+v", s)
	}
	want := []string{"u(q[a part of a kind that this version does not know])", "a( a)", "t!(a: r)"}
	if got := short(s.Messages); !reflect.DeepEqual(got, want) {
		t.Errorf("messages %q, want %q", got, want)
	}
	for _, snapshot := range []string{`{"effort":"gallop"}`, `{"profile":"new"}`, `{"window":{"source":"new"}}`, `{"capabilities":{"tools":{"support":"new"}}}`} {
		s := foldLines(t, line(0, "request/header", `{"snapshot":`+snapshot+`,"system":""}`), say(1, "q"))
		if s.Unreadable != 1 || len(s.Messages) != 1 {
			t.Errorf("%s: %d lines unreadable, messages %q", snapshot, s.Unreadable, short(s.Messages))
		}
	}
}
