package budget

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
)

// Report says what a plan did. Its JSON form is stable. Sizes are in tokens of
// the policy's estimator unless a name says bytes; turns are indexes into the
// caller's messages.
type Report struct {
	PolicyVersion         int              `json:"policy_version"`
	Model                 string           `json:"model"`
	WindowTokens          int              `json:"window_tokens"`
	WindowSource          llm.WindowSource `json:"window_source"`
	RequestedOutputTokens int              `json:"requested_output_tokens"`
	OutputReserve         int              `json:"output_reserve"`
	OutputClamped         bool             `json:"output_clamped"`
	SafetyReserve         int              `json:"safety_reserve"`
	// InputBudget is what the request may cost at most. It is not positive when
	// the reserves alone fill the window.
	InputBudget     int `json:"input_budget"`
	EstimatedBefore int `json:"estimated_before"`
	// EstimatedAfter is what the plan was judged by. It is the sum of
	// BreakdownAfter, except when Anchor is set. All that is said of the result is
	// zero when there is a Failure.
	EstimatedAfter    int       `json:"estimated_after"`
	BreakdownBefore   Breakdown `json:"breakdown_before"`
	BreakdownAfter    Breakdown `json:"breakdown_after"`
	RetainedExchanges int       `json:"retained_exchanges"`
	RetainedTurns     int       `json:"retained_turns"`
	DroppedExchanges  int       `json:"dropped_exchanges"`
	DroppedTurns      int       `json:"dropped_turns"`
	// Truncations are the texts that were shortened, by turn.
	Truncations []Truncation `json:"truncations"`
	// OmittedImages are the images that a marker stands for, by turn.
	OmittedImages []OmittedImage `json:"omitted_images"`
	// OmittedGroups are the tool groups that one line stands for, in order.
	OmittedGroups []OmittedGroup `json:"omitted_groups"`
	// OmittedNotes are the memory notes that did not fit the memory's own cap.
	OmittedNotes []string `json:"omitted_memory_notes"`
	// TokensRemoved is what dropping, shortening and omitting saved.
	TokensRemoved int `json:"tokens_removed"`
	// Anchor is the engine's count that the plan was judged by, if one was.
	Anchor *Anchor `json:"anchor,omitempty"`
	// Failure is set when nothing fits.
	Failure *Failure `json:"failure,omitempty"`
}

// Breakdown is an estimate by component, in tokens.
type Breakdown struct {
	Request     int `json:"request"` // what every request costs
	System      int `json:"system"`
	Memory      int `json:"memory"`
	ToolSchemas int `json:"tool_schemas"`
	Exchanges   int `json:"exchanges"`
}

// Fixed is what does not depend on the conversation.
func (b Breakdown) Fixed() int { return b.Request + b.System + b.Memory + b.ToolSchemas }

// Total is the sum of the components.
func (b Breakdown) Total() int { return b.Fixed() + b.Exchanges }

// Truncation is a text that was shortened.
type Truncation struct {
	Turn int `json:"turn"`
	// Component is toolResult, assistantText or userText.
	Component    string `json:"component"`
	TokensBefore int    `json:"tokens_before"`
	TokensAfter  int    `json:"tokens_after"`
	BytesBefore  int    `json:"bytes_before"`
	BytesAfter   int    `json:"bytes_after"`
}

// OmittedImage is an image that a marker stands for. Image is its number in the
// turn, from 1.
type OmittedImage struct {
	Turn   int `json:"turn"`
	Image  int `json:"image"`
	Tokens int `json:"tokens"`
}

// OmittedGroup is a tool group that was left out: the turn of its assistant
// message, how many turns it had, the tools called and what it cost.
type OmittedGroup struct {
	Turn   int      `json:"turn"`
	Turns  int      `json:"turns"`
	Tools  []string `json:"tools"`
	Tokens int      `json:"tokens"`
}

// Anchor is an engine's exact count of an earlier request that the plan builds
// on: PromptTokens for it, AddedTokens estimated for the turns added since.
type Anchor struct {
	PromptTokens int `json:"prompt_tokens"`
	AddedTokens  int `json:"added_tokens"`
	AddedTurns   int `json:"added_turns"`
}

// Failure says why nothing fits.
type Failure struct {
	Component  Component `json:"component"`
	Message    string    `json:"message"`
	Suggestion string    `json:"suggestion"`
}

// Trimmed reports whether something of the conversation was lost: exchanges,
// tool groups, texts or images. Memory notes alone are not a trim.
func (r *Report) Trimmed() bool {
	return r.DroppedExchanges > 0 || len(r.Truncations) > 0 || len(r.OmittedImages) > 0 || len(r.OmittedGroups) > 0
}

// Summary tells a person in one line what was lost, "" if nothing was.
func (r *Report) Summary() string {
	if !r.Trimmed() {
		return ""
	}
	var lost []string
	add := func(n int, one, many string) {
		switch {
		case n == 1:
			lost = append(lost, "1 "+one)
		case n > 1:
			lost = append(lost, strconv.Itoa(n)+" "+many)
		}
	}
	add(r.DroppedExchanges, "earlier exchange dropped", "earlier exchanges dropped")
	add(len(r.OmittedGroups), "tool round left out", "tool rounds left out")
	add(len(r.Truncations), "text shortened", "texts shortened")
	add(len(r.OmittedImages), "image left out", "images left out")
	return fmt.Sprintf("to fit the window of %d tokens: %s (about %d tokens)",
		r.WindowTokens, strings.Join(lost, ", "), r.TokensRemoved)
}

func (pl *planner) newReport(head Breakdown) Report {
	return Report{
		PolicyVersion:         pl.price.Version,
		Model:                 pl.in.Snapshot.Target.Model,
		WindowTokens:          pl.reserves.Window,
		WindowSource:          pl.reserves.Source,
		RequestedOutputTokens: pl.reserves.Requested,
		OutputReserve:         pl.reserves.Output,
		OutputClamped:         pl.reserves.Output < pl.reserves.Requested,
		SafetyReserve:         pl.reserves.Safety,
		InputBudget:           pl.reserves.Input,
		EstimatedBefore:       head.Fixed(),
		BreakdownBefore:       head,
		Truncations:           []Truncation{},
		OmittedImages:         []OmittedImage{},
		OmittedGroups:         []OmittedGroup{},
		OmittedNotes:          append([]string{}, pl.in.OmittedNotes...),
	}
}

// before reports the draft that nothing was done to yet.
func (pl *planner) before(d *draft) {
	pl.report.BreakdownBefore.Exchanges = d.total
	pl.report.EstimatedBefore = pl.report.BreakdownBefore.Total()
}

// after reports the finished draft.
func (pl *planner) after(d *draft, anchor *Anchor) {
	r := &pl.report
	r.BreakdownAfter = r.BreakdownBefore
	r.BreakdownAfter.Exchanges = d.total
	r.EstimatedAfter = r.BreakdownAfter.Total()
	r.TokensRemoved = r.EstimatedBefore - r.EstimatedAfter
	if anchor != nil {
		r.Anchor = anchor
		r.EstimatedAfter = anchor.PromptTokens + anchor.AddedTokens
	}
	r.RetainedExchanges, r.DroppedExchanges = len(d.exchanges)-d.first, d.first
	r.DroppedTurns = d.firstTurn() - d.exchanges[0].Start
	r.RetainedTurns = len(d.messages) - d.firstTurn()
	for turn := d.firstTurn(); d.edits != nil && turn < len(d.messages); turn++ {
		if e := d.edits[turn]; e != nil {
			pl.reportEdit(d, e)
		}
	}
	for _, g := range d.leftOut() {
		pl.report.RetainedTurns -= g.ImagesEnd - g.Start
		r.OmittedGroups = append(r.OmittedGroups, OmittedGroup{
			Turn: g.Start, Turns: g.ImagesEnd - g.Start, Tools: callNames(d.messages[g.Start].Calls), Tokens: d.groupCost(g),
		})
	}
}

var textComponents = map[llm.Role]string{
	llm.Tool: "toolResult", llm.Assistant: "assistantText", llm.User: "userText",
}

func (pl *planner) reportEdit(d *draft, e *edit) {
	m := &d.messages[e.turn]
	if e.cut {
		pl.report.Truncations = append(pl.report.Truncations, Truncation{
			Turn:         e.turn,
			Component:    textComponents[m.Role],
			TokensBefore: d.costs[e.turn].text,
			TokensAfter:  e.bodyCost,
			BytesBefore:  len(m.Text()),
			BytesAfter:   len(e.body),
		})
	}
	images := m.Images()
	for _, n := range e.images {
		pl.report.OmittedImages = append(pl.report.OmittedImages,
			OmittedImage{Turn: e.turn, Image: n, Tokens: d.image(images[n-1])})
	}
}

func callNames(calls []llm.ToolCall) []string {
	names := make([]string, len(calls))
	for i := range calls {
		names[i] = calls[i].Name
	}
	return names
}
