package budget

import (
	"fmt"

	"github.com/drover-dev/drover/internal/llm"
)

// pricing is everything besides the turn itself that a turn's price depends on.
// It is comparable, so that remembered prices can be told apart.
type pricing struct {
	policy int
	target llm.Target
	// replays says that the target's own reasoning is sent back.
	replays bool
	// refused is what the engine refuses, for images that it does a line stands in.
	refused string
}

// pricer prices the parts of a request.
type pricer struct {
	*Policy
	key      pricing
	refusals llm.Refusals
}

func newPricer(p *Policy, s *llm.Snapshot) pricer {
	return pricer{Policy: p, refusals: s.Refusals, key: pricing{
		policy:  p.Version,
		target:  s.Target,
		replays: s.Profile.ReplaysReasoning(s.Effort),
		refused: fmt.Sprint(s.Refusals),
	}}
}

// turnCost is what a turn costs as it is, in tokens.
type turnCost struct {
	total int
	text  int // the share of its text
	// digest is a checksum of what the turn puts into a request.
	digest uint64
	// fixed is the excerpt of fixed size, once it was asked for.
	fixed *edit
}

func (p *pricer) turn(m *llm.Message) turnCost {
	text := m.Text()
	c := turnCost{text: p.textOf(m.Role, text), digest: p.digestOf(m, text)}
	c.total = c.text + p.frameOf(m)
	for _, img := range m.Images() {
		c.total += p.image(img)
	}
	return c
}

// textOf prices the text of a turn.
func (p *pricer) textOf(role llm.Role, text string) int {
	if role == llm.Tool {
		return p.fields.result(text)
	}
	return p.fields.text(text)
}

// frameOf prices a turn without its text and images.
func (p *pricer) frameOf(m *llm.Message) int {
	cost := p.structure.Message
	if m.Role == llm.Tool {
		cost += p.structure.Result + p.fields.name(m.CallID)
	}
	own := m.Origin == p.key.target
	for i := range m.Calls {
		call := &m.Calls[i]
		cost += p.structure.Call + p.fields.name(call.ID) + p.fields.name(call.Name) + p.fields.arguments(call.Arguments)
		if len(call.Extra) > 0 && own {
			cost += p.fields.arguments(string(call.Extra))
		}
	}
	if p.replays(m) {
		cost += p.structure.Reasoning + p.fields.text(m.Reasoning.Text)
		if len(m.Reasoning.Details) > 0 && own {
			cost += p.fields.arguments(string(m.Reasoning.Details))
		}
	}
	return cost
}

// replays reports whether the turn's reasoning is sent back. What another model
// thought never is.
func (p *pricer) replays(m *llm.Message) bool {
	return m.Reasoning != nil && p.key.replays && (m.Origin.IsZero() || m.Origin == p.key.target)
}

func (p *pricer) image(img *llm.Image) int {
	if p.refusals.Image(img) { // the longest line that may stand there
		return p.fields.text(fmt.Sprintf("[image 99 not sent: %s takes no images]\n", p.key.target.Model))
	}
	return EstimateImage(img)
}

// head prices what does not depend on the conversation. The memory's share is
// what it adds to the system turn, so that the parts sum up to the whole.
func (p *pricer) head(system, memory string, tools []llm.ToolDef) Breakdown {
	b := Breakdown{Request: p.structure.Request}
	if whole := joinSystem(system, memory); whole != "" {
		total := p.structure.Message + p.fields.text(whole)
		b.System = total
		if memory != "" && system != "" {
			b.System = min(total, p.structure.Message+p.fields.text(system))
		} else if system == "" {
			b.System = p.structure.Message
		}
		b.Memory = total - b.System
	}
	if len(tools) > 0 {
		b.ToolSchemas = p.structure.Tools
		for i := range tools {
			b.ToolSchemas += p.fields.tool(&tools[i])
		}
	}
	return b
}

// joinSystem makes the system turn.
func joinSystem(system, memory string) string {
	if system == "" || memory == "" {
		return system + memory
	}
	return system + "\n\n" + memory
}

// EstimateRequest estimates a whole request as it stands. Memory is part of the
// system turn there and counts as system.
func EstimateRequest(p *Policy, r *llm.Request) Breakdown {
	price := newPricer(p, &r.Snapshot)
	b := price.head(r.System, "", r.Tools)
	for i := range r.Messages {
		b.Exchanges += price.turn(&r.Messages[i]).total
	}
	return b
}
