package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/adrg/xdg"
	"github.com/zalando/go-keyring"

	"github.com/drover-dev/drover/internal/config"
)

// noKeyring keeps tests, and the processes of the scripts, which are this
// program, away from the keyring of whoever runs them.
func noKeyring() bool {
	keyring.MockInitWithError(errors.New("no keyring in tests"))
	return true
}

var _ = noKeyring()

// TestAuthInTheKeyring stores, uses, lists and removes a key in the system's
// keyring.
func TestAuthInTheKeyring(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
	t.Setenv("DROVER_CONFIG", "")
	xdg.Reload()
	keyring.MockInit()
	t.Cleanup(func() { noKeyring() })

	drover := func(stdin string, status int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if got := run(t.Context(), nil, args, strings.NewReader(stdin), &out, &out); got != status {
			t.Errorf("%s: status %d\n%s", args, got, &out)
		}
		if strings.Contains(out.String(), "sesame") {
			t.Errorf("%s shows the key\n%s", args, &out)
		}
		return out.String()
	}
	if out := drover("sesame\r\n", 0, "auth", "set", "LAB"); !strings.Contains(out, "stored the key LAB in the system keyring") {
		t.Error(out)
	}
	if key, err := config.Credential("keyring:LAB"); key != "sesame" || err != nil {
		t.Errorf("%q, %v", key, err)
	}
	if data, err := os.ReadFile(config.FindDirs().Keys().File()); err != nil || bytes.Contains(data, []byte("sesame")) {
		t.Errorf("%s, %v", data, err)
	}
	if out := drover("", 0, "auth", "list"); !strings.Contains(out, "LAB   the system keyring  -") {
		t.Error(out)
	}
	if out := drover("", 0, "auth", "rm", "LAB"); !strings.Contains(out, "removed the key LAB from the system keyring") {
		t.Error(out)
	}
	drover("", exitUsage, "auth", "rm", "LAB")
	drover(strings.Repeat("x", maxKeyInput+1), exitUsage, "auth", "set", "LAB")
}
