package openai

import (
	"bytes"
	"errors"
	"io"
	"iter"

	"github.com/drover-dev/drover/internal/llm"
)

// StreamOptions tells [DecodeStream] what it needs to know of the request.
type StreamOptions struct {
	// ReasoningSupported says that the model is known to reason. The beginning
	// of its answer is then held back until it is clear that no closing think
	// tag without an opening one follows.
	ReasoningSupported bool
	// Tools are the tools that were offered: printed markup is taken for a call
	// when it names one of them.
	Tools []llm.ToolDef
}

// DecodeStream reads the answer to a streamed request: server-sent events, or
// one JSON completion. It yields text, reasoning and progress of tool calls as
// they come, and at the end of a complete answer [llm.ToolCalls] if there are
// any, [llm.Usage] if the engine counted, and [llm.Finish], in this order and
// each at most once. Calls keep the ids that the engine gave them (see
// [llm.UniqueIDs]) and their raw arguments (see [llm.RepairArguments]); when the finish
// reason is [llm.FinishLength] they are for the record and must not be run.
//
// A failure is yielded once, as the last pair, and is an [*llm.Error]; what
// arrived before it, usage included, was yielded then. The cause of an error
// that r returned is that error. A printed tool call is a MALFORMED_RESPONSE
// whose cause is a [*PrintedCallError].
//
// The sequence can be ranged over once. It does not close r.
func DecodeStream(r io.Reader, opts *StreamOptions) iter.Seq2[llm.Event, error] {
	return decodeStream(r, opts, limits{line: MaxLineBytes, response: MaxResponseBytes})
}

func decodeStream(r io.Reader, opts *StreamOptions, max limits) iter.Seq2[llm.Event, error] {
	if opts == nil {
		opts = &StreamOptions{}
	}
	return func(yield func(llm.Event, error) bool) {
		d := &streamDecoder{yield: yield}
		d.events.lines = lineReader{r: r, max: max}
		d.markup = markupScanner{out: d.text, tools: offeredNames(opts.Tools)}
		d.think = thinkSplitter{out: d.content, supported: opts.ReasoningSupported}
		d.run()
	}
}

// streamDecoder turns the chunks of one answer into events. Content goes
// through the think splitter, and what of it is answer through the markup
// scanner.
type streamDecoder struct {
	yield   func(llm.Event, error) bool
	stopped bool // the consumer left

	events eventReader
	think  thinkSplitter
	markup markupScanner

	reasoning reasoningLog
	calls     callBuilder
	usage     usageLog

	done      bool // the end marker came
	complete  bool // a whole completion came in one JSON value
	sawDelta  bool // deltas came: a message beside them repeats them
	sawChunk  bool // anything came that is a piece of an answer
	sawText   bool // the answer has text
	reason    string
	failure   *llm.Error
	deepError error // of the reader
}

func (d *streamDecoder) emit(e llm.Event) {
	if !d.stopped {
		d.stopped = !d.yield(e, nil)
	}
}

// run reads the whole answer.
func (d *streamDecoder) run() {
	for !d.stopped && !d.done && d.failure == nil {
		data, isError, err := d.events.next()
		if err != nil {
			if err != io.EOF {
				d.deepError = err
			}
			break
		}
		d.payload(data, isError)
	}
	if !d.stopped && !d.done && d.failure == nil {
		d.strayBody()
	}
	if !d.stopped {
		d.finish()
	}
}

// payload reads the data of one event: usually one chunk, but some proxies put
// several into one event, and some a comment.
func (d *streamDecoder) payload(data []byte, isError bool) {
	data = bytes.TrimSpace(data)
	for i := 0; i < len(data) && d.failure == nil && !d.stopped; i = skipSpace(data, i) {
		rest := data[i:]
		if rest[0] == ':' {
			return
		}
		if len(rest) == len(doneMark) && bytes.Equal(rest, doneMark) { // the race detector reads all of rest for Equal
			d.done = true
			return
		}
		v, end, bad := parseValue(data, i)
		switch {
		case bad == nil:
			d.value(v, isError)
			i = end
		case isError:
			d.failure = streamError(parseError(rest))
			return
		case d.events.end != nil && bad.short:
			return // the end of the stream cut this chunk
		default:
			d.failure = llm.Errorf(llm.CodeMalformedResponse,
				"the engine sent a chunk that is no JSON (%s at byte %d): %s", bad.reason, bad.offset, excerpt(rest))
			return
		}
	}
}

// strayBody looks at what came outside of events: all of an answer that is no
// event stream, or an error that was written into one.
func (d *streamDecoder) strayBody() {
	body := bytes.TrimSpace(d.events.stray)
	streamed := d.events.events > 0
	switch {
	case len(body) == 0:
	case d.events.page():
		d.failure = llm.Errorf(llm.CodeMalformedResponse,
			"the engine answered with a web page instead of a completion; is its base URL right?")
	case !streamed && bytes.HasPrefix(body, []byte("\x1f\x8b")):
		d.failure = llm.Errorf(llm.CodeMalformedResponse, "the engine sent a compressed answer that was not asked for")
	case body[0] == '{' || body[0] == '[':
		d.jsonBody(body, streamed)
	case !streamed && d.deepError == nil:
		d.failure = llm.Errorf(llm.CodeMalformedResponse,
			"the engine answered with text instead of a completion: %s", excerpt(body))
	}
}

// jsonBody reads JSON values that stand outside of events.
func (d *streamDecoder) jsonBody(body []byte, streamed bool) {
	for i := 0; i < len(body) && d.failure == nil; i = skipSpace(body, i) {
		v, end, bad := parseValue(body, i)
		if bad != nil {
			if !streamed && !bad.short {
				d.failure = llm.Errorf(llm.CodeMalformedResponse,
					"the engine's answer is no JSON (%s at byte %d): %s", bad.reason, bad.offset, excerpt(body))
			}
			return
		}
		i = end
		if streamed {
			// The answer came as events; only an error may stand beside them.
			if e := v.get("error"); isErrorValue(e) {
				d.failure = streamError(parseError(v.raw))
			}
			continue
		}
		d.think.whole = true
		before := d.sawChunk
		d.sawChunk = false
		d.value(v, false)
		if !d.sawChunk && d.failure == nil {
			d.failure = noCompletion(v)
		}
		d.sawChunk = d.sawChunk || before
	}
}

// noCompletion is the error for JSON that is neither a completion nor says that
// it is an error: an error without a wrapper, perhaps.
func noCompletion(v value) *llm.Error {
	told := !v.get("message").isNull() || !v.get("detail").isNull()
	if b := parseError(v.raw); told && b.message != "" {
		return streamError(b)
	}
	return llm.Errorf(llm.CodeMalformedResponse, "the engine's answer is JSON but no completion: %s", excerpt(v.raw))
}

// content takes what the think splitter separated.
func (d *streamDecoder) content(text string, reasoning bool) {
	if reasoning {
		d.thought(fromTags, text)
		return
	}
	d.markup.write(text)
}

// text takes what the markup scanner let pass.
func (d *streamDecoder) text(s string) {
	d.sawText = true
	d.emit(llm.TextDelta(s))
}

func (d *streamDecoder) thought(from reasoningSource, piece string) {
	d.think.separated = d.think.separated || from != fromTags && piece != ""
	if fresh := d.reasoning.add(from, piece); fresh != "" {
		d.emit(llm.ReasoningDelta(fresh))
	}
}

// finish flushes what was held back and ends the answer: complete, or with the
// error that says why it is not.
func (d *streamDecoder) finish() {
	d.think.close()
	d.markup.close()
	calls := d.calls.finish()
	err := d.failure
	reason, raw := normalReason(d.reason, len(calls) > 0)
	switch {
	case err != nil:
	case !d.done && !d.complete && d.reason == "":
		err = d.cutOff()
	case reasonError(d.reason) != nil:
		err = reasonError(d.reason)
	case len(calls) > 0:
	case d.markup.found != nil:
		err = llm.Errorf(llm.CodeMalformedResponse, "%w; %s", d.markup.found, markupHint)
	case reason == llm.FinishStop && !d.sawText && len(d.reasoning.text) == 0:
		err = llm.Errorf(llm.CodeEmptyResponse,
			"the engine ended its answer with nothing in it; a prompt larger than its context can do that")
	}
	usage, counted := d.usage.result()
	if err == nil && len(calls) > 0 {
		d.emit(calls)
	}
	if counted {
		d.emit(usage)
	}
	if d.stopped {
		return
	}
	if err != nil {
		d.yield(nil, err)
		return
	}
	d.emit(llm.Finish{Reason: reason, Raw: raw, Reasoning: d.reasoning.reasoning()})
}

// cutOff is the error of a stream that ended before its answer did.
func (d *streamDecoder) cutOff() *llm.Error {
	var known *llm.Error
	switch cause := d.deepError; {
	case errors.As(cause, &known):
		return known
	case cause == errLineTooLong:
		return llm.Errorf(llm.CodeMalformedResponse, "the engine sent a line of more than %d bytes", d.events.lines.max.line)
	case cause == errResponseTooLarge:
		return llm.Errorf(llm.CodeMalformedResponse, "the engine's answer has more than %d bytes", d.events.lines.max.response)
	case cause != nil && !errors.Is(cause, io.ErrUnexpectedEOF):
		return llm.Errorf(llm.CodeTransport, "the connection broke while the answer was read: %w", cause)
	case !d.sawChunk && len(d.events.stray) == 0:
		return llm.Errorf(llm.CodeStreamClosed, "the engine closed the stream without any data")
	}
	return llm.Errorf(llm.CodeStreamClosed, "the engine closed the stream before the answer was complete")
}
