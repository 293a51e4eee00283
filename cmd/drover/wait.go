package main

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/llm"
)

// waitForEngine waits until the engine of a provider answers, or the first one
// where none is named. An engine that answers with another trouble than being
// away or loading is not waited for: the turn will tell.
func (a *app) waitForEngine(ctx context.Context, provider string, rep reporter) error {
	if len(a.engines) == 0 {
		return usageError("--wait: no engine is configured or found; name one with --url and --preset")
	}
	e := a.engines[0]
	if provider != "" {
		if e = a.engine(provider); e == nil {
			return nil
		}
	}
	h := e.Health(ctx)
	if h.Err == nil || !h.Err.Unreached && !h.Err.Loading {
		return nil
	}
	tell := func(err *llm.Error, next time.Duration) {
		text := fmt.Sprintf("waiting for the engine: %s; looking again in %v", err.Message, next)
		_ = rep.event(agent.Notice{Kind: agent.NoticeInfo, Text: text}) // the turn notices a reader that is gone
	}
	tell(h.Err, time.Second)
	if h = e.Await(ctx, tell); h.Err != nil {
		return h.Err
	}
	return nil
}
