package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

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
	loading   time.Duration
}

// recover decides what to do about a request that failed before any output: wait
// and send it again, leave out what was refused, plan for a smaller window, or
// give up with the error to show.
func (t *turn) recover(ctx context.Context, snap *llm.Snapshot, err error, r *retries) (again bool, _ error) {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return false, err
	}
	switch {
	case e.Permanent:
		return false, err
	case e.Option != "": // whatever the status was: llama.cpp answers 500 to some
		if snap.Refusals.Has(e.Option) || r.refused == maxRefusedTries {
			return false, err
		}
		r.refused++
		t.selector.Refuse(snap.Target, e.Option)
		t.emit(Notice{Kind: NoticeInfo, Text: fmt.Sprintf("The engine of %s refuses %s: left out from now on.", snap.Target, refusedWords(e.Option))})
		return true, nil
	}
	switch e.Code {
	case llm.CodeContextWindowExceeded:
		return t.recoverWindow(ctx, snap, e)
	case llm.CodeRateLimit, llm.CodeServer, llm.CodeTimeout, llm.CodeTransport, llm.CodeEmptyResponse:
		return t.wait(ctx, e, r)
	}
	return false, err
}

// recoverWindow plans once more with what the engine said of its window, never
// a larger one.
func (t *turn) recoverWindow(ctx context.Context, snap *llm.Snapshot, e *llm.Error) (again bool, _ error) {
	if t.recoveries > 0 {
		return false, e
	}
	t.recoveries++
	window := snap.Window.Tokens
	if e.Window > 0 && e.PromptTokens > 0 && e.PromptTokens < e.Window && e.Window >= window && window > 0 {
		// Only the output is too long for what is left.
		t.maxOutput = max(1, e.Window-e.PromptTokens-64)
		return true, nil
	}
	if e.Window <= 0 || window > 0 && e.Window >= window {
		t.selector.Reprobe(ctx)
		fresh, err := t.selector.Wait(ctx)
		if err != nil || fresh.Window.Tokens == 0 || fresh.Window.Tokens >= window && window > 0 {
			return false, e
		}
		return true, nil
	}
	t.limit = seenLimit{target: snap.Target, tokens: e.Window}
	t.emit(Notice{Kind: NoticeInfo, Text: fmt.Sprintf("The engine's window is %d tokens; the request is planned again for it.", e.Window)})
	return true, nil
}

// wait logs a retry, tells the person and waits.
func (t *turn) wait(ctx context.Context, e *llm.Error, r *retries) (again bool, _ error) {
	d := firstRetryWait << r.failures
	switch {
	case e.Loading:
		d = loadingWait
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
		}
		d = min(d, longestWait)
		d += time.Duration(float64(d) * retryJitter * (2*rand.Float64() - 1))
		d = max(d, e.RetryAfter)
	}
	t.append(&session.Retry{Attempt: r.failures, Code: e.Code, Message: e.Message, WaitMS: d.Milliseconds()})
	t.emit(Retrying{Err: e, Wait: d, Attempt: r.failures})
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

// refusedWords names an option for people.
func refusedWords(option llm.Refusal) string {
	switch option {
	case llm.RefusedSampling:
		return "a temperature"
	case llm.RefusedStreamOptions:
		return "stream_options, and so may not count tokens"
	case llm.RefusedMaxTokens:
		return "max_tokens (max_completion_tokens is sent)"
	case llm.RefusedNullContent, llm.RefusedEmptyContent:
		return "that form of an empty answer (the other is sent)"
	case llm.RefusedEffortLevels:
		return "levels of reasoning_effort"
	case llm.RefusedImages:
		return "images: a line of text stands in their places"
	case llm.RefusedPattern, llm.RefusedFormat:
		return "a keyword of the tools' schemas"
	}
	return string(option)
}
