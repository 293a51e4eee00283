package engine

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/drover-dev/drover/internal/llm"
)

// answer is what an engine said to a metadata call.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// handshake starts the clock of one handshake. Every metadata call happens
// inside one, so that slow, dribbling and silent engines cost the same bound.
func (e *Engine) handshake(parent context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(parent, e.opts.Limits.Handshake, errHandshake)
}

// ask makes one metadata call. An answer with any status is no error; a body
// larger than limit bytes is one, and its reading is broken off. parent is the
// caller's context, ctx that of the handshake.
func (e *Engine) ask(parent, ctx context.Context, ep Endpoint, method, path string, body []byte, limit int64) (*answer, *llm.Error) {
	// Giving up on a body must end the transfer, not only the reading of it.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := e.newRequest(ctx, ep, method, path, body)
	if err != nil {
		return nil, llm.Errorf(llm.CodeInvalidRequest, "%s: %w", ep, errBadRequest)
	}
	req.Header.Set("Accept", "application/json")

	client := &http.Client{Transport: e.transport, CheckRedirect: redirectWithin(ep)}
	start := time.Now()
	res, err := client.Do(req)
	if err != nil {
		failure := e.failure(parent, ctx, ep, err)
		e.log.DebugContext(ctx, "metadata", "engine", ep.String(), "method", method, "error", failure.Message)
		return nil, failure
	}
	defer res.Body.Close()
	a := &answer{status: res.StatusCode, header: res.Header}
	if res.ContentLength > limit {
		return nil, tooLarge(ep, limit)
	}
	a.body, err = io.ReadAll(io.LimitReader(res.Body, limit+1))
	e.log.DebugContext(ctx, "metadata", "engine", ep.String(), "method", method, "status", a.status,
		"bytes", len(a.body), "took", time.Since(start))
	switch {
	case int64(len(a.body)) > limit:
		return nil, tooLarge(ep, limit)
	case err != nil:
		return nil, e.failure(parent, ctx, ep, err)
	}
	return a, nil
}

// errBadRequest stands for a request that cannot be built from the settings.
var errBadRequest = fmt.Errorf("the request cannot be built from the engine's settings")

func tooLarge(ep Endpoint, limit int64) *llm.Error {
	return llm.Errorf(llm.CodeMalformedResponse, "%s: the answer is larger than %d KiB", ep, limit>>10)
}
