package main

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// testApp is the process in an empty home, with a configuration file.
func testApp(t *testing.T, file string) *app {
	t.Helper()
	home := t.TempDir()
	path := filepath.Join(home, "config.toml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("DROVER_CONFIG", path)
	t.Setenv("DEEPSEEK_API_KEY", "")
	a := &app{stdout: io.Discard, stderr: io.Discard, logger: slog.New(slog.DiscardHandler)}
	t.Cleanup(a.close)
	return a
}

func (a *app) count(route string) (n int) {
	for _, p := range a.registry.Providers() {
		if p.ID == route {
			n++
		}
	}
	return n
}

// TestConnectingAgainKeepsTheProviders looks for local engines at every call, as
// an editor's new sessions do, and for providers on the internet once.
func TestConnectingAgainKeepsTheProviders(t *testing.T) {
	a := testApp(t, "[hosted]\nproviders = [\"groq\"]\n")
	t.Setenv("DEEPSEEK_API_KEY", "the-key")
	for range 3 {
		if err := a.connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := a.named("deepseek"); err != nil {
			t.Fatal(err)
		}
	}
	if a.count("deepseek") != 1 || a.count("groq") != 1 {
		t.Errorf("providers %v", a.registry.Providers())
	}
}

// TestNamingDeepSeekFirst leaves the providers of the configuration as they are.
func TestNamingDeepSeekFirst(t *testing.T) {
	a := testApp(t, "[engines.one]\npreset = \"llamacpp\"\n[deepseek]\n[hosted]\nproviders = [\"groq\"]\n")
	if err := a.named("deepseek"); err != nil {
		t.Fatal(err)
	}
	if err := a.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a.count("deepseek") != 1 || a.count("groq") != 1 || len(a.providers) != 2 {
		t.Errorf("providers %v", a.registry.Providers())
	}
}

// TestAMistakeRegistersNothing makes the same mistake the answer to every try.
func TestAMistakeRegistersNothing(t *testing.T) {
	a := testApp(t, "[engines.one]\npreset = \"llamacpp\"\n[deepseek]\n[hosted]\nproviders = [\"nobody\"]\n")
	first := a.connect(t.Context())
	if first == nil {
		t.Fatal("a provider that is not in the catalogue was taken")
	}
	if again := a.connect(t.Context()); again == nil || again.Error() != first.Error() {
		t.Errorf("first %v, then %v", first, again)
	}
	if got := a.registry.Providers(); len(got) != 0 {
		t.Errorf("left %v behind", got)
	}
}

// TestDeepSeekIsThereForWhoWantsIt has no local engine in it: only who is asked
// for, and who has a key.
func TestDeepSeekIsThereForWhoWantsIt(t *testing.T) {
	const engine = "[engines.one]\npreset = \"llamacpp\"\n"
	tests := []struct {
		name, file, model, key, preset string
		want                           int
	}{
		{name: "nobody asked", file: engine},
		{name: "an empty table", file: engine + "[deepseek]\n", want: 1},
		{name: "a key", file: engine, key: "the-key", want: 1},
		{name: "the model of the file", file: "model = \"deepseek/x\"\n" + engine, want: 1},
		{name: "the model of the flag", file: engine, model: "deepseek/x", want: 1},
		{name: "another provider's model", file: engine, model: "one/deepseek/x"},
		{name: "an engine of the command line", file: engine + "[deepseek]\n", key: "the-key", preset: "vllm"},
		{name: "an engine has the name", file: "[engines.deepseek]\npreset = \"llamacpp\"\n", key: "the-key", want: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := testApp(t, tt.file)
			t.Setenv("DEEPSEEK_API_KEY", tt.key)
			a.flags.model, a.flags.preset = tt.model, tt.preset
			if err := a.connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := a.count("deepseek"); got != tt.want {
				t.Errorf("registered %d times, want %d", got, tt.want)
			}
		})
	}
}
