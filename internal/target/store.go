package target

import (
	"errors"
	"sync"

	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
)

// Store keeps, for the whole process, the newest description of each target and
// what its engine has refused. The zero value is empty and ready. It is safe
// for concurrent use.
type Store struct {
	mu      sync.Mutex
	known   map[llm.Target]llm.ModelInfo
	refused map[llm.Target]llm.Refusals
}

// Get returns the newest description of a target.
func (s *Store) Get(t llm.Target) (llm.ModelInfo, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.known[t]
	return m, ok
}

// Put keeps a description.
func (s *Store) Put(m *llm.ModelInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = make(map[llm.Target]llm.ModelInfo)
	}
	s.known[m.Target()] = *m
}

// Forget drops what is known of a provider's models: its engine was gone and
// may come back with other settings. Refusals are dropped with it.
func (s *Store) Forget(provider string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range s.known {
		if t.Provider == provider {
			delete(s.known, t)
		}
	}
	for t := range s.refused {
		if t.Provider == provider {
			delete(s.refused, t)
		}
	}
}

// Prices are those of a target, as far as anything is known of it, else as its
// provider lists them.
func (s *Store) Prices(t llm.Target, listings []catalog.Listing) llm.Prices {
	if m, ok := s.Get(t); ok {
		return m.Prices
	}
	for i := range listings {
		for j := range listings[i].Models {
			if m := &listings[i].Models[j]; m.Target() == t {
				return m.Prices
			}
		}
	}
	return llm.Prices{}
}

// Listed takes in what the providers said when they were asked for their models:
// of one that nobody listens for any more, what is known is dropped.
func (s *Store) Listed(listings []catalog.Listing) {
	for i := range listings {
		if e, ok := errors.AsType[*llm.Error](listings[i].Err); ok && e.Unreached {
			s.Forget(listings[i].Provider.ID)
		}
	}
}

// Refuse remembers that the engine of a target refused an option.
func (s *Store) Refuse(t llm.Target, option llm.Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil {
		s.refused = make(map[llm.Target]llm.Refusals)
	}
	s.refused[t] = s.refused[t].With(option)
}

// Refusals returns what the engine of a target has refused so far.
func (s *Store) Refusals(t llm.Target) llm.Refusals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused[t]
}
