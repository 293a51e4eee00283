//go:build unix

package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-dev/drover/internal/config"
)

// TestEndlessFiles: a pipe or a device tells no size; what comes from one is read no
// further than it may be long.
func TestEndlessFiles(t *testing.T) {
	for name, read := range map[string]func(path string) error{
		"configuration": func(path string) error { _, err := config.Load(path); return err },
		"key":           func(path string) error { _, err := config.Credential("file:" + path); return err },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			const much = 8 * config.MaxFileBytes
			written := make(chan int, 1)
			go func() {
				f, err := os.OpenFile(path, os.O_WRONLY, 0)
				if err != nil {
					t.Error(err)
				} else {
					defer f.Close()
				}
				n, line := 0, []byte(strings.Repeat("#", 4096))
				for ; err == nil && n < much; n += len(line) {
					_, err = f.Write(line)
				}
				written <- n
			}()
			if err := read(path); err == nil || !strings.Contains(err.Error(), "more than") {
				t.Errorf("the error is %v", err)
			}
			if n := <-written; n >= much {
				t.Errorf("%d bytes were read", n)
			}
		})
	}
}
