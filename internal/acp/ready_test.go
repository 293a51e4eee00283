package acp

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-dev/drover/internal/llm"
)

// Whoever finds no model because engines are still being looked for is told so, and
// not in the words of a context.
func TestSlowReadyIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		s := NewServer(strings.NewReader(""), io.Discard, &Options{
			Ready: func(context.Context) error { <-held; return nil }, // whatever the context says
		})
		start := time.Now()
		text := noModel(llm.Target{}, s.readCatalogue(t.Context()))
		if !strings.Contains(text, "longer than 2s") || !strings.Contains(text, "keyring") || strings.Contains(text, "context") {
			t.Error(text)
		}
		if took := time.Since(start); took != readyTimeout {
			t.Errorf("it took %v", took)
		}
		close(held)
		synctest.Wait()
		if cat := s.readCatalogue(t.Context()); cat.err != nil {
			t.Error(cat.err)
		}
	})
}
