package hosted

import (
	"slices"
	"strconv"

	"github.com/drover-dev/drover/internal/engine"
	"github.com/drover-dev/drover/internal/llm"
)

// DeepSeekRoute is the route of the native DeepSeek.
const DeepSeekRoute = "deepseek"

// What DeepSeek's documents say of its models, in tokens.
const (
	deepSeekAddress     = "https://api.deepseek.com"
	deepSeekWindow      = 1_000_000
	deepSeekOutputLimit = 384_000
)

// deepSeekModels are advertised where the configuration names none.
var deepSeekModels = []llm.ModelInfo{
	{ID: "deepseek-v4-flash", Name: "DeepSeek-V4-Flash"},
	{ID: "deepseek-v4-pro", Name: "DeepSeek-V4-Pro"},
}

// NewDeepSeek makes the native DeepSeek. Its list is advice: every other id goes
// to the API as it is. The error is that of an address that cannot be read.
func NewDeepSeek(opts *Options) (*Client, error) {
	if opts == nil {
		opts = new(Options)
	}
	address := opts.URL
	if address == "" {
		address = deepSeekAddress
	}
	models := opts.Models
	if models == nil {
		models = deepSeekModels
	}
	models = slices.Clone(models)
	for i := range models {
		m := &models[i]
		m.Window, m.Capabilities, m.Profile = deepSeekFacts(), deepSeekCapabilities(), llm.DeepSeek
	}
	return newClient(DeepSeekRoute, address, "/v1", opts, &engine.Options{
		Name: "DeepSeek", Profile: llm.DeepSeek, Models: models,
		Window: deepSeekFacts(), Capabilities: deepSeekCapabilities(),
	})
}

func deepSeekFacts() llm.Window {
	return llm.Window{
		Tokens: deepSeekWindow, Declared: deepSeekWindow, Source: llm.Declared, OutputLimit: deepSeekOutputLimit,
		Evidence: []llm.Evidence{
			declared("context length", strconv.Itoa(deepSeekWindow)),
			declared("max output", strconv.Itoa(deepSeekOutputLimit)),
		},
	}
}

func deepSeekCapabilities() llm.Capabilities {
	return llm.Capabilities{
		Tools:     llm.Fact{Support: llm.Supported, Evidence: []llm.Evidence{declared("tools", "true")}},
		Reasoning: llm.Fact{Support: llm.Supported, Evidence: []llm.Evidence{declared("thinking.type", `"enabled"`)}},
		ReasoningEffort: llm.EffortField{
			Advertised: true, Values: []string{"low", "high", "max"},
			Evidence: []llm.Evidence{declared("reasoning_effort", `["low","high","max"]`)},
		},
	}
}

// declared is the evidence of DeepSeek's documents.
func declared(field, value string) llm.Evidence {
	return llm.Evidence{Endpoint: "DeepSeek's documents", Field: field, Value: value}
}
