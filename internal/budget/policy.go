package budget

import "github.com/drover-dev/drover/internal/llm"

// Policy is a versioned way to budget: reserves, estimator, selection rule and
// stages as data. Get one from [Policy1], [Policy2] or [PolicyByVersion];
// policies are immutable.
type Policy struct {
	// Version names the policy in reports and logs.
	Version int

	reserves  reserveRules
	structure structure
	fields    fieldRules
	selection selection
}

// structure is what the frame around fields costs, in tokens.
type structure struct {
	Request   int // once a request
	Message   int // a message, the system turn too
	Call      int // a tool call besides its fields
	Result    int // a tool result besides its message and fields
	Tools     int // once, when there are tools
	Reasoning int // replayed reasoning besides its text
}

// fieldRules are the cost functions by kind of field. Each kind has exactly one,
// which serves the total, the excerpt search, the report and the records.
type fieldRules struct {
	text      func(string) int       // natural text: system, memory, user, assistant, reasoning
	name      func(string) int       // ids and names
	result    func(string) int       // the body of a tool result
	arguments func(string) int       // the arguments of a call, and other JSON sent back
	tool      func(*llm.ToolDef) int // a tool's definition
}

// selection is the rule by which a conversation is cut.
type selection struct {
	// QuantumDivisor makes cuts move in steps: with A tokens for the exchanges
	// a step is the largest power of two that is at most A/QuantumDivisor. With
	// 0 a cut goes exactly as far as it must.
	QuantumDivisor int
	// CarryShape sends the last request's shape unchanged while it fits, judged
	// by the engine's own count where that can be trusted.
	CarryShape bool
	// Stages shorten a newest exchange that is too large on its own, in order.
	Stages []stage
	// Shortened are the stages for the exchange before the newest, when it was
	// last sent shortened and would have to go.
	Shortened []stage
}

// DefaultVersion is the policy where nobody chose one.
const DefaultVersion = 2

// PolicyByVersion gives the policy of a version, false if there is none.
func PolicyByVersion(n int) (*Policy, bool) {
	switch n {
	case 1:
		return Policy1(), true
	case 2:
		return Policy2(), true
	}
	return nil, false
}

// frame is shared by the policies: measured on chat templates, which add up to 8
// tokens a message, 71 a call with its result and 330 before the tools; hidden
// system prompts reach 530, which the safety reserve helps to carry.
var frame = structure{Request: 96, Message: 10, Call: 40, Result: 24, Reasoning: 2}

// Policy1 is the cautious policy of the governing decision record: protocol
// fields cost a token a byte, the cut goes exactly as far as it must, and every
// call of the newest exchange is kept.
func Policy1() *Policy {
	return &Policy{
		Version:   1,
		reserves:  reserves,
		structure: frame,
		fields: fieldRules{
			text:      cautiousText,
			name:      protocolBytes,
			result:    protocolBytes,
			arguments: protocolBytes,
			tool:      protocolTool,
		},
		selection: selection{
			Stages: []stage{shortenResults, shortenAssistant, omitImages, shortenUser},
		},
	}
}

// Policy2 estimates tightly, keeps the prefix of requests stable for the sake of
// an engine's cache, and leaves out old tool rounds of a long turn.
func Policy2() *Policy {
	p := &Policy{
		Version:   2,
		reserves:  reserves,
		structure: frame,
		fields: fieldRules{
			text:      tightText,
			name:      tightText,
			result:    tightResult,
			arguments: tightArguments,
			tool:      tightTool,
		},
		selection: selection{
			QuantumDivisor: 4,
			CarryShape:     true,
			Stages: []stage{excerptOldResults, leaveOutOldGroups,
				shortenResults, shortenAssistant, omitImages, shortenUser},
			Shortened: []stage{excerptOldResults, leaveOutOldGroups, shortenResults},
		},
	}
	p.reserves.ReasoningFactor = 2
	p.structure.Tools = 256
	return p
}

// EstimateText estimates the tokens of natural text: system, memory, user and
// assistant text.
func EstimateText(p *Policy, text string) int { return p.fields.text(text) }

// EstimateResult estimates the tokens of a tool result's body.
func EstimateResult(p *Policy, body string) int { return p.fields.result(body) }

// EstimateTool estimates the tokens of one tool's definition.
func EstimateTool(p *Policy, tool *llm.ToolDef) int { return p.fields.tool(tool) }
