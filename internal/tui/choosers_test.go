package tui

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/session"
)

// TestSessionRows: the list of sessions says what is known of each and nothing else.
func TestSessionRows(t *testing.T) {
	target := llm.Target{Provider: "lab", Model: "brook-7b"}
	rows := sessionRows([]session.Info{
		{ID: "1"}, {ID: "2", Title: "meadows", Turns: 1, Target: target}, {ID: "3"}, {ID: "4", Title: "torn", Turns: 2, Problem: errors.New("a torn end")},
	}, "1", time.Now())
	var got []string
	for _, r := range rows {
		_, facts, _ := strings.Cut(r.meaning, " · ")
		got = append(got, fmt.Sprintf("%s %s: %s", r.value, r.text, facts))
	}
	want := "1 (nothing said yet): 0 turns\n2 meadows: 1 turn · lab/brook-7b\n4 torn: 2 turns · a torn end"
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got:\n%s", text)
	}
}

// TestNothingOpensBehindAQuestion: a key that a question does not know changes nothing
// that it hides, so that one Ctrl-C, or one Esc, cancels.
func TestNothingOpensBehindAQuestion(t *testing.T) {
	for _, cancel := range []string{"ctrl+c", "esc"} {
		for _, key := range []string{"ctrl+o", "ctrl+t", "ctrl+s", "ctrl+u", "ctrl+w", "alt+enter", "backspace"} {
			p := scripted(32768, callOf("c1", "write", `{"path":"x.txt","content":"x"}`))
			drive(t, newOptions(t, t.TempDir(), p), func(d *driver) {
				d.wait(100 * time.Millisecond)
				d.write("write it")
				d.press("enter")
				d.write("half a")
				d.wait(time.Second)
				d.wait(2 * longQuiet)
				d.shows("allow once")
				d.press(key)
				d.wait(100 * time.Millisecond)
				d.shows("allow once")
				if d.s.chooser != nil || d.s.composer.text != "half a" || len(d.s.queued) > 0 {
					t.Errorf("%s: behind the question stands %q, a list: %t", key, d.s.composer.text, d.s.chooser != nil)
				}
				d.press(cancel)
				d.wait(100 * time.Millisecond)
				d.hides("allow once")
				if d.s.turn != nil {
					t.Errorf("%s after %s does not cancel", cancel, key)
				}
			})
		}
	}
}
