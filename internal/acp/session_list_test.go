package acp

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/session"
)

// The pages of a list hold every session once, whatever is made or changed while
// they are asked for.
func TestPages(t *testing.T) {
	for _, n := range []int{0, 1, maxPage, maxPage + 1, 2*maxPage + 5} {
		infos := make([]session.Info, n)
		now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
		for i := range infos {
			// Several at one time: then the id decides.
			infos[i] = session.Info{ID: fmt.Sprintf("%05d", n-i), CWD: "/w", Updated: now.Add(-time.Duration(i/7) * time.Second)}
		}
		seen := make(map[string]bool)
		after, pages := "", 0
		for {
			p := page(infos, after)
			pages++
			if p.Sessions == nil {
				t.Error("sessions are null")
			}
			for _, s := range p.Sessions {
				if seen[s.SessionID] {
					t.Errorf("%d sessions: %s is listed twice", n, s.SessionID)
				}
				seen[s.SessionID] = true
			}
			if p.NextCursor == "" {
				break
			}
			var ok bool
			if after, ok = readCursor(p.NextCursor); !ok {
				t.Fatalf("cursor %q", p.NextCursor)
			}
			newest := session.Info{ID: fmt.Sprintf("9%d", pages), CWD: "/w", Updated: now.Add(time.Hour)}
			infos = slices.Insert(infos, 0, newest)
		}
		if len(seen) != n || pages != max(1, (n+maxPage-1)/maxPage) {
			t.Errorf("%d sessions: %d seen on %d pages", n, len(seen), pages)
		}
	}
	for _, text := range []string{"", "x", "!!", cursor("")[:2]} {
		if place, ok := readCursor(text); ok {
			t.Errorf("cursor %q is taken for %q", text, place)
		}
	}
}
