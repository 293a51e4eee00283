package engine

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/llm"
)

// An option is named only when the request has it: without it the same request
// would go out once more, and the person would hear of something left out that
// was never there.
func TestOnlyWhatWasSentIsRefused(t *testing.T) {
	picture, err := llm.NewImage("dot.gif", []byte("GIF89a\x01\x00\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x00;"))
	if err != nil {
		t.Fatal(err)
	}
	nested := func(keyword string) func(*llm.Request) {
		return func(r *llm.Request) {
			schema := fmt.Sprintf(`{"type":"object","properties":{"ids":{"type":"array","items":{"type":"string",%q:"x"}}}}`, keyword)
			r.Tools = []llm.ToolDef{llm.NewToolDef("look", "", []byte(schema))}
		}
	}
	called := func(r *llm.Request) {
		r.Messages = append(r.Messages, llm.AssistantText("", llm.ToolCall{ID: "a", Name: "look", Arguments: "{}"}), llm.ToolText("a", "x"))
	}
	effort := func(r *llm.Request) {
		r.Snapshot.Capabilities = llm.Capabilities{Reasoning: llm.Fact{Support: llm.Supported},
			ReasoningEffort: llm.EffortField{Advertised: true, Values: []string{"low", "high"}}}
	}
	tests := []struct {
		says   string
		option llm.Refusal
		with   func(*llm.Request) // has the option
		bare   func(*llm.Request) // has not
	}{
		{"image input is not supported", llm.RefusedImages, func(r *llm.Request) {
			r.Messages[0].Parts = append(r.Messages[0].Parts, picture)
		}, nil},
		{"failed to parse grammar", llm.RefusedPattern, nested("pattern"), nil},
		{"Invalid schema for function 'look': 'x' is not a valid format", llm.RefusedFormat, nested("format"), nested("title")},
		{"'content' field must be a string or an array of objects", llm.RefusedNullContent, called, nil},
		{"text content blocks must be non-empty", llm.RefusedEmptyContent, func(r *llm.Request) {
			called(r)
			r.Snapshot.Profile = llm.DeepSeek
		}, called},
		{"Conversation roles must alternate user/assistant/user/assistant/...", llm.RefusedUserRuns, func(r *llm.Request) {
			r.Messages = append(r.Messages, llm.UserText("again"))
		}, nil},
		{"temperature is not supported", llm.RefusedSampling, nil, func(r *llm.Request) { r.Snapshot.EngineSampling = true }},
		{"Unrecognized request argument supplied: reasoning_effort", llm.RefusedEffort, effort, nil},
		{"invalid reasoning value: 'high'", llm.RefusedEffortValue("high"), effort, nil},
		{`think value "high" is not supported for this model`, llm.RefusedEffortLevels, effort, nil},
		{"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", llm.RefusedMaxTokens, nil, func(r *llm.Request) { r.MaxTokens = 0 }},
	}
	for _, tt := range tests {
		t.Run(string(tt.option), func(t *testing.T) {
			e, srv := start(t, nil, Custom, nil)
			message, _ := json.Marshal(tt.says)
			for _, status := range []int{400, 200} { // 200: an error in the stream
				body := fmt.Sprintf(`{"error":{"code":400,"message":%s}}`, message)
				if status == 200 {
					body = "data: " + body + "\n\n"
				}
				srv.Fault(chatCompletions, enginetest.Fault{Status: status, Body: body})
				for _, has := range []bool{true, false} {
					req := request("m", "hello")
					change, code, option := tt.bare, llm.CodeInvalidRequest, llm.Refusal("")
					if has {
						change, code, option = tt.with, llm.CodeUnsupportedOption, tt.option
					}
					if change != nil {
						change(req)
					}
					r := collect(t, e, t.Context(), req)
					if r.err == nil || r.err.Code != code || r.err.Option != option {
						t.Errorf("status %d, sent %v: %+v, want %s of %q", status, has, r.err, code, option)
					}
					if !has {
						continue
					}
					// Refused once more, it is still what the engine complains of.
					req.Snapshot.Refusals = req.Snapshot.Refusals.With(tt.option)
					if r := collect(t, e, t.Context(), req); r.err == nil || r.err.Code != code || r.err.Option != option {
						t.Errorf("status %d, again: %+v, want %s of %q", status, r.err, code, option)
					}
				}
			}
		})
	}
}

const chatCompletions = "POST /v1/chat/completions"
