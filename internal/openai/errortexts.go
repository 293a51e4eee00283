package openai

import (
	"strconv"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
)

// The functions here know the error texts of engines, in lower case. The texts
// were seen in answers and read in the engines' sources; engines change their
// wording, so that the parts matched are short.

func containsAny(text string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// contextText reports whether a prompt, or prompt and output, was too large.
func contextText(text string) bool {
	if containsAny(text,
		"exceed_context_size", "context_length_exceeded", "prompt_too_long", "contextwindowexceeded",
		"context size has been exceeded", "context the overflows", "n_keep", "prompt too long", "prompt is too long",
		"input is too long", "prompt is longer than", "exceeds the maximum allowed length", "exceeded model token limit",
		"maximum context length", "initial job allocation requires", "reduce the length of the messages",
		"maximum prompt length", "number of tokens to keep from the initial prompt",
		"input tokens exceed", "exceeds the maximum number of tokens",
		// An engine that cut the prompt lost the user's message.
		"no user query found in messages",
	) {
		return true
	}
	if strings.Contains(text, "request too large") && strings.Contains(text, "tokens per minute") {
		return true // a size, dressed as a rate: waiting never helps
	}
	return containsAny(text, "context length", "context size", "context window", "context_length", "n_ctx") &&
		containsAny(text, "exceed", "longer than", "larger than", "greater than", "too large", "too long", "too many",
			"overflow", "only")
}

// contextNote explains the wordings that do not explain themselves.
func contextNote(text string) string {
	switch {
	case strings.Contains(text, "no user query found in messages"):
		return "the engine probably cut the prompt: its context is too small; with Ollama raise num_ctx or OLLAMA_CONTEXT_LENGTH"
	case strings.Contains(text, "tokens per minute"):
		return "one request is larger than the limit: waiting does not help"
	case strings.Contains(text, "context size has been exceeded"):
		return "requests that run at the same time share the engine's context"
	}
	return ""
}

// figures gives the window and the prompt in tokens where the text names them.
// A count that is only a floor, or was guessed, is none.
func figures(b *errorBody, text string) (window, prompt int) {
	if b.window > 0 || b.promptTokens > 0 {
		return b.window, b.promptTokens
	}
	if containsAny(text, "tokens per minute", "prompt_too_long") {
		return 0, 0
	}
	for _, before := range [...]string{
		"available context size (", "available context size of ", "maximum context length is ",
		"context length is only ", "context length of only ", "n_ctx: ", "n_ctx (", "max context window of ",
		"model's context length (", "maximum allowed length (", "too large for model with ",
		"model token limit: ", "maximum number of tokens allowed (", "maximum prompt length is ", "configured limit of ",
	} {
		if window = numberAfter(text, before); window > 0 {
			break
		}
	}
	for _, behind := range [...]string{" in the messages", " of text input"} {
		if prompt = numberBefore(text, behind); prompt > 0 {
			return window, prompt
		}
	}
	for _, before := range [...]string{
		"request (", "prompt too long: ", "the input (", "input length (", "prompt length ", "prompt contains ",
		"messages resulted in ", "input token count (", "the request contains ", "your request has ", "(requested: ",
	} {
		if prompt = numberAfter(text, before); prompt > 0 {
			break
		}
	}
	return window, prompt
}

// numberAfter reads the whole number directly behind a text, 0 if there is none.
func numberAfter(text, before string) int {
	_, rest, ok := strings.Cut(text, before)
	if !ok {
		return 0
	}
	end := 0
	for end < len(rest) && '0' <= rest[end] && rest[end] <= '9' {
		end++
	}
	return tokenCount(rest[:end])
}

// numberBefore reads the whole number directly before a text.
func numberBefore(text, behind string) int {
	head, _, ok := strings.Cut(text, behind)
	if !ok {
		return 0
	}
	start := len(head)
	for start > 0 && '0' <= head[start-1] && head[start-1] <= '9' {
		start--
	}
	return tokenCount(head[start:])
}

func tokenCount(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil || n > maxCount {
		return 0
	}
	return n
}

// outputText reports whether the engine failed on what its own model wrote:
// another try may end well.
func outputText(text string) bool {
	if containsAny(text, "model produced output", "empty grammar stack", "error parsing tool call") {
		return true
	}
	return strings.Contains(text, "failed to parse") &&
		!containsAny(text, "grammar", "schema", "messages", "tools", "request", "body", "template", "failed to parse json")
}

// replayNote names the profile to set when the engine wants earlier reasoning
// back, or does not take it; "" for other texts.
func replayNote(text string) string {
	if !containsAny(text, "reasoning", "thinking") {
		return ""
	}
	switch {
	case containsAny(text, "passed back", "pass back", "must be included", "is missing in assistant", "missing reasoning_content"):
		return `the engine wants earlier reasoning back: set profile = "deepseek" or "replay" for this model`
	case containsAny(text, "reasoning input is not enabled"),
		containsAny(text, fieldReasoningContent, "'reasoning'", "`reasoning`", `"reasoning"`, fieldDetails) && refusalWord(text):
		return `the engine takes no earlier reasoning: set profile = "generic" for this model, or "replay" if it names its own field`
	}
	return ""
}

// refusalWord reports whether the text says that something is not taken.
func refusalWord(text string) bool {
	return containsAny(text, "unsupported", "not support", "n't support", "not allowed", "not permitted", "forbidden",
		"unknown", "unrecognized", "unrecognised", "unexpected", "no such", "not enabled", "not available")
}

// refusalStatus reports whether a status is the one for a wrong request.
func refusalStatus(status int) bool { return status == 400 || status == 422 }

// refusedOption gives the option that a text refuses, "" if none. Images, schemas
// and prompts in a row are refused with any status; the other texts are too short to be
// believed when the status speaks of something else.
func refusedOption(status int, b *errorBody, text string) llm.Refusal {
	switch {
	case imageText(text):
		return llm.RefusedImages
	case alternationText(text):
		return llm.RefusedUserRuns
	case schemaText(text):
		if strings.Contains(text, "format") && !containsAny(text, "pattern", "grammar", "conversion") {
			return llm.RefusedFormat
		}
		return llm.RefusedPattern
	case status != 0 && !refusalStatus(status):
		return ""
	case effortText(text):
		return refusedEffort(text)
	case nullText(text):
		return llm.RefusedNullContent
	case strings.Contains(text, "content") && containsAny(text, "must be non-empty", "must not be empty", "cannot be empty", "can not be empty", "should not be empty"):
		return llm.RefusedEmptyContent
	case containsAny(text, "stream_options", "include_usage"):
		return llm.RefusedStreamOptions
	case strings.Contains(text, "max_tokens") && (strings.Contains(text, "max_completion_tokens") || refusalWord(text)) &&
		!containsAny(text, "too large", "at most", "less than or equal"):
		return llm.RefusedMaxTokens
	case b.param == "temperature", strings.Contains(text, "temperature") && refusalWord(text):
		return llm.RefusedSampling
	}
	return ""
}

// alternationText reports whether user and assistant have to take turns: templates
// say so, with any status, and hosted services. A turn that failed or was
// cancelled at once leaves two prompts in a row.
func alternationText(text string) bool {
	return strings.Contains(text, "role") && strings.Contains(text, "alternat") || strings.Contains(text, "should alternate with assistant")
}

// imageText reports whether the model takes no images. A single image that
// cannot be read is another matter.
func imageText(text string) bool {
	switch {
	case containsAny(text, "image urls are not", "failed to load image"):
		return false
	case containsAny(text, "not a multimodal model", "at most 0 image", "unknown variant `image_url`"):
		return true
	}
	return containsAny(text, "image", "multimodal", " vision", "'vision", "`vision") &&
		containsAny(text, "not support", "n't support", "unsupported", "not enabled", "not available", "not allowed",
			"not permitted", "not accept", "not process", "n't process")
}

// effortText reports whether reasoning_effort or its value is refused.
func effortText(text string) bool {
	if containsAny(text, "does not support thinking", "think value", "invalid reasoning value") {
		return true
	}
	return containsAny(text, "reasoning_effort", "reasoning effort") &&
		(refusalWord(text) || containsAny(text, "invalid", "must be", "should be"))
}

// refusedEffort tells the refusal of one value from that of all levels and that
// of the whole parameter.
func refusedEffort(text string) llm.Refusal {
	if containsAny(text, "does not support thinking", "think value") {
		// The model can be told not to think, but not how much.
		return llm.RefusedEffortLevels
	}
	// What stands in quotes before the list of what is allowed.
	for _, stop := range [...]string{"must be", "supported values", "should be", "expected", "one of"} {
		text, _, _ = strings.Cut(text, stop)
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("'\"`", r) })
	for _, w := range words {
		if _, ok := llm.EffortRank(w); ok {
			return llm.RefusedEffortValue(w)
		}
	}
	return llm.RefusedEffort
}

// schemaText reports whether a tool's schema is refused.
func schemaText(text string) bool {
	return containsAny(text, "failed to parse grammar", "json schema conversion failed", "unrecognized schema",
		"failed to initialize samplers", "invalid schema for function", "error in grammar", "unsupported regex",
		"grammar error", "invalid grammar", "compile grammar") ||
		strings.Contains(text, "schema") && containsAny(text, "pattern", "format") && (refusalWord(text) || strings.Contains(text, "invalid"))
}

// nullText reports whether a content of null is refused.
func nullText(text string) bool {
	if !strings.Contains(text, "content") {
		return false
	}
	return containsAny(text, "null", "none is not", "nonetype", "must be a string or", "content or tool_calls must be set",
		"field must be a string") || strings.Contains(text, "valid string") && !strings.Contains(text, "image")
}

func optionNote(option llm.Refusal) string {
	switch option {
	case llm.RefusedPattern, llm.RefusedFormat:
		return "the engine refused the schema of a tool; tools of MCP servers with pattern or format in their schemas are the usual cause"
	}
	return ""
}

// requestText reports whether the request is wrong whatever the status says.
func requestText(text string) bool {
	return containsAny(text, "--jinja", "does not support tools", "tools are not supported", "tool use is not supported",
		"jinja", "json.exception", "parse error at line", "unexpected end of json", "invalid json", "failed to parse messages",
		"failed to parse tools", "failed to parse json", "schema", "grammar")
}

func requestNote(text string) string {
	switch {
	case strings.Contains(text, "--jinja"):
		return "start llama.cpp with --jinja to use tools"
	case containsAny(text, "does not support tools", "tools are not supported", "tool use is not supported"):
		return "this model takes no tools: choose another one, or turn the tools off ([tools] off)"
	}
	return ""
}

// quotaText reports whether an account has run out. "balancer" is none.
func quotaText(text string) bool {
	return containsAny(text, "quota", "insufficient balance", "insufficient_balance", "account balance", "balance is",
		"not enough balance", "credits", "credit balance", "credit limit", "insufficient credit", "billing")
}
