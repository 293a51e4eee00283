package main

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/engine"
	"github.com/drover-dev/drover/internal/llm"
)

// waitForEngine waits until the engine of a provider answers, or the first one
// where none is named. Only an engine that is away or loading is waited for: of
// another trouble the turn will tell.
func (a *app) waitForEngine(ctx context.Context, provider string, rep reporter) error {
	var e *engine.Engine
	switch {
	case provider != "":
		if e = a.engine(provider); e == nil {
			return nil // a provider on the internet
		}
	case len(a.engines) > 0:
		e = a.engines[0]
	case len(a.providers) > 0:
		return nil
	default:
		return usageError("--wait: no engine is configured or found; name one with --url and --preset")
	}
	h := e.Health(ctx)
	if !awaited(h.Err) {
		return nil
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	tell := func(err *llm.Error, next time.Duration) {
		if !awaited(err) {
			stop()
			return
		}
		text := fmt.Sprintf("waiting for the engine: %s; looking again in %v", err.Message, next)
		_ = rep.event(agent.Notice{Kind: agent.NoticeInfo, Text: text}) // the turn notices a reader that is gone
	}
	tell(h.Err, time.Second)
	if h = e.Await(waiting, tell); h.Err != nil && ctx.Err() != nil {
		return h.Err
	}
	return nil
}

// awaited reports whether waiting may help.
func awaited(err *llm.Error) bool { return err != nil && (err.Unreached || err.Loading) }
