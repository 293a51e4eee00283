package main

import (
	"bytes"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/config"
	"github.com/drover-dev/drover/internal/tool"
)

// TestSandboxIsHidden: no list of commands shows it.
func TestSandboxIsHidden(t *testing.T) {
	var out bytes.Buffer
	if status := run(t.Context(), nil, []string{"--help"}, strings.NewReader(""), &out, &out); status != exitDone || strings.Contains(out.String(), tool.SandboxCommand) {
		t.Errorf("%d %s", status, &out)
	}
	for args, want := range map[string]bool{"drover": false, "drover run sandbox-exec": false, "drover sandbox-exec": true, "drover sandbox-exec x": true} {
		if got := isSandboxExec(strings.Fields(args)); got != want {
			t.Errorf("%s: %t", args, got)
		}
	}
}

// TestSandboxIsShown: what holds is said in drover doctor, and once in drover run
// where commands are not confined although they should be.
func TestSandboxIsShown(t *testing.T) {
	var f findings
	examineSandbox(&f, newSandbox(&config.Config{SandboxOff: true}))
	on := newSandbox(&config.Config{SandboxWrite: []string{"/x"}})
	if !filepath.IsAbs(on.Self) || len(on.Write) != 1 {
		t.Errorf("%+v", on)
	}
	// By its name a command could put another program in its place.
	if runtime.GOOS == "linux" && on.Self != runningFile {
		t.Errorf("the sandbox starts %s", on.Self)
	}
	examineSandbox(&f, on)
	if f[0].State != note || !strings.Contains(f[0].Text, "sandbox.off") {
		t.Errorf("%+v", f[0])
	}
	if state := on.State(); !strings.Contains(f[1].Text, state.String()) || (f[1].State == fine) != state.Whole() {
		t.Errorf("%+v with %s", f[1], state)
	}
	for _, mode := range tool.Modes() {
		asked := mode == tool.ModeAsk || mode == tool.ModeEdit
		if got := sandboxNotice(tool.SandboxState{Reason: "this kernel has no Landlock"}, mode); (got != "") != asked ||
			asked && got != "commands are not confined to the work tree: this kernel has no Landlock" {
			t.Errorf("%s: %q", mode, got)
		}
		for _, state := range []tool.SandboxState{{ABI: 1}, {Off: true}} {
			if got := sandboxNotice(state, mode); got != "" {
				t.Errorf("%s, %s: %q", mode, state, got)
			}
		}
	}
}
