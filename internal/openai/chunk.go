package openai

import (
	"strconv"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
)

// value reads one JSON value of the stream: a chunk, a completion, an error, or
// something to be ignored, a keep-alive say.
func (d *streamDecoder) value(v value, isError bool) {
	switch {
	case isError:
		d.failure = streamError(parseError(v.raw))
	case v.isArray():
		for e := range v.elements() {
			if e.isObject() && d.failure == nil {
				d.chunk(e)
			}
		}
	case v.isObject():
		d.chunk(v)
	}
}

// chunk reads one chunk or completion. No member is required.
func (d *streamDecoder) chunk(v value) {
	var choices value
	failed := false
	for name, m := range v.members() {
		switch string(name) {
		case "choices":
			choices = m
		case "error":
			failed = failed || isErrorValue(m)
		case "object":
			failed = failed || m.str() == "error"
		case "usage":
			d.sawChunk = d.sawChunk || m.isObject()
			d.usage.add(m)
		case "timings":
			d.usage.addTimings(m)
		}
	}
	d.sawChunk = d.sawChunk || len(choices.raw) > 0
	for choice := range choices.elements() {
		d.choice(choice)
		break // one answer was asked for
	}
	if failed && d.failure == nil {
		d.failure = streamError(parseError(v.raw))
	}
}

// isErrorValue reports whether an error member says anything.
func isErrorValue(v value) bool {
	switch v.kind() {
	case '{':
		for range v.members() {
			return true
		}
	case '[':
		for range v.elements() {
			return true
		}
	case '"':
		return len(v.raw) > len(`""`)
	case 't': // the text stands beside it
		return true
	}
	return false
}

func (d *streamDecoder) choice(v value) {
	var delta, message, text value
	for name, m := range v.members() {
		switch string(name) {
		case "delta":
			delta = m
		case "message":
			message = m
		case "text":
			text = m
		case "finish_reason":
			d.noteReason(m.str())
		case "usage":
			d.usage.add(m)
		case "error":
			if isErrorValue(m) {
				d.failure = streamError(parseError(m.raw))
			}
		}
	}
	switch {
	case delta.isObject():
		d.sawDelta = true
		d.message(delta, false)
	case message.isObject() && !d.sawDelta:
		d.complete = true
		d.message(message, true)
	case text.isString() && !d.sawDelta:
		d.think.write(text.str())
	}
}

// message reads a delta, or the whole message of an answer that was not
// streamed: reasoning first, since it was thought first.
func (d *streamDecoder) message(v value, whole bool) {
	var content, refusal, toolCalls, legacy value
	var flat [fromThinking + 1]value
	var details value
	for name, m := range v.members() {
		switch string(name) {
		case "content":
			content = m
		case "refusal":
			refusal = m
		case "tool_calls":
			toolCalls = m
		case "function_call":
			legacy = m
		case fieldReasoningContent:
			flat[fromContent] = m
		case fieldReasoning:
			flat[fromReasoning] = m
		case fieldThinking:
			flat[fromThinking] = m
		case fieldDetails:
			details = m
		}
	}
	for source, m := range flat {
		if m.isString() {
			d.thought(reasoningSource(source), m.str())
		}
	}
	d.reasoningDetails(details, whole)
	d.contentValue(content)
	d.think.write(refusal.str())
	d.toolCalls(toolCalls, whole)
	if legacy.isObject() {
		entry := `{"function":` + string(legacy.raw) + `}`
		call, _, _ := parseValue([]byte(entry), 0)
		d.toolCall(call, legacySlot)
	}
}

// reasoningDetails keeps the entries for a replay and shows their text, unless
// a plain member already told the thoughts.
func (d *streamDecoder) reasoningDetails(v value, whole bool) {
	text := ""
	switch {
	case !v.isArray():
		return
	case whole:
		text = d.reasoning.details.addWhole(v)
	default:
		text = d.reasoning.details.add(v)
	}
	if !d.reasoning.flat() {
		d.thought(fromDetails, text)
	}
}

// contentValue reads content: a string, or typed parts.
func (d *streamDecoder) contentValue(v value) {
	switch v.kind() {
	case '"':
		d.think.write(v.str())
	case '[':
		for part := range v.elements() {
			d.contentPart(part)
		}
	case '{':
		d.contentPart(v)
	}
}

func (d *streamDecoder) contentPart(v value) {
	if v.isString() {
		d.think.write(v.str())
		return
	}
	switch v.get("type").str() {
	case "text", "output_text":
		text := v.get("text")
		if text.isObject() {
			text = text.get("value")
		}
		d.think.write(text.str())
	case "refusal":
		d.think.write(v.get("refusal").str())
	case "reasoning", "thinking", "reasoning_text", "summary_text":
		var b strings.Builder
		for name, m := range v.members() {
			switch string(name) {
			case "thinking", "reasoning", "summary", "text", "content":
				b.WriteString(summaryText(m))
			}
		}
		d.thought(fromParts, b.String())
	}
}

func (d *streamDecoder) toolCalls(v value, whole bool) {
	place := 0
	for entry := range v.elements() {
		slot := ""
		if whole {
			// In a whole message every entry is a call of its own.
			slot = "#" + strconv.Itoa(place)
		}
		d.toolCall(entry, slot)
		place++
	}
}

func (d *streamDecoder) toolCall(entry value, slot string) {
	delta, ok := d.calls.add(entry, slot)
	if ok {
		d.emit(delta)
	}
	if d.calls.tooMany && d.failure == nil {
		d.failure = llm.Errorf(llm.CodeMalformedResponse, "the answer has more than %d tool calls", maxCalls)
	}
}

// noteReason keeps why the answer ended: the last word counts, but a cut or a
// failure is not taken back.
func (d *streamDecoder) noteReason(reason string) {
	if reason == "" {
		return
	}
	if old, _ := normalReason(d.reason, false); old == llm.FinishLength || reasonError(d.reason) != nil {
		return
	}
	d.reason = reason
}

// normalReason gives the finish reason that an engine's word means, and the
// word when it differs. Whether there are calls decides, not the word, unless
// the answer was cut.
func normalReason(word string, calls bool) (reason llm.FinishReason, raw string) {
	reason = llm.FinishStop
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "length", "max_tokens", "max_output_tokens", "max_completion_tokens", "model_length":
		reason = llm.FinishLength
	default:
		if calls {
			reason = llm.FinishToolCalls
		}
	}
	if word == "" || word == string(reason) {
		return reason, ""
	}
	return reason, word
}

// reasonError is the failure that a finish reason tells of, nil for an end that
// is none. A refusal is final; a broken engine may be asked again.
func reasonError(word string) *llm.Error {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "content_filter", "sensitive", "safety", "refusal":
		return llm.Errorf(llm.CodeInvalidRequest,
			"the engine's content filter ended the answer (finish reason %q)", word)
	case "error", "network_error":
		return llm.Errorf(llm.CodeServer, "the engine failed while it answered (finish reason %q)", word)
	}
	return nil
}
