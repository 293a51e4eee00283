package budget

import (
	"bytes"

	"github.com/drover-dev/drover/internal/history"
	"github.com/drover-dev/drover/internal/llm"
)

// Costs remembers what turns cost and how they group, so that planning a
// conversation that grew by a turn costs that turn. It belongs to one session
// and is not safe for concurrent use; the zero value is ready. It never changes
// a plan: a turn that differs from the remembered one is priced again.
type Costs struct {
	key   pricing
	seen  []llm.Message // the turns that were priced, sharing the caller's texts
	turns []turnCost
	index history.Index
}

// update prices the turns that are new or different and splits the conversation.
// The error is a *history.InvalidError.
func (c *Costs) update(p *pricer, messages []llm.Message) error {
	if c.key != p.key {
		*c = Costs{key: p.key}
	}
	n := 0
	for n < len(c.seen) && n < len(messages) && sameTurn(&c.seen[n], &messages[n]) {
		n++
	}
	if n < len(c.seen) {
		clear(c.seen[n:])
		c.seen, c.turns, c.index = c.seen[:n], c.turns[:n], history.Index{}
	}
	// Invalid turns are not priced: their parts may be missing.
	err := c.index.Extend(messages)
	if err == nil {
		err = c.index.Complete()
	}
	if err != nil {
		c.index = history.Index{}
		return err
	}
	for i := n; i < len(messages); i++ {
		c.seen = append(c.seen, messages[i])
		c.turns = append(c.turns, p.turn(&messages[i]))
	}
	return nil
}

// sameTurn compares two turns. It costs little for texts that are the same
// memory, which turns of a session are.
func sameTurn(a, b *llm.Message) bool {
	if a.Role != b.Role || a.CallID != b.CallID || a.Continuation != b.Continuation || a.IsError != b.IsError ||
		len(a.Parts) != len(b.Parts) || len(a.Calls) != len(b.Calls) || a.Origin != b.Origin {
		return false
	}
	for i := range a.Parts {
		if !samePart(a.Parts[i], b.Parts[i]) {
			return false
		}
	}
	for i := range a.Calls {
		x, y := &a.Calls[i], &b.Calls[i]
		if x.ID != y.ID || x.Name != y.Name || x.Arguments != y.Arguments || !bytes.Equal(x.Extra, y.Extra) {
			return false
		}
	}
	if a.Reasoning == nil || b.Reasoning == nil {
		return a.Reasoning == b.Reasoning
	}
	return a.Reasoning.Text == b.Reasoning.Text && bytes.Equal(a.Reasoning.Details, b.Reasoning.Details)
}

func samePart(a, b llm.Part) bool {
	switch a := a.(type) {
	case llm.Text:
		b, ok := b.(llm.Text)
		return ok && a == b
	case *llm.Image:
		b, ok := b.(*llm.Image)
		if !ok || a == nil || b == nil {
			return ok && a == b
		}
		return a == b || a.Name == b.Name && a.Width == b.Width && a.Height == b.Height && a.SHA256 != "" &&
			a.SHA256 == b.SHA256 && len(a.Data) == len(b.Data)
	}
	return a == nil && b == nil
}
