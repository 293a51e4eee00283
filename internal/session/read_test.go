package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/llm"
)

// foldLines folds a header and lines.
func foldLines(t *testing.T, lines ...string) *State {
	t.Helper()
	const header = `{"type":"header","version":1,"id":"x","cwd":"/w","created":"2026-11-30T12:00:00.000Z"}` + "\n"
	s, err := Fold(strings.NewReader(header + strings.Join(lines, "")))
	if err != nil {
		t.Fatal(err)
	}
	validHistory(t, s)
	return s
}

// say is the line of a question.
func say(seq int, text string) string {
	return fmt.Sprintf(`{"seq":%d,"time":"2026-11-30T12:00:01.000Z","type":"user/message","data":{"parts":[{"text":%q}]}}`+"\n", seq, text)
}

func TestDamagedLogs(t *testing.T) {
	tests := []struct {
		name       string
		lines      []string
		want       []string // messages
		unreadable int
		missing    int
		warning    string
	}{
		{"a torn end", []string{say(0, "a"), `{"seq":1,"time":"2026-11-30T12`}, []string{"u(a)"}, 0, 0, "line 3: the last record is incomplete (30 bytes)"},
		{"a whole end without a line feed", []string{say(0, "a"), strings.TrimSuffix(say(1, "b"), "\n")}, []string{"u(a)", "u(b)"}, 0, 0, ""},
		{"a torn end with blank lines behind", []string{say(0, "a"), "{\"torn\n\n  "}, []string{"u(a)"}, 0, 0, "line 3: the last record is incomplete"},
		{"a torn end with a Windows line ending", []string{say(0, "a"), "{\"torn\r\n"}, []string{"u(a)"}, 0, 0, "line 3: the last record is incomplete"},
		{"Windows line endings and blank lines", []string{"\r\n", strings.ReplaceAll(say(0, "a"), "\n", "\r\n"), "\n \n", say(1, "b")}, []string{"u(a)", "u(b)"}, 0, 0, ""},
		{"a hole of zeros", []string{say(0, "a"), strings.Repeat("\x00", 300) + "\n", say(2, "b")}, []string{"u(a)", "u(b)"}, 1, 0, "line 3: unreadable"},
		{"a hole of zeros that swallowed a line feed", []string{say(0, "a"), strings.Repeat("\x00", 300), say(2, "b")}, []string{"u(a)", "u(b)"}, 1, 0, "line 3: damaged"},
		{"a broken record between", []string{say(0, "a"), say(1, "b"), say(2, "c"), `{"seq":3,"time":"x","type":"session/info","data":{"title":` + "\n", say(4, "d"), say(5, "e")}, []string{"u(a)", "u(b)", "u(c)", "u(d)", "u(e)"}, 1, 0, "line 5"},
		{"a torn record fused with the next", []string{say(0, "a"), `{"seq":1,"time":"2026-11-30T12:00:01.000Z","ty` + say(2, "b")}, []string{"u(a)", "u(b)"}, 1, 0, "line 3: damaged: the record at its end was recovered"},
		{"a torn record fused with itself", []string{say(0, "a"), say(1, "half and whole")[:90] + say(1, "half and whole")}, []string{"u(a)", "u(half and whole)"}, 1, 0, "recovered"},
		{"three fused", []string{say(0, "a")[:40] + say(1, "b")[:60] + say(2, "c")}, []string{"u(c)"}, 1, 1, "recovered"},
		{"a fused pair, torn again", []string{say(0, "a")[:40] + say(1, "b")[:60] + "\n", say(2, "c")}, []string{"u(c)"}, 1, 1, "unreadable"},
		{"data of another shape", []string{say(0, "a"), `{"seq":1,"time":"","type":"user/message","data":[1]}` + "\n", say(2, "c")}, []string{"u(a)", "u(c)"}, 1, 0, "line 3: unreadable (the data do not fit)"},
		{"JSON of somebody else", []string{say(0, "a"), `{"hello":"world"}` + "\n", `[]` + "\n"}, []string{"u(a)"}, 2, 0, "line 3: unreadable (JSON, but no record)"},
		{"numbers out of range", []string{say(0, "a"), `{"seq":-1,"time":"","type":"x","data":1}` + "\n", `{"seq":9007199254740993,"time":"","type":"x","data":1}` + "\n", say(3, "d")}, []string{"u(a)", "u(d)"}, 2, 0, "line 3"},
		{"records removed", []string{say(0, "a"), say(3, "d")}, []string{"u(a)", "u(d)"}, 0, 2, "line 3: 2 records are missing before number 3"},
		{"numbers used twice", []string{say(0, "a"), say(1, "A"), say(1, "B"), say(2, "c")}, []string{"u(a)", "u(A)", "u(B)", "u(c)"}, 0, 0, "line 4: record number 1 was used before"},
		{"a type of a later version", []string{say(0, "a"), `{"seq":1,"time":"2027-01-01T00:00:00.000Z","type":"future/thing","data":{"x":[]},"extra":1}` + "\n", say(2, "c")}, []string{"u(a)", "u(c)"}, 0, 0, ""},
		{"members in another order and spaces", []string{`{ "type": "user/message", "data": {"parts": [{"text":"a"},{"video":{}}]}, "seq": 0 }` + "\n"}, []string{"u(a[a part of a kind that this version does not know])"}, 0, 0, ""},
		{"a second header", []string{say(0, "a"), `{"type":"header","version":1}` + "\n", say(1, "b")}, []string{"u(a)", "u(b)"}, 0, 0, "line 3: a second header"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := foldLines(t, test.lines...)
			if got := short(s.Messages); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %.300q\nwant %q", got, test.want)
			}
			if s.Unreadable != test.unreadable || s.Missing != test.missing {
				t.Errorf("%d lines unreadable and %d records missing, want %d and %d", s.Unreadable, s.Missing, test.unreadable, test.missing)
			}
			if test.missing == 0 && warned(s, "are missing") {
				t.Errorf("nothing is missing, and %v", s.Warnings)
			}
			if s.Intact() != (test.unreadable+test.missing == 0) {
				t.Errorf("intact %v", s.Intact())
			}
			if test.warning == "" && len(s.Warnings) > 0 || !strings.Contains(fmt.Sprint(s.Warnings), test.warning) {
				t.Errorf("warnings %.300v, want %q", s.Warnings, test.warning)
			}
		})
	}
}

// The pattern that finds a record behind a torn one must not find texts.
func TestRejoinDoesNotReadTexts(t *testing.T) {
	inner := say(7, "not a record")
	torn := strings.TrimSuffix(say(1, strings.TrimSuffix(inner, "\n")), "\n")
	s := foldLines(t, say(0, "a"), torn[:len(torn)-3]+"\n", say(2, "b"))
	if got := short(s.Messages); !reflect.DeepEqual(got, []string{"u(a)", "u(b)"}) {
		t.Errorf("got %q", got)
	}
}

func TestHeaders(t *testing.T) {
	s, err := Fold(strings.NewReader(say(0, "a")))
	if err != nil || len(s.Messages) != 1 || !warned(s, "no readable header") {
		t.Errorf("without a header: %v, %+v", err, s)
	}
	s, err = Fold(strings.NewReader(`{"type":"header","ver` + "\n" + say(0, "a")))
	if err != nil || len(s.Messages) != 1 || s.Unreadable != 1 {
		t.Errorf("with a torn header: %v, %+v", err, s)
	}
	for _, nothing := range []string{"", "\n \r\n"} {
		s, err = Fold(strings.NewReader(nothing))
		if err != nil || s.NextSeq != 0 || !slices.Equal(s.Warnings, []Warning{{0, "the log is empty"}}) {
			t.Errorf("an empty log: %v, %v", err, s.Warnings)
		}
	}
	_, err = Fold(strings.NewReader(`{"type":"header","version":99,"id":"abc"}` + "\n" + say(0, "a")))
	newer, ok := errors.AsType[*VersionError](err)
	if !ok || newer.Version != 99 || !strings.Contains(err.Error(), "format version 99") {
		t.Errorf("a newer version: %v", err)
	}
}

// The order of the file counts, whatever the clock said.
func TestClockGoingBack(t *testing.T) {
	early := strings.Replace(say(1, "b"), "12:00:01", "09:00:00", 1)
	bad := strings.Replace(say(2, "c"), "2026-11-30T12:00:01.000Z", "yesterday", 1)
	s := foldLines(t, say(0, "a"), early, bad)
	if got := short(s.Messages); !reflect.DeepEqual(got, []string{"u(a)", "u(b)", "u(c)"}) || len(s.Warnings) > 0 {
		t.Errorf("got %q, %v", got, s.Warnings)
	}
	if want := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC); !s.Updated.Equal(want) {
		t.Errorf("updated %v, want %v", s.Updated, want)
	}
}

// Cut at any byte, a log gives the records that are whole and no others.
func TestTornAtEveryByte(t *testing.T) {
	data := logOf(t, turn(1)...)
	all := kinds(t, data)
	for n := range len(data) + 1 {
		part := data[:n]
		whole := max(0, bytes.Count(part, []byte("\n"))-1)
		if n > 0 && n < len(data) && data[n] == '\n' && bytes.Count(part, []byte("\n")) > 0 {
			whole++ // only the line feed is missing
		}
		s := new(State)
		rd := NewReader(bytes.NewReader(part), nil)
		count := 0
		for {
			rec, err := rd.Next()
			if err == io.EOF {
				break
			}
			if err != nil || rec.Kind() != all[count] {
				t.Fatalf("cut at %d: record %d: %v %v", n, count, rec, err)
			}
			s.Apply(rec)
			count++
		}
		validHistory(t, s)
		if count != whole {
			t.Fatalf("cut at %d: %d records, want %d", n, count, whole)
		}
		if torn := rd.tail.cut >= 0; torn != (n > 0 && part[n-1] != '\n' && data[n] != '\n') {
			t.Fatalf("cut at %d: tail %+v, unreadable %d", n, rd.tail, rd.unreadable)
		}
	}
}

// A large log of things that are no messages is read in bounded memory.
func TestMemoryIsBoundedByTheState(t *testing.T) {
	const count = 40
	line := []byte(`{"seq":%d,"time":"2026-11-30T12:00:01.000Z","type":"future/thing","data":{"x":"` + strings.Repeat("y", 100<<10) + "\"}}\n")
	before := heap()
	r, w := io.Pipe()
	go func() {
		for i := range count {
			fmt.Fprintf(w, string(line), i)
		}
		io.WriteString(w, say(count, "found"))
		w.Close()
	}()
	s, err := Fold(r)
	if err != nil || len(s.Messages) != 1 || s.NextSeq != count+1 {
		t.Fatalf("%v, %+v", err, s)
	}
	if held := heap() - before; held > 1<<20 {
		t.Errorf("%d KB are held after reading a log of %d KB", held>>10, count*len(line)>>10)
	}
	runtime.KeepAlive(s)
}

// heap is the live heap in bytes.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// xs is a lot of text.
type xs struct{}

func (xs) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// watch is an empty file that tells when it is read.
type watch func()

func (w watch) Read([]byte) (int, error) {
	w()
	return 0, io.EOF
}

// A line beyond the limit is skipped without being held in memory.
func TestLineTooLong(t *testing.T) {
	const size = 16 << 20
	var most int64
	before := heap()
	rd := NewReader(io.MultiReader(
		strings.NewReader(say(0, "a")+`{"seq":1,"time":"","type":"session/info","data":{"title":"`),
		io.LimitReader(xs{}, size), watch(func() { most = heap() - before }),
		strings.NewReader("\"}}\n"+say(2, "c"))), nil)
	rd.lines.max = 1 << 20
	s, _, err := foldReader(rd)
	if most > 4<<20 {
		t.Errorf("%d KB are held", most>>10)
	}
	if err != nil || s.Unreadable != 1 || !warned(s, "line 2: longer than") {
		t.Errorf("%v, %v", err, s.Warnings)
	}
	if got := short(s.Messages); !reflect.DeepEqual(got, []string{"u(a)", "u(c)"}) {
		t.Errorf("got %q", got)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("input/output error") }

func TestReadErrorsAreNotDamage(t *testing.T) {
	if _, err := Fold(io.MultiReader(strings.NewReader(say(0, "a")), brokenReader{})); err == nil {
		t.Error("a disk error is taken for the end of the log")
	}
}

func TestImagesThatAreNotLookedUp(t *testing.T) {
	data := logOf(t, &UserMessage{Parts: []llm.Part{picture(t, 3), llm.Text("what is it?")}})
	s, err := Fold(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if got := short(s.Messages); got[0] != "u([image w3.png is missing: its file could not be read]what is it?)" || len(s.Warnings) != 1 {
		t.Errorf("got %q, %v", got, s.Warnings)
	}
}

func FuzzFold(f *testing.F) {
	whole := logOf(f, turn(1)...)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add(append(slices.Clone(whole[:len(whole)/2]), whole...))
	f.Add([]byte(say(0, "a") + strings.Repeat("\x00", 50) + say(1, "b") + "\r\n{\"seq\":1"))
	f.Add([]byte(`{"type":"header","version":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Fold(bytes.NewReader(data))
		if err != nil {
			return
		}
		validHistory(t, s)
		for _, rec := range s.Interruption() {
			s.Apply(rec)
		}
		validHistory(t, s)
		if s.OpenTurn || s.NextSeq < 0 || len(s.Warnings) > MaxWarnings {
			t.Errorf("state %+v", s)
		}
	})
}

// Both ways of taking a line apart give the same.
func FuzzEnvelope(f *testing.F) {
	for line := range bytes.Lines(logOf(f, turn(1)...)) {
		f.Add(bytes.TrimSpace(line))
	}
	f.Add([]byte(`{"seq":1,"time":"","type":"x","data":{},"data":[]}`))
	f.Add([]byte(`{"seq":1,"time":"a","type":"turn/end","data":{"reason":"x"},"type":"retry"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, ok := cutEnvelope(line)
		if !ok || e.decode() != nil {
			return
		}
		slow, err := parseEntry(append([]byte(" "), line...)) // a space keeps the quick way out
		if err != nil {
			t.Fatalf("only the quick way reads %q: %v", line, err)
		}
		if slow.seq != e.seq || slow.kind != e.kind || !slow.time.Equal(e.time) || !reflect.DeepEqual(slow.rec, e.rec) {
			t.Errorf("%q: %+v and %+v", line, e, slow)
		}
	})
}

// The quick way to read data gives what encoding/json gives.
func FuzzQuickDecode(f *testing.F) {
	for _, rec := range []Record{
		&ToolResult{ID: "a", Status: StatusOK, Text: "tab\t <&> \u2028 ü \\ \"q\" \x00\x7f", DurationMS: 12},
		&ToolCall{ID: "a\n", Name: "shell", Arguments: `{"command":"a\nb"}`, Started: true},
	} {
		data, err := settle(rec)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, s := range []string{
		`{"id":"\ud83d\ude00","status":"\/\b\f","text":"\uD800"}`, `{"id":"` + "\xff" + `","status":"","text":""}`,
		`{"id":"","status":"","text":"","durationMs":01}`, `{"id":"","status":"","text":"","durationMs":}`, `{"id":"","name":"","arguments":"\u00`,
		`{"id":"","name":"","arguments":"","started":false}`, `{"id":"","status":"","text":"\u+123"}`, `{"id":"\`, `{"id":"","status":"","text":"","durationMs":99999999999999999999}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, kind := range []string{"tool/result", "tool/call"} {
			got, want := newRecord(kind), newRecord(kind)
			if !quickDecode(data, got) {
				continue
			}
			if err := json.Unmarshal(data, want); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s %q: %+v, and encoding/json reads %+v, %v", kind, data, got, want, err)
			}
		}
	})
}

// What this package writes of calls and results is read the quick way.
func TestQuickDecodeReadsWhatIsWritten(t *testing.T) {
	for _, rec := range []Record{
		&ToolResult{ID: "a", Status: StatusOK, Text: "tab\t <&> \u2028 ü \\ \"q\" \x00\x7f\xff", DurationMS: 12},
		&ToolResult{}, &ToolCall{ID: "a\n", Name: "shell", Arguments: `{"command":"a\nb"}`, Started: true}, &ToolCall{},
	} {
		data, err := settle(rec)
		if err != nil {
			t.Fatal(err)
		}
		if got := newRecord(rec.Kind()); !quickDecode(data, got) || !reflect.DeepEqual(got, rec) {
			t.Errorf("%s gives %+v", data, got)
		}
	}
}
