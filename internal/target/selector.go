// Package target holds the model that one session has selected, and publishes
// only the newest probe.
//
// A [Selector] belongs to one session. [Selector.Select] changes the selection
// at once and starts a probe; a probe that is no longer the newest vanishes. A
// step takes its [llm.Snapshot] from [Selector.Wait] and keeps it, so a
// selection during a step shows at the next one, for prompt and routing
// together. [Store] is shared by the sessions of a process.
package target

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
)

// ProbeTimeout bounds everything that is asked about a selected model. The
// provider itself gets a little less, so that it can say what it did learn.
const (
	ProbeTimeout = 2 * time.Second
	probeMargin  = 200 * time.Millisecond
)

// Selector is one session's choice of model and effort. It is safe for
// concurrent use.
type Selector struct {
	registry *catalog.Registry
	store    *Store

	mu       sync.Mutex
	target   llm.Target
	effort   llm.Effort
	revision uint64
	info     llm.ModelInfo // of target; generic while nothing better is known
	err      error         // why the provider refuses the target
	cancel   context.CancelFunc
	done     chan struct{} // closed when no probe is pending
}

// NewSelector makes a selector with nothing selected.
func NewSelector(registry *catalog.Registry, store *Store, effort llm.Effort) *Selector {
	done := make(chan struct{})
	close(done)
	return &Selector{
		registry: registry, store: store, effort: effort.Or(llm.DefaultEffort),
		cancel: func() {}, done: done,
	}
}

// Select makes t the session's target and starts a fresh probe of it. The
// choice holds when Select returns; [Selector.Wait] waits for the probe. ctx
// gives values only: the probe outlives the call and is bounded by itself.
func (s *Selector) Select(ctx context.Context, t llm.Target) {
	s.start(ctx, t, unknown)
}

// Restore is [Selector.Select] for a session that is opened: a description that
// another session of the process obtained already is used as it is.
func (s *Selector) Restore(ctx context.Context, t llm.Target) { s.start(ctx, t, s.store.Get) }

// Reprobe asks about the current target again: its engine may have loaded the
// model only with the last request. What is known stays in use meanwhile, and
// afterwards when nothing could be learned.
func (s *Selector) Reprobe(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.target.IsZero() {
		s.startLocked(ctx, s.target, unknown)
	}
}

// unknown is the description of a target that nobody has asked about.
func unknown(llm.Target) (llm.ModelInfo, bool) { return llm.ModelInfo{}, false }

func (s *Selector) start(ctx context.Context, t llm.Target, known func(llm.Target) (llm.ModelInfo, bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.startLocked(ctx, t, known)
}

func (s *Selector) startLocked(ctx context.Context, t llm.Target, known func(llm.Target) (llm.ModelInfo, bool)) {
	info, have := known(t)
	s.cancel()
	s.revision++
	if t != s.target {
		s.info = llm.ModelInfo{Provider: t.Provider, ID: t.Model, Name: t.Model, Unlearned: true}
	}
	s.target, s.err = t, nil
	if have {
		s.info = info
	}
	wasPending := s.pendingLocked()
	if have || t.IsZero() {
		if wasPending {
			close(s.done)
		}
		s.cancel = func() {}
		return
	}
	if !wasPending {
		s.done = make(chan struct{})
	}
	probeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ProbeTimeout)
	s.cancel = cancel
	go s.probe(probeCtx, cancel, t, s.revision)
}

func (s *Selector) pendingLocked() bool {
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// probe describes t and publishes the answer unless a newer selection was made.
func (s *Selector) probe(ctx context.Context, cancel context.CancelFunc, t llm.Target, revision uint64) {
	defer cancel()
	type answer struct {
		info llm.ModelInfo
		err  error
	}
	// The provider is asked in a goroutine of its own, so that one that ignores
	// its context cannot hold a session longer than the bound.
	answers := make(chan answer, 1)
	go func() {
		own, cancel := context.WithTimeout(ctx, ProbeTimeout-probeMargin)
		defer cancel()
		info, err := s.describe(own, t)
		answers <- answer{info, err}
	}()
	var a answer
	timedOut := false
	select {
	case a = <-answers:
	case <-ctx.Done():
		timedOut = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revision != revision {
		return
	}
	switch {
	case timedOut: // what was known of the target before stays
		s.info.Notes = []string{"the engine did not say within " + ProbeTimeout.String() + " what the model can do"}
	case a.err == nil && a.info.Unlearned:
		if s.info.Unlearned {
			s.info = a.info
		}
		s.info.Notes = a.info.Notes
		if a.info.Unreached {
			s.store.Forget(t.Provider)
		}
	default:
		s.info, s.err = a.info, a.err
		if a.err == nil {
			s.store.Put(&a.info)
		}
	}
	close(s.done)
}

// describe asks the provider. Only its refusal of the target is an error: of any
// other trouble the notes tell, and the model stays usable.
func (s *Selector) describe(ctx context.Context, t llm.Target) (llm.ModelInfo, error) {
	info, err := s.registry.Describe(ctx, t)
	switch code := llm.CodeOf(err); {
	case err == nil:
		return info, nil
	case ctx.Err() != nil: // our own bound, not the provider's word
		return info, nil
	case code == llm.CodeNoAdapter, code == llm.CodeUnknownModel:
		return info, err
	}
	info.Unlearned = true
	info.Notes = append(slices.Clip(info.Notes), "nothing learned about the model: "+err.Error())
	return info, nil
}

// SetEffort changes the effort for the steps that come after.
func (s *Selector) SetEffort(e llm.Effort) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.effort = e.Or(llm.DefaultEffort)
}

// Effort returns the session's effort.
func (s *Selector) Effort() llm.Effort {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.effort
}

// Target returns the selected target, zero if there is none.
func (s *Selector) Target() llm.Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.target
}

// Revision counts the selections; it never goes back.
func (s *Selector) Revision() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// Current returns what is known now. pending says that a probe is under way.
func (s *Selector) Current() (snapshot llm.Snapshot, pending bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshotLocked(), s.pendingLocked()
}

// Info returns the description behind the current snapshot, with its notes.
func (s *Selector) Info() llm.ModelInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

// Refuse remembers that the engine of the target refused an option.
func (s *Selector) Refuse(t llm.Target, option llm.Refusal) { s.store.Refuse(t, option) }

// Lost says that nobody listens where the target's engine was: what is known of
// its models is forgotten, since it may come back with other settings.
func (s *Selector) Lost(t llm.Target) { s.store.Forget(t.Provider) }

// Close ends a pending probe. The selector may be used again.
func (s *Selector) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel()
}

func (s *Selector) snapshotLocked() llm.Snapshot {
	if s.target.IsZero() {
		return llm.Snapshot{Effort: s.effort}
	}
	return s.info.Snapshot(s.effort, s.store.Refusals(s.target))
}

// Wait returns the snapshot of a step: at once when no probe is pending, else
// when the newest one ends, at the latest after [ProbeTimeout]. The error is
// the provider's refusal of the target (NO_ADAPTER, UNKNOWN_MODEL) or ctx's.
func (s *Selector) Wait(ctx context.Context) (llm.Snapshot, error) {
	for {
		s.mu.Lock()
		done := s.done
		if !s.pendingLocked() {
			defer s.mu.Unlock()
			return s.snapshotLocked(), s.err
		}
		s.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return llm.Snapshot{}, ctx.Err()
		}
	}
}

// Provider returns the owner of the target's route. The error is NO_ADAPTER.
func (s *Selector) Provider(t llm.Target) (llm.Provider, error) { return s.registry.Lookup(t.Provider) }
