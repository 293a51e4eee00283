package openai

import (
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
)

// heapGrowth decodes a stream of about that many bytes and gives by how much
// the heap was larger meanwhile than before, in bytes.
func heapGrowth(t testing.TB, total int) uint64 {
	chunk := []byte(content("twenty bytes of text"))
	chunks := total / len(chunk)
	r := io.MultiReader(&repeatReader{unit: chunk, left: chunks * len(chunk)}, strings.NewReader(finish("stop")+done))
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n, peak := 0, before.HeapAlloc
	for _, err := range decodeStream(r, nil, limits{MaxLineBytes, 2 * total}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n%50_000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc)
		}
	}
	if n != chunks+1 {
		t.Errorf("%d events, want %d", n, chunks+1)
	}
	return peak - before.HeapAlloc
}

func TestDecodeStreamMemoryIsConstant(t *testing.T) {
	const allowed = 1 << 20 // bytes
	if growth := heapGrowth(t, 20<<20); growth > allowed {
		t.Errorf("the heap grew by %d bytes", growth)
	}
}

// BenchmarkDecodeStreamLong reads 100 MB and reports how far the heap grew.
func BenchmarkDecodeStreamLong(b *testing.B) {
	const total = 100 << 20
	b.SetBytes(total)
	var growth uint64
	for b.Loop() {
		growth = max(growth, heapGrowth(b, total))
	}
	b.ReportMetric(float64(growth), "heap-growth-bytes")
}

func BenchmarkDecodeStream(b *testing.B) {
	const deltas = 10_000
	body := strings.Repeat(content("twenty bytes of text"), deltas) + finish("stop") + done
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range DecodeStream(strings.NewReader(body), nil) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != deltas+1 {
			b.Fatal(n)
		}
	}
}

func BenchmarkDecodeStreamToolCall(b *testing.B) {
	const deltas = 10_000
	body := calls(`{"index":0,"id":"a","function":{"name":"write","arguments":"{\"text\":\""}}`) +
		strings.Repeat(calls(`{"index":0,"function":{"arguments":"twenty bytes of text"}}`), deltas) +
		calls(`{"index":0,"function":{"arguments":"\"}"}}`) + finish("tool_calls") + done
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range DecodeStream(strings.NewReader(body), nil) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkEncodeRequest encodes a history of 200 tool rounds, about 1 MB.
func BenchmarkEncodeRequest(b *testing.B) {
	req := conversation(b)
	for range 200 {
		call := llm.ToolCall{ID: "call-1234", Name: "grep", Arguments: `{"pattern":"func .*Encode","path":"internal"}`}
		req.Messages = append(req.Messages, llm.AssistantText("Let me look.", call), llm.ToolText(call.ID, strings.Repeat("internal/x.go:12: func \"x\"\n", 180)))
	}
	body, err := EncodeRequest(req)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := EncodeRequest(req); err != nil {
			b.Fatal(err)
		}
	}
}
