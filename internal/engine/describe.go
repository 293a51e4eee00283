package engine

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/openai"
	"github.com/drover-dev/drover/internal/probe"
)

// Describe learns what is proven about a model: the engine's list and the calls
// of the preset's adapter, all within [HandshakeLimit]. It always gives
// something usable. The error is set for another provider's target and when the
// caller's context ended.
func (e *Engine) Describe(parent context.Context, target llm.Target) (llm.ModelInfo, error) {
	info, _, err := e.learn(parent, target)
	return info, err
}

// Examine is [Engine.Describe] for a person who wants to know: an engine that
// gives no list of models is an error, which says why. It takes no longer.
func (e *Engine) Examine(parent context.Context, target llm.Target) (llm.ModelInfo, error) {
	info, failure, err := e.learn(parent, target)
	if failure != nil {
		err = failure
	}
	return info, err
}

// learn is one handshake about a model. failure is why there is no list.
func (e *Engine) learn(parent context.Context, target llm.Target) (_ llm.ModelInfo, failure *llm.Error, _ error) {
	if err := e.checkRoute(target.Provider); err != nil {
		return llm.ModelInfo{}, nil, err
	}
	if e.opts.Window.Tokens > 0 {
		return e.describe(target.Model, probe.Result{}, nil), nil, nil
	}
	ctx, cancel := e.handshake(parent)
	defer cancel()

	in := probe.Input{Model: target.Model}
	l, failure := e.catalogue(parent, ctx)
	if failure != nil {
		info := e.describe(target.Model, probe.Result{}, nil)
		info.Unlearned, info.Unreached = true, failure.Unreached
		info.Notes = append(info.Notes, "nothing learned about the model: "+failure.Message)
		return info, failure, callerError(parent, e.saved)
	}
	in.Adapter, in.Catalogue = e.adapterFor(l), l.catalogue
	documents, notes := e.gather(parent, ctx, l, in.Adapter.Calls(target.Model, l.catalogue))
	in.Documents = documents
	var entry *openai.Entry
	if i := slices.IndexFunc(l.catalogue.Entries, func(e openai.Entry) bool { return e.ID == target.Model }); i >= 0 {
		entry = &l.catalogue.Entries[i]
	}
	info := e.describe(target.Model, probe.Resolve(in), entry)
	info.Notes = slices.Concat(e.elsewhere(l), info.Notes, notes)
	if in.Adapter != e.preset.row().adapter {
		info.Notes = append(info.Notes, fmt.Sprintf("%s says it is %s, so it is not asked as %s",
			l.endpoint, l.kind, e.preset.Title()))
	}
	return info, nil, callerError(parent, e.saved)
}

func callerError(parent context.Context, ep Endpoint) error {
	if parent.Err() != nil {
		return callerGone(parent, ep)
	}
	return nil
}

// adapterFor is the preset's adapter, or Generic for an engine that names itself
// as another.
func (e *Engine) adapterFor(l *listing) probe.Adapter {
	if !e.preset.fits(l.kind) {
		return probe.Generic
	}
	return e.preset.row().adapter
}

// gather makes the calls side by side. Only answers with status 200 become
// documents. What is missing is noted, except where engines commonly lack it.
func (e *Engine) gather(parent, ctx context.Context, l *listing, calls []probe.Call) ([]probe.Document, []string) {
	answers := make([]*answer, len(calls))
	failures := make([]*llm.Error, len(calls))
	var wg sync.WaitGroup
	for i, c := range calls {
		wg.Go(func() {
			answers[i], failures[i] = e.ask(parent, ctx, l.endpoint, c.Method, e.metadataPath(c.Path), c.Body, c.Limit)
		})
	}
	wg.Wait()

	var documents []probe.Document
	var notes []string
	for i, c := range calls {
		switch a := answers[i]; {
		case failures[i] != nil:
			notes = append(notes, c.Endpoint+": "+failures[i].Message)
		case a.status == http.StatusOK:
			documents = append(documents, probe.Document{Endpoint: c.Endpoint, Body: a.body})
		case e.adapterFor(l) != probe.Generic:
			note := fmt.Sprintf("%s: answered %d", c.Endpoint, a.status)
			if failure := openai.DecodeError(a.status, a.header.Get, a.body); failure.Code == llm.CodeUnknownModel {
				note += ": " + e.redact(failure.Message)
			}
			notes = append(notes, note)
		}
	}
	return documents, notes
}

// metadataPath puts the configured API path in front of the OpenAI calls.
func (e *Engine) metadataPath(path string) string {
	const version = "/v1/"
	if len(path) > len(version) && path[:len(version)] == version {
		return e.opts.APIPath + path[len(version)-1:]
	}
	return path
}

// describe puts together what a probe, the declared facts and the user say about
// a model. entry is the model's own in the engine's list, nil if it has none.
func (e *Engine) describe(model string, r probe.Result, entry *openai.Entry) llm.ModelInfo {
	info := llm.ModelInfo{
		Provider:     e.route,
		ID:           model,
		Name:         model,
		Window:       r.Window,
		Capabilities: r.Capabilities,
		Notes:        r.Notes,

		Profile:        e.Profile(model),
		EngineSampling: e.opts.EngineSampling,
	}
	if entry != nil {
		info.Name, info.NotChat = cmp.Or(entry.Name, model), entry.NotChat
	}
	for _, declared := range e.opts.Models {
		if declared.ID == model {
			info.Name, info.Description = declared.Name, declared.Description
		}
	}
	if e.opts.Window.Tokens > 0 {
		info.Window, info.Capabilities = e.opts.Window, e.opts.Capabilities
	}
	assumed := info.Window.Source == llm.Assumed
	info.Window = withContext(info.Window, e.opts.Context)
	if assumed && info.Window.Source != llm.Assumed {
		info.Notes = slices.DeleteFunc(info.Notes, func(n string) bool { return strings.Contains(n, "are assumed until") })
	}
	return info
}

// withContext applies the user's word on the window, in tokens. It lowers what
// the engine reports and never raises it. Where the engine told only what the
// model could do, the word takes the place of the assumption: the user may know
// the engine's setting.
func withContext(w llm.Window, context int) llm.Window {
	limit := w.Tokens
	if w.Source == llm.Assumed {
		limit = w.Declared
	}
	if context <= 0 || limit > 0 && context >= limit && w.Source != llm.Assumed {
		return w
	}
	w.Tokens, w.Source = context, llm.Configured
	if limit > 0 {
		w.Tokens = min(context, limit)
	}
	w.Evidence = append(w.Evidence[:len(w.Evidence):len(w.Evidence)], llm.Evidence{
		Endpoint: "configuration", Field: "context", Value: strconv.Itoa(context),
	})
	return w
}
