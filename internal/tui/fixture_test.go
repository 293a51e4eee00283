package tui

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/tool"
)

var update = flag.Bool("update", false, "rewrite the golden frames")

// scripted makes a provider of one model with a window.
func scripted(window int, script ...llmtest.Answer) *llmtest.Provider {
	return &llmtest.Provider{
		Route: "lab", Name: "Lab", Script: script,
		List: []llm.ModelInfo{{ID: "brook-7b"}, {ID: "qwen-coder-7b"}},
		Facts: llm.ModelInfo{
			Window: llm.Window{Tokens: window, Source: llm.Effective},
			Capabilities: llm.Capabilities{
				Tools: llm.Fact{Support: llm.Supported},
			},
		},
	}
}

// newOptions are the options of a UI that works in dir with a provider.
func newOptions(t *testing.T, dir string, p *llmtest.Provider) *Options {
	t.Helper()
	registry, store := new(catalog.Registry), session.NewStore(t.TempDir())
	opts := &Options{
		Registry: registry, Targets: new(target.Store), Sessions: store,
		Connect: func(context.Context) error { return nil },
		NoModel: func([]catalog.Listing) error { return errors.New("no model was found") },
		Explain: func(err error) string { return err.Error() },
	}
	opts.Provided = func(route string) error {
		_, err := registry.Lookup(route)
		return err
	}
	opts.Agent.NoInstructions = true
	opts.Open = func(id string) (*Session, error) {
		if id == "" {
			log, err := store.Create(dir, nil)
			if err != nil {
				return nil, err
			}
			return &Session{Log: log, State: log.NewState(), Dir: dir}, nil
		}
		log, state, err := store.Open(id)
		if err != nil {
			return nil, err
		}
		s := &Session{Log: log, State: state, Dir: dir}
		if state.Header != nil {
			s.Target, s.Restored = state.Header.Snapshot.Target, true
		}
		return s, nil
	}
	if p != nil {
		if _, err := registry.Register(p, p.Route); err != nil {
			t.Fatal(err)
		}
	}
	return opts
}

// driver works a screen as Bubble Tea would, inside a bubble of synctest.
type driver struct {
	t    *testing.T
	s    *screen
	msgs chan tea.Msg
	quit bool
}

// drive shows a screen and lets test work it.
func drive(t *testing.T, opts *Options, test func(*driver)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		desk := newDesk(opts)
		d := &driver{t: t, s: newScreen(ctx, desk), msgs: make(chan tea.Msg, 1<<10)}
		go pump(desk, func(b batch) { d.msgs <- b })
		defer func() {
			cancel()
			if err := desk.close(); err != nil {
				t.Error(err)
			}
			close(desk.over)
			d.wait(10 * time.Second) // the ticks that are still to come
		}()
		d.exec(d.s.Init())
		test(d)
	})
}

func (d *driver) exec(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	go func() {
		switch msg := cmd().(type) {
		case nil:
		case tea.BatchMsg:
			for _, c := range msg {
				d.exec(c)
			}
		default:
			d.msgs <- msg
		}
	}()
}

func (d *driver) send(msg tea.Msg) {
	_, cmd := d.s.Update(msg)
	d.exec(cmd)
	d.check()
	d.settle()
}

// settle takes in what comes without time passing.
func (d *driver) settle() {
	for {
		synctest.Wait()
		select {
		case msg := <-d.msgs:
			if _, ok := msg.(tea.QuitMsg); ok {
				d.quit = true
				continue
			}
			_, cmd := d.s.Update(msg)
			d.exec(cmd)
		default:
			return
		}
	}
}

// wait lets time pass.
func (d *driver) wait(t time.Duration) {
	const step = 25 * time.Millisecond
	for ; t > 0; t -= step {
		time.Sleep(step)
		d.settle()
	}
	d.check()
}

// check checks what every frame has to be.
func (d *driver) check() {
	d.t.Helper()
	lines, cursor := d.s.frameLines()
	if len(lines) != d.s.height {
		d.t.Errorf("%d lines on a screen of %d", len(lines), d.s.height)
	}
	checkLines(d.t, lines, d.s.width)
	if cursor != nil && (cursor.X < 0 || cursor.X >= d.s.width || cursor.Y < 0 || cursor.Y >= d.s.height) {
		d.t.Errorf("the cursor is at %d, %d", cursor.X, cursor.Y)
	}
}

// frame is what is on the screen, without styles.
func (d *driver) frame() string {
	lines, _ := d.s.frameLines()
	for i := range lines {
		lines[i] = strings.TrimRight(plainText(lines[i]), " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

func (d *driver) shows(texts ...string) {
	d.t.Helper()
	frame := d.frame()
	for _, text := range texts {
		if !strings.Contains(frame, text) {
			d.t.Errorf("the screen does not show %q:\n%s", text, frame)
		}
	}
}

func (d *driver) hides(texts ...string) {
	d.t.Helper()
	frame := d.frame()
	for _, text := range texts {
		if strings.Contains(frame, text) {
			d.t.Errorf("the screen shows %q:\n%s", text, frame)
		}
	}
}

// write types text; press presses keys by their names.
func (d *driver) write(text string) {
	for _, r := range text {
		d.send(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
}

var codes = map[string]tea.KeyPressMsg{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab}, "up": {Code: tea.KeyUp},
	"down": {Code: tea.KeyDown}, "left": {Code: tea.KeyLeft}, "backspace": {Code: tea.KeyBackspace}, "pgup": {Code: tea.KeyPgUp},
	"pgdown": {Code: tea.KeyPgDown}, "alt+enter": {Code: tea.KeyEnter, Mod: tea.ModAlt}, "shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift},
	"ctrl+end": {Code: tea.KeyEnd, Mod: tea.ModCtrl}, "ctrl+home": {Code: tea.KeyHome, Mod: tea.ModCtrl},
}

func (d *driver) press(names ...string) {
	d.t.Helper()
	for _, name := range names {
		msg, ok := codes[name]
		if letter, ctrl := strings.CutPrefix(name, "ctrl+"); !ok && ctrl && len(letter) == 1 {
			msg, ok = tea.KeyPressMsg{Code: rune(letter[0]), Mod: tea.ModCtrl}, true
		}
		if !ok {
			d.t.Fatalf("no key %s", name)
		}
		if got := msg.Keystroke(); got != name {
			d.t.Fatalf("the key %s calls itself %s", name, got)
		}
		d.send(msg)
	}
}

func (d *driver) golden(name string) {
	d.t.Helper()
	file := filepath.Join("testdata", "frames", name+".txt")
	got := d.frame()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			d.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			d.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		d.t.Fatal(err)
	}
	if got != string(want) {
		d.t.Errorf("%s is now:\n%s\nwant:\n%s", file, got, want)
	}
}

// answerOf makes an answer of reasoning and text with a count.
func answerOf(reasoning, text string, promptTokens int) llmtest.Answer {
	var events []llm.Event
	if reasoning != "" {
		events = append(events, llm.ReasoningDelta(reasoning))
	}
	for piece := range strings.SplitAfterSeq(text, " ") {
		events = append(events, llm.TextDelta(piece))
	}
	events = append(events, llm.Usage{PromptTokens: promptTokens, CompletionTokens: 20}, llm.Finish{Reason: llm.FinishStop})
	return llmtest.Answer{Events: events}
}

func callOf(id, name, arguments string) llmtest.Answer {
	return llmtest.Call(llm.ToolCall{ID: id, Name: name, Arguments: arguments})
}

var _ tool.Approver = (*approver)(nil)
