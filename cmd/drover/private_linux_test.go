package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-dev/drover/internal/engine"
	"github.com/drover-dev/drover/internal/engine/enginetest"
)

// nobody is a user without rights, as most are.
const nobody = 65534

// asNobody makes a command run as another user when this one is root, who may
// read everything. The program and the folders are made accessible.
func asNobody(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	dir, err := os.MkdirTemp("", "drover-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	exe, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Path = filepath.Join(dir, "drover")
	if err := os.WriteFile(cmd.Path, exe, 0o755); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, home} {
		if err := os.Chown(path, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Args[0], cmd.Dir = cmd.Path, home
	cmd.Env = append(cmd.Env, "HOME="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}

// TestCommandsCannotReadTheKey: a key in drover's environment is not in that of
// commands, and in drover's own they cannot read it, whatever the mode allows.
func TestCommandsCannotReadTheKey(t *testing.T) {
	const secret = "planted-secret-123"
	srv := enginetest.New(t, &enginetest.Options{
		Preset: string(engine.LlamaCpp), Key: secret, Models: []enginetest.Model{{ID: "m", Window: 8192, Tools: true}},
	})
	look := `{"command":"env; cat /proc/$PPID/environ /proc/$PPID/mem 2>&1 | tr '\\0' '\\n'"}`
	srv.Script(enginetest.Answer{Calls: []enginetest.Call{{ID: "1", Name: "shell", Arguments: look}}}, enginetest.Answer{Text: "done"})
	cmd := self(t, "run", "--json", "--mode", "full", "--url", srv.URL, "--preset", "llamacpp", "--model", "m", "--key-env", "ENGINE_KEY", "look")
	cmd.Env = append(cmd.Env, "ENGINE_KEY="+secret)
	asNobody(t, cmd)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the last event tells
	if last := readLast(t, out.Bytes()); last.Reason != "completed" || len(srv.Chats()) != 2 {
		t.Fatalf("%+v after %d chats\n%s", last, len(srv.Chats()), errs.String())
	}
	result := string(srv.Chats()[1].Body)
	if strings.Contains(result, secret) || strings.Count(result, "Permission denied") != 2 {
		t.Errorf("the command was to look and to see nothing: %s", result)
	}
}
