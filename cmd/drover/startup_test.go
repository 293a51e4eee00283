package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkACPStart measures, from the outside, how long drover acp needs from
// the start of its process to the answer to initialize, and what memory it holds
// after session/new, beside a Go program that only answers.
//
//	go test -run xxx -bench ACPStart ./cmd/drover
func BenchmarkACPStart(b *testing.B) {
	dir := b.TempDir()
	for _, program := range []struct{ name, pkg string }{{"drover", "."}, {"bare", "./testdata/bare"}} {
		binary := filepath.Join(dir, program.name)
		build := exec.Command("go", "build", "-trimpath", "-o", binary, program.pkg)
		if out, err := build.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		b.Run(program.name, func(b *testing.B) {
			var times []time.Duration
			var memory []int
			for b.Loop() {
				p := startACP(b, binary, dir)
				times = append(times, p.initialized)
				p.send(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":%q,"mcpServers":[]}}`, dir)
				p.answer()
				memory = append(memory, p.resident())
				p.stop()
			}
			slices.Sort(times)
			slices.Sort(memory)
			b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "ms-to-initialize")
			b.ReportMetric(float64(memory[len(memory)/2])/1024, "MiB-resident")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// acpProcess is a child that speaks newline-delimited JSON on its stdio.
type acpProcess struct {
	tb          testing.TB
	cmd         *exec.Cmd
	in          io.WriteCloser
	out         *bufio.Reader
	initialized time.Duration
}

func startACP(tb testing.TB, binary, home string, environ ...string) *acpProcess {
	tb.Helper()
	p := &acpProcess{tb: tb, cmd: exec.Command(binary, "acp")}
	// Nothing but PATH and a home: no configuration and no engine unless environ
	// has one.
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}, environ...)
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	start := time.Now()
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	p.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
	p.answer()
	p.initialized = time.Since(start)
	return p
}

func (p *acpProcess) send(format string, args ...any) {
	p.tb.Helper()
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		p.tb.Fatal(err)
	}
}

// answer reads lines up to the next response.
func (p *acpProcess) answer() {
	p.tb.Helper()
	for {
		line, err := p.out.ReadBytes('\n')
		if err != nil {
			p.tb.Fatal(err)
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(line, &m) == nil && m.ID != nil && m.Method == "" {
			return
		}
	}
}

// resident is the memory of the process in KiB, 0 where /proc does not tell.
func (p *acpProcess) resident() int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(fields[0])
	return n
}

func (p *acpProcess) stop() {
	p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		p.tb.Error(err)
	}
}
