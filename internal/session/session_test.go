package session

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/history"
	"github.com/drover-dev/drover/internal/llm"
)

// failer is what testing and rapid have in common.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// fastDir is a folder in memory where the system has one: many tests sync, and
// what they look at does not depend on the disk.
func fastDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "drover-session-*")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// clock gives a time that goes on by a second with every look.
func clock() func() time.Time {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	return func() time.Time {
		now = now.Add(time.Second)
		return now
	}
}

// zeros is randomness that is none.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func picture(t testing.TB, width int) *llm.Image {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, 2))); err != nil {
		t.Fatal(err)
	}
	img, err := llm.NewImage(fmt.Sprintf("w%d.png", width), b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func testHeader(model string) *RequestHeader {
	temperature := 0.6
	return &RequestHeader{
		Snapshot: llm.Snapshot{
			Target: llm.Target{Provider: "local", Model: model},
			Window: llm.Window{Tokens: 8192, Source: llm.Effective},
			Effort: llm.Climb,
		},
		Temperature: &temperature,
		System:      "You are drover.",
		Tools: NewTools([]llm.ToolDef{
			llm.NewToolDef("read", "Read a <file>", []byte(`{ "type": "object", "properties": {"path": {"type":"string"}}, "x": 1.50 }`)),
		}),
	}
}

// turn is a whole turn with a call, the way an agent writes it.
func turn(n int) []Record {
	id := fmt.Sprintf("call_%d", n)
	return []Record{
		&TurnStart{},
		&UserMessage{Parts: []llm.Part{llm.Text(fmt.Sprintf("question %d: <b> & \u2028 \"quoted\"", n))}},
		testHeader("qwen"),
		&RequestPlan{MaxTokens: 4096, Policy: 2, Next: &budget.Previous{Policy: 2, Window: 8192, Shape: budget.Shape{Turns: n, Digest: 1 << 63}}},
		&AssistantMessage{
			Text: "let me look", Reasoning: &llm.Reasoning{Text: "hm", Details: []byte(`[{"a": 1}]`)},
			Calls:  []llm.ToolCall{{ID: id, Name: "read", Arguments: `{"path":"a.go"}`, Extra: []byte(`{"sig": "x"}`)}},
			Finish: llm.FinishToolCalls, Usage: &llm.Usage{PromptTokens: 100 * n, CompletionTokens: 7},
			Target: llm.Target{Provider: "local", Model: "qwen"}, Timing: Timing{FirstMS: 12, TotalMS: 340},
		},
		&ToolCall{ID: id, Name: "read", Arguments: `{"path":"a.go"}`, Started: true},
		&ToolResult{ID: id, Status: StatusOK, Text: "package a\n", DurationMS: 3},
		&RequestPlan{MaxTokens: 4096, Policy: 2, PreviousUsed: true},
		&AssistantMessage{Text: fmt.Sprintf("answer %d", n), Finish: llm.FinishStop, Target: llm.Target{Provider: "local", Model: "qwen"}},
		&PlanNotice{Text: "3 older exchanges left out", Exchanges: 3},
		&TurnEnd{Reason: EndCompleted},
		&SessionInfo{Title: "question 1"},
	}
}

// appendAll appends records and applies them.
func appendAll(t testing.TB, l *Log, s *State, recs ...Record) {
	t.Helper()
	for _, rec := range recs {
		if err := l.Append(rec); err != nil {
			t.Fatalf("append %s: %v", rec.Kind(), err)
		}
		s.Apply(rec)
	}
}

// create makes a session with some turns and closes it.
func create(t testing.TB, store *Store, turns int) (id string, s *State) {
	t.Helper()
	l, err := store.Create("/home/ann/site", &CreateOptions{Now: clock()})
	if err != nil {
		t.Fatal(err)
	}
	s = l.NewState()
	for n := range turns {
		appendAll(t, l, s, turn(n+1)...)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.ID(), s
}

// sameState compares states, but for the lines of warnings, which a live state
// does not know.
func sameState(t failer, got, want *State) {
	t.Helper()
	if diff := stateDiff(got, want); diff != "" {
		t.Fatal(diff)
	}
}

func stateDiff(got, want *State) string {
	a, b := *got, *want
	a.line, b.line = 0, 0
	a.Warnings, b.Warnings = withoutLines(a.Warnings), withoutLines(b.Warnings)
	if reflect.DeepEqual(a, b) {
		return ""
	}
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range va.NumField() {
		name := va.Type().Field(i).Name
		x, y := fmt.Sprintf("%+v", va.Field(i)), fmt.Sprintf("%+v", vb.Field(i))
		if x != y {
			return fmt.Sprintf("%s:\n got %s\nwant %s", name, x, y)
		}
	}
	return fmt.Sprintf("states differ:\n got %+v\nwant %+v", a, b)
}

func withoutLines(list []Warning) []Warning {
	list = slices.Clone(list)
	for i := range list {
		list[i].Line = 0
	}
	return list
}

// validHistory checks that an engine would take the messages.
func validHistory(t failer, s *State) {
	t.Helper()
	if len(s.Messages) == 0 {
		return
	}
	if _, err := history.Split(s.Messages); err != nil {
		t.Fatalf("%v in %+v", err, s.Messages)
	}
}

// text is the log so far, as bytes.
func text(t testing.TB, l *Log) []byte {
	t.Helper()
	r, err := l.open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// logOf is the log of records, as bytes.
func logOf(t testing.TB, recs ...Record) []byte {
	t.Helper()
	l := Memory("/w")
	appendAll(t, l, l.NewState(), recs...)
	return text(t, l)
}

// kinds lists the types of all records in a log.
func kinds(t testing.TB, data []byte) []string {
	t.Helper()
	var list []string
	rd := NewReader(bytes.NewReader(data), nil)
	for {
		rec, err := rd.Next()
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, rec.Kind())
	}
}

func warned(s *State, part string) bool {
	return slices.ContainsFunc(s.Warnings, func(w Warning) bool { return strings.Contains(w.String(), part) })
}

// disk is a file that fails as told.
type disk struct {
	memory
	writeErr, syncErr, truncateErr error
	partial                        int // bytes that a failing write takes all the same
}

var errFull = errors.New("no space left on device")

func (d *disk) WriteAt(p []byte, off int64) (int, error) {
	if d.writeErr != nil {
		n, _ := d.memory.WriteAt(p[:min(d.partial, len(p))], off)
		return n, d.writeErr
	}
	// A disk keeps what lies behind what is written.
	if end := int(off) + len(p); end < len(d.data) {
		copy(d.data[off:], p)
		return len(p), nil
	}
	return d.memory.WriteAt(p, off)
}

func (d *disk) Sync() error { return d.syncErr }

func (d *disk) Stat() (fs.FileInfo, error) { return fileSize{size: int64(len(d.data))}, nil }

// fileSize is all that a log asks of a disk.
type fileSize struct {
	fs.FileInfo
	size int64
}

func (f fileSize) Size() int64 { return f.size }

func (d *disk) Truncate(size int64) error {
	if d.truncateErr != nil {
		return d.truncateErr
	}
	return d.memory.Truncate(size)
}

// onDisk is a log on a disk that can fail.
func onDisk(t testing.TB) (*Log, *disk) {
	t.Helper()
	l := Memory("/w")
	d := &disk{memory: memory{data: l.file.(*memory).data}}
	l.file = d
	return l, d
}
