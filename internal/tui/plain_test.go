package tui

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
)

// conversation works RunPlain line by line.
type conversation struct {
	t    *testing.T
	in   io.WriteCloser
	out  *bufio.Reader
	read strings.Builder
}

func (c *conversation) type_(line string) {
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// until reads up to a text.
func (c *conversation) until(text string) string {
	c.t.Helper()
	var got strings.Builder
	for !strings.HasSuffix(got.String(), text) {
		b, err := c.out.ReadByte()
		if err != nil {
			c.t.Fatalf("%v before %q; got:\n%s%s", err, text, c.read.String(), got.String())
		}
		got.WriteByte(b)
	}
	c.read.WriteString(got.String())
	return got.String()
}

func TestPlain(t *testing.T) {
	dir := t.TempDir()
	p := scripted(32768,
		callOf("1", "write", `{"path":"a.txt","content":"meadow\n"}`), answerOf("hm", "It is \x1b[2Jwritten.", 500),
		callOf("2", "write", `{"path":"b.txt","content":"x"}`), answerOf("", "As you like.", 600),
	)
	opts := newOptions(t, dir, p)
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	opts.In, opts.Out = inRead, outWrite
	done := make(chan error, 1)
	var ended Ended
	go func() {
		var err error
		ended, err = RunPlain(t.Context(), opts)
		outWrite.Close()
		done <- err
	}()
	c := &conversation{t: t, in: inWrite, out: bufio.NewReader(outRead)}
	c.until("Model lab/qwen-coder-7b: 32,768 effective · tools · coding.\n> ")
	c.type_(`write a \`)
	c.type_("file")
	question := c.until("Allow? ")
	for _, want := range []string{"Tool write: a.txt", "Question: write wants to do this: a.txt", "+++ b/a.txt\n", "+meadow", "y: allow once", "a: always allow in this session: edits"} {
		if !strings.Contains(question, want) {
			t.Errorf("the question lacks %q:\n%s", want, question)
		}
	}
	c.type_("perhaps")
	c.until("Allow? ")
	c.type_("y")
	answer := c.until("> ")
	if !strings.Contains(answer, "Thinking.") || !strings.Contains(answer, "It is \uFFFD[2Jwritten.") || !strings.Contains(answer, "Window: 520/32,768 effective 1%.") {
		t.Errorf("got:\n%s", answer)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "a.txt")); string(text) != "meadow\n" {
		t.Errorf("the file is %q", text)
	}
	if text := p.Requests()[0].Messages[0].Text(); text != "write a \nfile" {
		t.Errorf("sent %q", text)
	}
	c.type_("/effort summit")
	c.until("Effort summit.\n> ")
	c.type_("again")
	c.until("Allow? ")
	c.type_("n")
	c.until("As you like.")
	c.until("> ")
	c.type_("/sessions")
	c.until("2 turns")
	c.until("> ")
	c.type_("/context")
	c.until("| conversation |")
	c.until("> ")
	c.type_("/quit")
	rest, _ := io.ReadAll(c.out)
	c.read.Write(rest)
	if err := <-done; err != nil || ended.Session == "" {
		t.Errorf("%+v, %v", ended, err)
	}
	if strings.ContainsRune(c.read.String(), 0x1b) {
		t.Errorf("an escape sequence was written:\n%q", c.read.String())
	}
}

// TestPlainNewSession: a new session goes on with the model and the effort, and has
// cost nothing.
func TestPlainNewSession(t *testing.T) {
	p := scripted(32768, answerOf("", "one", 1000), answerOf("", "two", 1000))
	p.Facts.Prices = llm.Prices{Input: 1, Output: 10}
	opts := newOptions(t, t.TempDir(), p)
	var out strings.Builder
	opts.In, opts.Out = strings.NewReader("/effort summit\nfirst\n/model lab/brook-7b\n/new\nsecond\n"), &out
	if _, err := RunPlain(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "Cost so far: $0.0012."); n != 2 {
		t.Errorf("the cost of one turn is shown %d times:\n%s", n, out.String())
	}
	for i, r := range p.Requests() {
		if want := []string{"qwen-coder-7b", "brook-7b"}[i]; r.Snapshot.Effort != llm.Summit || r.Snapshot.Target.Model != want {
			t.Errorf("request %d: %s with effort %s", i, r.Snapshot.Target, r.Snapshot.Effort)
		}
	}
}

// plainRun is the UI on lines in the middle of its work, behind what reads them.
type plainRun struct {
	conversation
	desk  *desk
	lines chan string
	stops chan os.Signal
	done  chan error
}

// startPlain runs it up to its first prompt.
func startPlain(t *testing.T, p *llmtest.Provider) *plainRun {
	t.Helper()
	outRead, outWrite := io.Pipe()
	c := &plainRun{
		conversation: conversation{t: t, out: bufio.NewReader(outRead)}, desk: newDesk(newOptions(t, t.TempDir(), p)),
		lines: make(chan string, maxTyped), stops: make(chan os.Signal, 2), done: make(chan error, 1),
	}
	ui := &plain{desk: c.desk, life: t.Context(), out: outWrite, lines: c.lines, stops: c.stops}
	go func() { c.done <- ui.run() }()
	c.until("coding.\n> ")
	return c
}

// TestPlainTrimNotice: what does not fit is told once a turn, with its last figures.
func TestPlainTrimNotice(t *testing.T) {
	p := scripted(32768, llmtest.Hang("tick"))
	c := startPlain(t, p)
	c.lines <- "go on"
	c.until("tick")
	for _, text := range []string{"1 text shortened", "3 texts shortened"} {
		c.desk.emit(agent.Notice{Kind: agent.NoticeTrim, Text: text})
	}
	c.desk.emit(agent.Notice{Kind: agent.NoticeInfo, Text: "noted"})
	c.until("noted") // and so is what was before it
	c.stops <- os.Interrupt
	if text := c.until("Cancelled.\n> "); !strings.Contains(text, "Note: 3 texts shortened\n") {
		t.Errorf("the notice is not told:\n%s", text)
	}
	if text := c.read.String(); strings.Contains(text, "1 text shortened") {
		t.Errorf("the notice is told before it is known:\n%s", text)
	}
	close(c.lines)
	c.until("\n")
	if err := <-c.done; err != nil {
		t.Error(err)
	}
	if err := c.desk.close(); err != nil {
		t.Error(err)
	}
}

// TestPlainInterrupts: an interrupt gives up what was begun or waits, and a second
// one leaves.
func TestPlainInterrupts(t *testing.T) {
	p := scripted(32768, llmtest.Hang("tick"), llmtest.Say("well"), llmtest.Hang("tock"))
	c := startPlain(t, p)
	for _, line := range []string{"a text", "of three lines", "that was pasted"} {
		c.lines <- line
	}
	c.until("tick")
	c.stops <- os.Interrupt
	c.until("Cancelling.\nGiven up: 2 lines typed meanwhile.\nCancelled.\n> ")
	c.lines <- `delete everything \`
	for len(c.lines) > 0 {
		runtime.Gosched()
	}
	c.stops <- os.Interrupt
	c.until("Press Ctrl-C again to leave.\n> ")
	c.lines <- "hello"
	c.until("well\n")
	c.until("> ")
	if text := p.Requests()[1].Messages; text[len(text)-1].Text() != "hello" {
		t.Errorf("sent %+v", text)
	}
	c.lines <- "wait"
	c.until("tock")
	c.stops <- os.Interrupt
	c.until("Cancelling.")
	go func() { _, _ = io.Copy(io.Discard, c.out) }()
	for left := false; !left; {
		select {
		case c.stops <- os.Interrupt: // the next one, unless it comes too late
		case err := <-c.done:
			if left = true; err != nil {
				t.Error(err)
			}
		}
	}
	if err := c.desk.close(); err != nil {
		t.Error(err)
	}
}

// TestPlainInterruptWhileLooking: an interrupt ends a search for engines, and the
// next prompt looks again.
func TestPlainInterruptWhileLooking(t *testing.T) {
	opts := newOptions(t, t.TempDir(), scripted(32768, llmtest.Say("well")))
	looking := make(chan struct{}, 2)
	opts.Connect = func(ctx context.Context) error {
		if looking <- struct{}{}; len(looking) > 1 {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
	outRead, outWrite := io.Pipe()
	c := &conversation{t: t, out: bufio.NewReader(outRead)}
	lines, stops, done := make(chan string, maxTyped), make(chan os.Signal, 2), make(chan error, 1)
	ui := &plain{desk: newDesk(opts), life: t.Context(), out: outWrite, lines: lines, stops: stops}
	go func() { done <- ui.run() }()
	c.until("Looking for engines.\n")
	stops <- os.Interrupt
	c.until("Cancelled.\n> ")
	lines <- "hello"
	c.until("well\n")
	c.until("> ")
	close(lines)
	c.until("\n")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := ui.desk.close(); err != nil {
		t.Error(err)
	}
}

// TestPlainInterruptAmidLines: lines that do not stop, of a large text that is pasted
// or a key that is held, neither keep a turn from its end nor a person from leaving.
func TestPlainInterruptAmidLines(t *testing.T) {
	p := scripted(32768, llmtest.Hang("tick"))
	c := startPlain(t, p)
	c.lines <- "go on"
	c.until("tick")
	left := make(chan struct{})
	go func() {
		for range 1 << 20 { // far more than are read until the second interrupt comes
			select {
			case c.lines <- "more":
			case <-left:
				return
			}
		}
		t.Error("lines are read without an end")
		close(c.lines)
	}()
	c.stops <- os.Interrupt
	c.until("Cancelling.")
	c.stops <- os.Interrupt
	c.until("Cancelled.\n")
	go func() { _, _ = io.Copy(io.Discard, c.out) }()
	if err := <-c.done; err != nil {
		t.Error(err)
	}
	close(left)
	if err := c.desk.close(); err != nil {
		t.Error(err)
	}
}

// TestPlainEnds: the end of the input leaves, and a question is then refused.
func TestPlainEnds(t *testing.T) {
	p := scripted(32768, callOf("1", "write", `{"path":"a.txt","content":"x"}`), llmtest.Say("well"))
	opts := newOptions(t, t.TempDir(), p)
	var out strings.Builder
	opts.In, opts.Out = strings.NewReader("write it\n"), &out
	if _, err := RunPlain(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"No answer comes any more", "Tool write, denied", "well\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}
