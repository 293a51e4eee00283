package openai

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/drover-dev/drover/internal/llm"
)

// openaiError is a body in the usual form.
func openaiError(message, typ string) string {
	return `{"error":{"message":` + quote(message) + `,"type":` + quote(typ) + `,"param":null,"code":null}}`
}

func TestDecodeErrorContext(t *testing.T) {
	tests := []struct {
		name           string
		status         int
		body           string
		window, prompt int
	}{
		{"llama.cpp", 400, `{"error":{"code":400,"message":"request (3900 tokens) exceeds the available context size (2048 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":3900,"n_ctx":2048}}`, 2048, 3900},
		{"llama.cpp, text alone", 400, openaiError("request (3900 tokens) exceeds the available context size (2048 tokens), try increasing it", ""), 2048, 3900},
		{"llama.cpp, older, 500", 500, `{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":1400,"n_ctx":256}}`, 256, 1400},
		{"llama.cpp, requests side by side", 500, `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`, 0, 0},
		{"vLLM and OpenAI", 400, `{"object":"error","message":"This model's maximum context length is 131072 tokens. However, you requested 131200 tokens (123008 in the messages, 8192 in the completion). Please reduce the length.","type":"BadRequestError","param":null,"code":400}`, 131072, 123008},
		{"vLLM, a floor", 400, openaiError("You passed 24577 input tokens and requested 8192 output tokens. However, the model's context length is only 32768 tokens, resulting in a maximum input length of 24576 tokens.", "BadRequestError"), 32768, 0},
		{"vLLM, another floor", 400, openaiError("This model's maximum context length is 32768 tokens. However, you requested 0 output tokens and your prompt contains at least 32769 input tokens, for a total of at least 32769 tokens. (parameter=input_tokens, value=32769)", "BadRequestError"), 32768, 0},
		{"vLLM, the output", 400, openaiError("'max_tokens' or 'max_completion_tokens' is too large: 16384. This model's maximum context length is 65536 tokens and your request has 61440 input tokens (16384 > 65536 - 61440).", "BadRequestError"), 65536, 61440},
		{"OpenAI, older", 400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, 8192, 9001},
		{"OpenRouter", 400, `{"error":{"message":"This endpoint's maximum context length is 65536 tokens. However, you requested about 70000 tokens (60000 of text input, 10000 in the output).","code":400}}`, 65536, 60000},
		{"LM Studio", 400, `{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}`, 4096, 0},
		{"LM Studio, figures", 400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 5000>= n_ctx: 4096). Try to load the model with a larger context length."}`, 4096, 0},
		{"LM Studio, truncation", 400, `{"error":"Cannot truncate prompt with n_keep (5000) >= n_ctx (4096)"}`, 4096, 0},
		{"SGLang", 400, `{"object":"error","message":"The input (9000 tokens) is longer than the model's context length (8192 tokens).","type":"BadRequestError","param":null,"code":400}`, 8192, 9000},
		{"SGLang, its pool", 400, openaiError("Input length (60000 tokens) exceeds the maximum allowed length (59800 tokens). Use a shorter input.", "BadRequestError"), 59800, 60000},
		{"oMLX", 400, openaiError("Prompt too long: 36000 tokens exceeds max context window of 32768 tokens", "invalid_request_error"), 32768, 36000},
		{"TabbyAPI", 400, `{"error":{"message":"Prompt length 9000 exceeds the available context size of 8192 tokens","code":"context_length_exceeded"}}`, 8192, 9000},
		{"TabbyAPI, cache", 400, openaiError("Initial job allocation requires 9216 cache tokens, more than there are", ""), 0, 0},
		{"Mistral", 400, `{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error","code":"3051"}`, 32768, 40000},
		{"Ollama", 400, `{"error":"the input length exceeds the context length"}`, 0, 0},
		{"Ollama, newer", 400, `{"error":"the prompt is longer than the context length currently available to the model; try a shorter one"}`, 0, 0},
		{"Ollama, the prompt was cut", 500, openaiError("no user query found in messages", ""), 0, 0},
		{"vMLX, a guess", 413, `{"error":{"message":"Prompt too long: 70000 tokens exceeds max context window of 60000 tokens","code":"prompt_too_long"}}`, 0, 0},
		{"Groq, a size dressed as a rate", 413, `{"error":{"message":"Request too large for model x on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size","type":"tokens","code":"rate_limit_exceeded"}}`, 0, 0},
		{"Groq", 400, `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","code":"context_length_exceeded"}}`, 0, 0},
		{"LiteLLM", 400, `{"error":{"message":"litellm.ContextWindowExceededError: it is too long","type":null,"param":null,"code":"400"}}`, 0, 0},
		{"Gemini", 400, `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, 1048576, 1200000},
		{"xAI", 400, `{"code":"invalid-argument","error":"This model's maximum prompt length is 131072 but the request contains 140000 tokens."}`, 131072, 140000},
		{"Kimi", 400, openaiError("Invalid request: Your request exceeded model token limit: 131072 (requested: 150000)", "invalid_request_error"), 131072, 150000},
		{"any status", 418, openaiError("the context window is exceeded", ""), 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := DecodeError(tt.status, nil, []byte(tt.body))
			if e.Code != llm.CodeContextWindowExceeded || e.Window != tt.window || e.PromptTokens != tt.prompt || e.Status != tt.status {
				t.Errorf("%s, window %d, prompt %d, status %d: %s", e.Code, e.Window, e.PromptTokens, e.Status, e.Message)
			}
		})
	}
}

func TestDecodeErrorCodes(t *testing.T) {
	tests := []struct {
		name    string
		status  int
		body    string
		code    llm.Code
		message string // what it must contain
	}{
		{"key", 401, `{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}`, llm.CodeAuth, "Invalid API Key"},
		{"forbidden", 403, `{"error":"your quota of models"}`, llm.CodeAuth, "your quota"},
		{"rate", 429, openaiError("Rate limit reached for requests", "requests"), llm.CodeRateLimit, "Rate limit reached"},
		{"quota as a rate", 429, openaiError("You exceeded your current quota, please check your plan and billing details.", "insufficient_quota"), llm.CodeQuota, "quota"},
		{"balance", 402, openaiError("Insufficient Balance", "unknown_error"), llm.CodeQuota, "Insufficient Balance"},
		{"credits at any status", 500, openaiError("not enough credits left", ""), llm.CodeQuota, "credits"},
		{"no quota but a size", 413, openaiError("quota of bytes", ""), llm.CodeInvalidRequest, "quota of bytes"},
		{"no balance but a balancer", 503, openaiError("the load balancer has no backend", ""), llm.CodeServer, "balancer"},
		{"bad request", 400, openaiError("something is wrong", "invalid_request_error"), llm.CodeInvalidRequest, "something is wrong"},
		{"a router whose process has ended", 400, openaiError("model name=brook is not running", "invalid_request_error"), llm.CodeServer, "is not running"},
		{"unknown model of a router", 400, openaiError("model 'nope' not found", "invalid_request_error"), llm.CodeUnknownModel, "model 'nope' not found"},
		{"unknown model", 404, openaiError("The model `nope` does not exist.", "NotFoundError"), llm.CodeUnknownModel, "does not exist"},
		{"unprocessable", 422, `{"detail":[{"loc":["body","messages",0,"role"],"msg":"Input should be 'user'","type":"literal_error"}]}`, llm.CodeInvalidRequest, "body.messages.0.role: Input should be 'user'"},
		{"too large, a page", 413, "<html><h1>413 Request Entity Too Large</h1></html>", llm.CodeInvalidRequest, "HTTP 413: the engine answered with a web page (the request is too large for the server or a proxy before it; images weigh most)"},
		{"loading", 503, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`, llm.CodeServer, "loading the model"},
		{"unavailable", 503, openaiError("no slot", ""), llm.CodeServer, "no slot"},
		{"server", 500, openaiError("gearbox broke", "server_error"), llm.CodeServer, "gearbox broke"},
		{"gateway, a page", 502, "<!doctype html><title>502</title>", llm.CodeServer, "HTTP 502: the engine answered with a web page"},
		{"missing", 404, `{"error":{"message":"File Not Found","type":"not_found_error","code":404}}`, "HTTP_404", "File Not Found"},
		{"missing, text", 404, "404 page not found", "HTTP_404", "404 page not found"},
		{"method", 405, "", "HTTP_405", "HTTP 405: the engine answered without a body"},
		{"redirect", 307, "", "HTTP_307", "HTTP 307"},
		{"empty", 400, "", llm.CodeInvalidRequest, "HTTP 400: the engine answered without a body"},
		{"white space", 400, " \n", llm.CodeInvalidRequest, "HTTP 400: the engine answered without a body"},
		{"no text", 400, `{"error":{"type":"odd_error"}}`, llm.CodeInvalidRequest, "HTTP 400: odd_error"},
		{"a number", 400, "7", llm.CodeInvalidRequest, "7"},
		{"broken JSON of ours, 500", 500, openaiError("[json.exception.parse_error.101] parse error at line 1, column 10: syntax error", "server_error"), llm.CodeInvalidRequest, "parse error"},
		{"jinja", 500, openaiError("tools param requires --jinja flag", "server_error"), llm.CodeInvalidRequest, "start llama.cpp with --jinja"},
		{"template", 500, openaiError("Jinja Exception: Only user and assistant roles are supported", "server_error"), llm.CodeInvalidRequest, "roles are supported"},
		{"no tools", 400, openaiError("registry.ollama.ai/library/plain:latest does not support tools", "api_error"), llm.CodeInvalidRequest, "takes no tools"},
		{"no tools, native form", 400, `{"error":"plain does not support tools"}`, llm.CodeInvalidRequest, "takes no tools"},
		{"the model's output", 500, openaiError("The model produced output that does not match the expected peg-native format", "server_error"), llm.CodeServer, "does not match"},
		{"the model's output and the grammar", 500, openaiError("got exception: Unexpected empty grammar stack after accepting piece: x", "server_error"), llm.CodeServer, "grammar stack"},
		{"the model's output, failed to parse", 500, openaiError("Failed to parse input at pos 40: <tool_call>", "server_error"), llm.CodeServer, "Failed to parse"},
		{"the request, failed to parse", 500, openaiError("Failed to parse messages: unsupported role", "server_error"), llm.CodeInvalidRequest, "Failed to parse messages"},
		{"an image that cannot be read", 400, openaiError("Failed to load image or audio file", "invalid_request_error"), llm.CodeInvalidRequest, "Failed to load image"},
		{"image URLs", 400, openaiError("image URLs are not currently supported, please use base64 encoded data instead", "invalid_request_error"), llm.CodeInvalidRequest, "image URLs"},
		{"string error of a proxy", 400, `{"error":"no model id could be identified","src":"llama-swap"}`, llm.CodeInvalidRequest, "no model id could be identified"},
		{"reason behind a router", 429, `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"mill is limited upstream","provider_name":"Mill"}}}`, llm.CodeRateLimit, "Provider returned error: mill is limited upstream (Mill)"},
		{"reason behind a router, JSON in text", 502, `{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"gearbox broke\"}}","provider_name":"Mill"}}}`, llm.CodeServer, "Provider returned error: gearbox broke (Mill)"},
		{"JSON in a message", 400, `{"error":{"message":"{\"error\":{\"message\":\"bad gear\",\"type\":\"x\"}}"}}`, llm.CodeInvalidRequest, "bad gear"},
		{"an object as message", 400, `{"message":{"message":"bad gear"}}`, llm.CodeInvalidRequest, "bad gear"},
		{"reasoning wanted back", 400, openaiError("The `reasoning_content` in the thinking mode must be passed back to the API.", "invalid_request_error"), llm.CodeInvalidRequest, `profile = "deepseek" or "replay"`},
		{"thinking wanted back", 400, openaiError("The `content[].thinking` in the thinking mode must be passed back to the API.", "invalid_request_error"), llm.CodeInvalidRequest, `profile = "deepseek" or "replay"`},
		{"reasoning unsupported", 400, openaiError("property 'reasoning_content' is unsupported", "invalid_request_error"), llm.CodeInvalidRequest, `profile = "generic"`},
		{"reasoning not enabled", 400, `{"object":"error","message":"Reasoning input is not enabled for this model","type":"invalid_request_invalid_args","param":null,"code":"3051"}`, llm.CodeInvalidRequest, `profile = "generic"`},
		{"limit on the output alone", 400, openaiError("max_tokens is too large: 9000. This model supports at most 4096 completion tokens", "invalid_request_error"), llm.CodeInvalidRequest, "too large"},
		{"a deadline in Go's words", 500, openaiError("context deadline exceeded", ""), llm.CodeServer, "deadline"},
		{"no option at this status", 503, openaiError("the temperature of the GPU is not available", ""), llm.CodeServer, "temperature"},
		{"no image but a failure", 500, openaiError("unknown error while the image was read", ""), llm.CodeServer, "unknown error"},
		{"no vision but a revision", 404, openaiError("model revision not available", ""), "HTTP_404", "revision"},
		{"wrong address", 200, `{"error":"Unexpected endpoint or method. (POST /chat/completions)"}`, "HTTP_200", "base URL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := DecodeError(tt.status, nil, []byte(tt.body))
			if e.Code != tt.code || !strings.Contains(e.Message, tt.message) || e.Option != "" || e.Status != tt.status {
				t.Errorf("%s (option %q, status %d): %s", e.Code, e.Option, e.Status, e.Message)
			}
			if strings.ContainsAny(e.Message, "<>") && !strings.Contains(tt.body, "<tool_call>") {
				t.Errorf("markup in %s", e.Message)
			}
		})
	}
}

func TestDecodeErrorOptions(t *testing.T) {
	forbidden := func(loc string) string {
		return `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body",` + loc + `],"msg":"Extra inputs are not permitted","input":true}]},"type":"invalid_request_error","param":null,"code":null}`
	}
	tests := []struct {
		name   string
		status int
		body   string
		option llm.Refusal
	}{
		{"usage", 422, forbidden(`"stream_options","include_usage"`), llm.RefusedStreamOptions},
		{"usage through a proxy", 400, `{"error":{"message":"proxy.BadRequestError: - {'detail': [{'type': 'extra_forbidden', 'loc': ['body', 'stream_options', 'include_usage']}]}","type":null,"param":null,"code":"400"}}`, llm.RefusedStreamOptions},
		{"temperature", 400, openaiError("Unsupported value: 'temperature' does not support 0.6 with this model. Only the default (1) value is supported.", "invalid_request_error"), llm.RefusedSampling},
		{"temperature by param", 400, `{"error":{"message":"no such knob","param":"temperature"}}`, llm.RefusedSampling},
		{"temperature, forbidden", 422, forbidden(`"temperature"`), llm.RefusedSampling},
		{"max_tokens", 400, openaiError("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "invalid_request_error"), llm.RefusedMaxTokens},
		{"prompts in a row, a template", 500, `{"error":{"code":500,"message":"After the optional system message, conversation roles must alternate user/assistant/user/assistant/... at row 12, column 80","type":"server_error"}}`, llm.RefusedUserRuns},
		{"prompts in a row, a stricter one", 400, openaiError("Conversation roles must alternate user/assistant/user/assistant/...", "BadRequestError"), llm.RefusedUserRuns},
		{"prompts in a row, hosted", 400, openaiError("messages: roles must alternate between \"user\" and \"assistant\", but found multiple \"user\" roles in a row", "invalid_request_error"), llm.RefusedUserRuns},
		{"prompts in a row, other words", 400, openaiError("After the (optional) system message(s), user or tool message(s) should alternate with assistant message(s).", "invalid_message"), llm.RefusedUserRuns},
		{"null", 400, openaiError("'content' field must be a string or an array of objects", ""), llm.RefusedNullContent},
		{"null, in a dump", 400, `{"detail":[{"loc":["body","messages",2,"content"],"msg":"none is not an allowed value"}]}`, llm.RefusedNullContent},
		{"null, valid string", 422, `{"detail":[{"loc":["body","messages",2,"content"],"msg":"Input should be a valid string"}]}`, llm.RefusedNullContent},
		{"null, nothing set", 400, openaiError("Invalid assistant message: content or tool_calls must be set", ""), llm.RefusedNullContent},
		{"empty", 400, openaiError("messages: text content blocks must be non-empty", "invalid_request_error"), llm.RefusedEmptyContent},
		{"effort", 400, openaiError("Unrecognized request argument supplied: reasoning_effort", ""), llm.RefusedEffort},
		{"effort, forbidden", 422, forbidden(`"reasoning_effort"`), llm.RefusedEffort},
		{"one effort", 400, openaiError(`invalid reasoning value: 'xhigh' (must be "high", "medium", "low", "max", or "none")`, "invalid_request_error"), "reasoning_effort=xhigh"},
		{"one effort, other words", 400, openaiError("Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. Supported values are: 'low', 'medium', and 'high'.", ""), "reasoning_effort=minimal"},
		{"all levels", 400, openaiError(`think value "low" is not supported for this model`, "api_error"), llm.RefusedEffortLevels},
		{"a model that does not think", 400, openaiError(`"plain" does not support thinking`, "api_error"), llm.RefusedEffortLevels},
		{"grammar", 400, `{"error":{"code":400,"message":"Failed to initialize samplers: failed to parse grammar","type":"invalid_request_error"}}`, llm.RefusedPattern},
		{"pattern", 400, openaiError("Invalid schema for function 'find': 'pattern' is not permitted", ""), llm.RefusedPattern},
		{"format", 400, openaiError("Invalid schema for function 'find': 'uri' is not a valid format", ""), llm.RefusedFormat},
		{"images", 400, openaiError("This model does not support image input", ""), llm.RefusedImages},
		{"images, by the parser", 422, openaiError("Failed to deserialize the JSON body: messages[0]: unknown variant `image_url`, expected `text`", ""), llm.RefusedImages},
		{"images, none allowed", 400, openaiError("At most 0 image(s) may be provided in one request.", "BadRequestError"), llm.RefusedImages},
		{"images, wrong model", 400, openaiError("brook is not a multimodal model", "BadRequestError"), llm.RefusedImages},
		{"images, another status", 500, openaiError("image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", "server_error"), llm.RefusedImages},
		{"schema, another status, bare", 500, `{"code":500,"message":"JSON schema conversion failed:\nUnrecognized schema: {\"a\":{\"type\":\"string\"}}","type":"server_error"}`, llm.RefusedPattern},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := DecodeError(tt.status, nil, []byte(tt.body))
			code := llm.CodeUnsupportedOption
			if tt.status != 400 && tt.status != 422 {
				code = llm.CodeInvalidRequest
			}
			if e.Code != code || e.Option != tt.option {
				t.Errorf("%s, option %q, want %q: %s", e.Code, e.Option, tt.option, e.Message)
			}
		})
	}
	e := DecodeError(400, nil, []byte(openaiError("failed to parse grammar", "")))
	if !strings.Contains(e.Message, "schema of a tool") || !strings.Contains(e.Message, "MCP") {
		t.Errorf("the message does not say what to look at: %s", e.Message)
	}
}

func TestDecodeErrorFlags(t *testing.T) {
	if e := DecodeError(503, nil, []byte(`{"error":{"message":"Loading model"}}`)); !e.Loading || e.Permanent {
		t.Errorf("loading: %+v", e)
	}
	if e := DecodeError(500, nil, []byte(`{"error":"failed to load model: out of memory"}`)); e.Code != llm.CodeServer || !e.Permanent || e.Loading {
		t.Errorf("failed to load: %+v", e)
	}
	if e := DecodeError(500, nil, []byte(`{"error":"loading of the gearbox failed"}`)); e.Loading {
		t.Errorf("not loading: %+v", e)
	}
}

func TestDecodeErrorHeaders(t *testing.T) {
	headers := map[string]string{}
	header := func(name string) string { return headers[name] }
	for text, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, " 2 ": 2 * time.Second, "0.5": 500 * time.Millisecond, "-3": 0, "NaN": 0,
		"Inf": 7 * 24 * time.Hour, "Fri, 04 Sep 2026 10:00:00 GMT": 0, "soon": 0,
	} {
		headers["Retry-After"] = text
		if e := DecodeError(429, header, nil); e.RetryAfter != want {
			t.Errorf("Retry-After %q: %v, want %v", text, e.RetryAfter, want)
		}
	}
	headers["Request-Id"] = "req-2"
	if e := DecodeError(500, header, nil); e.RequestID != "req-2" {
		t.Errorf("request id %q", e.RequestID)
	}
	headers["X-Request-Id"] = "req-1\x1b[0m" + strings.Repeat("x", 200)
	if e := DecodeError(500, header, nil); !strings.HasPrefix(e.RequestID, "req-1[0mx") || len(e.RequestID) > 128 {
		t.Errorf("request id %q", e.RequestID)
	}
}

func TestDecodeErrorMessageLength(t *testing.T) {
	for _, n := range []int{MaxMessageRunes - 1, MaxMessageRunes, MaxMessageRunes + 1} {
		e := DecodeError(500, nil, []byte(strings.Repeat("ä", n)))
		if got := utf8.RuneCountInString(e.Message); got != min(n, MaxMessageRunes) || strings.HasSuffix(e.Message, "...") != (n > MaxMessageRunes) {
			t.Errorf("%d characters became %d", n, got)
		}
	}
	long := DecodeError(500, nil, []byte(openaiError(strings.Repeat("x ", 1000)+"--jinja", "")))
	if n := utf8.RuneCountInString(long.Message); n > MaxMessageRunes || !strings.HasSuffix(long.Message, "(start llama.cpp with --jinja to use tools)") {
		t.Errorf("%d characters: %s", n, long.Message)
	}
	// Only the first bytes are looked at, and a body cut there is still told.
	huge := `{"error":"` + strings.Repeat("y", MaxErrorBytes) + `--jinja"}`
	if e := DecodeError(500, nil, []byte(huge)); e.Code != llm.CodeServer || !strings.Contains(e.Message, "yyy") {
		t.Errorf("%s: %.40s", e.Code, e.Message)
	}
	if e := DecodeError(500, nil, []byte("a\r\n\tb\x00\x1b[1m\u202ec")); e.Message != "a b[1mc" {
		t.Errorf("message %q", e.Message)
	}
}

func TestDecodeErrorNesting(t *testing.T) {
	body := `{"message":"deep"}`
	for range 50 {
		body = `{"error":` + body + `}`
	}
	if e := DecodeError(500, nil, []byte(body)); e.Code != llm.CodeServer || e.Message == "" {
		t.Errorf("%+v", e)
	}
	for i := range 12 {
		text := "deep"
		for range i {
			text = fmt.Sprintf(`{"error":%s}`, quote(text))
		}
		if e := DecodeError(500, nil, []byte(text)); e.Message == "" {
			t.Errorf("%d levels: no message", i)
		}
	}
}
