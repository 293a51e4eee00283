package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pseudoTerminal opens both ends of a new terminal.
func pseudoTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err := errors.Join(err, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)); err != nil {
		t.Fatal(err)
	}
	if program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

func echoes(t *testing.T, tty *os.File) bool {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return s.Lflag&unix.ECHO != 0
}

// TestAuthSetOnATerminal types a key, and gives up on another: neither is shown,
// and the terminal shows again what is typed afterwards.
func TestAuthSetOnATerminal(t *testing.T) {
	drover := programPath(t)
	home := t.TempDir()
	for name, test := range map[string]struct {
		typed  string
		status int
		stored bool
	}{
		"TYPED":       {"sesame\n", exitDone, true},
		"EMPTY":       {"\n", exitUsage, false},
		"INTERRUPTED": {"sesa\x03", exitCancelled, false},
	} {
		person, program := pseudoTerminal(t)
		cmd := exec.Command(drover, "auth", "set", name)
		cmd.Env = []string{"HOME=" + home, "GORACE=atexit_sleep_ms=0"}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		hung := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }) // then its status is wrong
		for deadline := time.Now().Add(time.Minute); echoes(t, program); {
			if time.Now().After(deadline) {
				t.Fatal("the terminal shows what is typed")
			}
			time.Sleep(time.Millisecond) // another process's terminal tells nobody when it changes
		}
		if _, err := person.WriteString(test.typed); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // the status tells
		hung.Stop()
		if got := cmd.ProcessState.ExitCode(); got != test.status {
			t.Errorf("%s: status %d", name, got)
		}
		if !echoes(t, program) {
			t.Errorf("%s: the terminal is left without echo", name)
		}
		shown := make([]byte, 4096)
		n, err := person.Read(shown)
		if err != nil || !strings.Contains(string(shown[:n]), "Key for "+name) || strings.Contains(string(shown[:n]), "sesa") {
			t.Errorf("%s: %q, %v", name, shown[:n], err)
		}
		data, _ := os.ReadFile(filepath.Join(home, ".config", "drover", "keys.json"))
		if strings.Contains(string(data), name) != test.stored {
			t.Errorf("%s: stored %s", name, data)
		}
	}
}
