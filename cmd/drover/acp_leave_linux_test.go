package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/acp/acptest"
	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/llm/llmtest"
)

// cancels is how often a prompt and its cancel are written at once.
const cancels = 1000

// stillFull is how many looks in a row must find a pipe as it was.
const stillFull = 10

const (
	// leaveLimit is in what time drover must have ended when its input has, where
	// the machine has time to spare.
	leaveLimit = time.Second
	// busyLimit is the same where it has none. It is less than the time that a
	// command or server has to end when drover goes on.
	busyLimit = 2500 * time.Millisecond
	// spare is which share of its time a machine that is not busy has left.
	spare = 0.25
)

// inTime has drover leave, and measures how long it takes. The quickest of three
// counts.
func inTime(t *testing.T, leave func() time.Duration) {
	t.Helper()
	limit := busyLimit
	took := llmtest.Quickest(leaveLimit, func() time.Duration {
		idle, all := machineTime(t)
		took := leave()
		idleThen, allThen := machineTime(t)
		if idleThen-idle > spare*(allThen-all) {
			limit = leaveLimit
		}
		return took
	})
	if took > limit {
		t.Errorf("drover ends %v after its input, not within %v", took, limit)
	}
}

// machineTime is how long all processors have had nothing to do, and how long they
// have been there, in one unit.
func machineTime(t *testing.T) (idle, all float64) {
	t.Helper()
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	for i, field := range strings.Fields(line)[1:] {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			t.Fatal(err)
		}
		if all += n; i == 3 { // proc_stat(5)
			idle = n
		}
	}
	return idle, all
}

// leaver is a client that goes away in a manner of its own.
type leaver struct {
	*rig
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *os.File
	stderr bytes.Buffer
	noted  string // a file with the numbers of the processes that must end
	ended  chan error
}

// stubborn starts a child that takes no notice of being asked to end, nor does
// it itself; it notes their numbers, and runs something before it waits.
const stubborn = "trap '' HUP INT TERM; sleep 600 </dev/null >/dev/null & echo $$ $! >>'%s'; %s; wait; wait"

// newLeaver starts drover acp, with an engine whose answers are: a command that
// does not end, for a prompt that says "command", else an endless text.
func newLeaver(t *testing.T, mode string) *leaver {
	t.Helper()
	l := &leaver{ended: make(chan error, 1)}
	l.noted = filepath.Join(t.TempDir(), "pids")
	l.rig = newRig(t, func(_ *rig, c *enginetest.Chat) enginetest.Answer {
		list := messagesOf(c)
		if strings.Contains(string(list[len(list)-1].Content), "command") {
			return enginetest.Answer{Calls: []enginetest.Call{shellCall("c1", fmt.Sprintf(stubborn, l.noted, "echo asleep"))}}
		}
		return enginetest.Answer{Text: strings.Repeat("word ", 1<<18), Chunk: 50}
	})
	l.cmd = l.command("acp", "--url", l.url, "--preset", l.preset, "--model", l.model, "--mode", mode)
	in, err := l.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l.in, l.out, l.cmd.Stdout, l.cmd.Stderr = in, r, w, &l.stderr
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	go func() { l.ended <- l.cmd.Wait() }()
	t.Cleanup(func() {
		_ = l.cmd.Process.Kill() // it has ended, if all is well
		r.Close()
	})
	return l
}

// read reads what drover writes until stop says so, then nothing more.
func (l *leaver) read(stop func(*acptest.Message) bool) {
	l.t.Helper()
	dec := json.NewDecoder(l.out)
	for {
		var m acptest.Message
		if err := dec.Decode(&m); err != nil {
			l.t.Fatalf("the output ends: %v", err)
		}
		if stop(&m) {
			return
		}
	}
}

func (l *leaver) write(text string, args ...any) {
	l.t.Helper()
	if _, err := fmt.Fprintf(l.in, text+"\n", args...); err != nil {
		l.t.Fatal(err)
	}
}

// prompt opens a session with an MCP server that does not end, and sends a prompt.
func (l *leaver) prompt(words string) {
	l.t.Helper()
	server := fmt.Sprintf(stubborn, l.noted, mcpServer(l.t))
	l.write(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
	l.write(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":%q,"mcpServers":[{"name":"shelf","command":"/bin/bash","args":["-c",%q],"env":[]}]}}`, l.dir, server)
	var session string
	l.read(func(m *acptest.Message) bool {
		var answer struct{ SessionID string }
		_ = json.Unmarshal(m.Result, &answer)
		session = answer.SessionID
		return session != ""
	})
	l.write(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}}`, session, words)
}

// left checks that drover ends and leaves no process behind, and measures how long
// it takes.
func (l *leaver) left(processes int) time.Duration {
	l.t.Helper()
	start := time.Now()
	select {
	case <-l.ended:
	case <-time.After(acptest.Patience):
		l.t.Fatal("drover does not end")
	}
	took := time.Since(start)
	data, err := os.ReadFile(l.noted)
	if err != nil {
		l.t.Fatal(err)
	}
	pids := strings.Fields(string(data))
	if len(pids) != processes {
		l.t.Errorf("processes %q, want %d", pids, processes)
	}
	untilGone(l.t, pids)
	return took
}

// However a client goes away, drover ends within a second, and with it what it
// has started: commands and MCP servers that do not want to.
func TestClientVanishes(t *testing.T) {
	asked := func(m *acptest.Message) bool { return m.Method == "session/request_permission" }
	asleep := func(m *acptest.Message) bool { return strings.Contains(string(m.Params), `\nasleep\n`) }
	streams := func(m *acptest.Message) bool { return strings.Contains(string(m.Params), "agent_message_chunk") }
	for _, c := range []struct {
		name, mode, words string
		at                func(*acptest.Message) bool
		leave             func(*leaver)
		processes         int // the server is two
	}{
		{"closes its end in a command", "full", "a command", asleep, func(l *leaver) { l.in.Close() }, 4},
		{"closes its end in a stream", "full", "talk", streams, func(l *leaver) { l.in.Close() }, 2},
		{"never answers and closes its end", "ask", "a command", asked, func(l *leaver) { l.in.Close() }, 2},
		{"is killed", "full", "a command", asleep, func(l *leaver) { l.out.Close(); l.in.Close() }, 4},
		{"does not read any more", "full", "talk", streams, func(l *leaver) { l.out.Close() }, 2},
		{"sends half a line and is gone", "full", "a command", asleep, func(l *leaver) {
			_, _ = io.WriteString(l.in, `{"jsonrpc":"2.0","id":4,"meth`) // it may be gone
			l.in.Close()
		}, 4},
		{"sends SIGTERM", "full", "a command", asleep, func(l *leaver) { _ = l.cmd.Process.Signal(syscall.SIGTERM) }, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func() time.Duration {
				l := newLeaver(t, c.mode)
				l.prompt(c.words)
				l.read(c.at)
				c.leave(l)
				return l.left(c.processes)
			})
		})
	}
}

// A client that reads nothing while a long answer comes does not hold drover
// when it closes its end.
func TestClientThatDoesNotRead(t *testing.T) {
	inTime(t, func() time.Duration {
		l := newLeaver(t, "full")
		l.prompt("talk")
		l.read(func(m *acptest.Message) bool { return strings.Contains(string(m.Params), "agent_message_chunk") })
		// Nothing can be written any more when the pipe holds the same for a while: how
		// many bytes that are depends on the sizes of the writes.
		poll := time.NewTicker(20 * time.Millisecond)
		defer poll.Stop()
		for size, same := -1, 0; same < stillFull; {
			<-poll.C
			n, err := unix.IoctlGetInt(int(l.out.Fd()), unix.TIOCINQ)
			if err != nil {
				t.Fatal(err)
			}
			if n > 0 && n == size {
				same++
			} else {
				size, same = n, 0
			}
		}
		l.in.Close()
		return l.left(2)
	})
}

// A prompt and its cancel in one write: no cancel is lost, whatever the prompt
// has begun by then, and the next prompt runs.
func TestThousandCancels(t *testing.T) {
	r := newRig(t, func(_ *rig, c *enginetest.Chat) enginetest.Answer {
		list := messagesOf(c)
		if strings.Contains(string(list[len(list)-1].Content), "finish") {
			return enginetest.Answer{Text: "Done."}
		}
		return enginetest.Answer{Text: strings.Repeat("word ", 100), Chunk: 1, Fault: &enginetest.Fault{Stall: true}}
	})
	e := r.editor("--url", r.url, "--preset", r.preset, "--model", r.model)
	e.Call("initialize", map[string]any{"protocolVersion": 1}, nil)
	var opened struct{ SessionID string }
	e.Call("session/new", map[string]any{"cwd": r.dir, "mcpServers": []any{}}, &opened)
	session := map[string]any{"sessionId": opened.SessionID}
	prompt := func(words string) map[string]any {
		return map[string]any{"sessionId": opened.SessionID, "prompt": []any{map[string]any{"type": "text", "text": words}}}
	}
	reason := func(req *acptest.Request) string {
		var answer struct{ StopReason string }
		if err := req.Wait(&answer); err != nil {
			t.Fatal(err)
		}
		return answer.StopReason
	}
	for i := range cancels {
		p := e.Prepare("session/prompt", prompt("go"))
		e.Write(p.Line + acptest.Note("session/cancel", session))
		if got := reason(p); got != "cancelled" {
			t.Fatalf("prompt %d: %s", i, got)
		}
	}
	if got := reason(e.Start("session/prompt", prompt("finish"))); got != "end_turn" {
		t.Errorf("the prompt behind them: %s", got)
	}
}

// A line of 20 MB is a prompt like any other: it is answered, and drover goes on.
func TestPromptOf20MB(t *testing.T) {
	r := newRig(t, nil)
	e := r.editor("--url", r.url, "--preset", r.preset, "--model", r.model)
	e.Call("initialize", map[string]any{"protocolVersion": 1}, nil)
	var opened struct{ SessionID string }
	e.Call("session/new", map[string]any{"cwd": r.dir, "mcpServers": []any{}}, &opened)
	type object = map[string]any
	prompt := func(words, blob string) object {
		return object{"sessionId": opened.SessionID, "prompt": []any{
			object{"type": "text", "text": words},
			object{"type": "resource", "resource": object{"uri": "file:///a.bin", "mimeType": "application/x-tar", "blob": blob}},
		}}
	}
	// The text alone is far more than the window: what is kept of it reaches the
	// engine. Of the rest it gets the size.
	var answer struct{ StopReason string }
	e.Call("session/prompt", prompt(strings.Repeat("lorem ipsum ", 1<<18/12), strings.Repeat("QUJD", 20<<20/4)), &answer)
	if answer.StopReason != "end_turn" {
		t.Errorf("%+v", answer)
	}
	e.Call("session/prompt", prompt("and now?", "QUJD"), &answer)
	if answer.StopReason != "end_turn" {
		t.Errorf("%+v", answer)
	}
}

// drover acp works with neither HOME nor TERM nor anything else in its environment
// but PATH and the folders of this test: without these it would use the home of the
// user database.
func TestBareEnvironment(t *testing.T) {
	r := newRig(t, nil)
	cmd := r.command("acp", "--url", r.url, "--preset", r.preset)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + r.state(), "XDG_CACHE_HOME=" + r.home, "XDG_CONFIG_HOME=" + r.home, "GORACE=atexit_sleep_ms=0"}
	e := r.attach(cmd)
	e.Call("initialize", map[string]any{"protocolVersion": 1}, nil)
	var opened struct{ SessionID string }
	e.Call("session/new", map[string]any{"cwd": r.dir, "mcpServers": []any{}}, &opened)
	var answer struct{ StopReason string }
	e.Call("session/prompt", map[string]any{"sessionId": opened.SessionID, "prompt": []any{map[string]any{"type": "text", "text": "Hi."}}}, &answer)
	if answer.StopReason != "end_turn" {
		t.Errorf("%+v", answer)
	}
}
