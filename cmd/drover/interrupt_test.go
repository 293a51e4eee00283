//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

// TestInterruptWhileReadingStdin: a pipe that nobody closes must not keep the
// program from ending.
func TestInterruptWhileReadingStdin(t *testing.T) {
	drover := programPath(t)
	// The log file tells when the command runs: it is made before stdin is read.
	started := filepath.Join(t.TempDir(), "log")
	if err := syscall.Mkfifo(started, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(drover, "run", "--log-file", started, "--url", "http://127.0.0.1:9", "--model", "m", "-")
	cmd.Env = []string{"HOME=" + t.TempDir(), "GORACE=atexit_sleep_ms=0"}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fifo, err := os.Open(started) // waits for the other end
	if err != nil {
		t.Fatal(err)
	}
	defer fifo.Close()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the status tells
	if code := cmd.ProcessState.ExitCode(); code != exitCancelled || !strings.Contains(stderr.String(), "cancelled") {
		t.Errorf("status %d, stderr %q", code, stderr.String())
	}
}

// TestImageWithoutEnd: a pipe tells no size; it is read no further than an image may
// be long.
func TestImageWithoutEnd(t *testing.T) {
	cmd := self(t, "run", "--url", "http://127.0.0.1:9", "--model", "m", "--image", "pipe", "what is it?")
	pipe := filepath.Join(cmd.Dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for the other end
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const much = 2 * llm.MaxImageBytes
	written, block := 0, make([]byte, 64<<10)
	for ; err == nil && written < much; written += len(block) {
		_, err = f.Write(block)
	}
	if written >= much {
		t.Errorf("%d bytes were read", written)
	}
	f.Close()
	_ = cmd.Wait() // the status tells
	if code := cmd.ProcessState.ExitCode(); code != exitUsage || !strings.Contains(stderr.String(), "--image pipe: more than") {
		t.Errorf("status %d, stderr %q", code, stderr.String())
	}
}

// TestTypedAheadIsNoAnswer: a line that was typed before a question was shown
// must not answer it.
func TestTypedAheadIsNoAnswer(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	a := &terminalApprover{out: write, lines: make(chan string, maxTyped)}
	question := &tool.Question{Tool: "shell", Action: &tool.Action{Command: "rm -rf precious"}}
	a.lines <- "y"
	a.lines <- "y"
	if d, err := a.Approve(context.Background(), question); d != tool.AllowOnce || err != nil {
		t.Fatalf("first: %v, %v", d, err)
	}
	go func() {
		// The second question is read twice in all; then it is answered.
		buf := make([]byte, 1<<10)
		for seen := ""; strings.Count(seen, "Allow?") < 2; {
			n, err := read.Read(buf)
			if err != nil {
				return
			}
			seen += string(buf[:n])
		}
		a.lines <- "n"
		_, _ = io.Copy(io.Discard, read)
	}()
	if d, err := a.Approve(context.Background(), question); d != tool.RejectOnce || err != nil {
		t.Errorf("second: %v, %v", d, err)
	}
	write.Close()
}

func TestAQuestionShowsWhatItSays(t *testing.T) {
	q := &tool.Question{Tool: "shell", Action: &tool.Action{Command: "ls \x1b[2J\u202egnp.exe\u200b"}}
	if text := questionText(q); strings.ContainsAny(text, "\x1b\u202e\u200b") {
		t.Errorf("%q", text)
	}
}

// TestAQuestionShowsAllArguments: of another program's tool the title is not
// enough to decide.
func TestAQuestionShowsAllArguments(t *testing.T) {
	q := &tool.Question{
		Tool: "files__write", Arguments: `{"note":"` + strings.Repeat("harmless ", 60) + `","path":"/etc/passwd"}`,
		Action: &tool.Action{Title: "files: write harmless", Access: tool.AccessExternal},
	}
	if text := questionText(q); !strings.Contains(text, "/etc/passwd") {
		t.Errorf("the path is not shown:\n%s", text)
	}
	q.Arguments = `{"x":"` + strings.Repeat("y", maxQuestionArguments) + `"}`
	if text := questionText(q); !strings.Contains(text, "more bytes that are not shown") {
		t.Error("nobody is told of what is not shown")
	}
}
