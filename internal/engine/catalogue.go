package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/openai"
	"github.com/drover-dev/drover/internal/probe"
)

// listing is an engine's answer to GET /v1/models.
type listing struct {
	endpoint  Endpoint
	kind      probe.Kind
	catalogue *openai.Catalogue
}

// list asks one endpoint for its models.
func (e *Engine) list(parent, ctx context.Context, ep Endpoint) (*listing, *llm.Error) {
	a, failure := e.ask(parent, ctx, ep, http.MethodGet, e.opts.APIPath+"/models", nil, probe.MaxLargeDocument)
	if failure != nil {
		return nil, failure
	}
	l := &listing{endpoint: ep, kind: probe.Identify(a.header.Get("Server"), nil)}
	if a.status != http.StatusOK {
		return l, e.refusedList(ctx, ep, a)
	}
	catalogue, err := openai.DecodeModels(a.body)
	if err != nil {
		return l, e.unreadableList(ep, a)
	}
	l.catalogue = catalogue
	l.kind = probe.Identify(a.header.Get("Server"), catalogue)
	return l, nil
}

// refusedList says why an answer with another status than 200 is no list.
func (e *Engine) refusedList(ctx context.Context, ep Endpoint, a *answer) *llm.Error {
	failure := e.statusError(ctx, ep, a.status, a.header, a.body)
	switch s := a.status; {
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		failure.Message = fmt.Sprintf("%s: %d: needs a key", ep, s)
		if e.opts.Key != "" {
			failure.Message = fmt.Sprintf("%s: %d: the key is not accepted", ep, s)
		}
	case failure.Loading:
		failure.Message = fmt.Sprintf("%s: %d: still loading the model", ep, s)
	case s >= 300 && s <= 399:
		failure.Message = fmt.Sprintf("%s: %d: redirects to somewhere else, which is not followed", ep, s)
	case s == http.StatusNotFound || s == http.StatusMethodNotAllowed:
		failure.Message = fmt.Sprintf("%s: %d: there is no list of models at this address", ep, s)
	default:
		failure.Message = fmt.Sprintf("%s: answered %d instead of a list of models%s", ep, s, e.through(ctx, ep, s))
	}
	return failure
}

// unreadableList says what stands in an answer that is no list of models.
func (e *Engine) unreadableList(ep Endpoint, a *answer) *llm.Error {
	what := "something that is no list of models"
	switch body := bytes.TrimSpace(a.body); {
	case len(body) == 0:
		what = "nothing"
	case isHTML(a.header, body):
		what = "HTML; is this the address of a web page?"
	case body[0] != '{' && body[0] != '[':
		what = "something that is no JSON"
	case hasError(body):
		// LM Studio answers 200 to paths that it does not know.
		what = "with an error: " + e.redact(openai.DecodeError(a.status, a.header.Get, body).Message)
	}
	return llm.Errorf(llm.CodeMalformedResponse, "%s: answered %s", ep, what)
}

func hasError(body []byte) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(body, &members) == nil && len(members["error"]) > 0
}

func isHTML(header http.Header, body []byte) bool {
	return strings.HasPrefix(header.Get("Content-Type"), "text/html") ||
		bytes.HasPrefix(body, []byte("<"))
}

// catalogue asks the engine for its models: at the saved endpoint, then at the
// preset's fallback ports. Those are tried only when the saved endpoint, on this
// machine, could not be reached and there is no key that a stranger could get.
func (e *Engine) catalogue(parent, ctx context.Context) (*listing, *llm.Error) {
	if failure := e.keyFor(false); failure != nil {
		return nil, failure
	}
	l, failure := e.list(parent, ctx, e.saved)
	if failure == nil {
		e.active.Store(&l.endpoint)
		return l, nil
	}
	if failure.Code == llm.CodeTransport && e.opts.Key == "" && e.saved.IsLoopback() {
		for _, port := range e.preset.row().fallback {
			ep := loopback(port)
			if ep.port == e.saved.port {
				continue
			}
			if found, err := e.list(parent, ctx, ep); err == nil && e.isPreset(parent, ctx, found) {
				e.active.Store(&found.endpoint)
				return found, nil
			}
		}
		e.active.Store(&e.saved)
	}
	return l, failure
}

// isPreset reports whether an engine found at a guessed port proves to be the
// preset's.
func (e *Engine) isPreset(parent, ctx context.Context, l *listing) bool {
	if l.kind == probe.KindUnknown {
		l.kind = e.askKind(parent, ctx, l.endpoint, e.preset)
	}
	return l.kind == probe.Kind(e.preset)
}

// askKind tells engines whose list of models does not name them by one more
// question, made only where the preset's engine is expected.
func (e *Engine) askKind(parent, ctx context.Context, ep Endpoint, expected Preset) probe.Kind {
	var path string
	var is func([]byte) bool
	switch expected {
	case Ollama:
		path, is = "/", probe.IsOllama
	case LMStudio:
		path, is = "/api/v1/models", probe.IsLMStudio
	default:
		return probe.KindUnknown
	}
	a, err := e.ask(parent, ctx, ep, http.MethodGet, path, nil, probe.MaxLargeDocument)
	if err == nil && a.status == http.StatusOK && is(a.body) {
		return probe.Kind(expected)
	}
	return probe.KindUnknown
}

// Models lists the engine's models, bounded by [HandshakeLimit]. A declared list
// is given without asking. The error is an [*llm.Error] that names host and port
// and the cause.
func (e *Engine) Models(ctx context.Context, route string) ([]llm.ModelInfo, error) {
	if err := e.checkRoute(route); err != nil {
		return nil, err
	}
	if e.opts.Models != nil {
		return slices.Clone(e.opts.Models), nil
	}
	h := e.Health(ctx)
	if h.Err != nil {
		return nil, h.Err
	}
	return h.Models, nil
}

// Health is the state of an engine at one moment.
type Health struct {
	// Endpoint is where the answer came from.
	Endpoint Endpoint
	// Kind is what the engine says it is, empty if it does not say.
	Kind probe.Kind
	// Models are the listed models, with what their entries say of them.
	Models []llm.ModelInfo
	// Omitted counts the entries that the list was cut by.
	Omitted int
	// Notes are remarks for people.
	Notes []string
	// Err is why there is no list, nil for a healthy engine.
	Err *llm.Error
}

// Health asks the engine for its models, also when a list is declared. It is
// bounded by [HandshakeLimit].
func (e *Engine) Health(parent context.Context) Health {
	ctx, cancel := e.handshake(parent)
	defer cancel()
	l, failure := e.catalogue(parent, ctx)
	if failure != nil {
		h := Health{Endpoint: e.saved, Err: failure}
		if l != nil {
			h.Kind = l.kind
		}
		return h
	}
	return e.health(l, e.adapterFor(l))
}

// elsewhere notes that an engine is not at the address that was named.
func (e *Engine) elsewhere(l *listing) []string {
	if l.endpoint == e.saved {
		return nil
	}
	return []string{fmt.Sprintf("found at %s instead of %s", l.endpoint, e.saved)}
}

// health describes an engine that gave a list.
func (e *Engine) health(l *listing, adapter probe.Adapter) Health {
	h := Health{
		Endpoint: l.endpoint,
		Kind:     l.kind,
		Models:   make([]llm.ModelInfo, 0, len(l.catalogue.Entries)),
		Omitted:  l.catalogue.Omitted,
	}
	for _, entry := range l.catalogue.Entries {
		h.Models = append(h.Models, e.describe(entry.ID, probe.Resolve(probe.Input{
			Adapter: adapter, Model: entry.ID, Catalogue: l.catalogue,
		}), &entry))
	}
	if len(h.Models) == 0 {
		h.Notes = append(h.Notes, fmt.Sprintf("%s: no models installed", l.endpoint))
	}
	h.Notes = append(h.Notes, e.elsewhere(l)...)
	if h.Omitted > 0 {
		note := fmt.Sprintf("the list is cut: %d more entries are not shown", h.Omitted)
		h.Notes = append(h.Notes, note)
		if n := len(h.Models); n > 0 {
			h.Models[n-1].Notes = append(h.Models[n-1].Notes, note)
		}
	}
	return h
}
