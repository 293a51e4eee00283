package llm

import (
	"errors"
	"fmt"
	"time"
)

// Code is a stable, machine-readable error code. It reaches ACP clients as
// error.data.code and the log; it never changes its meaning.
type Code string

// The codes. Besides these there is HTTP_<n> for a status without a better
// name; see [HTTPCode].
const (
	CodeNoAdapter             Code = "NO_ADAPTER"
	CodeInvalidAdapter        Code = "INVALID_ADAPTER"
	CodeDuplicateAdapter      Code = "DUPLICATE_ADAPTER"
	CodeInvalidCatalog        Code = "INVALID_CATALOG"
	CodeUnknownModel          Code = "UNKNOWN_MODEL"
	CodeUnsupportedOption     Code = "UNSUPPORTED_OPTION"
	CodeMissingCredential     Code = "MISSING_CREDENTIAL"
	CodeInvalidCredential     Code = "INVALID_CREDENTIAL"
	CodeAuth                  Code = "AUTH"
	CodeRateLimit             Code = "RATE_LIMIT"
	CodeQuota                 Code = "QUOTA"
	CodeInvalidRequest        Code = "INVALID_REQUEST"
	CodeContextWindowExceeded Code = "CONTEXT_WINDOW_EXCEEDED"
	CodeServer                Code = "SERVER"
	CodeTransport             Code = "TRANSPORT"
	CodeTimeout               Code = "TIMEOUT"
	CodeAborted               Code = "ABORTED"
	CodeStreamClosed          Code = "STREAM_CLOSED"
	CodeMalformedResponse     Code = "MALFORMED_RESPONSE"
	CodeEmptyResponse         Code = "EMPTY_RESPONSE"
	CodeNoProgress            Code = "NO_PROGRESS"
	CodeNoModel               Code = "NO_MODEL"
	CodeUnknown               Code = "UNKNOWN"
)

// HTTPCode is the code of an HTTP status that has no better name.
func HTTPCode(status int) Code { return Code(fmt.Sprintf("HTTP_%d", status)) }

// Error is a failure of a provider. Message is safe to show: it holds no key,
// no userinfo and no path beyond host and port.
type Error struct {
	Code    Code
	Message string
	// Status is the HTTP status, 0 if there was none.
	Status int
	// RetryAfter is how long the provider asked to wait, 0 if it did not.
	RetryAfter time.Duration
	// RequestID is the provider's own name for the request, if it gave one.
	RequestID string
	// Option is what was refused, for UNSUPPORTED_OPTION.
	Option Refusal
	// Window and PromptTokens are the figures that the engine named, in tokens,
	// for CONTEXT_WINDOW_EXCEEDED; 0 where it named none.
	Window       int
	PromptTokens int
	// Unreached says that no connection was made at all: nobody listens there,
	// or the host does not exist.
	Unreached bool
	// Loading says that the engine answered that it is still loading the model.
	Loading bool
	// Permanent says that by the engine's own words asking again cannot help,
	// whatever the code says.
	Permanent bool
	// Cause is the error below, if any.
	Cause error
}

// Errorf makes an error of a code with a formatted message. A %w operand
// becomes the cause.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Cause: errors.Unwrap(err)}
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Cause }

// CodeOf gives the code of the first [*Error] in err's chain, UNKNOWN if there
// is none and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeUnknown
}
