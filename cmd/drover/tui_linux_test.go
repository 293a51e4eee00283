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

// screen is the binary on a terminal of 80 columns.
type screen struct {
	t       *testing.T
	cmd     *exec.Cmd
	person  *os.File
	program *os.File
	shown   strings.Builder
	seen    int // of shown
}

// showScreen starts drover in dir with a home of its own.
func showScreen(t *testing.T, home, dir string, args ...string) *screen {
	t.Helper()
	s := &screen{t: t, cmd: exec.Command(programPath(t), args...)}
	s.person, s.program = pseudoTerminal(t)
	if err := unix.IoctlSetWinsize(int(s.program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	s.cmd.Dir = dir
	s.cmd.Env = []string{"HOME=" + home, "TERM=xterm-256color", "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = s.program, s.program, s.program
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Without a process and without this end of the terminal, reading ends.
	hung := time.AfterFunc(2*time.Minute, func() {
		_ = s.cmd.Process.Kill() // it may have ended
		s.program.Close()
	})
	t.Cleanup(func() { hung.Stop() })
	return s
}

// until reads until a text is written behind what was read before.
func (s *screen) until(text string) {
	s.t.Helper()
	buf := make([]byte, 4096)
	for {
		if i := strings.Index(s.shown.String()[s.seen:], text); i >= 0 {
			s.seen += i + len(text)
			return
		}
		n, err := s.person.Read(buf)
		if err != nil {
			s.t.Fatalf("%v before %q; written:\n%q", err, text, s.shown.String()[s.seen:])
		}
		s.shown.Write(buf[:n])
	}
}

func (s *screen) write(text string) {
	s.t.Helper()
	if _, err := s.person.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// leave presses Ctrl-C twice and checks what is left of the terminal.
func (s *screen) leave() {
	s.t.Helper()
	s.write("\x03\x03")
	s.until("goes on with this session")
	if err := s.cmd.Wait(); err != nil {
		s.t.Error(err)
	}
	if !echoes(s.t, s.program) {
		s.t.Error("the terminal is left without echo")
	}
	if on, off := strings.Count(s.shown.String(), "\x1b[?1049h"), strings.Count(s.shown.String(), "\x1b[?1049l"); on != 1 || off != 1 {
		s.t.Errorf("the second screen was entered %d and left %d times", on, off)
	}
}

// TestScreenOnATerminal: the binary shows its screen on a terminal, and leaves it
// as it was.
func TestScreenOnATerminal(t *testing.T) {
	home := t.TempDir()
	engine := enginetest.New(t, &enginetest.Options{Preset: "ollama", Models: []enginetest.Model{{ID: "brook-7b", Window: 32768, Tools: true}}})
	engine.Script(enginetest.Answer{Text: "The meadow is green."})
	s := showScreen(t, home, t.TempDir(), "--url", engine.URL, "--preset", "ollama")
	s.until("ollama/brook-7b")
	s.write("what colour is it?\r")
	s.until("The meadow is green.")
	s.leave()
	store := session.NewStore(filepath.Join(home, ".local", "state", "drover", "sessions"))
	if infos, err := store.List(nil); err != nil || len(infos) != 1 || infos[0].Turns != 1 {
		t.Errorf("sessions %+v, %v", infos, err)
	}
}

// TestPlainInterruptsOnATerminal: each turn of a conversation on lines can be
// cancelled by an interrupt, whatever was interrupted before, and two behind each
// other leave as politely as the end of the input does.
func TestPlainInterruptsOnATerminal(t *testing.T) {
	engine := enginetest.New(t, &enginetest.Options{Preset: "ollama", Models: []enginetest.Model{{ID: "brook-7b", Window: 32768, Tools: true}}})
	stall := enginetest.Answer{Text: strings.Repeat("word ", 100), Chunk: 50, Fault: &enginetest.Fault{Stall: true}}
	engine.Script(stall, stall, enginetest.Answer{Text: "The meadow is green."})
	s := showScreen(t, t.TempDir(), t.TempDir(), "--plain", "--url", engine.URL, "--preset", "ollama")
	s.until("> ")
	for range 2 {
		s.write("wait\n")
		s.until("word word")
		s.write("\x03")
		s.until("Cancelled.\r\n> ")
	}
	s.write("what colour is it?\n")
	s.until("The meadow is green.")
	s.until("> ")
	s.write("\x03")
	s.until("Press Ctrl-C again to leave.\r\n> ")
	s.write("\x03")
	s.until("goes on with this session")
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
}
