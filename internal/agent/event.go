package agent

import (
	"time"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

// Event is one thing that happens in a turn. The set is closed. Events are
// values that the receiver may keep.
type Event interface{ event() }

// Model says which snapshot the requests that follow are made with. It comes
// before the first request and when the selection has changed since.
type Model struct {
	Snapshot llm.Snapshot
	Notes    []string
}

// Planned says what the next request will be.
type Planned struct{ Report budget.Report }

// Waiting says that the engine has not answered yet, Elapsed after the request
// was sent: a local engine computes a long prompt before its first token.
type Waiting struct{ Elapsed time.Duration }

// Text is a piece of the answer.
type Text string

// Reasoning is a piece of what the model thinks.
type Reasoning string

// CallDelta says that the model is writing a call; see [llm.ToolCallDelta].
type CallDelta struct {
	Index int
	Name  string
	Bytes int
}

// CallPending is a call that the model asked for. Action says what it would do;
// it is nil when the call cannot be prepared (unknown tool, bad arguments) or
// will not run. Permission is asked after this event.
type CallPending struct {
	Call   llm.ToolCall
	Action *tool.Action
}

// CallStarted says that a call was allowed and runs now.
type CallStarted struct{ ID string }

// CallOutput is output of a running call.
type CallOutput struct {
	ID   string
	Text string
}

// CallFinished gives the result of a call, also of one that did not run.
type CallFinished struct {
	ID     string
	Name   string
	Result tool.Result
}

// Steered says that the running turn took a message of [Agent.Steer]: the next
// request holds it.
type Steered struct{ Parts []llm.Part }

// Notice is something for the person that is no part of the conversation.
type Notice struct {
	Kind NoticeKind
	Text string
}

// NoticeKind tells notices apart that replace an earlier one of their kind in
// the same turn.
type NoticeKind string

// The kinds of notice.
const (
	NoticeInfo  NoticeKind = "info"
	NoticeTrim  NoticeKind = "trim"  // one a turn: a later one replaces it
	NoticeStore NoticeKind = "store" // the session could not be saved
)

// Retrying says that a request failed and is sent again after Wait.
type Retrying struct {
	Err     *llm.Error
	Wait    time.Duration
	Attempt int // of this retry, from 1
}

// Usage is what the engine counted for the last request, beside the plan's
// estimate of its prompt and the window, all in tokens.
type Usage struct {
	Target   llm.Target
	Usage    llm.Usage
	Estimate int
	Window   llm.Window
}

// End is the last event of every turn.
type End struct {
	Reason EndReason
	// Err is set when Reason is EndError.
	Err error
	// Unsent are the messages of [Agent.Steer] that no request could take, in
	// order. They are no part of the conversation.
	Unsent [][]llm.Part
}

// EndReason says why a turn ended. The values are part of the session log and
// of the output of run --json.
type EndReason string

// The reasons.
const (
	EndCompleted EndReason = "completed"
	EndMaxTokens EndReason = "max_tokens"
	EndCancelled EndReason = "cancelled"
	EndError     EndReason = "error"
)

func (Model) event()        {}
func (Planned) event()      {}
func (Waiting) event()      {}
func (Text) event()         {}
func (Reasoning) event()    {}
func (CallDelta) event()    {}
func (CallPending) event()  {}
func (CallStarted) event()  {}
func (CallOutput) event()   {}
func (CallFinished) event() {}
func (Steered) event()      {}
func (Notice) event()       {}
func (Retrying) event()     {}
func (Usage) event()        {}
func (End) event()          {}
