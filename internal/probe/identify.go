package probe

import (
	"strings"

	"github.com/drover-dev/drover/internal/openai"
)

// Kind is the engine behind an endpoint, as far as it names itself. The empty
// Kind is an unknown one. Kinds with a preset bear the preset's name.
type Kind string

// Kinds that matter beyond their name.
const (
	KindUnknown  Kind = ""
	KindOMLX     Kind = "omlx"
	KindVMLX     Kind = "vmlx"
	KindOllama   Kind = "ollama"
	KindLMStudio Kind = "lmstudio"
	KindLlamaCpp Kind = "llamacpp"
	KindVLLM     Kind = "vllm"
	KindSGLang   Kind = "sglang"
)

// owners are the values of owned_by, in lower case, by which engines name
// themselves. Ollama is not among them: it writes the namespace of the model
// there.
var owners = map[string]Kind{
	"llamacpp":    KindLlamaCpp,
	"vmlx-engine": KindVMLX,
	"omlx":        KindOMLX,
	"vllm":        KindVLLM,
	"sglang":      KindSGLang,
	"koboldcpp":   "koboldcpp",
	"lemonade":    "lemonade",
	"llama-swap":  "llama-swap",
	"tabbyapi":    "tabbyapi",
	"docker":      "docker",
	"humanity":    "gpt4all",
}

// Identify tells the engine by its answer to GET /v1/models: by the Server
// header, which only llama.cpp sets to its own name, then by owned_by, when all
// entries agree on it. Engines that pose as Ollama give themselves away there,
// so a check for Ollama comes after this one.
func Identify(server string, catalogue *openai.Catalogue) Kind {
	if server == "llama.cpp" {
		return KindLlamaCpp
	}
	if catalogue == nil || len(catalogue.Entries) == 0 {
		return KindUnknown
	}
	kind := owners[strings.ToLower(catalogue.Entries[0].OwnedBy)]
	for _, e := range catalogue.Entries {
		if owners[strings.ToLower(e.OwnedBy)] != kind {
			return KindUnknown
		}
	}
	return kind
}

// IsOllama reports whether an answer to GET / is Ollama's.
func IsOllama(body []byte) bool {
	return strings.TrimSpace(string(body)) == "Ollama is running"
}
