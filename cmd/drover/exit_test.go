//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-dev/drover/internal/engine"
	"github.com/drover-dev/drover/internal/engine/enginetest"
)

// programPath is a path at which this program is drover.
func programPath(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	drover := filepath.Join(t.TempDir(), "drover")
	if err := os.Symlink(exe, drover); err != nil {
		t.Fatal(err)
	}
	return drover
}

// self is a command that runs this program as drover, with an empty home.
func self(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(programPath(t), args...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"HOME=" + t.TempDir(), "GORACE=atexit_sleep_ms=0", "PATH=" + os.Getenv("PATH")}
	return cmd
}

// lastEvent is the last line of run --json.
type lastEvent struct {
	Type, Reason string
	Error        *struct{ Code, Message, Hint string }
}

func readLast(t *testing.T, stdout []byte) (last lastEvent) {
	t.Helper()
	lines := bytes.Split(bytes.TrimSpace(stdout), []byte("\n"))
	for _, line := range lines {
		if !json.Valid(line) {
			t.Errorf("a line is no JSON: %q", line)
		}
	}
	if err := json.Unmarshal(lines[len(lines)-1], &last); err != nil {
		t.Errorf("the last line is %q", lines[len(lines)-1])
	}
	return last
}

// TestEveryEnd runs a prompt to each end that a turn can have: the status of the
// process, the last event, and that nothing is asked of the engine afterwards.
func TestEveryEnd(t *testing.T) {
	say := enginetest.Answer{Text: "It is well."}
	tests := []struct {
		name   string
		window int
		answer enginetest.Answer
		args   []string
		status int
		reason string
		code   string
		chats  int
	}{
		{"done", 8192, say, nil, exitDone, "completed", "", 1},
		{"the answer is cut", 8192, enginetest.Answer{Text: "It is", Finish: "length"}, nil, exitFailed, "max_tokens", "", 1},
		{"a filter", 8192, enginetest.Answer{Text: "It is", Finish: "content_filter"}, nil, exitFailed, "error", "INVALID_REQUEST", 1},
		{"a bad request", 8192, enginetest.Answer{Status: 400, Body: `{"error":{"message":"no"}}`}, nil, exitFailed, "error", "INVALID_REQUEST", 1},
		{"a wrong key", 8192, enginetest.Answer{Status: 401, Body: `{"error":{"message":"no"}}`}, nil, exitFailed, "error", "AUTH", 1},
		{"it breaks off", 8192, enginetest.Answer{Text: "It is", Cut: true}, nil, exitFailed, "error", "STREAM_CLOSED", 1},
		{"no room", 600, say, nil, exitNoFit, "error", "CONTEXT_WINDOW_EXCEEDED", 0},
		{"an unknown mode", 8192, say, []string{"--mode", "yolo"}, exitUsage, "error", "USAGE", 0},
		{"an unknown session", 8192, say, []string{"--resume", "01m8q1"}, exitUsage, "error", "USAGE", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := enginetest.New(t, &enginetest.Options{
				Preset: string(engine.LlamaCpp), Models: []enginetest.Model{{ID: "m", Window: tt.window, Tools: true}},
			})
			srv.Script(tt.answer)
			run := func(more ...string) (stdout, stderr string, status int) {
				args := append([]string{"run", "--url", srv.URL, "--preset", "llamacpp", "--model", "m"}, tt.args...)
				cmd := self(t, append(append(args, more...), "How is it?")...)
				var out, errs bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &errs
				_ = cmd.Run() // the status tells
				return out.String(), errs.String(), cmd.ProcessState.ExitCode()
			}
			stdout, stderr, status := run("--json")
			last := readLast(t, []byte(stdout))
			if status != tt.status || last.Type != "end" || last.Reason != tt.reason || stderr != "" {
				t.Errorf("status %d with %+v, want %d with %s; stderr %q", status, last, tt.status, tt.reason, stderr)
			}
			if failed := last.Error != nil; failed != (tt.code != "") || failed && (last.Error.Code != tt.code || last.Error.Message == "") {
				t.Errorf("the error is %+v, want %s", last.Error, tt.code)
			}
			if n := len(srv.Chats()); n != tt.chats {
				t.Errorf("%d chats, want %d", n, tt.chats)
			}
			if requests := srv.Asked(); tt.chats > 0 && requests[len(requests)-1] != "POST /v1/chat/completions" {
				t.Errorf("after the end the engine was asked %v", requests)
			}
			srv.Script(tt.answer)
			stdout, stderr, status = run()
			if status != tt.status || tt.code != "" && !strings.Contains(stderr, "drover: ") {
				t.Errorf("as text: status %d, stderr %q", status, stderr)
			}
			if strings.Contains(stdout, "drover: ") || strings.Contains(stdout, "· ") {
				t.Errorf("stdout holds more than the answer: %q", stdout)
			}
		})
	}
}

// TestInterrupt sends a signal while a turn runs, wherever it is.
func TestInterrupt(t *testing.T) {
	answer := enginetest.Answer{Text: strings.Repeat("word ", 100), Chunk: 50}
	stall, hang := answer, answer
	stall.Fault, hang.Fault = &enginetest.Fault{Stall: true}, &enginetest.Fault{Hang: true}
	for _, tt := range []struct {
		name   string
		answer enginetest.Answer
		signal os.Signal
	}{
		{"in the stream", stall, os.Interrupt},
		{"terminated in the stream", stall, syscall.SIGTERM},
		{"in prefill", hang, os.Interrupt},
		{"in a retry wait", enginetest.Answer{Status: http.StatusServiceUnavailable, Body: `{"error":{"message":"Loading model"}}`}, os.Interrupt},
	} {
		for _, form := range []string{"", "--json"} {
			t.Run(tt.name+" "+form, func(t *testing.T) {
				t.Parallel()
				asked := make(chan struct{}, 100)
				srv := enginetest.New(t, &enginetest.Options{
					Preset: string(engine.LlamaCpp), Models: []enginetest.Model{{ID: "m", Window: 8192}},
					Answer: func(*enginetest.Chat) enginetest.Answer { asked <- struct{}{}; return tt.answer },
				})
				args := []string{"run", "--url", srv.URL, "--preset", "llamacpp", "--model", "m", "How is it?"}
				if form != "" {
					args = append(args, form)
				}
				cmd := self(t, args...)
				var stdout, stderr bytes.Buffer
				cmd.Stdout, cmd.Stderr = &stdout, &stderr
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				<-asked
				if err := cmd.Process.Signal(tt.signal); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait() // the status tells
				if code := cmd.ProcessState.ExitCode(); code != exitCancelled {
					t.Errorf("status %d, stderr %q", code, stderr.String())
				}
				if form == "" {
					if !strings.Contains(stderr.String(), "cancelled") {
						t.Errorf("stderr %q", stderr.String())
					}
				} else if last := readLast(t, stdout.Bytes()); last.Type != "end" || last.Reason != "cancelled" || last.Error != nil {
					t.Errorf("the last event is %+v", last)
				}
			})
		}
	}
}
