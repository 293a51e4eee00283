// Package picker orders and labels models for people. It is the only reader of
// model names, and only front ends import it: what it finds changes what a
// person sees first, never a request.
package picker

import (
	"slices"
	"strings"
	"unicode"

	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
)

// Badge is a remark on a model that its name suggests.
type Badge string

// The badges.
const (
	Coding Badge = "coding"
	Vision Badge = "vision"
)

// coderNames are the families of dedicated coding models that are one word when
// the separators of the id are taken out.
var coderNames = []string{
	"devstral", "codestral", "starcoder", "codellama", "codegemma", "opencoder", "deepseekcoder",
}

// coderPairs are families that show in two words of the id.
var coderPairs = [][2]string{{"kimi", "dev"}, {"qwen", "coder"}, {"deepseek", "coder"}, {"granite", "code"}}

var visionNames = []string{"llava", "pixtral", "internvl", "moondream", "paligemma", "vision", "multimodal"}

// notChatNames mark entries that are never chosen by default.
var notChatNames = []string{"embed", "rerank", "whisper"}

// Badges returns the badges of a model: vision where metadata proves it or the
// name suggests it, coding by the name alone.
func Badges(m *llm.ModelInfo) []Badge {
	var badges []Badge
	if isCoder(m.ID) {
		badges = append(badges, Coding)
	}
	if m.Capabilities.Vision.Support == llm.Supported ||
		m.Capabilities.Vision.Support == llm.Unknown && looksVisual(m.ID) {
		badges = append(badges, Vision)
	}
	return badges
}

// Order returns the models with coding variants first and everything else as it
// came.
func Order(models []llm.ModelInfo) []llm.ModelInfo {
	sorted := slices.Clone(models)
	slices.SortStableFunc(sorted, func(a, b llm.ModelInfo) int { return rank(&a) - rank(&b) })
	return sorted
}

func rank(m *llm.ModelInfo) int {
	if isCoder(m.ID) {
		return 0
	}
	return 1
}

// Default chooses the target of a session: the saved one while its provider is
// among the listings, else the first coding model, else the first model. ok is
// false when only entries are left that are no chat models, or none at all.
func Default(saved llm.Target, listings []catalog.Listing) (t llm.Target, ok bool) {
	var models []llm.ModelInfo
	for i := range listings {
		if listings[i].Provider.ID == saved.Provider && saved.Model != "" {
			return saved, true
		}
		models = append(models, listings[i].Models...)
	}
	for _, m := range Order(models) {
		if !m.NotChat && !containsAny(strings.ToLower(m.ID), notChatNames) {
			return m.Target(), true
		}
	}
	return llm.Target{}, false
}

func isCoder(id string) bool {
	words := words(id)
	joined := strings.Join(words, "")
	if containsAny(joined, coderNames) {
		return true
	}
	return slices.ContainsFunc(coderPairs, func(p [2]string) bool {
		return hasWord(words, p[0]) && slices.Contains(words, p[1])
	})
}

// hasWord looks for the family's name, which often carries its version
// (qwen2, qwen3).
func hasWord(words []string, family string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		rest, ok := strings.CutPrefix(w, family)
		return ok && strings.TrimLeft(rest, "0123456789") == ""
	})
}

func looksVisual(id string) bool {
	words := words(id)
	return slices.Contains(words, "vl") || containsAny(strings.Join(words, ""), visionNames)
}

func words(id string) []string {
	return strings.FieldsFunc(strings.ToLower(id), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

func containsAny(s string, subs []string) bool {
	return slices.ContainsFunc(subs, func(sub string) bool { return strings.Contains(s, sub) })
}
