package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/config"
	"github.com/drover-dev/drover/internal/llm"
)

// A key that does not come, from a keyring that is locked or a pipe that nobody
// writes to, does not hold up a list: it ends with its context or its limit.
func TestListsDoNotWaitForKeys(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "key")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := &config.Config{Engines: []config.Engine{
		{Name: "locked", Preset: "custom", URL: "http://127.0.0.1:1", Key: "file:" + pipe},
	}}
	a := &app{stdout: io.Discard, stderr: io.Discard, logger: slog.New(slog.DiscardHandler)}
	defer a.close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if rows := a.engineRows(ctx, cfg); rows[0].err == nil {
		t.Errorf("%+v", rows[0])
	}
	_, err := credential(t.Context(), "file:"+pipe, 10*time.Millisecond)
	if llm.CodeOf(err) != llm.CodeMissingCredential || !strings.Contains(err.Error(), pipe+" gave no key within 10ms") {
		t.Error(err)
	}
	if _, err := credential(ctx, "file:"+pipe, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// configuredPipe configures two engines; the key of one is in a pipe that nobody
// writes to.
func configuredPipe(t *testing.T) (pipe string) {
	t.Helper()
	pipe = filepath.Join(t.TempDir(), "key")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "drover.toml")
	text := fmt.Sprintf("[engines.a]\npreset = \"custom\"\nurl = \"http://127.0.0.1:1\"\n[engines.b]\npreset = \"custom\"\nurl = \"http://127.0.0.1:2\"\nkey = \"file:%s\"\n", pipe)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DROVER_CONFIG", file)
	return pipe
}

// Nor does it keep a conversation from beginning for ever: the wait has a limit, is
// made once for a keyring, and ends with its context.
func TestConnectDoesNotWaitForKeys(t *testing.T) {
	pipe := configuredPipe(t)
	a := &app{stdout: io.Discard, stderr: io.Discard, logger: slog.New(slog.DiscardHandler)}
	defer a.close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if err := a.connect(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if n := len(a.registry.Providers()); n != 0 {
		t.Errorf("%d providers are registered, and will be again", n)
	}
	key := keysWithin(t.Context(), 10*time.Millisecond)
	if _, err := key("file:" + pipe); llm.CodeOf(err) != llm.CodeMissingCredential {
		t.Error(err)
	}
	if err := errors.Join(os.Remove(pipe), os.WriteFile(pipe, []byte("sesame"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := key("file:" + pipe); llm.CodeOf(err) != llm.CodeMissingCredential {
		t.Errorf("asked again: %v", err)
	}
}

// An editor gets its answer in two seconds, whoever is typing the password of a
// keyring: a key that comes later is not lost, nor are the engines without one.
func TestKeysThatComeBehindAnEditorsAnswer(t *testing.T) {
	pipe := configuredPipe(t)
	a := &app{stdout: io.Discard, stderr: io.Discard, logger: slog.New(slog.DiscardHandler)}
	defer a.close()
	answered, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	ready := make(chan error, 1)
	go func() { ready <- a.ready(answered) }()
	if err := os.WriteFile(pipe, []byte("sesame"), 0); err != nil { // waits for who reads it
		t.Fatal(err)
	}
	if err := <-ready; err != nil {
		t.Error(err)
	}
	if n := len(a.registry.Providers()); n != 2 {
		t.Errorf("%d engines are registered", n)
	}
}
