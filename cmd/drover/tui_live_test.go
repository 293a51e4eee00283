//go:build engines && linux

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-dev/drover/internal/engine/livetest"
)

// TestLiveScreen is a conversation on a terminal with a real engine: streaming,
// thoughts, a change that is asked about, a cancel, an engine that dies, and the
// session gone on with.
func TestLiveScreen(t *testing.T) {
	engine := livetest.Llama(t, "think", "--ctx-size", "16384", "--alias", "scripted", "--jinja")
	home, dir := t.TempDir(), t.TempDir()
	args := []string{"--url", engine.URL, "--preset", "llamacpp"}
	s := showScreen(t, home, dir, args...)
	s.until("llamacpp/scripted")
	s.until("~") // the plan's estimate
	s.write("please [[call]]\r")
	s.until("+written by the scripted model")
	s.until("allow once")
	if _, err := os.Stat(filepath.Join(dir, "drover-was-here.txt")); err == nil {
		t.Error("the file was written before anybody agreed")
	}
	s.write("y")
	// A word alone: what comes in pieces may be drawn in pieces, too.
	s.until("final")
	if _, err := os.Stat(filepath.Join(dir, "drover-was-here.txt")); err != nil {
		t.Error(err)
	}
	s.write("\x12") // Ctrl-R
	s.until("the script has an answer.")
	s.write("count [[loop]]\r")
	s.until("tick tock")
	s.write("\x1b")
	s.until("cancelled")
	s.write("count more [[loop]]\r")
	s.until("tick tock")
	engine.Kill()
	s.until("the answer broke off")
	s.leave()
	s = showScreen(t, home, dir, append(args, "--resume")...)
	s.until("tock") // the prompt may stand above the screen
	s.leave()
}
