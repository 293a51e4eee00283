package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/session"
)

// Retries of a request that failed before any output.
const (
	maxRetries      = 5
	firstRetryWait  = 500 * time.Millisecond
	longestWait     = 10 * time.Second
	longestAsked    = 60 * time.Second // of a wait that the provider asks for
	loadingWait     = 2 * time.Second
	longestLoading  = 5 * time.Minute
	retryJitter     = 0.1
	maxUnreached    = 2 // retries while nobody listens: 1.5 s, then the person is told
	maxRefusedTries = 8 // options that one request may lose
)

// retries counts what was tried for one request.
type retries struct {
	failures  int
	unreached int
	empty     int
	refused   int
	windows   int // plans for another window
	waits     int // while the model is loaded
	loading   time.Duration
}

// recover decides what to do about a request that failed before any output: wait
// and send it again, leave out what was refused, plan for a smaller window, or
// give up with the error to show.
func (t *turn) recover(ctx context.Context, snap *llm.Snapshot, plan *budget.Plan, err error, r *retries) (again bool, _ error) {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return false, err
	}
	switch {
	case t.refuseDamaged(snap, plan, e, r):
		return true, nil
	case e.Permanent:
		return false, err
	case e.Option != "": // whatever the status was: llama.cpp answers 500 to some
		if snap.Refusals.Has(e.Option) || r.refused == maxRefusedTries {
			return false, err
		}
		r.refused++
		t.selector.Refuse(snap.Target, e.Option)
		t.emit(Notice{Kind: NoticeInfo, Text: fmt.Sprintf("The engine of %s refuses %s: left out from now on.", snap.Target, e.Option.Describe())})
		return true, nil
	}
	switch e.Code {
	case llm.CodeContextWindowExceeded:
		if r.windows++; r.windows > 1 {
			return false, e
		}
		return t.recoverWindow(ctx, snap, plan, e)
	case llm.CodeRateLimit, llm.CodeServer, llm.CodeTimeout, llm.CodeTransport, llm.CodeEmptyResponse:
		return t.wait(ctx, e, r)
	}
	return false, err
}

// minOutput is the least output in tokens that a request is sent again for.
const minOutput = 256

// recoverWindow prepares another plan with what the engine said of its window,
// never for a larger one than the refused plan's.
func (t *turn) recoverWindow(ctx context.Context, snap *llm.Snapshot, plan *budget.Plan, e *llm.Error) (again bool, _ error) {
	window := plan.Report.WindowTokens
	limit := e.Window
	switch {
	case e.Window > 0 && e.Window < window:
		// The engine's word on its window.
	case e.Window > 0 && e.PromptTokens > 0 && e.PromptTokens < e.Window:
		// Prompt and output together are too long.
		room := e.Window - e.PromptTokens - 64 // for what the engine adds
		if room >= minOutput {
			t.maxOutput = min(room, plan.Request.MaxTokens-1)
			return true, nil
		}
		limit = window - (e.PromptTokens + plan.Request.MaxTokens - e.Window) - 64
	default:
		t.selector.Reprobe(ctx)
		fresh, err := t.current(ctx)
		if err != nil || fresh.Window.Tokens == 0 || fresh.Window.Tokens >= window {
			return false, e
		}
		return true, nil
	}
	if limit <= 0 || limit >= window {
		return false, e
	}
	t.mu.Lock()
	claimed := snap.Window.Tokens
	if l := t.Agent.limit; l.target == snap.Target && l.tokens == claimed {
		claimed = l.claimed // the limit before this one stood on the same claim
	}
	t.Agent.limit = seenLimit{target: snap.Target, claimed: claimed, tokens: limit}
	t.mu.Unlock()
	t.emit(Notice{Kind: NoticeInfo, Text: fmt.Sprintf("The request was too long for the engine; it is planned again for %d tokens.", limit)})
	return true, nil
}

// wait logs a retry, tells the person and waits.
func (t *turn) wait(ctx context.Context, e *llm.Error, r *retries) (again bool, _ error) {
	d := firstRetryWait << r.failures
	switch {
	case e.Loading:
		d = loadingWait
		r.waits++
		if r.loading += d; r.loading > longestLoading {
			return false, e
		}
	case e.Code == llm.CodeEmptyResponse && r.empty > 0, e.Unreached && r.unreached == maxUnreached,
		r.failures == maxRetries, prefilling(e):
		return false, e
	case e.RetryAfter > longestAsked:
		late := *e
		late.Message = fmt.Sprintf("%s (the provider asks to wait %v)", e.Message, e.RetryAfter)
		return false, &late
	default:
		r.failures++
		if e.Code == llm.CodeEmptyResponse {
			r.empty++
		}
		if e.Unreached {
			r.unreached++
			t.selector.Lost(t.toldModel.Target)
			t.lost = true
		}
		d = min(d, longestWait)
		d += time.Duration(float64(d) * retryJitter * (2*rand.Float64() - 1))
		d = max(d, e.RetryAfter)
	}
	attempt := r.failures + r.waits
	t.append(&session.Retry{Attempt: attempt, Code: e.Code, Message: e.Message, WaitMS: d.Milliseconds()})
	t.emit(Retrying{Err: e, Wait: d, Attempt: attempt})
	if err := sleep(ctx, d); err != nil {
		return false, e
	}
	return true, nil
}

// prefilling reports whether the engine may still have been reading the prompt
// when the wait for its answer ended: sent again it would start over.
func prefilling(err error) bool {
	var p interface {
		error
		Prefilling() bool
	}
	return errors.As(err, &p) && p.Prefilling()
}
