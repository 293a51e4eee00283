package engine

import (
	"context"
	"time"

	"github.com/drover-dev/drover/internal/llm"
)

// awaitDelays are the pauses between two looks at an engine that went offline;
// the last one repeats.
var awaitDelays = [...]time.Duration{
	1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second,
}

// Await looks for an engine that went offline, at its configured endpoint only,
// after 1, 2, 4, 8, 16 and then every 30 s, until it lists its models. missed, if
// not nil, hears of every look in vain and of the pause that follows. The result
// has an error when ctx ended first. It is meant for while a person waits.
func (e *Engine) Await(parent context.Context, missed func(err *llm.Error, next time.Duration)) Health {
	timer := time.NewTimer(awaitDelays[0])
	defer timer.Stop()
	for i := 1; ; i++ {
		select {
		case <-parent.Done():
			return Health{Endpoint: e.saved, Err: callerGone(parent, e.saved)}
		case <-timer.C:
		}
		h, failure := e.look(parent)
		if failure == nil {
			return h
		}
		next := awaitDelays[min(i, len(awaitDelays)-1)]
		timer.Reset(next)
		if missed != nil && parent.Err() == nil {
			missed(failure, next)
		}
	}
}

// look asks the configured endpoint alone.
func (e *Engine) look(parent context.Context) (Health, *llm.Error) {
	if failure := e.keyFor(false); failure != nil {
		return Health{}, failure
	}
	ctx, cancel := e.handshake(parent)
	defer cancel()
	l, failure := e.list(parent, ctx, e.saved)
	if failure != nil {
		return Health{}, failure
	}
	e.active.Store(&l.endpoint)
	return e.health(l, e.adapterFor(l)), nil
}
