package tui

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/session"
)

// TestSessionRows: the list of sessions says what is known of each and nothing else.
func TestSessionRows(t *testing.T) {
	target := llm.Target{Provider: "lab", Model: "brook-7b"}
	rows := sessionRows([]session.Info{
		{ID: "1"}, {ID: "2", Title: "meadows", Turns: 1, Target: target}, {ID: "3"}, {ID: "4", Title: "torn", Turns: 2, Problem: errors.New("a torn end")},
	}, "1", time.Now())
	var got []string
	for _, r := range rows {
		_, facts, _ := strings.Cut(r.meaning, " · ")
		got = append(got, fmt.Sprintf("%s %s: %s", r.value, r.text, facts))
	}
	want := "1 (nothing said yet): 0 turns\n2 meadows: 1 turn · lab/brook-7b\n4 torn: 2 turns · a torn end"
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got:\n%s", text)
	}
}
