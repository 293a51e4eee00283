package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/drover-dev/drover/internal/llm"
)

// MaxLine bounds one line of a log, with its line ending. A longer record is
// refused on writing and skipped on reading.
const MaxLine = 64 << 20

// timeLayout is RFC 3339 in UTC with milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z"

// appendJSON appends the JSON of v without HTML escapes, which would change the
// bytes of nested raw values.
func appendJSON(dst []byte, v any) ([]byte, error) {
	b := bytes.NewBuffer(dst)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// appendLine appends the line that holds a record's data.
func appendLine(dst []byte, st *Stamp, kind string, data []byte) ([]byte, error) {
	start := len(dst)
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendInt(dst, int64(st.Seq), 10)
	dst = append(dst, `,"time":"`...)
	dst = st.Time.AppendFormat(dst, timeLayout)
	dst = append(dst, `","type":`...)
	dst, err := appendJSON(dst, kind)
	if err != nil {
		return nil, err
	}
	dst = append(dst, `,"data":`...)
	dst = append(dst, data...)
	dst = append(dst, "}\n"...)
	if n := len(dst) - start; n > MaxLine {
		return nil, fmt.Errorf("a %s of %d bytes is more than a log takes (%d)", kind, n, MaxLine)
	}
	return dst, nil
}

// settle encodes a record and replaces its content by what the encoding reads
// back as, so that whoever goes on with the record sees what a reload will see:
// valid UTF-8, compact raw values, nil for empty. Images keep their bytes.
func settle(rec Record) (data []byte, err error) {
	kind := rec.Kind()
	if kind == "" {
		return nil, errors.New("a record without a type")
	}
	if m, ok := rec.(*AssistantMessage); ok {
		dropBadRaw(m)
	}
	if data, err = appendJSON(nil, rec); err != nil {
		return nil, err
	}
	fresh := newRecord(kind)
	if err := json.Unmarshal(data, fresh); err != nil {
		return nil, err
	}
	if m, ok := rec.(*UserMessage); ok {
		keepImages(fresh.(*UserMessage), m)
	}
	if reflect.TypeOf(fresh) != reflect.TypeOf(rec) {
		return nil, fmt.Errorf("a %T cannot be of the type %s", rec, kind)
	}
	*fresh.stamp() = *rec.stamp()
	reflect.ValueOf(rec).Elem().Set(reflect.ValueOf(fresh).Elem())
	return data, nil
}

// keepImages puts the bytes of the images of old into fresh, which was read from
// the encoding of old.
func keepImages(fresh, old *UserMessage) {
	for i, p := range old.Parts {
		was, ok := p.(*llm.Image)
		if !ok {
			continue
		}
		img := *was
		img.Name = fresh.Parts[i].(*llm.Image).Name
		fresh.Parts[i] = &img
	}
}

// dropBadRaw removes opaque members that are no JSON: they could be neither
// logged nor sent.
func dropBadRaw(m *AssistantMessage) {
	if r := m.Reasoning; r != nil && len(r.Details) > 0 && !json.Valid(r.Details) {
		clean := *r
		clean.Details = nil
		m.Reasoning = &clean
	}
	for i, c := range m.Calls {
		if len(c.Extra) > 0 && !json.Valid(c.Extra) {
			m.Calls = slices.Clone(m.Calls)
			m.Calls[i].Extra = nil
		}
	}
}

// header is the first line of a log.
type header struct {
	Type    string    `json:"type"` // "header"
	Version int       `json:"version"`
	ID      string    `json:"id"`
	CWD     string    `json:"cwd"`
	Created timestamp `json:"created"`
	// Program is the version of drover that made the file.
	Program string `json:"program,omitempty"`
}

// formatVersion is the version of the format that this package writes, and the
// newest that it reads.
const formatVersion = 1

const headerType = "header"

func (h *header) line() []byte {
	line, err := appendJSON(nil, h)
	if err != nil {
		panic(err) // strings, numbers and a time: nothing that can fail
	}
	return append(line, '\n')
}

// timestamp is a time in the form of the log. What is no time reads as zero.
type timestamp time.Time

// MarshalText gives the form of the log.
func (t timestamp) MarshalText() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, timeLayout), nil
}

// UnmarshalText never fails: a time is no reason to lose a record.
func (t *timestamp) UnmarshalText(b []byte) error {
	*t = timestamp(parseTime(b))
	return nil
}

func parseTime(b []byte) time.Time {
	t, err := time.Parse(time.RFC3339, string(b))
	if err != nil {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}
