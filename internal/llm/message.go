package llm

import (
	"encoding/json"
	"strings"
)

// Role says who speaks in a [Message].
type Role string

// The roles of the Chat Completions dialect.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Message is one turn of a conversation.
//
// Which fields may be set depends on the role; package history refuses a
// message that breaks the table:
//
//	user       Parts (texts and images), Continuation
//	assistant  Parts (texts), Reasoning, Calls, Origin
//	tool       Parts (texts), CallID, IsError
type Message struct {
	Role  Role
	Parts []Part

	// Continuation marks a user message that belongs to the running exchange:
	// an instruction added while a turn runs, or the images a tool returned.
	Continuation bool

	// Reasoning is what the model thought before it answered. It is kept for
	// disclosure; only a profile that asks for it sends it back.
	Reasoning *Reasoning
	// Calls are the tool calls of an assistant message, in the model's order.
	Calls []ToolCall
	// Origin is the target that wrote an assistant message. Opaque members
	// (ToolCall.Extra, Reasoning.Details) go back to that target only.
	Origin Target

	// CallID names the call that a tool message answers.
	CallID string
	// IsError marks a tool message that reports a failure.
	IsError bool
}

// Text joins the text parts of the message without a separator.
func (m *Message) Text() string {
	switch len(m.Parts) {
	case 0:
		return ""
	case 1:
		t, _ := m.Parts[0].(Text)
		return string(t)
	}
	var b strings.Builder
	for _, p := range m.Parts {
		if t, ok := p.(Text); ok {
			b.WriteString(string(t))
		}
	}
	return b.String()
}

// Images returns the image parts of the message in order, nil if there are none.
func (m *Message) Images() []*Image {
	var images []*Image
	for _, p := range m.Parts {
		if img, ok := p.(*Image); ok {
			images = append(images, img)
		}
	}
	return images
}

// UserText is a user message of one text.
func UserText(text string) Message {
	return Message{Role: User, Parts: []Part{Text(text)}}
}

// AssistantText is an assistant message of one text, or of calls alone when the
// text is empty.
func AssistantText(text string, calls ...ToolCall) Message {
	m := Message{Role: Assistant, Calls: calls}
	if text != "" {
		m.Parts = []Part{Text(text)}
	}
	return m
}

// ToolText is the result of the call with the given id.
func ToolText(callID, text string) Message {
	return Message{Role: Tool, CallID: callID, Parts: []Part{Text(text)}}
}

// Part is a piece of a message's content: a [Text] or an [*Image].
type Part interface{ part() }

// Text is a piece of text.
type Text string

func (Text) part()   {}
func (*Image) part() {}

// Reasoning is what a model thought before an answer, as the engine sent it.
type Reasoning struct {
	Text string `json:"text"`
	// Field is the member of the answer that carried the text
	// (reasoning_content, reasoning, ...), empty for inline tags.
	Field string `json:"field,omitempty"`
	// Details is the raw reasoning_details array of the answer, if any.
	Details json.RawMessage `json:"details,omitempty"`
}

// ToolCall is one call that a model asks for.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Arguments is the text as the model wrote it, which need not be JSON.
	Arguments string `json:"arguments"`
	// Extra holds members of the call that the dialect does not define
	// (signatures, say), as one JSON object. See [Message.Origin].
	Extra json.RawMessage `json:"extra,omitempty"`
}
