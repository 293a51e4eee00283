package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-dev/drover/internal/engine/enginetest"
)

// TestEnginesStartedLater: a process that lives long finds what is started while it
// runs, and calls what it knows by the same name.
func TestEnginesStartedLater(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "drover.toml")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DROVER_CONFIG", empty)
	synctest.Test(t, func(t *testing.T) {
		fake := func(preset string, port int) *enginetest.Server {
			return enginetest.New(t, &enginetest.Options{Preset: preset, InMemory: true, Port: port})
		}
		hung := fake(enginetest.Custom, 8001)
		hung.Fault("GET /v1/models", enginetest.Fault{Hang: true})
		running := []*enginetest.Server{fake(enginetest.LlamaCpp, 8000), hung}
		a := &app{stdout: io.Discard, stderr: io.Discard, logger: slog.New(slog.DiscardHandler)}
		a.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			return enginetest.Dialer(running...)(ctx, network, address)
		}
		defer a.close()
		expect := func(what string, want ...string) {
			t.Helper()
			if err := a.connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range a.engines {
				got = append(got, e.Info("").ID+" "+e.Endpoint().String())
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		first := "llamacpp local:8000"
		expect("at the start", first)
		running = append(running, fake(enginetest.LlamaCpp, 8080), fake(enginetest.Ollama, 11434))
		expect("right behind it", first)
		time.Sleep(searchInterval)
		start := time.Now()
		expect("later", first, "ollama local:11434", "llamacpp-8080 local:8080")
		if took := time.Since(start); took > 0 {
			t.Errorf("who did not answer the first time was waited for again: %v", took)
		}
		running = running[1:]
		time.Sleep(searchInterval)
		expect("when the first is gone", first, "ollama local:11434", "llamacpp-8080 local:8080")
	})
}

// TestSearchesRememberLittle: while there is no engine, search follows search.
func TestSearchesRememberLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := enginetest.New(t, &enginetest.Options{Preset: enginetest.Custom, InMemory: true, Port: 8001})
		hung.Fault("GET /v1/models", enginetest.Fault{Hang: true})
		a := &app{logger: slog.New(slog.DiscardHandler), dial: enginetest.Dialer(hung)}
		for range 3 {
			if err := a.search(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		if len(a.silent) != 1 {
			t.Errorf("%d addresses", len(a.silent))
		}
	})
}

// What a screen asks for while it draws is answered at once, also while engines are
// looked for or a keyring waits to be unlocked.
func TestScreensDoNotWaitForASearch(t *testing.T) {
	t.Setenv("DROVER_CONFIG", os.DevNull)
	a := &app{stdout: io.Discard, stderr: io.Discard, logger: slog.New(slog.DiscardHandler)}
	defer a.close()
	if err := a.provided("deepseek"); err != nil { // registers it
		t.Fatal(err)
	}
	a.mu.Lock() // as a search does; a wait for it would never end
	defer a.mu.Unlock()
	if err := a.provided("deepseek"); err != nil {
		t.Error(err)
	}
	if err := a.provided("workshop"); err == nil {
		t.Error("it has a provider")
	}
	if err := a.noModel(nil); err == nil {
		t.Error("there is a model")
	}
}
