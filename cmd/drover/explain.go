package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/session"
)

// explain turns an error into words: what happened, and below it what to do.
func explain(err error) string {
	text := printable(words(err))
	if text == "" {
		return ""
	}
	for _, h := range ways(err) {
		text += "\n  " + printable(h)
	}
	return text
}

// words say what happened, without what to do about it.
func words(err error) string {
	if overflow, ok := errors.AsType[*budget.OverflowError](err); ok && overflow.Report.Failure != nil {
		return overflow.Report.Failure.Message
	}
	return err.Error()
}

// hint is what a person can do about an error, "" if there is nothing to say.
func hint(err error) string { return strings.Join(ways(err), " ") }

// ways are what a person can do about an error, one a line.
func ways(err error) []string {
	if overflow, ok := errors.AsType[*budget.OverflowError](err); ok {
		return strings.Split(overflow.Suggestion, "; ")
	}
	if busy, ok := errors.AsType[*session.InUseError](err); ok {
		return []string{fmt.Sprintf("Process %d has the session open. Close it there, or start a new session.", busy.PID)}
	}
	if errors.Is(err, session.ErrNotFound) {
		return []string{"drover sessions --all lists the sessions there are."}
	}
	e, ok := errors.AsType[*llm.Error](err)
	switch {
	case !ok:
		return nil
	case e.Loading:
		return []string{"The engine is loading the model. Wait a little."}
	case e.Code == llm.CodeAuth && strings.Contains(e.Message, "needs a key"):
		return []string{"Name a key with key = \"env:NAME\" in the configuration, or with --key-env NAME beside --url."}
	case e.Code == llm.CodeMalformedResponse && errors.As(e, new(interface {
		error
		PrintedCall() string
	})):
		return nil // the message says what to turn on
	case e.Code == llm.CodeTransport && !e.Unreached:
		return []string{"The connection broke. Look at the engine's log, and check the url."}
	}
	if h, ok := hints[e.Code]; ok {
		return []string{h}
	}
	if e.Status == http.StatusNotFound {
		return []string{"Something answers there that is no OpenAI-compatible engine, or its root is another: the url is what stands in front of /v1/models."}
	}
	return nil
}

var hints = map[llm.Code]string{
	llm.CodeTransport: "Is the engine running? Start it (ollama serve; llama-server -m MODEL.gguf; LM Studio: Developer, Start Server), " +
		"or name it with --url URL --preset PRESET.",
	llm.CodeTimeout:           "The engine is there but does not answer in time. Look at its log; a busy or swapping machine is the usual reason.",
	llm.CodeAuth:              "The engine wants another key. Name it with key = \"env:NAME\" in the configuration, or with --key-env NAME beside --url.",
	llm.CodeMissingCredential: "Put the key there, or store one with drover auth set NAME and name it with key = \"keyring:NAME\" in the configuration.",
	llm.CodeQuota:             "The provider's account has no credit left for this.",
	llm.CodeRateLimit:         "Wait a little, or choose another model with --model.",
	llm.CodeUnknownModel:      "drover models lists the models there are.",
	llm.CodeNoAdapter:         "drover models lists the providers there are.",
	llm.CodeMalformedResponse: "Something answers there that is no OpenAI-compatible engine, or a proxy stands in between. Check the url.",
	llm.CodeInvalidCatalog:    "The engine's list of models is broken; name the model with --model PROVIDER/MODEL to use it all the same.",
	llm.CodeStreamClosed:      "The engine ended in the middle of its answer: often it has no memory left. Look at its log.",
	llm.CodeEmptyResponse:     "The engine said nothing at all: often its window is too small for the request. drover probe PROVIDER/MODEL shows the window.",
	llm.CodeServer:            "Look at the engine's log.",
	llm.CodeInvalidAdapter:    "Rename the engine in the configuration.",
	llm.CodeDuplicateAdapter:  "Two engines have the same name; rename one in the configuration.",
	llm.CodeUnsupportedOption: "The engine refuses this option for the model.",
	llm.CodeContextWindowExceeded: "drover probe PROVIDER/MODEL shows the window. Raise it in the engine " +
		"(OLLAMA_CONTEXT_LENGTH or num_ctx for Ollama, -c for llama-server), or start a new session.",
}

// noModel is the error of a person who has no engine, or engines without
// models.
func (a *app) noModel(listings []catalog.Listing) error {
	var b strings.Builder
	b.WriteString("no model was found.")
	for i := range listings {
		l := &listings[i]
		switch {
		case l.Err != nil:
			fmt.Fprintf(&b, "\n  %s: %s", l.Provider.ID, strings.ReplaceAll(explain(l.Err), "\n", "\n  "))
		case len(l.Models) == 0:
			fmt.Fprintf(&b, "\n  %s: it answers, and lists no model. Get one first (ollama pull NAME, say).", l.Provider.ID)
		default:
			fmt.Fprintf(&b, "\n  %s: only models that are not for chat. Name one with --model to use it all the same.", l.Provider.ID)
		}
	}
	if seen := a.discovery.Load(); seen != nil && len(seen.Found) == 0 {
		b.WriteString("\n  Looked at the default ports of this machine:\n    ")
		b.WriteString(strings.ReplaceAll(seen.String(), "\n", "\n    "))
		b.WriteString("\n  Start an engine (ollama serve; llama-server -m MODEL.gguf), or name one with --url URL --preset PRESET." +
			"\n  drover demo shows everything without an engine.")
	}
	return &llm.Error{Code: llm.CodeNoModel, Message: b.String()}
}

// unknownProvider is the error of a model whose provider is not there.
func (a *app) unknownProvider(route string) error {
	if text := a.inCatalogue(route); text != "" {
		return usageError("%s", text)
	}
	var known []string
	for _, p := range a.registry.Providers() {
		known = append(known, p.ID)
	}
	if len(known) == 0 {
		return a.noModel(nil)
	}
	return usageError("there is no provider %q (there are: %s)", route, strings.Join(known, ", "))
}
