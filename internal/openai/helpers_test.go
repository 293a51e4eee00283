package openai

import (
	"flag"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// streamCase is one answer of an engine and what it must be read as. The cases
// of all tables are also read at every cut and are the seeds of the fuzzer.
type streamCase struct {
	name string
	body string
	opts *StreamOptions
	want string // see summary
}

const done = "data: [DONE]\n\n"

// delta is a chunk with that delta.
func delta(d string) string {
	return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}` + "\n\n"
}

// content is a chunk with that text.
func content(s string) string { return delta(`{"content":` + quote(s) + `}`) }

// contents is a chunk for each text.
func contents(texts ...string) string {
	var b strings.Builder
	for _, s := range texts {
		b.WriteString(content(s))
	}
	return b.String()
}

// calls is a chunk with these entries of tool_calls.
func calls(entries ...string) string {
	return delta(`{"tool_calls":[` + strings.Join(entries, ",") + `]}`)
}

// finish is the chunk that ends an answer.
func finish(reason string) string {
	return `data: {"choices":[{"index":0,"delta":{},"finish_reason":` + quote(reason) + `}]}` + "\n\n"
}

// ended completes a stream.
func ended(chunks ...string) string { return strings.Join(chunks, "") + finish("stop") + done }

func quote(s string) string {
	e := &encoder{}
	e.str(s)
	return e.String()
}

func offer(names ...string) *StreamOptions {
	o := &StreamOptions{}
	for _, n := range names {
		o.Tools = append(o.Tools, llm.NewToolDef(n, "", nil))
	}
	return o
}

func thinker() *StreamOptions { return &StreamOptions{ReasoningSupported: true} }

// record gathers a stream's events and the error that ended it.
func record(seq iter.Seq2[llm.Event, error]) (events []llm.Event, err error) {
	for e, e2 := range seq {
		if e2 != nil {
			return events, e2
		}
		events = append(events, e)
	}
	return events, nil
}

// summary puts events into lines: neighbouring deltas joined, progress of tool
// calls left out.
func summary(events []llm.Event, err error) string {
	var lines []string
	last := ""
	say := func(kind, text string) {
		if kind == last {
			lines[len(lines)-1] += text
		} else {
			lines = append(lines, kind+" "+text)
		}
		last = kind
	}
	for _, e := range events {
		switch e := e.(type) {
		case llm.TextDelta:
			say("text", string(e))
			continue
		case llm.ReasoningDelta:
			say("think", string(e))
			continue
		case llm.ToolCallDelta:
			continue
		case llm.ToolCalls:
			for _, c := range e {
				line := fmt.Sprintf("call %s %s %s", c.ID, c.Name, c.Arguments)
				if c.Extra != nil {
					line += " extra " + string(c.Extra)
				}
				lines = append(lines, line)
			}
		case llm.Usage:
			line := fmt.Sprintf("usage %d %d", e.PromptTokens, e.CompletionTokens)
			if e.CachedTokens+e.ReasoningTokens > 0 {
				line += fmt.Sprintf(" cached %d reasoning %d", e.CachedTokens, e.ReasoningTokens)
			}
			if e.Estimated {
				line += " estimated"
			}
			if t := e.Timings; t != nil {
				line += fmt.Sprintf(" timings %d+%d %d", t.CacheN, t.PromptN, t.PredictedN)
			}
			lines = append(lines, line)
		case llm.Finish:
			line := "finish " + string(e.Reason)
			if e.Raw != "" {
				line += " raw " + e.Raw
			}
			if r := e.Reasoning; r != nil {
				line += " from " + firstOf(r.Field, "tags")
				if r.Details != nil {
					line += " details " + string(r.Details)
				}
			}
			lines = append(lines, line)
		}
		last = ""
	}
	if err != nil {
		lines = append(lines, fmt.Sprintf("error %s: %s", llm.CodeOf(err), err))
	}
	return strings.Join(lines, "\n")
}

// lines joins the lines of an expectation.
func lines(s ...string) string { return strings.Join(s, "\n") }

func runStreamCases(t *testing.T, cases []streamCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := summary(record(DecodeStream(strings.NewReader(c.body), c.opts)))
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// chunkReader gives its parts one a read, then the error.
type chunkReader struct {
	parts []string
	err   error
}

func (r *chunkReader) Read(p []byte) (int, error) {
	for len(r.parts) > 0 && r.parts[0] == "" {
		r.parts = r.parts[1:]
	}
	if len(r.parts) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		return 0, io.EOF
	}
	n := copy(p, r.parts[0])
	r.parts[0] = r.parts[0][n:]
	return n, nil
}

// path follows member names through objects.
func (v value) path(names ...string) value {
	for _, n := range names {
		v = v.get(n)
	}
	return v
}
