package openai

import (
	"bytes"
	"strconv"

	"github.com/drover-dev/drover/internal/llm"
)

// EncodeRequest gives the whole body of a streamed request. Members stand in a
// fixed order, everything that can change from step to step behind the
// messages, so that the bytes before the newest exchange stay the same and an
// engine's prefix cache works. Only req decides what is sent: an option that is
// in Refusals stays away. An error names the message that cannot be encoded.
func EncodeRequest(req *llm.Request) ([]byte, error) {
	e := &encoder{req: req, snap: &req.Snapshot}
	e.Grow(e.sizeHint())
	e.WriteString(`{"model":`)
	e.str(e.snap.Target.Model)
	e.WriteString(`,"messages":[`)
	if err := e.messages(); err != nil {
		return nil, err
	}
	e.WriteString(`],"stream":true`)
	if !e.refused(llm.RefusedStreamOptions) {
		e.WriteString(`,"stream_options":{"include_usage":true}`)
	}
	e.maxTokens()
	if t := e.snap.Temperature(); t != nil {
		e.WriteString(`,"temperature":`)
		e.Write(strconv.AppendFloat(e.AvailableBuffer(), *t, 'g', -1, 64))
	}
	e.effort()
	e.tools()
	e.WriteByte('}')
	return e.Bytes(), nil
}

// encoder writes one request body.
type encoder struct {
	bytes.Buffer
	req  *llm.Request
	snap *llm.Snapshot
}

func (e *encoder) str(s string) { llm.AppendJSONString(&e.Buffer, s) }

func (e *encoder) refused(option llm.Refusal) bool { return e.snap.Refusals.Has(option) }

// sizeHint is about the size of the body in bytes, so that the buffer is
// allocated once.
func (e *encoder) sizeHint() int {
	const fixed, perMessage, perCall = 512, 64, 96
	n := fixed + len(e.req.System)
	for i := range e.req.Messages {
		m := &e.req.Messages[i]
		n += perMessage
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				n += len(p)
			case *llm.Image:
				n += len(p.Data)*4/3 + perMessage
			}
		}
		for j := range m.Calls {
			n += perCall + len(m.Calls[j].Arguments) + len(m.Calls[j].Extra)
		}
		if m.Reasoning != nil && e.snap.Profile.ReplaysReasoning(e.snap.Effort) {
			n += len(m.Reasoning.Text) + len(m.Reasoning.Details)
		}
	}
	for i := range e.req.Tools {
		n += len(e.req.Tools[i].Wire) + 1
	}
	return n + n/8 // escapes
}

// maxTokens writes the output limit under the name that the engine takes.
func (e *encoder) maxTokens() {
	if e.req.MaxTokens <= 0 {
		return
	}
	if e.refused(llm.RefusedMaxTokens) {
		e.WriteString(`,"max_completion_tokens":`)
	} else {
		e.WriteString(`,"max_tokens":`)
	}
	e.Write(strconv.AppendInt(e.AvailableBuffer(), int64(e.req.MaxTokens), 10))
}

// thinking reports whether the effort asks the model to think, for the profiles
// that can say so.
func (e *encoder) thinking() bool { return e.snap.Effort.Thinks() }

// effort writes how much the model is asked to think: reasoning_effort where
// metadata proves it, and what the profile adds.
func (e *encoder) effort() {
	value, ok := e.snap.Capabilities.WireEffort(e.snap.Effort, e.snap.Refusals)
	if e.snap.Profile == llm.DeepSeek {
		switch {
		case !e.thinking():
			ok = false
		case !ok:
			value, ok = deepSeekEffort().WireEffort(e.snap.Effort, e.snap.Refusals)
		}
	}
	if ok {
		e.WriteString(`,"reasoning_effort":`)
		e.str(value)
	}
	switch e.snap.Profile {
	case llm.Qwen:
		// Both are variables of the chat template: preserve_thinking keeps the
		// replayed reasoning of earlier turns in the prompt.
		e.WriteString(`,"chat_template_kwargs":{"enable_thinking":`)
		e.Write(strconv.AppendBool(e.AvailableBuffer(), e.thinking()))
		e.WriteString(`,"preserve_thinking":true}`)
	case llm.DeepSeek:
		if e.thinking() {
			e.WriteString(`,"thinking":{"type":"enabled"}`)
		} else {
			e.WriteString(`,"thinking":{"type":"disabled"}`)
		}
	}
}

// deepSeekEffort is what the profile's API takes besides its thinking switch:
// it maps all other values to these.
func deepSeekEffort() *llm.Capabilities {
	return &llm.Capabilities{
		Reasoning:       llm.Fact{Support: llm.Supported},
		ReasoningEffort: llm.EffortField{Advertised: true, Values: []string{"low", "high", "max"}},
	}
}

// tools writes the tools on offer. A model that is proven to take none gets
// none: some engines fail the whole request.
func (e *encoder) tools() {
	if len(e.req.Tools) == 0 || e.snap.Capabilities.Tools.Support == llm.Unsupported {
		return
	}
	// An engine that cannot build a grammar for a schema seldom says which of
	// the two keywords it choked on, so that refusing pattern removes both.
	pattern := e.refused(llm.RefusedPattern)
	format := pattern || e.refused(llm.RefusedFormat)
	e.WriteString(`,"tools":[`)
	for i := range e.req.Tools {
		if i > 0 {
			e.WriteByte(',')
		}
		t := &e.req.Tools[i]
		if schema, changed := stripKeywords(t.Parameters, pattern, format); changed || t.Wire == "" {
			e.WriteString(t.WireWith(schema))
		} else {
			e.WriteString(t.Wire)
		}
	}
	e.WriteByte(']')
}
