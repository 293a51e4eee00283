package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/config"
	"github.com/drover-dev/drover/internal/llm"
)

// What a file of a key gives is bounded while it is read: a device tells no size
// and has no end.
func TestKeyFileIsBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	for n, want := range map[int]llm.Code{16 << 10: "", 16<<10 + 1: llm.CodeInvalidCredential} {
		if err := os.WriteFile(file, []byte(strings.Repeat("k", n)), 0o600); err != nil {
			t.Fatal(err)
		}
		if key, err := config.Credential("file:" + file); llm.CodeOf(err) != want || want == "" && len(key) != n {
			t.Errorf("%d bytes: %d, %v", n, len(key), err)
		}
	}
	if _, err := config.Credential("file:/dev/zero"); llm.CodeOf(err) != llm.CodeInvalidCredential || !strings.Contains(err.Error(), "/dev/zero has more than") {
		t.Error(err)
	}
	if _, err := config.Credential("file:" + filepath.Dir(file)); llm.CodeOf(err) != llm.CodeMissingCredential {
		t.Error(err)
	}
}
