package openai

import "github.com/drover-dev/drover/internal/llm"

// The members of a message that carry reasoning.
const (
	fieldReasoningContent = "reasoning_content"
	fieldReasoning        = "reasoning"
	fieldThinking         = "thinking"
	fieldDetails          = "reasoning_details"
)

// replay is what a message sends back of its reasoning.
type replay struct {
	field   string // the member for the text, "" for none
	text    string
	details []byte // the value of reasoning_details, nil for none
}

// replayed gives the reasoning of an earlier answer that the request sends
// back: the profile decides, and what another model thought stays away. Where
// the thinking is switched off, so is the replay.
func (e *encoder) replayed(m *llm.Message) (out replay) {
	r := m.Reasoning
	if r == nil || !m.Origin.IsZero() && m.Origin != e.snap.Target {
		r = &llm.Reasoning{}
	}
	switch e.snap.Profile {
	case llm.Qwen:
		if e.thinking() && r.Text != "" {
			return replay{field: fieldReasoningContent, text: r.Text}
		}
	case llm.DeepSeek:
		// The API answers 400 when a turn of a thinking conversation lacks the
		// member, even where nothing was thought.
		if e.thinking() {
			return replay{field: fieldReasoningContent, text: r.Text}
		}
	case llm.Replay:
		switch r.Field {
		case fieldReasoningContent, fieldReasoning, fieldThinking:
			if r.Text != "" {
				out = replay{field: r.Field, text: r.Text}
			}
		}
		// Signatures cover the exact bytes: nothing is normalised here.
		if v, bad := parseDocument(r.Details); bad == nil && v.isArray() && m.Origin == e.snap.Target {
			out.details = r.Details
		}
	}
	return out
}

// reasoning writes the reasoning members of an assistant message.
func (e *encoder) reasoning(m *llm.Message) {
	r := e.replayed(m)
	if r.field != "" {
		e.WriteString(`,"` + r.field + `":`)
		e.str(r.text)
	}
	if r.details != nil {
		e.WriteString(`,"` + fieldDetails + `":`)
		e.Write(r.details)
	}
}
