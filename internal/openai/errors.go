package openai

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/llm"
)

// DecodeError tells what an answer that is no success means. What the text says
// outranks the status, since engines answer many mistakes of a request with a
// status that invites another try. header gives the first value of a response
// header and may be nil; only the first [MaxErrorBytes] of body are looked at.
//
// Code and Message are always set. Option is set when the text names an option
// that the engine refuses: with UNSUPPORTED_OPTION for a 400 or 422, with
// INVALID_REQUEST where an engine uses another status for it. Window and
// PromptTokens are set where the text names them and means them. RetryAfter is
// read from a number of seconds; a date needs a clock and is left to the caller.
func DecodeError(status int, header func(name string) string, body []byte) *llm.Error {
	b := parseError(body[:min(len(body), MaxErrorBytes)])
	e := classify(status, b)
	if e.Status == 0 {
		e.Status = status
	}
	if header != nil {
		e.RetryAfter = retrySeconds(header("Retry-After"))
		e.RequestID = requestID(header)
	}
	return e
}

// streamError is the error of an answer that began with success: its own code
// or type stands for the status.
func streamError(b *errorBody) *llm.Error {
	status := b.status
	if status == 0 {
		switch b.typ {
		case "invalid_request_error":
			status = 400
		case "rate_limit_error":
			status = 429
		case "server_error":
			status = 500
		}
	}
	return classify(status, b)
}

// classify decides code, message and figures. A status of 0 is unknown.
func classify(status int, b *errorBody) *llm.Error {
	e := &llm.Error{Status: status}
	text := b.lower()
	note := ""
	switch {
	case contextText(text):
		e.Code = llm.CodeContextWindowExceeded
		e.Window, e.PromptTokens = figures(b, text)
		note = contextNote(text)
	case status == 401 || status == 403:
		e.Code = llm.CodeAuth
	case outputText(strings.ToLower(b.message)):
		e.Code = llm.CodeServer
	case strings.Contains(text, "failed to load model"):
		e.Code, e.Permanent = llm.CodeServer, true
	case replayNote(text) != "":
		e.Code, note = llm.CodeInvalidRequest, replayNote(text)
	case refusedOption(status, b, text) != "":
		e.Code, e.Option = llm.CodeUnsupportedOption, refusedOption(status, b, text)
		if !refusalStatus(status) {
			e.Code = llm.CodeInvalidRequest
		}
		note = optionNote(e.Option)
	case notRunning(text):
		e.Code = llm.CodeServer
	case unknownModel(status, text):
		e.Code = llm.CodeUnknownModel
	case requestText(text):
		e.Code, note = llm.CodeInvalidRequest, requestNote(text)
	case status != 413 && (status == 402 || quotaText(text)):
		e.Code = llm.CodeQuota
	default:
		e.Code, note = statusCode(status), statusNote(status, text)
	}
	if loading := strings.Contains(text, "loading"); status == 503 && loading && e.Code == llm.CodeServer && !e.Permanent {
		e.Loading = true
		note = "the engine is loading the model"
	}
	e.Message = errorMessage(status, b, note)
	return e
}

// notRunning reports whether a router says that the process of a model has ended.
// It starts another at the next request, whatever status it says that with.
func notRunning(text string) bool {
	return strings.Contains(text, "model") && strings.Contains(text, "is not running")
}

// unknownModel reports whether the engine has no model of that name. Engines say
// it with 404, routers in front of them with 400.
func unknownModel(status int, text string) bool {
	return (status == 404 || status == 400) && strings.Contains(text, "model") &&
		containsAny(text, "not found", "not exist", "unknown model", "no such model")
}

// statusCode is the code of a status whose text says nothing special.
func statusCode(status int) llm.Code {
	switch {
	case status == 0:
		return llm.CodeUnknown
	case status == 429:
		return llm.CodeRateLimit
	case status == 400 || status == 413 || status == 422:
		return llm.CodeInvalidRequest
	case status >= 500:
		return llm.CodeServer
	}
	return llm.HTTPCode(status)
}

func statusNote(status int, text string) string {
	switch {
	case status == 413:
		return "the request is too large for the server or a proxy before it; images weigh most"
	case strings.Contains(text, "unexpected endpoint or method"):
		return "is the base URL right? the engine's API usually begins at /v1"
	}
	return ""
}

// errorMessage is the engine's text and what there is to say about it, within
// MaxMessageRunes.
func errorMessage(status int, b *errorBody, note string) string {
	room := MaxMessageRunes
	if note != "" {
		note = " (" + note + ")"
		room -= len([]rune(note))
	}
	text := clean(b.message, room)
	if text == "" {
		text = "the engine reported an error without a text"
		switch {
		case b.html:
			text = "the engine answered with a web page"
		case b.typ != "" || b.code != "":
			text = clean(strings.TrimSpace(b.typ+" "+b.code), room)
		case b.empty:
			text = "the engine answered without a body"
		}
		if status != 0 {
			text = fmt.Sprintf("HTTP %d: %s", status, text)
		}
	}
	return text + note
}

// retrySeconds reads the number of seconds of a Retry-After header, 0 if it is
// none.
func retrySeconds(s string) time.Duration {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	const longest = 7 * 24 * time.Hour
	if err != nil || math.IsNaN(f) || f <= 0 {
		return 0
	}
	return time.Duration(min(f, longest.Seconds()) * float64(time.Second))
}

// requestID gives the name that the server gave the request, for its operator.
func requestID(header func(string) string) string {
	const longest = 128 // characters
	for _, name := range [...]string{"X-Request-Id", "Request-Id", "X-Amzn-Requestid", "Cf-Ray"} {
		if id := clean(header(name), longest); id != "" {
			return id
		}
	}
	return ""
}
