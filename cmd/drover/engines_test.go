package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/drover-dev/drover/internal/config"
	"github.com/drover-dev/drover/internal/engine"
	"github.com/drover-dev/drover/internal/engine/enginetest"
)

// What drover engines discover prints must be a command that adds what was found.
func TestDiscoverPrintsTheCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := func(preset string, port int) *enginetest.Server {
			return enginetest.New(t, &enginetest.Options{Preset: preset, InMemory: true, Port: port})
		}
		d := engine.Discover(t.Context(), &engine.DiscoverOptions{Dial: enginetest.Dialer(
			fake(enginetest.Ollama, 11434), fake(enginetest.LlamaCpp, 8080), fake(enginetest.LlamaCpp, 8000), fake(enginetest.Custom, 8001))})
		var out bytes.Buffer
		a := &app{stdout: &out, stderr: &out}
		cfg := &config.Config{Engines: []config.Engine{
			{Name: "mine", Preset: "llamacpp"}, {Name: "ollama", Preset: "ollama", URL: "http://10.0.0.1"},
		}}
		if err := a.printDiscovery(d, cfg); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"local:11434  Ollama: ok, 1 model\n",
			"local:1234   connection refused\n",
			"\nOnly the engines of the configuration are used. To add one:\n",
			"\n  drover engines add ollama-11434 --preset ollama\n",
			"\n  (local:8080 is in the configuration as mine)\n",
			"\n  drover engines add llamacpp-8000 --preset llamacpp --url http://127.0.0.1:8000\n",
			"\n  drover engines add local --preset custom --url http://127.0.0.1:8001\n",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in\n%s", want, &out)
			}
		}
	})
	a := &app{stdout: new(bytes.Buffer)}
	err := a.printDiscovery(&engine.Discovery{}, &config.Config{})
	if err == nil || !strings.Contains(err.Error(), "drover engines add NAME") {
		t.Errorf("%v", err)
	}
}
