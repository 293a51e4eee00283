package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/brief"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/picker"
)

// describeModel is what is known of a model in one line. What is unknown is left
// out.
func describeModel(m *llm.ModelInfo) string {
	var facts []string
	if m.Window.Source != llm.Fallback && m.Window.Tokens > 0 {
		facts = append(facts, brief.Thousands(m.Window.Tokens)+" "+m.Window.Source.String())
	}
	for _, f := range []struct {
		name string
		fact llm.Support
	}{{"tools", m.Capabilities.Tools.Support}, {"reasoning", m.Capabilities.Reasoning.Support}} {
		switch f.fact {
		case llm.Supported:
			facts = append(facts, f.name)
		case llm.Unsupported:
			facts = append(facts, "no "+f.name)
		}
	}
	for _, b := range picker.Badges(m) {
		facts = append(facts, string(b))
	}
	if m.NotChat {
		facts = append(facts, "not for chat")
	}
	return strings.Join(facts, " · ")
}

// windowText says how large a window is and how that is known.
func windowText(w llm.Window) string {
	if w.Tokens == 0 {
		return "window unknown"
	}
	return brief.Thousands(w.Tokens) + " " + w.Source.String()
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return brief.Thousands(n) + " " + one + "s"
}

// short writes a duration as people read it.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}

// ago says how long something is past.
func ago(t, now time.Time) string {
	switch d := now.Sub(t); {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return plural(int(d.Minutes()), "minute") + " ago"
	case d < 24*time.Hour:
		return plural(int(d.Hours()), "hour") + " ago"
	case d < 48*time.Hour:
		return "yesterday"
	default:
		return plural(int(d.Hours()/24), "day") + " ago"
	}
}
