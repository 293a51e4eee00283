package main

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/tool"
)

// jsonReporter writes one event a line. The form is documented in
// docs/protocol.md and stable.
type jsonReporter struct {
	enc  *json.Encoder
	trim string // the newest trim notice: one a turn, with its final figures
}

func newJSONReporter(w io.Writer) *jsonReporter {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return &jsonReporter{enc: enc}
}

// The events of run --json.
type (
	sessionEvent struct {
		Type     string `json:"type"`
		ID       string `json:"id"`
		InMemory bool   `json:"in_memory,omitempty"`
	}
	modelEvent struct {
		Type     string           `json:"type"`
		Provider string           `json:"provider"`
		Model    string           `json:"model"`
		Window   int              `json:"window"`
		Source   llm.WindowSource `json:"source"`
		Effort   llm.Effort       `json:"effort"`
		Notes    []string         `json:"notes,omitempty"`
	}
	planEvent struct {
		Type   string        `json:"type"`
		Report budget.Report `json:"report"`
	}
	textEvent struct { // text, reasoning and notice
		Type string `json:"type"`
		Text string `json:"text"`
	}
	toolCallEvent struct {
		Type      string `json:"type"`
		ID        string `json:"id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	toolResultEvent struct {
		Type   string      `json:"type"`
		ID     string      `json:"id"`
		Status tool.Status `json:"status"`
		Text   string      `json:"text"`
	}
	retryEvent struct {
		Type    string   `json:"type"`
		Code    llm.Code `json:"code"`
		Message string   `json:"message"`
		WaitMS  int64    `json:"wait_ms"`
	}
	usageEvent struct {
		Type             string `json:"type"`
		PromptTokens     int    `json:"prompt_tokens"`
		CompletionTokens int    `json:"completion_tokens"`
		Estimated        bool   `json:"estimated"`
	}
	endEvent struct {
		Type   string          `json:"type"`
		Reason agent.EndReason `json:"reason"`
		Error  *errorJSON      `json:"error,omitempty"`
	}
	errorJSON struct {
		Code    llm.Code `json:"code"`
		Message string   `json:"message"`
		Hint    string   `json:"hint,omitempty"`
	}
)

func (r *jsonReporter) event(ev agent.Event) error {
	switch ev := ev.(type) {
	case agent.Model:
		t, w := ev.Snapshot.Target, ev.Snapshot.Window
		return r.enc.Encode(modelEvent{"model", t.Provider, t.Model, w.Tokens, w.Source, ev.Snapshot.Effort, ev.Notes})
	case agent.Planned:
		return r.enc.Encode(planEvent{"plan", ev.Report})
	case agent.Text:
		return r.enc.Encode(textEvent{"text", string(ev)})
	case agent.Reasoning:
		return r.enc.Encode(textEvent{"reasoning", string(ev)})
	case agent.Notice:
		if ev.Kind == agent.NoticeTrim {
			r.trim = ev.Text
			return nil
		}
		return r.enc.Encode(textEvent{"notice", ev.Text})
	case agent.CallPending:
		return r.enc.Encode(toolCallEvent{"tool_call", ev.Call.ID, ev.Call.Name, ev.Call.Arguments})
	case agent.CallFinished:
		return r.enc.Encode(toolResultEvent{"tool_result", ev.ID, ev.Result.Status, ev.Result.Text})
	case agent.Retrying:
		return r.enc.Encode(retryEvent{"retry", ev.Err.Code, ev.Err.Message, ev.Wait.Milliseconds()})
	case agent.Usage:
		return r.enc.Encode(usageEvent{"usage", ev.Usage.PromptTokens, ev.Usage.CompletionTokens, ev.Usage.Estimated})
	case agent.End:
		if r.trim != "" {
			if err := r.enc.Encode(textEvent{"notice", r.trim}); err != nil {
				return err
			}
		}
		e := endEvent{Type: "end", Reason: ev.Reason}
		if ev.Err != nil {
			e.Error = newErrorJSON(ev.Err)
		}
		return r.enc.Encode(e)
	}
	return nil
}

// failed shows an error that no event has told. Its own error is that of writing.
func (r *jsonReporter) failed(err error, status int) error {
	e := endEvent{Type: "end", Reason: agent.EndError, Error: newErrorJSON(err)}
	if status == exitCancelled {
		e = endEvent{Type: "end", Reason: agent.EndCancelled}
	}
	return r.enc.Encode(e)
}

// lost says nothing: a notice said that the session is not saved, and the end
// event is the last one.
func (r *jsonReporter) lost(error) {}

func (r *jsonReporter) session(log *session.Log) error {
	return r.enc.Encode(sessionEvent{"session", log.ID(), log.InMemory()})
}

// codeUsage is the code of a mistake in the command line or the configuration.
const codeUsage llm.Code = "USAGE"

func newErrorJSON(err error) *errorJSON {
	code := agent.Code(err)
	if e, ok := errors.AsType[*statusError](err); ok && e.status == exitUsage && code == llm.CodeUnknown {
		code = codeUsage
	}
	return &errorJSON{Code: code, Message: words(err), Hint: hint(err)}
}
