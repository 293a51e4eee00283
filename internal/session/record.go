package session

import (
	"encoding/json"
	"time"

	"github.com/drover-dev/drover/internal/llm"
)

// Record is one entry of a log. The set is closed: pointers to the record
// structs of this package, with [Unknown] for types of later versions.
type Record interface {
	// Kind is the record's type in the file, for example "turn/start".
	Kind() string
	stamp() *Stamp
}

// Stamp is a record's place in the log. [Log.Append] and reading set it.
type Stamp struct {
	Seq  int
	Time time.Time // UTC, whole milliseconds
}

func (s *Stamp) stamp() *Stamp { return s }

// StampOf gives a record's place in the log.
func StampOf(rec Record) Stamp { return *rec.stamp() }

// TurnStart begins a turn.
type TurnStart struct {
	Stamp `json:"-"`
	// Turn counts from 1. Append sets it when it is 0.
	Turn int `json:"turn"`
}

// AssistantMessage is one answer, written once when it is over.
type AssistantMessage struct {
	Stamp     `json:"-"`
	Target    llm.Target       `json:"target"`
	Text      string           `json:"text,omitempty"`
	Reasoning *llm.Reasoning   `json:"reasoning,omitempty"`
	Calls     []llm.ToolCall   `json:"calls,omitempty"`
	Finish    llm.FinishReason `json:"finish,omitempty"`
	// Interrupted says that the answer is the prefix that had arrived when it
	// was cancelled or the stream broke. It has no calls.
	Interrupted bool `json:"interrupted,omitempty"`
	// Discarded keeps a bad answer in the log and out of the history.
	Discarded bool       `json:"discarded,omitempty"`
	Usage     *llm.Usage `json:"usage,omitempty"`
	Timing    Timing     `json:"timing,omitzero"`
}

// Timing says how long an answer took, in milliseconds from the request.
type Timing struct {
	FirstMS int64 `json:"firstMs,omitempty"` // until the first output
	TotalMS int64 `json:"totalMs,omitempty"`
}

// ToolCall is the intent to run a call, on disk before anything happens.
// Another one with Started set may follow. See the package comment.
type ToolCall struct {
	Stamp `json:"-"`
	ID    string `json:"id"`
	Name  string `json:"name"`
	// Arguments is the text as the model wrote it.
	Arguments string `json:"arguments"`
	// Started says that the call runs as soon as this record is on disk.
	Started bool `json:"started,omitempty"`
}

// Status says how a call ended.
type Status string

// The statuses of a call.
const (
	StatusOK          Status = "ok"
	StatusError       Status = "error"
	StatusDenied      Status = "denied"
	StatusNotExecuted Status = "notExecuted" // never started
	StatusUnknown     Status = "unknown"     // started, and nobody knows how it ended
)

// ToolResult answers a call.
type ToolResult struct {
	Stamp  `json:"-"`
	ID     string `json:"id"` // the call's
	Status Status `json:"status"`
	// Text is verbatim what the model sees.
	Text       string `json:"text"`
	DurationMS int64  `json:"durationMs,omitempty"`
}

// PermissionDecision is the answer of a person, a mode or a rule to the question
// whether a call may run.
type PermissionDecision struct {
	Stamp  `json:"-"`
	CallID string `json:"callId"`
	Tool   string `json:"tool,omitempty"`
	// Decision is the answer in the words of the Agent Client Protocol:
	// allow_once, allow_always, reject_once, reject_always or cancelled.
	Decision string `json:"decision"`
	// Allowed starts the call: see the package comment.
	Allowed bool     `json:"allowed"`
	Scopes  []string `json:"scopes,omitempty"` // what "always" covers
	Reason  string   `json:"reason,omitempty"`
}

// PlanNotice tells a person what a turn's requests left out. A later one of the
// same turn replaces it.
type PlanNotice struct {
	Stamp         `json:"-"`
	Text          string `json:"text"`
	Exchanges     int    `json:"exchanges,omitempty"` // dropped
	Texts         int    `json:"texts,omitempty"`     // shortened
	Images        int    `json:"images,omitempty"`    // left out
	Groups        int    `json:"groups,omitempty"`    // left out
	TokensRemoved int    `json:"tokensRemoved,omitempty"`
}

// Retry says that a request will be sent again. It is written before the wait.
type Retry struct {
	Stamp   `json:"-"`
	Attempt int      `json:"attempt"` // the one that failed, from 1
	Code    llm.Code `json:"code"`
	Message string   `json:"message,omitempty"`
	WaitMS  int64    `json:"waitMs"`
}

// EndReason says how a turn ended.
type EndReason string

// The reasons.
const (
	EndCompleted   EndReason = "completed"
	EndMaxTokens   EndReason = "max_tokens"
	EndCancelled   EndReason = "cancelled"
	EndError       EndReason = "error"
	EndInterrupted EndReason = "interrupted" // drover itself ended before the turn did
)

// TurnEnd ends a turn. Append fills in the members that let a list be made from
// the end of the file alone.
type TurnEnd struct {
	Stamp   `json:"-"`
	Reason  EndReason `json:"reason"`
	Message string    `json:"message,omitempty"`
	Code    llm.Code  `json:"code,omitempty"`

	Turn   int        `json:"turn"`            // set by Append
	Title  string     `json:"title,omitempty"` // set by Append
	Target llm.Target `json:"target,omitzero"` // set by Append
}

// SessionInfo changes what a list shows of the session.
type SessionInfo struct {
	Stamp `json:"-"`
	Title string `json:"title"`
}

// Attachment says that the bytes of an image are stored beside the log. Append
// writes it before the message that shows the image.
type Attachment struct {
	Stamp     `json:"-"`
	SHA256    string `json:"sha256"`
	Bytes     int    `json:"bytes"`
	MediaType string `json:"mediaType,omitempty"`
	Name      string `json:"name,omitempty"`
}

// Unknown is a record of a type that this version does not know. It is kept and
// has no effect.
type Unknown struct {
	Stamp
	Type string
	Data json.RawMessage
}

// MarshalJSON gives Data.
func (r *Unknown) MarshalJSON() ([]byte, error) { return r.Data, nil }

// UnmarshalJSON keeps the data.
func (r *Unknown) UnmarshalJSON(data []byte) error {
	r.Data = append(json.RawMessage(nil), data...)
	return nil
}

func (*TurnStart) Kind() string          { return "turn/start" }
func (*UserMessage) Kind() string        { return "user/message" }
func (*RequestHeader) Kind() string      { return "request/header" }
func (*RequestPlan) Kind() string        { return "request/plan" }
func (*AssistantMessage) Kind() string   { return "assistant/message" }
func (*ToolCall) Kind() string           { return "tool/call" }
func (*ToolResult) Kind() string         { return "tool/result" }
func (*PermissionDecision) Kind() string { return "permission/decision" }
func (*PlanNotice) Kind() string         { return "plan/notice" }
func (*Retry) Kind() string              { return "retry" }
func (*TurnEnd) Kind() string            { return "turn/end" }
func (*SessionInfo) Kind() string        { return "session/info" }
func (*Attachment) Kind() string         { return "attachment" }
func (r *Unknown) Kind() string          { return r.Type }

// newRecord makes an empty record of a type.
func newRecord(kind string) Record {
	switch kind {
	case "turn/start":
		return new(TurnStart)
	case "user/message":
		return new(UserMessage)
	case "request/header":
		return new(RequestHeader)
	case "request/plan":
		return new(RequestPlan)
	case "assistant/message":
		return new(AssistantMessage)
	case "tool/call":
		return new(ToolCall)
	case "tool/result":
		return new(ToolResult)
	case "permission/decision":
		return new(PermissionDecision)
	case "plan/notice":
		return new(PlanNotice)
	case "retry":
		return new(Retry)
	case "turn/end":
		return new(TurnEnd)
	case "session/info":
		return new(SessionInfo)
	case "attachment":
		return new(Attachment)
	}
	return &Unknown{Type: kind}
}

// gates reports whether an action waits for the record, so that it must be on
// disk before Append returns.
func gates(rec Record) bool {
	switch rec := rec.(type) {
	case *UserMessage, *RequestHeader, *ToolCall, *ToolResult, *TurnEnd:
		return true
	case *PermissionDecision:
		return rec.Allowed // it is what marks the call as started
	}
	return false
}
