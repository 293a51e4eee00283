// Package history groups the turns of a conversation into exchanges, and
// refuses a conversation that no engine could be sent.
//
// An exchange is one user turn and everything up to the next one. An assistant
// turn with tool calls and all their results is a group that must never be
// split: half of it is a protocol error at the engine. Whoever shortens a
// conversation works in these units; package budget does.
//
// The package is pure and never changes the messages it is given.
package history

import (
	"fmt"

	"github.com/drover-dev/drover/internal/llm"
)

// Exchange is one user turn and everything up to the next user turn that
// starts an exchange. Start and End are an index range over the caller's
// messages, End exclusive.
type Exchange struct {
	Start, End int
	// Groups are the tool groups inside, in order.
	Groups []Group
}

// Group is an assistant turn with calls, at Start, and the tool turns that
// answer them, as an index range over the caller's messages, End exclusive.
type Group struct {
	Start, End int
	// ImagesEnd is End, or one more when the images that the tools returned
	// follow in a turn of their own: a continuation that holds images and no
	// text. Such a turn means nothing without its group.
	ImagesEnd int
}

// Reason says why a conversation is refused. It is stable: logs and front ends
// may depend on it.
type Reason string

// The reasons.
const (
	NoUserTurn         Reason = "noUserTurn"         // nothing to answer
	NotStartingByUser  Reason = "notStartingByUser"  // the first turn after the system turn is not the user's
	LateSystem         Reason = "lateSystem"         // a system turn after another turn
	UnknownRole        Reason = "unknownRole"        // a role outside the dialect
	MisplacedCalls     Reason = "misplacedCalls"     // calls on a turn that is not the assistant's
	MisplacedResult    Reason = "misplacedResult"    // a result id on a turn that is not a tool's
	MisplacedImage     Reason = "misplacedImage"     // an image on a turn that is not the user's
	MisplacedReasoning Reason = "misplacedReasoning" // reasoning on a turn that is not the assistant's
	MisplacedMark      Reason = "misplacedMark"      // continuation, error or origin mark on a turn of another role
	EmptyPart          Reason = "emptyPart"          // a nil part
	ToolWithoutID      Reason = "toolWithoutID"      // a tool turn that names no call
	StrayTool          Reason = "strayTool"          // a tool turn that is not directly in a group
	EmptyCallID        Reason = "emptyCallID"        // a call that cannot be answered
	DuplicateCallID    Reason = "duplicateCallID"    // one id twice in an assistant turn
	UnknownResult      Reason = "unknownResult"      // a result for no call of its group
	DuplicateResult    Reason = "duplicateResult"    // a second result for a call
	MissingResult      Reason = "missingResult"      // a call without result
)

// InvalidError is the refusal of a conversation.
type InvalidError struct {
	// Turn is the index, in the caller's messages, of the turn at fault: for a
	// missing result the assistant turn that asked. It is -1 when there is no
	// turn to point at.
	Turn   int
	Reason Reason
	// Detail is the id, role or mark at fault, if there is one.
	Detail string
}

var reasonTexts = map[Reason]string{
	NoUserTurn:         "there is no user turn",
	NotStartingByUser:  "the conversation does not start with a user turn",
	LateSystem:         "a system turn stands after another turn",
	UnknownRole:        "unknown role",
	MisplacedCalls:     "only an assistant turn can hold tool calls",
	MisplacedResult:    "only a tool turn can answer a call",
	MisplacedImage:     "only a user turn can hold images",
	MisplacedReasoning: "only an assistant turn can hold reasoning",
	MisplacedMark:      "the turn's role does not take this mark",
	EmptyPart:          "a part is empty",
	ToolWithoutID:      "a tool turn names no call",
	StrayTool:          "a tool turn does not follow its calls",
	EmptyCallID:        "a tool call has no id",
	DuplicateCallID:    "two tool calls of a turn share an id",
	UnknownResult:      "a tool turn answers no call of its group",
	DuplicateResult:    "a tool call is answered twice",
	MissingResult:      "a tool call has no result",
}

func (e *InvalidError) Error() string {
	text := reasonTexts[e.Reason]
	if e.Detail != "" {
		text += fmt.Sprintf(" (%q)", e.Detail)
	}
	if e.Turn < 0 {
		return "history: " + text
	}
	return fmt.Sprintf("history: turn %d: %s", e.Turn, text)
}

// Split groups messages into exchanges. System turns may only lead; they
// belong to no exchange. A conversation that breaks the rules is refused with
// an *[InvalidError] for the first turn at fault; nothing is repaired.
func Split(messages []llm.Message) ([]Exchange, error) {
	var x Index
	if err := x.Extend(messages); err != nil {
		return nil, err
	}
	if err := x.Complete(); err != nil {
		return nil, err
	}
	return x.Exchanges(), nil
}
