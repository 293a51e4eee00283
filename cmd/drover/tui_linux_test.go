package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/session"
)

// TestScreenOnATerminal: the binary shows its screen on a terminal, and leaves it
// as it was.
func TestScreenOnATerminal(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	drover := filepath.Join(home, "drover")
	if err := os.Symlink(exe, drover); err != nil {
		t.Fatal(err)
	}
	engine := enginetest.New(t, &enginetest.Options{Preset: "ollama", Models: []enginetest.Model{{ID: "brook-7b", Window: 32768, Tools: true}}})
	engine.Script(enginetest.Answer{Text: "The meadow is green."})
	person, program := pseudoTerminal(t)
	if err := unix.IoctlSetWinsize(int(program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(drover, "--url", engine.URL, "--preset", "ollama")
	cmd.Env = []string{"HOME=" + home, "TERM=xterm-256color", "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }) // then its status is wrong
	defer hung.Stop()
	var shown strings.Builder
	until := func(text string) {
		t.Helper()
		buf := make([]byte, 4096)
		for !strings.Contains(shown.String(), text) {
			n, err := person.Read(buf)
			if err != nil {
				t.Fatalf("%v before %q; shown:\n%q", err, text, shown.String())
			}
			shown.Write(buf[:n])
		}
	}
	write := func(text string) {
		t.Helper()
		if _, err := person.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	until("ollama/brook-7b")
	until("effective")
	write("what colour is it?\r")
	until("The meadow is green.")
	write("\x03\x03")
	until("goes on with this session")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if !echoes(t, program) {
		t.Error("the terminal is left without echo")
	}
	if on, off := strings.Count(shown.String(), "\x1b[?1049h"), strings.Count(shown.String(), "\x1b[?1049l"); on != 1 || off != 1 {
		t.Errorf("the second screen was entered %d and left %d times", on, off)
	}
	store := session.NewStore(filepath.Join(home, ".local", "state", "drover", "sessions"))
	if infos, err := store.List(nil); err != nil || len(infos) != 1 || infos[0].Turns != 1 {
		t.Errorf("sessions %+v, %v", infos, err)
	}
}
