package picker_test

import (
	"slices"
	"testing"

	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/picker"
)

func TestCodingBadge(t *testing.T) {
	for id, want := range map[string]bool{
		"devstral-small-2:24b": true, "Qwen3-Coder-30B-A3B": true, "qwen2.5-coder:7b": true,
		"deepseek-coder-v2": true, "deepseek_coder-33b": true, "codestral-latest": true,
		"CodeLlama-13b": true, "code-llama:7b": true, "starcoder2:15b": true, "granite-code:8b": true,
		"granite-8b-code-instruct": true, "codegemma": true, "OpenCoder-8B": true, "kimi-dev-72b": true,
		"acme/qwen3-coder":   true,
		"DeepSeekCoder_6.7b": true, "deepseek-v2-lite-coder": true,

		"qwen3:8b": false, "text-encoder-qwen": false, "qwen-encoder": false, "codec-7b": false,
		"qwen-decode": false, "granite-3-dense": false, "kimi-k2": false, "granite-decoder": false,
		"devops-llama": false, "": false,
	} {
		got := slices.Contains(picker.Badges(&llm.ModelInfo{ID: id}), picker.Coding)
		if got != want {
			t.Errorf("%q: coding %v, want %v", id, got, want)
		}
	}
}

func TestVisionBadge(t *testing.T) {
	for id, want := range map[string]bool{
		"llava:7b": true, "pixtral-12b": true, "Qwen2.5-VL-7B": true, "internvl3": true, "moondream": true,
		"paligemma2": true, "llama-3.2-vision": true, "phi-multimodal": true,
		"vlad-7b": false, "gemma3": false,
	} {
		if got := slices.Contains(picker.Badges(&llm.ModelInfo{ID: id}), picker.Vision); got != want {
			t.Errorf("%q: vision %v, want %v", id, got, want)
		}
	}
	denied := &llm.ModelInfo{ID: "llava:7b"}
	denied.Capabilities.Vision.Support = llm.Unsupported
	if slices.Contains(picker.Badges(denied), picker.Vision) {
		t.Error("the name outweighs the engine's own word")
	}
	proven := &llm.ModelInfo{ID: "gemma3"}
	proven.Capabilities.Vision.Support = llm.Supported
	if !slices.Contains(picker.Badges(proven), picker.Vision) {
		t.Error("proven vision has no badge")
	}
}

func TestOrderIsStable(t *testing.T) {
	in := []llm.ModelInfo{{ID: "b"}, {ID: "qwen3-coder"}, {ID: "a"}, {ID: "devstral"}}
	var got []string
	for _, m := range picker.Order(in) {
		got = append(got, m.ID)
	}
	if want := []string{"qwen3-coder", "devstral", "b", "a"}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	if in[0].ID != "b" {
		t.Error("the caller's list was changed")
	}
}

func TestDefault(t *testing.T) {
	listing := func(provider string, ids ...string) catalog.Listing {
		l := catalog.Listing{Provider: llm.ProviderInfo{ID: provider, Name: provider}}
		for _, id := range ids {
			l.Models = append(l.Models, llm.ModelInfo{Provider: provider, ID: id, Name: id})
		}
		return l
	}
	two := []catalog.Listing{listing("a", "nomic-embed-text", "llama3"), listing("b", "qwen3-coder")}
	typed := listing("a", "vectors")
	typed.Models[0].NotChat = true
	tests := []struct {
		name  string
		saved llm.Target
		lists []catalog.Listing
		want  string
	}{
		{"coder first", llm.Target{}, two, "b/qwen3-coder"},
		{"saved, listed or not", llm.Target{Provider: "a", Model: "private"}, two, "a/private"},
		{"saved without a model", llm.Target{Provider: "a"}, two, "b/qwen3-coder"},
		{"saved, provider gone", llm.Target{Provider: "c", Model: "x"}, two, "b/qwen3-coder"},
		{"embeddings are passed over", llm.Target{}, two[:1], "a/llama3"},
		{"embeddings alone", llm.Target{}, []catalog.Listing{listing("a", "bge-rerank", "whisper-large", "Nomic-Embed", "BGE-ReRanker")}, ""},
		{"typed as no chat model", llm.Target{}, []catalog.Listing{typed}, ""},
		{"nothing", llm.Target{}, nil, ""},
	}
	for _, tt := range tests {
		got, ok := picker.Default(tt.saved, tt.lists)
		if got.String() != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, ok, tt.want)
		}
	}
}
