package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/probe"
)

// Preset names a kind of engine: where it usually listens and how its metadata
// is read. The empty preset is [Custom].
type Preset string

// The presets.
const (
	OMLX     Preset = "omlx"
	VMLX     Preset = "vmlx"
	Ollama   Preset = "ollama"
	LMStudio Preset = "lmstudio"
	LlamaCpp Preset = "llamacpp"
	VLLM     Preset = "vllm"
	SGLang   Preset = "sglang"
	Custom   Preset = "custom"
)

// presetRow is one line of the table of presets.
type presetRow struct {
	preset  Preset
	title   string
	port    uint16 // of the default root, 0 if the address has to be typed
	adapter probe.Adapter
	// fallback are the ports of 127.0.0.1 to look at when the configured
	// address does not answer.
	fallback []uint16
}

// presetTable holds the defaults of the engines' own documentation.
var presetTable = [...]presetRow{
	{OMLX, "oMLX", 8000, probe.OMLX, []uint16{8000, 8001}},
	{VMLX, "vMLX", 8000, probe.VMLX, []uint16{8000, 8001}},
	{Ollama, "Ollama", 11434, probe.Ollama, []uint16{11434}},
	{LMStudio, "LM Studio", 1234, probe.LMStudio, []uint16{1234}},
	{LlamaCpp, "llama.cpp", 8080, probe.LlamaCpp, []uint16{8080}},
	{VLLM, "vLLM", 8000, probe.Generic, nil},
	{SGLang, "SGLang", 30000, probe.Generic, nil},
	{Custom, "custom engine", 0, probe.Generic, nil},
}

// Presets lists the presets.
func Presets() []Preset {
	presets := make([]Preset, 0, len(presetTable))
	for _, row := range presetTable {
		presets = append(presets, row.preset)
	}
	return presets
}

// ParsePreset reads a preset's name; the empty string is [Custom].
func ParsePreset(s string) (Preset, error) {
	if s == "" {
		return Custom, nil
	}
	if slices.Contains(Presets(), Preset(s)) {
		return Preset(s), nil
	}
	names := make([]string, 0, len(presetTable))
	for _, p := range Presets() {
		names = append(names, string(p))
	}
	return "", fmt.Errorf("unknown preset %q (one of %s)", s, strings.Join(names, ", "))
}

func (p Preset) row() presetRow {
	for _, row := range presetTable {
		if row.preset == p {
			return row
		}
	}
	return presetTable[len(presetTable)-1]
}

// Title is the engine's name as its makers write it.
func (p Preset) Title() string { return p.row().title }

// DefaultEndpoint is where the engine listens unless it was told otherwise. ok
// is false for a preset whose address has to be typed.
func (p Preset) DefaultEndpoint() (ep Endpoint, ok bool) {
	port := p.row().port
	return loopback(port), port != 0
}

// loopback is a port of this machine.
func loopback(port uint16) Endpoint {
	return Endpoint{scheme: "http", host: "127.0.0.1", port: port}
}

// fits reports whether the adapter of the preset may be used on an engine of
// this kind. The user's choice counts unless the engine names itself as another.
func (p Preset) fits(kind probe.Kind) bool {
	return kind == probe.KindUnknown || kind == probe.Kind(p)
}

// presetOf is the preset of an identified engine, Custom for one without.
func presetOf(kind probe.Kind) Preset {
	if p := Preset(kind); kind != probe.KindUnknown && slices.Contains(Presets(), p) {
		return p
	}
	return Custom
}
