package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/adrg/xdg"
	"github.com/zalando/go-keyring"

	"github.com/drover-dev/drover/internal/config"
	"github.com/drover-dev/drover/internal/llm"
)

// keyHome is a home without anything, for a test that stores keys.
func keyHome(t *testing.T) *config.Keys {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
	xdg.Reload()
	t.Cleanup(func() { keyring.MockInitWithError(errors.New("no keyring in tests")) })
	return config.FindDirs().Keys()
}

func checkCredential(t *testing.T, ref, want string) {
	t.Helper()
	if got, err := config.Credential(ref); got != want || err != nil {
		t.Errorf("%s: %q, %v; want %q", ref, got, err, want)
	}
}

func TestKeysInTheKeyring(t *testing.T) {
	k := keyHome(t)
	keyring.MockInit()
	place, note, err := k.Set("LAB", " sesame\n")
	if place != "the system keyring" || note != "" || err != nil {
		t.Errorf("%q, %q, %v", place, note, err)
	}
	checkCredential(t, "keyring:LAB", "sesame")
	if data, err := os.ReadFile(k.File()); err != nil || strings.Contains(string(data), "sesame") || !strings.Contains(string(data), "LAB") {
		t.Errorf("%s, %v", data, err)
	}
	// A key that the system's own tool has stored.
	if err := keyring.Set("drover", "OTHER", "ali baba"); err != nil {
		t.Fatal(err)
	}
	list, err := k.List("OTHER", "NONE", "LAB")
	if err != nil || len(list) != 3 || list[0].Name != "LAB" || list[0].Problem != nil ||
		llm.CodeOf(list[1].Problem) != llm.CodeMissingCredential || llm.CodeOf(list[2].Problem) != llm.CodeInvalidCredential {
		t.Errorf("%+v, %v", list, err)
	}
	if places, err := k.Remove("LAB"); len(places) != 1 || err != nil {
		t.Errorf("%v, %v", places, err)
	}
	if _, err := config.Credential("keyring:LAB"); llm.CodeOf(err) != llm.CodeMissingCredential || !strings.Contains(err.Error(), "drover auth set LAB") {
		t.Errorf("%v", err)
	}
	if _, err := k.Remove("LAB"); llm.CodeOf(err) != llm.CodeMissingCredential {
		t.Errorf("%v", err)
	}
}

func TestKeysInTheFile(t *testing.T) {
	k := keyHome(t)
	keyring.MockInitWithError(errors.New("no bus"))
	place, note, err := k.Set("LAB", "sesame")
	if place != k.File() || !strings.Contains(note, "no bus") || err != nil {
		t.Errorf("%q, %q, %v", place, note, err)
	}
	if runtime.GOOS != "windows" {
		for p, mode := range map[string]os.FileMode{k.File(): 0o600, filepath.Dir(k.File()): 0o700} {
			if st, err := os.Stat(p); err != nil || st.Mode().Perm() != mode {
				t.Errorf("%s: %v, %v", p, st.Mode(), err)
			}
		}
	}
	checkCredential(t, "keyring:LAB", "sesame")
	if place, err := config.FindCredential("keyring:LAB"); place != k.File() || err != nil {
		t.Errorf("%s, %v", place, err)
	}
	if _, err := config.Credential("keyring:NONE"); llm.CodeOf(err) != llm.CodeMissingCredential || !strings.Contains(err.Error(), "drover auth set NONE") {
		t.Errorf("%v", err)
	}

	// The keyring is there again: the old key goes.
	keyring.MockInit()
	if place, _, err := k.Set("LAB", "abracadabra"); place == k.File() || err != nil {
		t.Errorf("%s, %v", place, err)
	}
	checkCredential(t, "keyring:LAB", "abracadabra")
	if data, _ := os.ReadFile(k.File()); strings.Contains(string(data), "sesame") {
		t.Errorf("%s", data)
	}
	// And away: the newest counts.
	keyring.MockInitWithError(errors.New("no bus"))
	if _, err := config.Credential("keyring:LAB"); llm.CodeOf(err) != llm.CodeMissingCredential || !strings.Contains(err.Error(), "no bus") {
		t.Errorf("%v", err)
	}
	if _, err := k.Remove("LAB"); err == nil || !strings.Contains(err.Error(), "no bus") {
		t.Errorf("%v", err)
	}
	if _, _, err := k.Set("LAB", "third"); err != nil {
		t.Error(err)
	}
	checkCredential(t, "keyring:LAB", "third")
}

func TestKeysRefuse(t *testing.T) {
	k := keyHome(t)
	keyring.MockInit()
	for _, key := range []string{"caf\u00e9", "one two", "line\nbreak", strings.Repeat("x", 16<<10+1)} {
		_, _, err := k.Set("LAB", key)
		if llm.CodeOf(err) != llm.CodeInvalidCredential || strings.Contains(err.Error(), key) {
			t.Errorf("%.20q: %v", key, err)
		}
	}
	if _, _, err := k.Set("LAB", " \n"); llm.CodeOf(err) != llm.CodeMissingCredential {
		t.Errorf("an empty key: %v", err)
	}
	for _, name := range []string{"", "a b", "-x", "a\x00", "\u00e9", strings.Repeat("n", 129)} {
		if _, _, err := k.Set(name, "sesame"); llm.CodeOf(err) != llm.CodeInvalidCredential {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := os.Stat(k.File()); err == nil {
		t.Error("something was written")
	}
	if err := os.MkdirAll(filepath.Dir(k.File()), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, damaged := range []string{`{"keys":{"LAB":"sesame"`, `{"keys":{"LAB":5}}`, `{"sesame":1}`, `{} {}`} {
		if err := os.WriteFile(k.File(), []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := config.Credential("keyring:LAB")
		if err == nil || !strings.Contains(err.Error(), k.File()) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v", damaged, err)
		}
		if _, _, err := k.Set("LAB", "x"); err == nil {
			t.Errorf("%s: overwritten", damaged)
		}
	}
	nowhere := config.Dirs{}.Keys()
	if place, _, err := nowhere.Set("LAB", "x"); place != "the system keyring" || err != nil {
		t.Errorf("%s, %v", place, err)
	}
	keyring.MockInitWithError(errors.New("no bus"))
	if _, _, err := nowhere.Set("LAB", "x"); !errors.Is(err, config.ErrNoHome) {
		t.Errorf("%v", err)
	}
}
