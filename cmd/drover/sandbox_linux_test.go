package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/tool"
)

// ranch is a home, a work tree, and a folder that is neither there nor temporary.
type ranch struct {
	home, work, outside string
}

func newRanch(t *testing.T) *ranch {
	t.Helper()
	if state := new(tool.Sandbox).State(); !state.Active() {
		t.Skipf("not tested: %s", state)
	}
	outside, err := os.MkdirTemp("testdata", "outside-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(outside) })
	r := &ranch{home: t.TempDir(), work: t.TempDir()}
	if r.outside, err = filepath.Abs(outside); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/tmp", "/var/tmp", os.TempDir()} {
		if rel, err := filepath.Rel(dir, r.outside); err == nil && filepath.IsLocal(rel) {
			t.Skip("not tested: the checkout is in a temporary folder, where every command may write")
		}
	}
	if err := os.Mkdir(filepath.Join(r.outside, "allowed"), 0o700); err != nil {
		t.Fatal(err)
	}
	return r
}

// run runs a turn in which the model runs one command. At a terminal the person
// says yes. It gives what drover wrote and the result that the model got.
func (r *ranch) run(t *testing.T, config, command string, args ...string) (shown, result string) {
	t.Helper()
	s := enginetest.New(t, &enginetest.Options{Preset: "llamacpp", Models: []enginetest.Model{{ID: "brook", Window: 8192, Tools: true}}})
	defer s.Close()
	arguments, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	s.Script(enginetest.Answer{Calls: []enginetest.Call{{ID: "1", Name: "shell", Arguments: string(arguments)}}}, enginetest.Answer{Text: "done"})
	file := filepath.Join(r.home, "config.toml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	drover, err := exec.LookPath("drover")
	if err != nil {
		t.Fatal(err)
	}
	person, program := pseudoTerminal(t)
	cmd := exec.Command(drover, append([]string{"run", "--url", s.URL, "--preset", "llamacpp", "--model", "brook"}, append(args, "go")...)...)
	cmd.Dir = r.work
	cmd.Env = []string{"HOME=" + r.home, "DROVER_CONFIG=" + file, "PATH=" + os.Getenv("PATH"), "OUTSIDE=" + r.outside, "GORACE=atexit_sleep_ms=0"}
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer hung.Stop()
	go func() { // ends when the terminal is closed
		seen, buf := "", make([]byte, 1<<10)
		for {
			n, err := person.Read(buf)
			if err != nil {
				return
			}
			if seen += string(buf[:n]); strings.Contains(seen, "Allow?") {
				seen = ""
				_, _ = person.WriteString("y\n")
			}
		}
	}()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	var last struct {
		Messages []struct{ Role, Content string }
	}
	chats := s.Chats()
	if err := json.Unmarshal(chats[len(chats)-1].Body, &last); err != nil || len(last.Messages) == 0 {
		t.Fatalf("%v in %s", err, chats[len(chats)-1].Body)
	}
	return out.String(), last.Messages[len(last.Messages)-1].Content
}

// TestSandboxOfARun lets the binary run commands as a person would.
func TestSandboxOfARun(t *testing.T) {
	r := newRanch(t)
	const (
		try     = `echo x > "$OUTSIDE/new"; echo moo > here && cat here`
		refused = "Permission denied"
	)
	for _, c := range []struct {
		name, config, mode string
		outside            bool // it may write there
	}{
		{"ask", "", "ask", false},
		{"edit", "", "edit", false},
		{"full", "", "full", true},
		{"off", "[sandbox]\noff = true\n", "ask", true},
		{"write", "[sandbox]\nwrite = ['" + r.outside + "']\n", "ask", true},
		{"write elsewhere", "[sandbox]\nwrite = ['" + r.outside + "/allowed', '~/x']\n", "ask", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			shown, result := r.run(t, c.config, try, "--mode", c.mode)
			_, err := os.Stat(filepath.Join(r.outside, "new"))
			if (err == nil) != c.outside || strings.Contains(result, refused) == c.outside || !strings.Contains(result, "moo\n[exit code 0]") {
				t.Errorf("%v, the model got %q", err, result)
			}
			if strings.Contains(shown, "not confined") {
				t.Errorf("shown: %s", shown)
			}
			os.Remove(filepath.Join(r.outside, "new"))
		})
	}
}

func TestSandboxExecStatus(t *testing.T) {
	newRanch(t)
	drover, err := exec.LookPath("drover")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		text   string
	}{
		{[]string{"--", "/bin/sh", "-c", "exit 3"}, 3, ""},
		{[]string{"--", "/nowhere/at/all"}, exitNotFound, "drover: /nowhere/at/all: no such file or directory\n"},
		{[]string{"--", "/etc/passwd"}, exitNotRun, "drover: /etc/passwd: permission denied\n"},
		{[]string{"ls"}, exitNotRun, "drover: usage: sandbox-exec --write PATH -- COMMAND\n"},
	} {
		cmd := exec.Command(drover, append([]string{tool.SandboxCommand}, c.args...)...)
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != c.status || string(out) != c.text {
			t.Errorf("%q: %d %q", c.args, got, out)
		}
	}
}
