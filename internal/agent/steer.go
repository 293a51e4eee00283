package agent

import (
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/session"
)

// Steer gives the running turn a further message of the user, which its next
// request takes: a turn that was about to end goes on for it. It continues the
// exchange of the turn, so that the task it belongs to stays in the window as
// long as it does. Steer reports false, and nothing is kept, when no turn runs or
// the message has no words: it has to be a prompt of its own then. Messages that
// no request could take come back in [End].
func (a *Agent) Steer(parts []llm.Part) bool {
	m := llm.Message{Parts: parts}
	if strings.TrimSpace(m.Text()) == "" {
		// A continuation of images alone would pass for those of a tool.
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.steerable {
		return false
	}
	a.steering = append(a.steering, slices.Clone(parts))
	return true
}

// steer takes the messages that came since the last step into the conversation.
// When there are none and the turn is about to end, later ones are refused.
func (t *turn) steer(ending bool) (more bool, err error) {
	for {
		t.mu.Lock()
		if len(t.steering) == 0 {
			t.steerable = t.steerable && !ending
			t.mu.Unlock()
			return more, nil
		}
		parts := t.steering[0]
		t.mu.Unlock()
		if err := t.gate(&session.UserMessage{Parts: t.scaled(parts), Continuation: true}); err != nil {
			return false, err
		}
		t.mu.Lock()
		t.steering = t.steering[1:]
		t.mu.Unlock()
		more, ending = true, false
		clear(t.seen) // what the user says may make the same call worth while
		t.emit(Steered{Parts: parts})
	}
}

// unsteered ends the steering of the turn and gives back what was not taken.
func (t *turn) unsteered() [][]llm.Part {
	t.mu.Lock()
	defer t.mu.Unlock()
	rest := t.steering
	t.steerable, t.steering = false, nil
	return rest
}
