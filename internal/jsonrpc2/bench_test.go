package jsonrpc2

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
)

// delta has the shape of a streamed piece of text.
type delta struct {
	SessionID string `json:"sessionId"`
	Update    struct {
		Kind    string `json:"sessionUpdate"`
		Content struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	} `json:"update"`
}

func newDelta() *delta {
	d := &delta{SessionID: "0198c2f0-7a51-7c3e-8f57-1d2f7a9b6c11"}
	d.Update.Kind = "agent_message_chunk"
	d.Update.Content.Type = "text"
	d.Update.Content.Text = " the <quick> brown"
	return d
}

func BenchmarkNotify(b *testing.B) {
	c := New(strings.NewReader(""), io.Discard, nil, nil)
	d := newDelta()
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Notify("session/update", d); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNotifyParallel(b *testing.B) {
	c := New(strings.NewReader(""), io.Discard, nil, nil)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		d := newDelta()
		for pb.Next() {
			if err := c.Notify("session/update", d); err != nil {
				b.Error(err)
			}
		}
	})
}

// repeat is a reader of one line, count times.
type repeat struct {
	line  []byte
	rest  []byte
	count int
}

func (r *repeat) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(r.rest) == 0 {
			if r.count == 0 {
				break
			}
			r.count--
			r.rest = r.line
		}
		k := copy(p[n:], r.rest)
		r.rest = r.rest[k:]
		n += k
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func benchmarkRead(b *testing.B, line string) {
	c := New(&repeat{line: []byte(line + "\n"), count: b.N}, io.Discard, func(*Request) (any, error) { return nil, nil }, nil)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	b.ResetTimer()
	if err := c.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := c.Wait(b.Context()); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkReadNotification(b *testing.B) {
	benchmarkRead(b, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"0198c2f0-7a51-7c3e-8f57-1d2f7a9b6c11","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":" the quick brown"}}}}`)
}

func BenchmarkRequest(b *testing.B) {
	benchmarkRead(b, `{"jsonrpc":"2.0","id":17,"method":"session/set_mode","params":{"sessionId":"0198c2f0-7a51-7c3e-8f57-1d2f7a9b6c11","modeId":"ask"}}`)
}

func BenchmarkReadLarge(b *testing.B) {
	for _, mib := range []int{1, 20} {
		b.Run(fmt.Sprintf("%dMiB", mib), func(b *testing.B) {
			image := string(bytes.Repeat([]byte("iVBORw0KGgoAAAAN"), mib<<20/16))
			benchmarkRead(b, `{"jsonrpc":"2.0","id":17,"method":"session/prompt","params":{"data":"`+image+`"}}`)
		})
	}
}
