package session

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
)

// RequestHeader is everything of a request but its messages. It is written
// before the request when it differs from the last one, and before the first
// request of a process.
type RequestHeader struct {
	Stamp    `json:"-"`
	Snapshot llm.Snapshot `json:"snapshot"`
	// Temperature is what was sent, nil when the engine decides.
	Temperature *float64 `json:"temperature,omitempty"`
	System      string   `json:"system"`
	// Memory is the part of System that holds memory notes.
	Memory string `json:"memory,omitempty"`
	Tools  []Tool `json:"tools,omitempty"`
}

// Tool is an offered tool in the form of the log.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Parameters is the canonical schema.
	Parameters json.RawMessage `json:"parameters"`
	// ParameterBytes is [llm.ToolDef.ParameterBytes], which cannot be had from
	// the canonical schema. 0 is its length.
	ParameterBytes int `json:"parameterBytes,omitempty"`
}

// NewTools gives the logged form of tools.
func NewTools(defs []llm.ToolDef) []Tool {
	var tools []Tool
	for _, d := range defs {
		parameters := d.Parameters
		if !json.Valid([]byte(parameters)) { // not built by NewToolDef
			parameters = llm.NewToolDef("", "", nil).Parameters
		}
		t := Tool{Name: d.Name, Description: d.Description, Parameters: json.RawMessage(parameters)}
		if d.ParameterBytes != len(parameters) {
			t.ParameterBytes = d.ParameterBytes
		}
		tools = append(tools, t)
	}
	return tools
}

// ToolDefs gives the tools back, equal to those that were offered.
func (r *RequestHeader) ToolDefs() []llm.ToolDef {
	var defs []llm.ToolDef
	for _, t := range r.Tools {
		d := llm.NewToolDef(t.Name, t.Description, t.Parameters)
		if t.ParameterBytes > 0 {
			d.ParameterBytes = t.ParameterBytes
		}
		defs = append(defs, d)
	}
	return defs
}

// SystemParts gives the system turn apart into the two texts that a plan is made
// of, to plan the request again.
func (r *RequestHeader) SystemParts() (system, memory string) {
	if r.Memory == "" {
		return r.System, ""
	}
	return strings.TrimSuffix(strings.TrimSuffix(r.System, r.Memory), "\n\n"), r.Memory
}

// Equal reports whether two headers say the same; a nil header equals none.
func (r *RequestHeader) Equal(other *RequestHeader) bool {
	if r == nil || other == nil {
		return false
	}
	a, errA := appendJSON(nil, r)
	b, errB := appendJSON(nil, other)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// RequestPlan says how the messages of one request were chosen. One is written
// for every request, after the header if there is one.
type RequestPlan struct {
	Stamp     `json:"-"`
	MaxTokens int `json:"maxTokens"`
	// Policy is the version of the budget policy.
	Policy int `json:"policy"`
	// PreviousUsed says that the shape of the request before was used, so that
	// repeating the plan needs it.
	PreviousUsed bool `json:"previousUsed,omitempty"`
	// Aside is what this request alone says behind the conversation; see [Aside].
	// Neither it nor the answer is a part of the conversation.
	Aside  string        `json:"aside,omitempty"`
	Report budget.Report `json:"report"`
	// Next is the shape of this request without the engine's count, which the
	// answer brings: what the next plan is told of this one.
	Next *budget.Previous `json:"next,omitempty"`
}

// Aside is the last message of a request that asks something beside the
// conversation, as [RequestPlan.Aside] has it.
func Aside(text string) llm.Message {
	return llm.Message{Role: llm.User, Continuation: true, Parts: []llm.Part{llm.Text(text)}}
}
