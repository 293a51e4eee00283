package tui

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/tool"
)

// TestFirstFrame: nothing is waited for before the screen is there.
func TestFirstFrame(t *testing.T) {
	p := scripted(32768)
	p.Hold = make(chan struct{})
	opts := newOptions(t, t.TempDir(), p)
	looked := false
	opts.Connect = func(ctx context.Context) error {
		looked = true
		return nil
	}
	s := newScreen(t.Context(), newDesk(opts))
	if lines, _ := s.frameLines(); len(lines) != 24 || looked {
		t.Errorf("%d lines, looked for engines: %v", len(lines), looked)
	}
}

func TestConversation(t *testing.T) {
	p := scripted(32768, answerOf("Let me think about it", "The answer is **42** and that is it.", 1234))
	drive(t, newOptions(t, t.TempDir(), p), func(d *driver) {
		d.wait(100 * time.Millisecond)
		d.shows("lab/qwen-coder-7b", "/32,768 effective", "climb", "ask", "~")
		d.write("what is it?")
		d.shows("❯ what is it?")
		d.press("enter")
		d.wait(100 * time.Millisecond)
		d.shows("❯ what is it?", "▸ thought, 5 words (Ctrl-R opens)", "The answer is 42 and that is it.", "1,254/32,768 effective 3%")
		d.hides("Let me think", "~1,2")
		d.press("ctrl+r")
		d.shows("▾ thought", "Let me think about it")
		d.press("ctrl+r")
		d.hides("Let me think")
		d.press("ctrl+l")
		d.shows("planned ", "counted 1,234 prompt tokens")
		d.press("esc", "up")
		d.shows("❯ what is it?")
	})
}

// TestCost: what a session has cost is shown where prices are known, also when it is
// gone on with, and a new one begins with nothing.
func TestCost(t *testing.T) {
	p := scripted(32768, answerOf("", "well", 1000), answerOf("", "again", 1000))
	p.Facts.Prices = llm.Prices{Input: 1, Output: 10}
	opts := newOptions(t, t.TempDir(), p)
	drive(t, opts, func(d *driver) {
		d.wait(100 * time.Millisecond)
		d.hides("$")
		for _, want := range []string{"$0.0012", "$0.0024"} { // 1,000 tokens at 1 and 20 at 10 for a million
			d.write("how is it?")
			d.press("enter")
			d.wait(100 * time.Millisecond)
			d.shows(" 3% " + want)
		}
		d.press("ctrl+l")
		d.shows("$0.0012 so far", "$0.0024 so far")
		d.press("ctrl+l")
		id := d.s.bench.id
		d.write("/new")
		d.press("enter")
		d.wait(100 * time.Millisecond)
		d.hides("$")
		d.write("/sessions " + id)
		d.press("enter")
		d.wait(100 * time.Millisecond)
		d.shows("$0.0024")
	})
}

// TestEngineAppears: the UI goes on when an engine is started.
func TestEngineAppears(t *testing.T) {
	p := scripted(8192)
	opts := newOptions(t, t.TempDir(), nil)
	tries := 0
	opts.Connect = func(context.Context) error {
		if tries++; tries == 3 {
			_, err := opts.Registry.Register(p, "lab")
			return err
		}
		return nil
	}
	drive(t, opts, func(d *driver) {
		d.wait(time.Second)
		d.shows("no model was found", "no model")
		d.write("hello")
		d.press("enter")
		d.shows("There is no model to send this to yet", "❯ hello")
		d.wait(2 * lookAgain)
		d.shows("found lab", "lab/qwen-coder-7b")
		d.hides("no model was found")
		if tries != 3 {
			t.Errorf("looked %d times", tries)
		}
	})
}

// TestWhoseProviderIsMissing: a model that the person named is waited for, and
// one of the configuration is replaced, which is said.
func TestWhoseProviderIsMissing(t *testing.T) {
	for _, named := range []bool{true, false} {
		opts := newOptions(t, t.TempDir(), scripted(8192))
		open := opts.Open
		opts.Open = func(id string) (*Session, error) {
			s, err := open(id)
			s.Target, s.Named = llm.Target{Provider: "away", Model: "m"}, named
			return s, err
		}
		drive(t, opts, func(d *driver) {
			d.wait(100 * time.Millisecond)
			if !named {
				d.shows("away/m has no provider here; this session uses lab/qwen-coder-7b.", "8,192 effective")
				return
			}
			d.shows(`no provider "away"`, "no model")
			if _, err := opts.Registry.Register(&llmtest.Provider{Route: "away"}, "away"); err != nil {
				t.Fatal(err)
			}
			d.wait(2 * lookAgain)
			d.shows("found away", "away/m")
		})
	}
}

// TestNotSavedIsShownAllTheWhile: as long as something of the session is not on
// disk, and not only when it is told.
func TestNotSavedIsShownAllTheWhile(t *testing.T) {
	opts := newOptions(t, t.TempDir(), scripted(32768, llmtest.Say("first"), llmtest.Say("second"), llmtest.Say("third")))
	root := filepath.Join(t.TempDir(), "sessions")
	opts.Sessions = session.NewStore(root)
	opts.Open = func(string) (*Session, error) {
		log, err := opts.Sessions.Create("/w", nil)
		if err != nil {
			return nil, err
		}
		return &Session{Log: log, State: log.NewState(), Dir: t.TempDir()}, nil
	}
	drive(t, opts, func(d *driver) {
		d.wait(100 * time.Millisecond)
		say := func(text, answer string, unsaved bool) {
			t.Helper()
			d.write(text)
			d.press("enter")
			d.wait(time.Second)
			d.shows(answer)
			if got := strings.Contains(d.s.statusLine(), "not saved"); got != unsaved || d.s.turn != nil {
				t.Errorf("behind %s the status is %q", answer, d.s.statusLine())
			}
		}
		say("one", "first", false)
		if err := os.RemoveAll(root); err != nil {
			t.Skip(err) // no open file can be removed here
		}
		if err := os.WriteFile(root, nil, 0o600); err != nil { // in the way
			t.Fatal(err)
		}
		say("two", "second", true)
		if err := os.Remove(root); err != nil {
			t.Fatal(err)
		}
		say("three", "third", false)
		d.shows("The session is saved again.")
	})
	opts.Open = func(string) (*Session, error) {
		log := session.Memory("/w")
		return &Session{Log: log, State: log.NewState(), Dir: "/w"}, nil
	}
	drive(t, opts, func(d *driver) {
		d.wait(100 * time.Millisecond)
		d.shows("not saved")
	})
}

// TestNothingIsSentDuringTheHandshake: what is sent meanwhile goes when it is
// over.
func TestNothingIsSentDuringTheHandshake(t *testing.T) {
	p := scripted(32768, llmtest.Say("hello back"))
	drive(t, newOptions(t, t.TempDir(), p), func(d *driver) {
		d.wait(100 * time.Millisecond)
		p.Hold = make(chan struct{})
		d.write("/model lab/other")
		d.press("enter")
		d.shows("asking lab about other")
		d.write("hi")
		d.press("enter")
		d.shows("sends when it is known")
		if n := len(p.Requests()); n != 0 {
			t.Errorf("%d requests during the handshake", n)
		}
		d.wait(3 * time.Second) // the probe gives up after two
		d.shows("hello back")
		if got := p.Requests()[0].Snapshot.Target.Model; got != "other" {
			t.Errorf("sent to %s", got)
		}
	})
}

// TestATurnThatAsksTheEngineToo: it asks about the model that was just chosen, and
// the screen still learns that the handshake is over.
func TestATurnThatAsksTheEngineToo(t *testing.T) {
	p := scripted(32768, llmtest.Say("hello back"))
	drive(t, newOptions(t, t.TempDir(), p), func(d *driver) {
		d.wait(100 * time.Millisecond)
		p.Hold = make(chan struct{})
		d.write("/model lab/other")
		d.press("enter")
		d.shows("asking lab about other")
		d.s.bench.selector.Reprobe(d.s.life)
		d.write("hi")
		d.press("enter")
		d.wait(3 * time.Second)
		d.hides("asking lab")
		d.shows("hello back")
		if n := strings.Count(d.frame(), "model lab/other"); n != 1 {
			t.Errorf("told %d times:\n%s", n, d.frame())
		}
		// Of two handshakes the newest is told.
		for _, model := range []string{"third", "fourth"} {
			d.write("/model lab/" + model)
			d.press("enter")
		}
		d.wait(3 * time.Second)
		d.hides("model lab/third")
		if n := strings.Count(d.frame(), "model lab/fourth"); n != 1 {
			t.Errorf("told %d times:\n%s", n, d.frame())
		}
	})
}

// TestAStepOfTheModelBefore is told of when another model is chosen already: the
// status line and the list name the one that is chosen.
func TestAStepOfTheModelBefore(t *testing.T) {
	opts := newOptions(t, t.TempDir(), scripted(32768, llmtest.Hang("well")))
	drive(t, opts, func(d *driver) {
		d.wait(100 * time.Millisecond)
		before, _ := d.s.bench.selector.Current()
		d.write("go")
		d.press("enter")
		d.wait(100 * time.Millisecond)
		d.shows("well")
		d.write("/model lab/brook-7b")
		d.press("enter")
		d.wait(100 * time.Millisecond)
		d.send(batch{{agent.Model{Snapshot: before}, time.Now()}})
		if got := d.s.snapshot.Target.Model; got != "brook-7b" || before.Target.Model == got {
			t.Errorf("the screen names %s", got)
		}
		d.press("ctrl+o")
		d.wait(50 * time.Millisecond)
		d.shows("● brook-7b")
		d.press("esc", "esc")
		d.wait(100 * time.Millisecond)
	})
}

func TestApproval(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "note.txt")
	if err := os.WriteFile(file, []byte("old line\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	edit := `{"path":"note.txt","old":"old line","new":"new line"}`
	p := scripted(32768, callOf("c1", "edit", edit), answerOf("", "Done.", 500))
	drive(t, newOptions(t, dir, p), func(d *driver) {
		d.wait(100 * time.Millisecond)
		d.write("change it")
		d.press("enter")
		d.wait(50 * time.Millisecond)
		// Whoever is typing is not answering.
		for range 5 {
			d.write("y")
			d.wait(quiet / 2)
		}
		d.shows("a question waits until you stop typing", "❯ yyyyy", "-old line", "+new line")
		d.wait(2 * quiet)
		d.shows("a question waits") // a prompt is half written
		d.wait(2 * longQuiet)
		d.press("enter") // what it was meant for is another thing
		d.shows("edit wants to make this change", "y  allow once", "a  always allow in this session: edits")
		if text, _ := os.ReadFile(file); string(text) != "old line\n" {
			t.Fatalf("the file was changed before anybody agreed: %q", text)
		}
		d.write("q")                          // no answer
		d.press("down", "up", "down", "down") // round the list of four
		d.shows("  y  allow once", "▸ a  always")
		d.press("up", "enter")
		d.wait(100 * time.Millisecond)
		d.shows("✓ edit  note.txt  +1 -1", "Done.", "❯ yyyyy")
		if text, _ := os.ReadFile(file); string(text) != "new line\n" {
			t.Errorf("the file is %q", text)
		}
	})
}

// TestLateAnswer: an answer that comes after the cancel runs nothing.
func TestLateAnswer(t *testing.T) {
	dir := t.TempDir()
	p := scripted(32768, callOf("c1", "write", `{"path":"x.txt","content":"x"}`))
	drive(t, newOptions(t, dir, p), func(d *driver) {
		d.wait(100 * time.Millisecond)
		d.write("write it")
		d.press("enter")
		d.wait(time.Second)
		a := d.s.asked()
		if a == nil {
			t.Fatal("nobody was asked")
		}
		d.press("esc")
		d.wait(100 * time.Millisecond)
		d.shows("cancelled", "✗ write  x.txt  not run")
		d.hides("allow once")
		a.answer <- tool.AllowOnce // as a key that was on its way would
		d.wait(100 * time.Millisecond)
		if _, err := os.Stat(filepath.Join(dir, "x.txt")); err == nil {
			t.Error("the late answer has written the file")
		}
		if d.s.turn != nil {
			t.Error("the turn still runs")
		}
	})
}

func TestQueueAndCancel(t *testing.T) {
	p := scripted(32768, llmtest.Hang("begun "), llmtest.Say("second"))
	drive(t, newOptions(t, t.TempDir(), p), func(d *driver) {
		d.wait(100 * time.Millisecond)
		d.write("one")
		d.press("enter")
		d.wait(100 * time.Millisecond)
		d.write("two")
		d.press("enter")
		d.write("three")
		d.press("enter")
		d.shows("begun", "queued: two", "queued: three", "Esc cancels")
		d.press("esc")
		d.wait(200 * time.Millisecond)
		d.shows("cancelled", "❯ two", "  three")
		d.hides("queued:")
		d.press("ctrl+c")
		d.shows("press Ctrl-C again to leave")
		d.hides("three")
		d.wait(leaveTime + time.Second)
		d.hides("press Ctrl-C")
		d.press("ctrl+c", "ctrl+c")
		if d.settle(); !d.quit {
			t.Error("Ctrl-C twice does not leave")
		}
	})
}

func TestSteer(t *testing.T) {
	release := make(chan struct{})
	p := scripted(32768)
	p.Answer = func(n int, _ *llm.Request) llmtest.Answer {
		if n == 0 {
			a := callOf("c1", "read", `{"path":"none.txt"}`)
			a.Wait = func(context.Context) { <-release }
			return a
		}
		return llmtest.Say("as you say")
	}
	drive(t, newOptions(t, t.TempDir(), p), func(d *driver) {
		release = make(chan struct{})
		d.wait(100 * time.Millisecond)
		d.write("go")
		d.press("enter")
		d.wait(100 * time.Millisecond)
		d.write("rather left")
		d.press("ctrl+s")
		d.shows("with the next request: rather left")
		release <- struct{}{}
		d.wait(200 * time.Millisecond)
		d.shows("↳ rather left", "as you say")
		d.hides("with the next request")
		last := p.Requests()[1].Messages
		if m := last[len(last)-1]; m.Text() != "rather left" || !m.Continuation {
			t.Errorf("the second request ends with %+v", m)
		}
	})
}

// TestAnswerInCapitals: the letters answer with Caps Lock on, too.
func TestAnswerInCapitals(t *testing.T) {
	dir := t.TempDir()
	p := scripted(32768, callOf("c1", "write", `{"path":"a.txt","content":"x"}`), answerOf("", "Done.", 500))
	drive(t, newOptions(t, dir, p), func(d *driver) {
		d.wait(100 * time.Millisecond)
		d.write("write it")
		d.press("enter")
		d.wait(2 * quiet)
		d.shows("y  allow once")
		for width, want := range map[int]string{80: "? y allow once a always", 30: "? y allow a always n reject x"} {
			d.send(tea.WindowSizeMsg{Width: width, Height: 4})
			d.shows(want)
		}
		d.send(tea.WindowSizeMsg{Width: 80, Height: 24})
		d.send(tea.KeyPressMsg{Code: 'y', ShiftedCode: 'Y', Text: "Y", Mod: tea.ModShift})
		d.wait(100 * time.Millisecond)
		d.shows("✓ write  a.txt", "Done.")
	})
}

// TestTrimNotice: one line below the prompt, and later steps change it.
func TestTrimNotice(t *testing.T) {
	drive(t, newOptions(t, t.TempDir(), scripted(32768, llmtest.Hang(""))), func(d *driver) {
		d.wait(100 * time.Millisecond)
		d.write("go on")
		d.press("enter")
		d.wait(100 * time.Millisecond)
		for _, text := range []string{"1 text shortened", "3 texts shortened"} {
			d.send(batch{{agent.Notice{Kind: agent.NoticeTrim, Text: "to fit the window: " + text}, time.Now()}})
		}
		d.shows("❯ go on\n  ✂ to fit the window: 3 texts shortened")
		d.hides("1 text shortened")
		d.press("esc")
		d.wait(100 * time.Millisecond)
	})
}

// TestNothingRawReachesTheTerminal: whatever a model, a tool or an engine says,
// the terminal gets text and colours.
func TestNothingRawReachesTheTerminal(t *testing.T) {
	const evil = "\x1b[2J\x1b]0;title\x07\x1b[31mred\x9b1m\u202egnp\u200b\x00\r\x08"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "evil.txt"), []byte(evil), 0o644); err != nil {
		t.Fatal(err)
	}
	p := scripted(32768,
		callOf("c1", "shell", `{"command":"printf '\\033[2J\\033]0;x\\007\\033[31mred'; echo `+"\u202e"+`"}`),
		callOf("c2", "read", `{"path":"evil\u001b[2J.txt"}`),
		callOf("c3", "nonsense\x1b[2J", `{"x":"\u001b[2J"}`),
		answerOf(evil, evil+" `"+evil+"` | "+evil, 10),
		llmtest.Fail(llm.Errorf(llm.CodeInvalidRequest, "the engine says %s", evil)),
	)
	opts := newOptions(t, dir, p)
	opts.Mode = tool.ModeFull
	drive(t, opts, func(d *driver) {
		d.wait(100 * time.Millisecond)
		for range 2 {
			d.send(tea.PasteMsg{Content: evil + "go"})
			d.press("enter")
			d.wait(time.Second)
		}
		d.press("ctrl+r")
		d.press("ctrl+home")
		d.check() // and every frame before
		d.press("ctrl+l")
		d.check()
		var all strings.Builder
		for _, e := range append(d.s.transcript.items, d.s.log.items...) {
			lines := e.lines(80, true)
			checkLines(t, lines, 80)
			all.WriteString(strings.Join(lines, "\n"))
		}
		if !strings.Contains(all.String(), "red") || !strings.Contains(all.String(), "the engine says") {
			t.Error("the texts themselves are not shown")
		}
	})
}

// TestRetries: one line tells of them, and every way to fail what to do.
func TestRetries(t *testing.T) {
	p := scripted(32768,
		llmtest.Fail(llm.Errorf(llm.CodeServer, "lab: busy")), llmtest.Fail(llm.Errorf(llm.CodeServer, "lab: busy")), llmtest.Say("at last"),
		llmtest.Fail(llm.Errorf(llm.CodeAuth, "lab: wrong key")),
	)
	opts := newOptions(t, t.TempDir(), p)
	opts.Explain = func(err error) string { return err.Error() + "\n  Name another key." }
	drive(t, opts, func(d *driver) {
		d.wait(100 * time.Millisecond)
		d.write("go")
		d.press("enter")
		d.wait(5 * time.Second)
		d.shows("! lab: busy; trying again in", "(2 tries)", "at last")
		if n := strings.Count(d.frame(), "busy"); n != 1 {
			t.Errorf("%d lines about it", n)
		}
		d.write("and again")
		d.press("enter")
		d.wait(time.Second)
		d.shows("✗ lab: wrong key\n    Name another key.")
		d.press("ctrl+l")
		d.shows("lab: busy", "wrong key")
	})
}

// TestPanicOfATurn: it ends the turn and not the program.
func TestPanicOfATurn(t *testing.T) {
	p := scripted(32768)
	p.Answer = func(n int, _ *llm.Request) llmtest.Answer {
		if n == 0 {
			panic("a mistake")
		}
		return llmtest.Say("all well")
	}
	drive(t, newOptions(t, t.TempDir(), p), func(d *driver) {
		d.wait(100 * time.Millisecond)
		d.write("go")
		d.press("enter")
		d.wait(100 * time.Millisecond)
		d.shows("✗ drover failed in this turn")
		d.write("again")
		d.press("enter")
		d.wait(100 * time.Millisecond)
		d.shows("all well")
	})
}

// TestReplayShowsThePersonsPrompts: what the host told the model is not shown as
// said by the person.
func TestReplayShowsThePersonsPrompts(t *testing.T) {
	tr := newTranscript()
	tr.replay([]llm.Message{
		llm.UserText("first"), llm.AssistantText("", llm.ToolCall{ID: "1", Name: "read", Arguments: `{"path":"a.go"}`}), llm.ToolText("1", "text"),
		{Role: llm.User, Continuation: true, Parts: []llm.Part{llm.Text("[drover: your last answer]")}},
		{Role: llm.User, Continuation: true, Parts: []llm.Part{llm.Text("rather left")}}, llm.AssistantText("well"),
	}, "2 exchanges dropped")
	got := plainText(strings.Join(tr.view(), "\n"))
	if want := "❯ first\n  ✂ 2 exchanges dropped\n\n✓ read  a.go\n\n↳ rather left\n\nwell\n"; !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSessions(t *testing.T) {
	p := scripted(32768, llmtest.Say("first answer"), llmtest.Say("second answer"))
	opts := newOptions(t, t.TempDir(), p)
	drive(t, opts, func(d *driver) {
		d.wait(100 * time.Millisecond)
		d.write("first prompt")
		d.press("enter")
		d.wait(100 * time.Millisecond)
		first := d.s.bench.id
		d.write("/model lab/brook-7b")
		d.press("enter")
		d.wait(100 * time.Millisecond)
		d.shows("model lab/brook-7b")
		d.write("/new")
		d.press("enter")
		d.wait(100 * time.Millisecond)
		d.hides("first answer")
		d.shows("lab/brook-7b") // the model stays
		d.write("/sessions")
		d.press("enter")
		d.wait(100 * time.Millisecond)
		d.shows("Session", "first prompt", "1 turn")
		d.write("zzz")
		d.shows("nothing matches")
		d.press("ctrl+u")
		d.write("first")
		d.press("enter")
		d.wait(100 * time.Millisecond)
		d.shows("❯ first prompt", "first answer", "session "+first, "lab/qwen-coder-7b")
		if infos, err := opts.Sessions.List(nil); err != nil || len(infos) != 1 {
			t.Errorf("the empty session is still there: %v, %v", infos, err)
		}
	})
}

func TestPickers(t *testing.T) {
	p := scripted(32768)
	opts := newOptions(t, t.TempDir(), p)
	dead := &llmtest.Provider{Route: "dead", Name: "Dead", ListErr: &llm.Error{Code: llm.CodeTransport, Message: "dead: connection refused", Unreached: true}}
	opts.Targets.Put(&llm.ModelInfo{Provider: "dead", ID: "m"})
	if _, err := opts.Registry.Register(dead, "dead"); err != nil {
		t.Fatal(err)
	}
	drive(t, opts, func(d *driver) {
		d.wait(100 * time.Millisecond)
		d.press("ctrl+o")
		d.wait(50 * time.Millisecond)
		frame := d.frame()
		coder, other := strings.Index(frame, "● qwen-coder-7b"), strings.Index(frame, "  brook-7b")
		if coder < 0 || other < coder {
			t.Errorf("the coding model is not first and current:\n%s", frame)
		}
		d.shows("Lab", "Dead", "connection refused", "coding")
		if known, ok := opts.Targets.Get(llm.Target{Provider: "dead", Model: "m"}); ok {
			t.Errorf("nobody listens, and this is kept: %+v", known)
		}
		d.write("brook-7b")
		d.press("enter")
		d.wait(100 * time.Millisecond)
		d.shows("model lab/brook-7b: 32,768 effective · tools")
		d.press("ctrl+t")
		d.shows("Effort", "graze", "summit", "temperature 0.7")
		d.write("sum")
		d.press("enter")
		d.shows("effort summit")
		if e := d.s.bench.selector.Effort(); e != llm.Summit {
			t.Errorf("the effort is %s", e)
		}
		d.press("shift+tab")
		if m := d.s.mode(); m != tool.ModeEdit {
			t.Errorf("the mode is %s", m)
		}
		d.write("/mode full")
		d.press("enter")
		d.shows("full")
	})
}
