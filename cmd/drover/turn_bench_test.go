package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// benchDeltas is how many pieces the long answers of BenchmarkACPTurn have.
const benchDeltas = 10_000

// benchEngine is an engine that costs nothing: its answers are made beforehand.
type benchEngine struct {
	deltas atomic.Int32 // of the next answers
	first  atomic.Int64 // when the first byte of the last answer was written
	long   []byte       // an answer of benchDeltas pieces
	url    string
}

func newBenchEngine(b *testing.B) *benchEngine {
	e := new(benchEngine)
	piece := `data: {"choices":[{"index":0,"delta":{"content":"twenty bytes of text"}}]}` + "\n\n"
	const end = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":20}}` + "\n\ndata: [DONE]\n\n"
	e.long = []byte(strings.Repeat(piece, benchDeltas) + end)
	short := []byte(piece + end)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			fmt.Fprint(w, `{"object":"list","data":[{"id":"m","object":"model","owned_by":"llamacpp","meta":{"n_ctx":32768}}]}`)
		case "/props":
			fmt.Fprint(w, `{"default_generation_settings":{"n_ctx":32768},"model_alias":"m","chat_template_caps":{"supports_tools":true,"supports_tool_calls":true}}`)
		case "/v1/chat/completions":
			w.Header().Set("Content-Type", "text/event-stream")
			e.first.Store(time.Now().UnixNano())
			if e.deltas.Load() == benchDeltas {
				_, _ = w.Write(e.long) // a client that leaves is found out
			} else {
				_, _ = w.Write(short) // likewise
			}
		default:
			http.NotFound(w, r)
		}
	}))
	b.Cleanup(s.Close)
	e.url = s.URL
	return e
}

// BenchmarkACPTurn measures drover acp from the outside, on an engine that costs
// nothing: session/new, the time from the engine's first byte to the first update,
// what forwarding 10,000 deltas costs, and the memory after 200 turns.
//
//	go test -run xxx -bench ACPTurn -benchtime 20x ./cmd/drover
func BenchmarkACPTurn(b *testing.B) {
	dir := b.TempDir()
	binary := filepath.Join(dir, "drover")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", binary, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	e := newBenchEngine(b)
	config := filepath.Join(dir, "config.toml")
	settings := fmt.Sprintf("model = \"lab/m\"\n[engines.lab]\npreset = \"llamacpp\"\nurl = %q\n", e.url)
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		b.Fatal(err)
	}
	p := startACP(b, binary, dir, "DROVER_CONFIG="+config)
	defer p.stop()
	var opened, first, cpu []time.Duration
	session := ""
	for n := 2; b.Loop(); n += 3 {
		start := time.Now()
		p.send(`{"jsonrpc":"2.0","id":%d,"method":"session/new","params":{"cwd":%q,"mcpServers":[]}}`, n, dir)
		session = p.session()
		opened = append(opened, time.Since(start))

		e.deltas.Store(1)
		p.prompt(n+1, session)
		first = append(first, p.firstUpdate().Sub(time.Unix(0, e.first.Load())))
		p.answer()

		e.deltas.Store(benchDeltas)
		before := p.cpu()
		p.prompt(n+2, session)
		p.answer()
		cpu = append(cpu, p.cpu()-before)
	}
	e.deltas.Store(1)
	for n := range 200 {
		p.prompt(100_000+n, session)
		p.answer()
	}
	report := func(name string, list []time.Duration) {
		slices.Sort(list)
		b.ReportMetric(float64(list[len(list)/2].Microseconds())/1000, name)
	}
	report("ms-session/new", opened)
	report("ms-to-first-update", first)
	report("ms-CPU-for-10000-deltas", cpu)
	b.ReportMetric(float64(p.resident())/1024, "MiB-resident")
	b.ReportMetric(0, "ns/op")
}

func (p *acpProcess) prompt(id int, session string) {
	p.tb.Helper()
	p.send(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"go on"}]}}`, id, session)
}

// session reads the answer to session/new.
func (p *acpProcess) session() string {
	p.tb.Helper()
	for {
		line, err := p.out.ReadBytes('\n')
		if err != nil {
			p.tb.Fatal(err)
		}
		var m struct{ Result struct{ SessionID string } }
		if json.Unmarshal(line, &m) == nil && m.Result.SessionID != "" {
			return m.Result.SessionID
		}
	}
}

// firstUpdate reads up to the first piece of an answer.
func (p *acpProcess) firstUpdate() time.Time {
	p.tb.Helper()
	for {
		line, err := p.out.ReadBytes('\n')
		if err != nil {
			p.tb.Fatal(err)
		}
		if bytes.Contains(line, []byte("agent_message_chunk")) {
			return time.Now()
		}
	}
}

// cpu is the time that all threads of the process have had, 0 where /proc does not
// tell.
func (p *acpProcess) cpu() (sum time.Duration) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	for _, task := range tasks {
		data, err := os.ReadFile(task)
		if err != nil {
			continue // a thread that has ended
		}
		first, _, _ := strings.Cut(string(data), " ")
		n, _ := strconv.ParseInt(first, 10, 64)
		sum += time.Duration(n)
	}
	return sum
}

// initLine is a line of GODEBUG=inittrace=1.
var initLine = regexp.MustCompile(`(?m)^init \S+ @\S+ ms, ([0-9.]+) ms clock`)

// BenchmarkInit sums up what the initialisation of all packages costs.
//
//	go test -run xxx -bench Init -benchtime 20x ./cmd/drover
func BenchmarkInit(b *testing.B) {
	binary := filepath.Join(b.TempDir(), "drover")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", binary, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	var sums []float64
	for b.Loop() {
		cmd := exec.Command(binary, "acp")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.TempDir(), "GODEBUG=inittrace=1"}
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Run(); err != nil {
			b.Fatalf("%v\n%s", err, stderr.Bytes())
		}
		sum := 0.0
		for _, m := range initLine.FindAllStringSubmatch(stderr.String(), -1) {
			ms, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				b.Fatal(err)
			}
			sum += ms
		}
		sums = append(sums, sum)
	}
	slices.Sort(sums)
	b.ReportMetric(sums[len(sums)/2], "ms-init")
	b.ReportMetric(0, "ns/op")
}
