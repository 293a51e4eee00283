// Package agenttest rebuilds every request of a session from its log and
// compares it, byte for byte, with what was sent.
package agenttest

import (
	"bytes"
	"iter"
	"slices"
	"testing"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/openai"
	"github.com/drover-dev/drover/internal/session"
)

// Rebuild plans every request of a log again, in order, from nothing but its
// records.
func Rebuild(tb testing.TB, records iter.Seq2[session.Record, error]) []llm.Request {
	tb.Helper()
	var requests []llm.Request
	state := new(session.State)
	for rec, err := range records {
		if err != nil {
			tb.Fatalf("reading the log: %v", err)
		}
		if plan, ok := rec.(*session.RequestPlan); ok {
			requests = append(requests, replan(tb, state, plan))
		}
		state.Apply(rec)
	}
	for _, w := range state.Warnings {
		tb.Errorf("the log has a problem: %v", w)
	}
	return requests
}

func replan(tb testing.TB, state *session.State, logged *session.RequestPlan) llm.Request {
	tb.Helper()
	h := state.Header
	if h == nil {
		tb.Fatal("a request before any header")
	}
	policy, ok := budget.PolicyByVersion(logged.Policy)
	if !ok {
		tb.Fatalf("policy %d is unknown", logged.Policy)
	}
	system, memory := h.SystemParts()
	messages := slices.Clip(state.Messages)
	if logged.Aside != "" {
		messages = append(messages, session.Aside(logged.Aside))
	}
	plan, err := budget.Make(policy, &budget.Input{
		Snapshot: h.Snapshot, System: system, Memory: memory,
		Tools: h.ToolDefs(), Messages: messages,
		RequestedOutput: logged.Report.RequestedOutputTokens, Previous: state.Previous,
	})
	if err != nil {
		tb.Fatalf("planning request again: %v", err)
	}
	if plan.Request.MaxTokens != logged.MaxTokens {
		tb.Errorf("max_tokens %d when planned again, %d in the log", plan.Request.MaxTokens, logged.MaxTokens)
	}
	return plan.Request
}

// Check compares the requests that a log gives with those that were sent, as
// the bytes of their bodies.
func Check(tb testing.TB, records iter.Seq2[session.Record, error], sent []llm.Request) {
	tb.Helper()
	var bodies [][]byte
	for i := range sent {
		body, err := openai.EncodeRequest(&sent[i])
		if err != nil {
			tb.Fatalf("request %d cannot be encoded: %v", i, err)
		}
		bodies = append(bodies, body)
	}
	CheckBodies(tb, records, bodies)
}

// CheckBodies is [Check] against the bodies that an engine received.
func CheckBodies(tb testing.TB, records iter.Seq2[session.Record, error], sent [][]byte) {
	tb.Helper()
	rebuilt := Rebuild(tb, records)
	if len(rebuilt) != len(sent) {
		tb.Errorf("%d requests in the log, %d sent", len(rebuilt), len(sent))
	}
	for i := range min(len(rebuilt), len(sent)) {
		body, err := openai.EncodeRequest(&rebuilt[i])
		if err != nil {
			tb.Fatalf("request %d cannot be encoded: %v", i, err)
		}
		if !bytes.Equal(body, sent[i]) {
			tb.Errorf("request %d differs from what the log gives\nsent    %s\nrebuilt %s", i, sent[i], body)
		}
	}
}
