package acp

import (
	"context"
	"errors"
	"fmt"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/jsonrpc2"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/session"
)

// Error codes of this front end, beside those of package llm.
const (
	codeInvalidParams   llm.Code = "INVALID_PARAMS"
	codeSessionNotFound llm.Code = "SESSION_NOT_FOUND"
	codeConfiguration   llm.Code = "INVALID_CONFIGURATION"
	codeStorage         llm.Code = "SESSION_STORAGE"
)

// panicText is all that can be said of a mistake in the program.
const panicText = "drover made a mistake. The session goes on: send the message again. To report it, start drover acp with --log-file FILE and send what the file says"

// rpcNotFound is the protocol's code for a session or file that is not there.
const rpcNotFound = -32002

// errorData goes with every error answer: a stable code for programs, and the
// sentence again, because some clients show only one of the two.
type errorData struct {
	Code    llm.Code `json:"code"`
	Details string   `json:"details"`
}

func newError(rpc int, code llm.Code, message string) *jsonrpc2.Error {
	message = clip(message, maxTitle)
	return &jsonrpc2.Error{Code: rpc, Message: message, Data: errorData{code, message}}
}

// badParams refuses parameters. Nothing has changed when it is returned.
func badParams(format string, args ...any) *jsonrpc2.Error {
	return newError(jsonrpc2.CodeInvalidParams, codeInvalidParams, fmt.Sprintf(format, args...))
}

func notFound(id string) *jsonrpc2.Error {
	return newError(rpcNotFound, codeSessionNotFound, fmt.Sprintf("no session %.100q", id))
}

func internal(code llm.Code, message string) *jsonrpc2.Error {
	return newError(jsonrpc2.CodeInternalError, code, message)
}

// storageError says that a session's files cannot be used.
func storageError(what string, err error) *jsonrpc2.Error {
	message := what + err.Error()
	if _, ok := errors.AsType[*session.InUseError](err); ok {
		message += ". Close it there, or go on in a new session"
	}
	return internal(codeStorage, message)
}

// turnError makes the answer to a prompt whose turn failed.
func turnError(err error) error {
	if e, ok := errors.AsType[*jsonrpc2.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*budget.OverflowError](err); ok {
		message := e.Error()
		if message == "" {
			message = "the conversation does not fit the model's context window: " + string(e.Component)
		}
		return internal(llm.CodeContextWindowExceeded, message)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return internal(llm.CodeTimeout, err.Error())
	}
	code := llm.CodeOf(err)
	message := err.Error()
	if hint := hints[code]; hint != "" {
		message += ". " + hint
	}
	return internal(code, message)
}

// hints say what a person can do about a failure, in an editor.
var hints = map[llm.Code]string{
	llm.CodeNoAdapter:         "Select another model, or add the engine with drover engines add",
	llm.CodeUnknownModel:      "Select another model; drover models lists those there are",
	llm.CodeMissingCredential: "Set the key with drover auth set",
	llm.CodeInvalidCredential: "Replace the key with drover auth set",
	llm.CodeAuth:              "Check the key with drover auth list and drover doctor",
	llm.CodeTransport:         "Check that the engine runs; drover doctor tells what can be reached",
	llm.CodeTimeout:           "Check that the engine is not overloaded, then send the prompt again",
	llm.CodeRateLimit:         "Wait a little, or select another model",
	llm.CodeQuota:             "Check the account with the provider, or select another model",
	llm.CodeServer:            "Look into the engine's own log, or select another model",
	llm.CodeStreamClosed:      "What has arrived is kept: send \"continue\" to go on",
	llm.CodeEmptyResponse:     "Send the prompt again, or select another model",
}
