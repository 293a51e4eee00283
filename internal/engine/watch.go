package engine

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/drover-dev/drover/internal/llm"
)

// watch ends a generation whose present phase takes too long. It runs only while
// the engine is waited for, so a slow reader of the events is no idle engine.
type watch struct {
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	present TimeoutError
	timer   *time.Timer
	round   int // counts phases, so that a timer of an earlier one does nothing
}

func newWatch(cancel context.CancelCauseFunc) *watch { return &watch{cancel: cancel} }

// enter begins a phase and ends the one before.
func (w *watch) enter(phase Phase, limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	w.round++
	round := w.round
	w.present = TimeoutError{phase, limit}
	w.timer = time.AfterFunc(limit, func() { w.expire(round) })
}

// connected reports whether the connection stands.
func (w *watch) connected() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.present.Phase != PhaseConnect
}

// stop ends the present phase.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.round++
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *watch) expire(round int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.round == round {
		limit := w.present
		w.cancel(&limit)
	}
}

// watched is the body of an answer under a watch. The first read belongs to the
// phase that is running, the wait for the first byte; each later one has the
// idle limit to bring something, a comment is enough.
type watched struct {
	body    io.Reader
	watch   *watch
	idle    time.Duration
	explain func(error) *llm.Error

	began   bool       // a byte has come
	failure *llm.Error // why reading ended, nil for the end of the body
}

func (w *watched) Read(p []byte) (int, error) {
	if w.failure != nil {
		return 0, w.failure
	}
	if w.began {
		w.watch.enter(PhaseIdle, w.idle)
	}
	n, err := w.body.Read(p)
	if n > 0 {
		w.began = true
	}
	if w.began || err != nil {
		w.watch.stop()
	}
	if err != nil && err != io.EOF {
		w.failure = w.explain(err)
		err = w.failure
	}
	return n, err
}
