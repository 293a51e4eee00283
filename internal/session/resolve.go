package session

import (
	"fmt"
	"strings"
)

// AmbiguousError refuses the beginning of an id that several sessions share.
type AmbiguousError struct {
	Prefix string
	Count  int // of the sessions
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%d sessions have an id that begins with %q", e.Count, e.Prefix)
}

// Resolve finds the id that begins with a prefix. The error is [ErrNotFound] or
// an *[AmbiguousError].
func (s *Store) Resolve(prefix string) (string, error) {
	lower := strings.ToLower(prefix)
	if lower == "" || strings.Trim(lower, crockford) != "" {
		return "", fmt.Errorf("session %q: %w", prefix, ErrNotFound)
	}
	found := make(map[string]bool) // a link may give a log a second name
	err := s.eachLog("", func(path string) {
		if id := strings.ToLower(idOf(path)); strings.HasPrefix(id, lower) {
			found[id] = true
		}
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("session %s: %w", prefix, err)
	case len(found) == 0:
		return "", fmt.Errorf("session %s: %w", prefix, ErrNotFound)
	case len(found) > 1:
		return "", &AmbiguousError{prefix, len(found)}
	}
	for id := range found {
		lower = id
	}
	return lower, nil
}
