package tui

import (
	"context"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/llm/llmtest"
)

// TestSentWhileEnginesAreLookedFor: what is sent before a model is known goes to the
// first one that is found, and stays where none is.
func TestSentWhileEnginesAreLookedFor(t *testing.T) {
	for _, there := range []bool{true, false} {
		p := scripted(8192, llmtest.Say("hello back"))
		opts := newOptions(t, t.TempDir(), nil)
		opts.Connect = func(context.Context) error {
			time.Sleep(time.Second)
			if !there {
				return nil
			}
			_, err := opts.Registry.Register(p, "lab")
			return err
		}
		drive(t, opts, func(d *driver) {
			d.wait(100 * time.Millisecond)
			d.write("hello")
			d.press("enter")
			d.shows("looking for engines · sends when it is known", "❯ hello")
			d.hides("There is no model")
			d.wait(2 * time.Second)
			if there {
				d.shows("hello back")
				return
			}
			d.shows("no model was found", "There is no model to send this to yet", "❯ hello")
			there = true
			d.wait(2 * lookAgain)
			d.shows("lab/qwen-coder-7b", "❯ hello")
			d.hides("hello back")
		})
	}
}

// TestOneLookAtATime: sessions that are opened while there is no engine do not make
// the UI look for one more often.
func TestOneLookAtATime(t *testing.T) {
	opts := newOptions(t, t.TempDir(), nil)
	looks := 0
	opts.Connect = func(context.Context) error { looks++; return nil }
	drive(t, opts, func(d *driver) {
		d.wait(100 * time.Millisecond)
		for range 5 {
			d.write("/new")
			d.press("enter")
			d.wait(100 * time.Millisecond)
		}
		looks = 0
		d.wait(4 * lookAgain)
		if looks < 3 || looks > 5 {
			t.Errorf("looked %d times", looks)
		}
		if _, err := opts.Registry.Register(scripted(8192), "lab"); err != nil {
			t.Fatal(err)
		}
		d.wait(2 * lookAgain)
	})
}
