package openai

import "github.com/drover-dev/drover/internal/llm"

// usageLog keeps what the engine counted. Counts are cumulative: the last one
// of each kind stands.
type usageLog struct {
	usage     llm.Usage
	prompt    bool // the engine counted the prompt
	completed bool // or at least the answer
}

// add takes in a usage object. One that holds nothing but zeros says nothing,
// and neither does a prompt of zero tokens.
func (u *usageLog) add(v value) {
	var prompt, completion, cached, reasoning *int
	take := func(m value) *int {
		if n, ok := m.count(); ok {
			return &n
		}
		return nil
	}
	for name, m := range v.members() {
		switch string(name) {
		case "prompt_tokens":
			prompt = take(m)
		case "completion_tokens":
			completion = take(m)
		case "cached_tokens", "prompt_cache_hit_tokens":
			if n := take(m); cached == nil {
				cached = n
			}
		case "prompt_tokens_details":
			if n := take(m.get("cached_tokens")); n != nil {
				cached = n
			}
		case "reasoning_tokens":
			if n := take(m); reasoning == nil {
				reasoning = n
			}
		case "completion_tokens_details":
			if n := take(m.get("reasoning_tokens")); n != nil {
				reasoning = n
			}
		}
	}
	if zero(prompt) {
		prompt = nil // no prompt has no tokens: it was not counted
	}
	if prompt == nil && zero(completion) {
		return
	}
	set := func(to, n *int) bool {
		if n != nil {
			*to = *n
		}
		return n != nil
	}
	u.prompt = set(&u.usage.PromptTokens, prompt) || u.prompt
	u.completed = set(&u.usage.CompletionTokens, completion) || u.completed
	set(&u.usage.CachedTokens, cached)
	set(&u.usage.ReasoningTokens, reasoning)
}

func zero(n *int) bool { return n == nil || *n == 0 }

// addTimings takes in llama.cpp's own figures, which its last chunk has even
// when no usage was asked for.
func (u *usageLog) addTimings(v value) {
	t := llm.Timings{}
	var known bool
	for name, m := range v.members() {
		var ok bool
		switch string(name) {
		case "cache_n":
			t.CacheN, ok = m.count()
		case "prompt_n":
			t.PromptN, ok = m.count()
		case "predicted_n":
			t.PredictedN, ok = m.count()
		case "prompt_ms":
			t.PromptMS, ok = m.number()
		case "predicted_ms":
			t.PredictedMS, ok = m.number()
		}
		known = known || ok
	}
	if known {
		u.usage.Timings = &t
	}
}

// result gives the usage, false if the engine told none. Where it did not count
// the prompt itself, its timings do; else the usage is marked as estimated.
func (u *usageLog) result() (llm.Usage, bool) {
	usage := u.usage
	if t := usage.Timings; t != nil {
		if !u.prompt && t.CacheN+t.PromptN > 0 {
			usage.PromptTokens, usage.CachedTokens = t.CacheN+t.PromptN, t.CacheN
			u.prompt = true
		}
		if !u.completed {
			usage.CompletionTokens = t.PredictedN
			u.completed = true
		}
	}
	usage.Estimated = !u.prompt
	return usage, u.prompt || u.completed
}
