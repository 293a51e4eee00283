package tui

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"pgregory.net/rapid"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/tool"
)

// project is the folder of the frames; it need not exist.
const project = "/home/ada/meadow"

// scriptedTurn is a turn with everything that one can have.
func scriptedTurn(at time.Time) batch {
	var b batch
	add := func(what any, after time.Duration) {
		at = at.Add(after)
		b = append(b, event{what, at})
	}
	diff := &tool.Diff{Path: project + "/herd.go", Old: "package herd\n\nconst size = 3\n", New: "package herd\n\n// size counts the sheep.\nconst size = 4\n"}
	edit := &tool.Action{Title: "herd.go", Kind: tool.KindEdit, Access: tool.AccessWrite, Diff: diff, Scopes: []string{"edits"}}
	shell := &tool.Action{Title: "go test ./...", Kind: tool.KindExecute, Access: tool.AccessExecute, Command: "go test ./...", Scopes: []string{"go test"}}
	add(agent.Planned{Report: budget.Report{WindowTokens: 8192, WindowSource: llm.Effective, EstimatedAfter: 6200, OutputReserve: 1024}}, 0)
	add(agent.Notice{Kind: agent.NoticeTrim, Text: "to fit the window of 8192 tokens: 2 earlier exchanges dropped (about 1300 tokens)"}, 0)
	add(agent.Reasoning("The herd has grown.\nI should look at the constant."), 400*time.Millisecond)
	add(agent.Text("I will change the **constant** in `herd.go` and run the tests:\n\n1. edit\n2. test\n"), 1500*time.Millisecond)
	add(agent.CallPending{Call: llm.ToolCall{ID: "1", Name: "edit", Arguments: "{}"}, Action: edit}, time.Second)
	add(agent.CallStarted{ID: "1"}, 0)
	add(agent.CallFinished{ID: "1", Name: "edit", Result: tool.Result{Status: tool.StatusOK, Text: "edited", Diff: diff}}, 20*time.Millisecond)
	add(agent.CallPending{Call: llm.ToolCall{ID: "2", Name: "shell", Arguments: "{}"}, Action: shell}, 0)
	add(agent.CallStarted{ID: "2"}, 0)
	var out strings.Builder
	for i := range 12 {
		fmt.Fprintf(&out, "ok  \tmeadow/part%d\t0.0%ds\n", i, i)
	}
	add(agent.CallOutput{ID: "2", Text: out.String()}, time.Second)
	add(agent.CallFinished{ID: "2", Name: "shell", Result: tool.Result{Status: tool.StatusError, Text: out.String() + "FAIL\tmeadow/fence\t0.1s\n[exit code 1]"}}, 3*time.Second)
	add(agent.Usage{Usage: llm.Usage{PromptTokens: 6400, CompletionTokens: 85}, Estimate: 6200, Window: llm.Window{Tokens: 8192, Source: llm.Effective}}, 0)
	return b
}

// TestFrames shows what a person sees, in both sizes.
func TestFrames(t *testing.T) {
	for _, size := range []struct{ width, height int }{{80, 24}, {200, 50}} {
		t.Run(fmt.Sprintf("%dx%d", size.width, size.height), func(t *testing.T) {
			p := scripted(8192, llmtest.Hang(""))
			drive(t, newOptions(t, project, p), func(d *driver) {
				golden := func(name string) { d.golden(fmt.Sprintf("%s-%dx%d", name, size.width, size.height)) }
				d.send(tea.WindowSizeMsg{Width: size.width, Height: size.height})
				d.wait(100 * time.Millisecond)
				golden("start")
				d.write("make the herd larger")
				d.press("enter")
				d.wait(100 * time.Millisecond)
				d.send(scriptedTurn(time.Now()))
				golden("turn")
				d.shows("+// size counts the sheep.", "FAIL    meadow/fence", "6,485/8,192 effective 79%", "… 8 lines before", "tok/s")
				d.press("ctrl+r")
				d.press("ctrl+home")
				golden("details")
				d.shows("I should look at the constant.", "scrolled up")
				d.press("ctrl+r", "ctrl+end")
				answer := make(chan tool.Decision, 1)
				rm := &tool.Action{Title: "rm -r old\necho gone", Kind: tool.KindExecute, Access: tool.AccessExecute, Command: "rm -r old\necho gone", Scopes: []string{"rm", "echo"}}
				d.send(batch{
					{agent.CallPending{Call: llm.ToolCall{ID: "3", Name: "shell", Arguments: "{}"}, Action: rm}, time.Now()},
					{question{&tool.Question{CallID: "3", Tool: "shell", Action: rm}, answer}, time.Now()},
				})
				d.wait(2 * quiet)
				golden("question")
				d.shows("rm -r old", "echo gone", "always allow in this session: rm, echo")
				d.write("x")
				if got := <-answer; got != tool.RejectAlways {
					t.Errorf("the answer is %v", got)
				}
				d.press("esc")
				d.wait(100 * time.Millisecond)
				d.press("ctrl+o")
				d.wait(100 * time.Millisecond)
				golden("models")
				d.press("esc")
				d.write("/help")
				d.press("enter")
				d.wait(50 * time.Millisecond)
				golden("help")
				d.shows("Shift-Tab", "send now")
				d.write("/")
				golden("commands")
			})
		})
	}
}

// TestMeter: the estimate is marked, and colours warn.
func TestMeter(t *testing.T) {
	window := llm.Window{Tokens: 1000, Source: llm.Effective}
	for _, c := range []struct {
		meter meter
		text  string
		style style
	}{
		{meter{used: 749, window: window, estimated: true}, "~749/1,000 74%", green},
		{meter{used: 750, window: window}, "750/1,000 75%", yellow},
		{meter{used: 899, window: window}, "899/1,000 89%", yellow},
		{meter{used: 900, window: window}, "900/1,000 90%", red | bold},
		{meter{used: 1234}, "1,234", green},
	} {
		if c.meter.window.Tokens > 0 {
			c.text = strings.Replace(c.text, " ", " effective ", 1)
		}
		if got := c.meter.String(); got != c.text || c.meter.style() != c.style {
			t.Errorf("got %q %v, want %q %v", got, c.meter.style(), c.text, c.style)
		}
	}
}

// TestAnySize: whatever the terminal's size and whatever is pressed, a frame has
// as many lines as the screen, and none is too wide. What is written, and what is
// marked in a list, is on it.
func TestAnySize(t *testing.T) {
	p := scripted(8192, llmtest.Hang(""))
	drive(t, newOptions(t, project, p), func(d *driver) {
		d.wait(100 * time.Millisecond)
		d.write("go")
		d.press("enter")
		d.wait(100 * time.Millisecond)
		d.send(scriptedTurn(time.Now()))
		keys := []string{"pgup", "pgdown", "ctrl+home", "ctrl+end", "ctrl+r", "ctrl+l", "ctrl+o", "ctrl+t", "esc", "up", "down", "alt+enter", "tab", "backspace"}
		rapid.Check(t, func(r *rapid.T) {
			width, height := rapid.IntRange(1, 220).Draw(r, "width"), rapid.IntRange(1, 70).Draw(r, "height")
			d.send(tea.WindowSizeMsg{Width: width, Height: height})
			for range rapid.IntRange(1, 6).Draw(r, "keys") {
				if rapid.Bool().Draw(r, "write") {
					d.write(rapid.SampledFrom([]string{"a", "/", "@", "漢", "👨‍👩‍👧", "long word "}).Draw(r, "text"))
				} else {
					d.press(rapid.SampledFrom(keys).Draw(r, "key"))
				}
				d.s.quitting = false
				lines, cursor := d.s.frameLines()
				bottom, _, _ := d.s.bottom()
				if len(lines) != height {
					r.Fatalf("%d lines on a screen of %d", len(lines), height)
				}
				if d.s.chooser == nil && cursor == nil {
					r.Fatalf("what is written is not shown:\n%s", d.frame())
				}
				marked := d.s.chooser != nil && d.s.chooser.chosen() != nil || d.s.chooser == nil && len(d.s.completion.choices) > 0
				if marked && height > lowScreen+len(d.s.composer.images) && !strings.Contains(plainText(strings.Join(bottom, "")), "▸ ") {
					r.Fatalf("what is marked is not shown:\n%s", d.frame())
				}
			}
			if t.Failed() {
				r.FailNow()
			}
		})
	})
}

// TestRedraws: however fast things happen, the screen takes them in at most 30 times a
// second, and nothing waits for longer than that.
func TestRedraws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(newOptions(t, t.TempDir(), nil))
		batches, events, late := 0, 0, time.Duration(0)
		pumped := make(chan struct{})
		go func() {
			defer close(pumped)
			pump(d, func(b batch) {
				batches++
				events += len(b)
				late = max(late, time.Since(b[0].at))
			})
		}()
		const seconds = 4
		for range seconds * 1000 {
			d.emit(agent.Text("word "))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		close(d.over)
		<-pumped
		if batches > seconds*30+1 || batches < seconds*25 || events != seconds*1000 || late > time.Second/30 {
			t.Errorf("%d events in %d batches, one %v late", events, batches, late)
		}
	})
}

// lineItem is an item of n lines that name it.
type lineItem struct{ id, n int }

func (l *lineItem) lines(width int, _ bool) []string {
	var lines []string
	for i := range l.n {
		lines = append(lines, fmt.Sprintf("%d.%d", l.id, i))
	}
	return lines
}

// TestScrolling compares the view with the whole transcript written out.
func TestScrolling(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tr := newTranscript()
		tr.tight = rapid.Bool().Draw(r, "tight")
		tr.resize(80, rapid.IntRange(1, 12).Draw(r, "height"))
		var all []string
		add := func() {
			l := &lineItem{len(tr.items), rapid.IntRange(1, 9).Draw(r, "lines")}
			if len(all) > 0 && !tr.tight {
				all = append(all, "")
			}
			all = append(all, l.lines(80, false)...)
			tr.add(l)
		}
		for range rapid.IntRange(1, 8).Draw(r, "items") {
			add()
		}
		bottom := func() int { return max(0, len(all)-tr.height) }
		top := bottom()
		for range 20 {
			switch n := rapid.IntRange(-9, 9).Draw(r, "scroll"); {
			case n == 0:
				following := tr.following
				if add(); following {
					top = bottom()
				}
			default:
				tr.scroll(n)
				top = min(max(0, top+n), bottom())
			}
			want := append([]string(nil), all[top:min(len(all), top+tr.height)]...)
			for len(want) < tr.height {
				want = append(want, "")
			}
			if got := tr.view(); strings.Join(got, "\n") != strings.Join(want, "\n") {
				r.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if tr.following != (top == bottom()) && tr.following {
				r.Fatalf("following at %d of %d", top, bottom())
			}
		}
	})
}
