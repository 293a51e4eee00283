package budget

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
)

// Component names what a plan failed at.
type Component string

// The components.
const (
	ModelMismatch        Component = "modelMismatch"        // the request's model is not the snapshot's
	InvalidHistory       Component = "invalidHistory"       // the cause is a *history.InvalidError
	InputCapacity        Component = "inputCapacity"        // the reserves alone fill the window
	SystemAndToolSchemas Component = "systemAndToolSchemas" // what is fixed does not fit
	NewestExchange       Component = "newestExchange"       // the newest exchange does not fit, however shortened
)

// OverflowError says that no request can be planned; nothing was sent.
type OverflowError struct {
	Component Component
	// Breakdown is the estimate before planning, as far as it is known.
	Breakdown Breakdown
	// Newest is what the newest exchange costs, for [NewestExchange] the least
	// that it can, and 0 if it is unknown. Room is what is left for it.
	Newest, Room int
	// Tools are the tools by cost, the largest first.
	Tools  []ToolCost
	Report Report
	// Suggestion is what a person can do.
	Suggestion string
	// Cause is the *history.InvalidError of an invalid history, else nil.
	Cause error
}

// ToolCost is what one tool's schema costs.
type ToolCost struct {
	Name   string `json:"name"`
	Tokens int    `json:"tokens"`
}

// Error tells what does not fit, the figures by component and what to do.
func (e *OverflowError) Error() string {
	return fmt.Sprintf("plan request: %s; %s", e.Report.Failure.Message, e.Suggestion)
}

func (e *OverflowError) Unwrap() error { return e.Cause }

// largestTools is how many tools a message names.
const largestTools = 3

func (pl *planner) fail(component Component, newest int, cause error) *OverflowError {
	e := &OverflowError{
		Component: component,
		Breakdown: pl.report.BreakdownBefore,
		Newest:    newest,
		Room:      pl.room,
		Tools:     pl.toolCosts(),
		Report:    pl.report,
		Cause:     cause,
	}
	e.Suggestion = e.suggest(pl.effortHelps())
	e.Report.Failure = &Failure{
		Component:  component,
		Message:    e.headline(pl.in.Model) + " (" + e.figures() + ")",
		Suggestion: e.Suggestion,
	}
	return e
}

func (pl *planner) toolCosts() []ToolCost {
	costs := make([]ToolCost, len(pl.tools))
	for i := range pl.tools {
		costs[i] = ToolCost{Name: pl.tools[i].Name, Tokens: pl.price.fields.tool(&pl.tools[i])}
	}
	slices.SortStableFunc(costs, func(a, b ToolCost) int { return b.Tokens - a.Tokens })
	return costs
}

// headline says what does not fit.
func (e *OverflowError) headline(asked string) string {
	r := &e.Report
	switch e.Component {
	case ModelMismatch:
		return fmt.Sprintf("the request is for model %q, the selected one is %q", asked, r.Model)
	case InvalidHistory:
		return e.Cause.Error()
	case InputCapacity:
		return fmt.Sprintf("the window of %s holds no more than its reserves: output %d, safety %d",
			r.Model, r.OutputReserve, r.SafetyReserve)
	case SystemAndToolSchemas:
		return fmt.Sprintf("system turn and tools need %d tokens, the window of %s leaves %d for input",
			e.Breakdown.Fixed(), r.Model, r.InputBudget)
	}
	return fmt.Sprintf("the newest exchange needs %d tokens even when shortened, the window of %s leaves %d for it",
		e.Newest, r.Model, e.Room)
}

// figures gives the tokens by component.
func (e *OverflowError) figures() string {
	r, b := &e.Report, &e.Breakdown
	var out strings.Builder
	fmt.Fprintf(&out, "window %d %s, output %d, safety %d, input %d; request %d, system %d, memory %d, tool schemas %d",
		r.WindowTokens, r.WindowSource, r.OutputReserve, r.SafetyReserve, r.InputBudget,
		b.Request, b.System, b.Memory, b.ToolSchemas)
	for i, t := range e.Tools[:min(largestTools, len(e.Tools))] {
		out.WriteString([]string{", the largest ", ", ", ", "}[i])
		fmt.Fprintf(&out, "%s %d", t.Name, t.Tokens)
	}
	if e.Newest > 0 {
		fmt.Fprintf(&out, "; newest exchange %d", e.Newest)
	}
	return out.String()
}

// effortHelps reports whether the least effort would leave more for the input.
func (pl *planner) effortHelps() bool {
	least := pl.in.Snapshot
	least.Effort = llm.Graze
	return pl.in.RequestedOutput == 0 && ReservesFor(pl.price.Policy, &least, 0).Output < pl.reserves.Output
}

// suggest says what a person can do.
func (e *OverflowError) suggest(effortHelps bool) string {
	const window = "choose a model with a larger window, or raise the engine's own context setting " +
		"(OLLAMA_CONTEXT_LENGTH or num_ctx, llama.cpp -c, LM Studio's context length)"
	var ways []string
	switch e.Component {
	case ModelMismatch:
		return "select the model again"
	case InvalidHistory:
		return "repair the session (drover sessions repair), or start a new one"
	case InputCapacity:
		return window
	case SystemAndToolSchemas, NewestExchange:
		if len(e.Tools) > 0 {
			name := e.Tools[0].Name
			ways = append(ways, fmt.Sprintf("turn off tools you do not need (/tools off %s, or [tools] off = [%q])", name, name))
		}
		if e.Breakdown.System > e.Breakdown.Request {
			ways = append(ways, "shorten the instructions (AGENTS.md)")
		}
		if e.Component == NewestExchange {
			ways = append(ways, "send a shorter prompt")
		}
	}
	if effortHelps && e.Report.OutputReserve > e.Report.InputBudget/2 {
		ways = append(ways, "lower the effort, which reserves less for the answer")
	}
	return strings.Join(append(ways, window), "; ")
}
