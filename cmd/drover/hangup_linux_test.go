package main

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/session"
)

// TestClosedTerminal: who closes the window while a command runs leaves neither
// drover nor the command behind, and the session knows how its turn ended.
func TestClosedTerminal(t *testing.T) {
	for name, args := range map[string][]string{"screen": nil, "lines": {"--plain"}, "run": {"run", "wait for it"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := enginetest.New(t, &enginetest.Options{Preset: "ollama", Models: []enginetest.Model{{ID: "brook-7b", Window: 32768, Tools: true}}})
			engine.Script(enginetest.Answer{Calls: []enginetest.Call{shellCall("c1", "echo $$ > noted; sleep 600")}})
			home, dir := t.TempDir(), t.TempDir()
			noted := filepath.Join(dir, "noted")
			if err := syscall.Mkfifo(noted, 0o600); err != nil {
				t.Fatal(err)
			}
			s := showScreen(t, home, dir, append(args, "--mode", "full", "--url", engine.URL, "--preset", "ollama")...)
			if name != "run" {
				s.until("brook-7b")
				s.write("wait for it\r")
			}
			drained := make(chan struct{})
			go func() {
				defer close(drained)
				for buf := make([]byte, 4096); ; {
					if _, err := s.person.Read(buf); err != nil {
						return
					}
				}
			}()
			fifo, err := os.Open(noted) // waits for the command
			if err != nil {
				t.Fatal(err)
			}
			defer fifo.Close()
			pid, err := bufio.NewReader(fifo).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			pid = strings.TrimSpace(pid)
			// The shell that it was started from hangs up, and then the system.
			if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(s.person.Close(), s.program.Close()); err != nil {
				t.Fatal(err)
			}
			_ = s.cmd.Wait() // the status tells
			// Where it still had to write to the terminal, that failed.
			if code := s.cmd.ProcessState.ExitCode(); code != exitCancelled && code != exitFailed {
				t.Errorf("it ended as %v", s.cmd.ProcessState)
			}
			untilGone(t, []string{pid})
			<-drained
			store := session.NewStore(filepath.Join(home, ".local", "state", "drover", "sessions"))
			infos, err := store.List(nil)
			if err != nil || len(infos) != 1 {
				t.Fatalf("sessions %+v, %v", infos, err)
			}
			log, state, err := store.Open(infos[0].ID)
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			if len(state.Warnings) > 0 || state.Messages[len(state.Messages)-1].Role != llm.Tool {
				t.Errorf("warnings %v, messages %+v", state.Warnings, state.Messages)
			}
		})
	}
}

// TestNohup: who asks for it keeps the turn, whatever hangs up.
func TestNohup(t *testing.T) {
	answers := []enginetest.Answer{
		{Calls: []enginetest.Call{shellCall("c1", "echo begun > noted; echo ended > noted")}}, {Text: "done"},
	}
	r := newRig(t, func(*rig, *enginetest.Chat) enginetest.Answer {
		next := answers[0]
		answers = answers[1:]
		return next
	})
	noted := filepath.Join(r.dir, "noted")
	if err := syscall.Mkfifo(noted, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := r.turn("", "wait for it")
	cmd.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	fifo, err := os.OpenFile(noted, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		fifo.Close() // nobody writes any more
	}()
	lines := bufio.NewReader(fifo)
	for _, want := range []string{"begun\n", "ended\n"} {
		if got, err := lines.ReadString('\n'); err != nil || got != want {
			t.Errorf("%q, %v", got, err)
		}
		_ = cmd.Process.Signal(syscall.SIGHUP) // behind the last line it may be over
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
