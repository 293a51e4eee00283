package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"
)

// entry is a record with what its line said. Data is valid until the next one
// is read.
type entry struct {
	line int // from 1
	seq  int
	time time.Time
	kind string
	data []byte
	rec  Record
}

var (
	errNotJSON   = errors.New("no complete JSON")    // torn, or overwritten
	errNotRecord = errors.New("JSON, but no record") // whole, but not ours
	errBadData   = errors.New("the data do not fit") // whole, of a known type
	errHeader    = errors.New("a header, not a record")
)

// maxSeq keeps numbers in a range where one can be added.
const maxSeq = 1 << 53

// parseEntry reads the line of a record.
func parseEntry(line []byte) (*entry, error) {
	if e, ok := cutEnvelope(line); ok && e.decode() == nil {
		return e, nil
	}
	var env struct {
		Seq  *int            `json:"seq"`
		Time timestamp       `json:"time"`
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(line, &env); err != nil {
		if !json.Valid(line) {
			return nil, errNotJSON
		}
		return nil, errNotRecord
	}
	switch {
	case env.Type == headerType && env.Seq == nil:
		return nil, errHeader
	case env.Seq == nil || *env.Seq < 0 || *env.Seq > maxSeq || env.Type == "" || len(env.Data) == 0:
		return nil, errNotRecord
	}
	e := &entry{seq: *env.Seq, time: time.Time(env.Time), kind: env.Type, data: env.Data}
	if e.decode() != nil {
		return nil, errBadData
	}
	return e, nil
}

// cutEnvelope takes a line apart that has exactly the form that this package
// writes, without reading the data a second time: logs are mostly data. Whether
// the data are valid is found by decoding them.
func cutEnvelope(line []byte) (e *entry, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"seq":`))
	if !ok {
		return nil, false
	}
	seq, rest, ok := bytes.Cut(rest, []byte(`,"time":"`))
	if !ok {
		return nil, false
	}
	at, rest, ok := bytes.Cut(rest, []byte(`","type":"`))
	if !ok {
		return nil, false
	}
	kind, rest, ok := bytes.Cut(rest, []byte(`","data":`))
	if !ok {
		return nil, false
	}
	data, ok := bytes.CutSuffix(rest, []byte("}"))
	if !ok || bytes.ContainsAny(kind, `"\`) || len(kind) == 0 || !plainJSON(kind) || !plainJSON(at) {
		return nil, false
	}
	n, err := strconv.Atoi(string(seq))
	if err != nil || n < 0 || n > maxSeq || strconv.Itoa(n) != string(seq) {
		return nil, false
	}
	return &entry{seq: n, time: parseTime(at), kind: string(kind), data: data}, true
}

// plainJSON reports whether text stands for itself inside a JSON string.
func plainJSON(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func (e *entry) decode() error {
	e.rec = newRecord(e.kind)
	if !quickDecode(e.data, e.rec) {
		if err := json.Unmarshal(e.data, e.rec); err != nil {
			return err
		}
	}
	*e.rec.stamp() = Stamp{Seq: e.seq, Time: e.time}
	return nil
}

// maxRejoin bounds how many places of a damaged line are tried for the beginning
// of a record.
const maxRejoin = 16

// rejoin finds a whole record at the end of a damaged line: a record that was
// written behind a torn one, or behind bytes that the disk lost. Inside a JSON
// string a quote is escaped, so the pattern is never text of a message.
func rejoin(line []byte) (*entry, bool) {
	for range maxRejoin {
		if len(line) == 0 {
			break
		}
		i := bytes.Index(line[1:], []byte(`{"seq":`))
		if i < 0 {
			break
		}
		line = line[1+i:]
		if e, err := parseEntry(line); err == nil {
			return e, true
		}
	}
	return nil, false
}
