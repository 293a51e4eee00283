package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
	"pgregory.net/rapid"
)

// drawText draws texts with everything that JSON could trip over.
func drawText() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~\n\t<>&"\\]{0,40}`), rapid.Just(""), rapid.Just("\xff\xfe\u2028"))
}

func drawRequest(t *rapid.T) *llm.Request {
	req := &llm.Request{
		Snapshot: llm.Snapshot{
			Target:  llm.Target{Provider: "barn", Model: rapid.StringMatching(`[a-z0-9./:-]{1,20}`).Draw(t, "model")},
			Effort:  rapid.SampledFrom(llm.Efforts()).Draw(t, "effort"),
			Profile: rapid.SampledFrom([]llm.Profile{llm.Generic, llm.Qwen, llm.DeepSeek, llm.Replay}).Draw(t, "profile"),
		},
		System:    drawText().Draw(t, "system"),
		MaxTokens: rapid.IntRange(0, 1<<20).Draw(t, "max"),
	}
	for range rapid.IntRange(0, 2).Draw(t, "tools") {
		req.Tools = append(req.Tools, llm.NewToolDef(drawText().Draw(t, "tool"), drawText().Draw(t, "about"), []byte(drawText().Draw(t, "schema"))))
	}
	for range rapid.IntRange(1, 4).Draw(t, "exchanges") {
		req.Messages = append(req.Messages, drawExchange(t, req.Snapshot.Target)...)
	}
	return req
}

func drawExchange(t *rapid.T, origin llm.Target) []llm.Message {
	out := []llm.Message{llm.UserText(drawText().Draw(t, "user"))}
	for range rapid.IntRange(0, 3).Draw(t, "rounds") {
		call := llm.ToolCall{ID: drawText().Draw(t, "id"), Name: drawText().Draw(t, "name"), Arguments: drawText().Draw(t, "arguments")}
		m := llm.AssistantText(drawText().Draw(t, "text"), call)
		m.Origin, m.Reasoning = origin, &llm.Reasoning{Text: drawText().Draw(t, "thought"), Field: "reasoning_content"}
		out = append(out, m, llm.ToolText(call.ID, drawText().Draw(t, "result")))
	}
	m := llm.AssistantText(drawText().Draw(t, "answer"))
	m.Origin = origin
	return append(out, m)
}

// From step to step the request only grows at its end: everything before the
// newest exchange stays byte for byte.
func TestEncodePrefixIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		before, err := EncodeRequest(req)
		if err != nil {
			t.Fatal(err)
		}
		next := *req
		next.Messages = append(slices.Clone(req.Messages), drawExchange(t, req.Snapshot.Target)...)
		next.MaxTokens = rapid.IntRange(0, 1<<20).Draw(t, "next max")
		after, err := EncodeRequest(&next)
		if err != nil {
			t.Fatal(err)
		}
		end := bytes.LastIndex(before, []byte(`],"stream":true`))
		if end < 0 || !bytes.HasPrefix(after, before[:end]) {
			t.Fatalf("the beginning changed:\n%s\n%s", before, after)
		}
		if v, bad := parseDocument(after); bad != nil || !json.Valid(after) || v.get("messages").kind() != '[' {
			t.Fatalf("no JSON: %s", after)
		}
	})
}

// A model's name decides nothing but the member model.
func TestEncodeIgnoresNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		name := rapid.SampledFrom([]string{"deepseek-r1", "qwen3-coder:30b", "gpt-oss-20b", "o3", "llava", "kimi-k2-thinking"}).Draw(t, "name")
		renamed := *req
		renamed.Snapshot.Target.Model = name
		renamed.Messages = slices.Clone(req.Messages)
		for i := range renamed.Messages {
			if renamed.Messages[i].Origin == req.Snapshot.Target {
				renamed.Messages[i].Origin = renamed.Snapshot.Target
			}
		}
		a, errA := EncodeRequest(req)
		b, errB := EncodeRequest(&renamed)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		a = bytes.TrimPrefix(a, []byte(`{"model":`+quote(req.Snapshot.Target.Model)))
		b = bytes.TrimPrefix(b, []byte(`{"model":`+quote(name)))
		if !bytes.Equal(a, b) {
			t.Fatalf("more than the model changed:\n%s\n%s", a, b)
		}
	})
}

// What was encoded reads back as the same conversation.
func TestEncodeDecodeRequest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		req.Snapshot.Profile = llm.Generic
		body, err := EncodeRequest(req)
		if err != nil {
			t.Fatal(err)
		}
		for i := range req.Tools {
			if req.Tools[i].Name == "" {
				return // refused on reading
			}
		}
		read, err := DecodeRequest(body)
		if err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		read.Snapshot = req.Snapshot
		again, err := EncodeRequest(read)
		if err != nil || !bytes.Equal(body, again) {
			t.Fatalf("%v\n%s\n%s", err, body, again)
		}
	})
}
