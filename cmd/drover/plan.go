package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/history"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/openai"
)

// maxPlanInput bounds a request body to plan: 256 MiB, room for images.
const maxPlanInput = 256 << 20

type planOptions struct {
	window    int
	maxTokens int
	json      bool
}

func newPlan(a *app) *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan FILE|-|SESSION",
		Short: "Show what of a request fits a window, without sending anything",
		Long: `Plan a request as drover would before sending it, and show where the tokens go
and what is left out. The input is the body of a Chat Completions request in a
file or on stdin, or the id of a session.

Exit status: 0 it fits; 2 the input is no valid request; 3 it does not fit.`,
		Args: oneArgument("FILE, - or SESSION"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.plan(cmd.Context(), args[0], &o) },
	}
	f := cmd.Flags()
	f.IntVar(&o.window, "window", 0, "the context window in `TOKENS` (default: the session's, else 8192)")
	f.IntVar(&o.maxTokens, "max-tokens", 0, "the output asked for in `TOKENS` (default: the request's, else the effort's)")
	f.StringVar(&a.flags.effort, "effort", "", "the `EFFORT`: graze, trot, climb or summit (default climb)")
	f.IntVar(&a.flags.policy, "policy", 0, "the `NUMBER` of the budget's policy: 1 or 2 (default 2)")
	f.BoolVar(&o.json, "json", false, "print the report and the request as JSON")
	a.complete(cmd, "effort", effortNames)
	return cmd
}

func (a *app) plan(ctx context.Context, name string, o *planOptions) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	if o.window < 0 || o.maxTokens < 0 {
		return usageError("--window and --max-tokens want a positive number of tokens")
	}
	in, body, err := a.planInput(ctx, name)
	if err != nil {
		return err
	}
	if a.flags.effort != "" || in.Snapshot.Effort == 0 {
		in.Snapshot.Effort = s.effort
	}
	if o.window > 0 {
		in.Snapshot.Window.Tokens, in.Snapshot.Window.Source = o.window, llm.Configured
	}
	if o.maxTokens > 0 {
		in.RequestedOutput = o.maxTokens
	}
	plan, err := budget.Make(s.policy, in)
	if err != nil {
		if e, ok := errors.AsType[*history.InvalidError](err); ok && body != nil && !o.json {
			return noHistory(name, body, e)
		}
		return a.noPlan(err, o)
	}
	if o.json {
		body, err := openai.EncodeRequest(&plan.Request)
		if err != nil {
			return err
		}
		return printJSON(a.stdout, struct {
			Report  *budget.Report  `json:"report"`
			Request json.RawMessage `json:"request"`
		}{&plan.Report, body})
	}
	return printPlan(a.stdout, &plan.Report)
}

// noHistory says where the messages of a request are no conversation.
func noHistory(name string, body []byte, e *history.InvalidError) error {
	reason := strings.TrimPrefix(e.Error(), "history: ")
	reason = strings.TrimPrefix(reason, fmt.Sprintf("turn %d: ", e.Turn))
	return usageError("%s: %s: %s", name, openai.MessagePlace(body, e.Turn), reason)
}

// noPlan shows the report of a request that cannot be planned.
func (a *app) noPlan(err error, o *planOptions) error {
	overflow, ok := errors.AsType[*budget.OverflowError](err)
	if !ok {
		return err
	}
	chosen := exitNoFit
	if overflow.Component == budget.InvalidHistory || overflow.Component == budget.ModelMismatch {
		chosen = exitUsage
	}
	if o.json {
		if err := printJSON(a.stdout, struct {
			Report *budget.Report `json:"report"`
		}{&overflow.Report}); err != nil {
			return err
		}
		return exit(chosen)
	}
	if chosen == exitNoFit {
		if err := printPlan(a.stdout, &overflow.Report); err != nil {
			return err
		}
	}
	return &statusError{status: chosen, err: err}
}

// planInput reads a file, stdin or a session. body is what a file or stdin holds.
func (a *app) planInput(ctx context.Context, name string) (in *budget.Input, body []byte, err error) {
	var r io.Reader
	if name == "-" {
		r = a.stdin
	} else {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			in, err = a.planSession(name)
			return in, nil, err
		}
		if err != nil {
			return nil, nil, usageError("%w", err)
		}
		defer f.Close()
		r = f
	}
	if body, err = readAll(ctx, r, name, maxPlanInput); err != nil {
		return nil, nil, err
	}
	req, err := openai.DecodeRequest(body)
	if err != nil {
		return nil, nil, usageError("%s: %w", name, err)
	}
	return &budget.Input{
		Snapshot: req.Snapshot, System: req.System, Tools: req.Tools,
		Messages: req.Messages, RequestedOutput: req.MaxTokens,
	}, body, nil
}

func (a *app) planSession(id string) (*budget.Input, error) {
	store := a.sessions()
	name := id
	id, err := resolveSession(store, name)
	if err != nil {
		return nil, usageError("%s: neither a file nor a session of this user: %w", name, err)
	}
	state, err := store.Read(id)
	if err != nil {
		return nil, usageError("%s: %w", id, err)
	}
	if len(state.Messages) == 0 || state.Header == nil {
		return nil, usageError("session %s has no request yet", id)
	}
	h := state.Header
	system, memory := h.SystemParts()
	return &budget.Input{
		Snapshot: h.Snapshot, System: system, Memory: memory,
		Tools: h.ToolDefs(), Messages: state.Messages, Previous: state.Previous,
	}, nil
}

// barWidth is the width of the bar in characters.
const barWidth = 40

func printPlan(w io.Writer, r *budget.Report) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "policy %d, window %d (%s)\n", r.PolicyVersion, r.WindowTokens, r.WindowSource)
	clamped := ""
	if r.OutputClamped {
		clamped = fmt.Sprintf(" (%d were asked for)", r.RequestedOutputTokens)
	}
	fmt.Fprintf(w, "output %d%s, safety %d, left for the input %d\n\n", r.OutputReserve, clamped, r.SafetyReserve, r.InputBudget)
	columns := []int{0, 1}
	if r.Failure != nil { // there is no after
		columns = []int{0}
	}
	fmt.Fprintln(tw, strings.Join([]string{"", "before", "after"}[:len(columns)+1], "\t")+"\t")
	for _, row := range []struct {
		name   string
		tokens [2]int
	}{
		{"request", [2]int{r.BreakdownBefore.Request, r.BreakdownAfter.Request}},
		{"system", [2]int{r.BreakdownBefore.System, r.BreakdownAfter.System}},
		{"memory", [2]int{r.BreakdownBefore.Memory, r.BreakdownAfter.Memory}},
		{"tool schemas", [2]int{r.BreakdownBefore.ToolSchemas, r.BreakdownAfter.ToolSchemas}},
		{"conversation", [2]int{r.BreakdownBefore.Exchanges, r.BreakdownAfter.Exchanges}},
		{"together", [2]int{r.EstimatedBefore, r.BreakdownAfter.Total()}},
	} {
		fmt.Fprint(tw, row.name, "\t")
		for _, i := range columns {
			fmt.Fprint(tw, row.tokens[i], "\t")
		}
		fmt.Fprintln(tw)
	}
	if err := tw.Flush(); err != nil || r.Failure != nil {
		return err
	}
	if r.Anchor != nil {
		fmt.Fprintf(w, "\nThe engine counted %d tokens for the request before; with what came since that is about %d.\n",
			r.Anchor.PromptTokens, r.EstimatedAfter)
	}
	fmt.Fprintf(w, "\n[%s] %d of %d tokens\n", bar(r.EstimatedAfter, r.InputBudget), r.EstimatedAfter, r.InputBudget)
	if text := r.Summary(); text != "" {
		fmt.Fprintln(w, text)
	}
	if len(r.OmittedNotes) > 0 {
		fmt.Fprintf(w, "memory notes without room: %s\n", oneLine(strings.Join(r.OmittedNotes, ", ")))
	}
	for _, t := range r.Truncations {
		fmt.Fprintf(w, "  turn %d, %s: %d of %d tokens kept\n", t.Turn, t.Component, t.TokensAfter, t.TokensBefore)
	}
	for _, g := range r.OmittedGroups {
		fmt.Fprintf(w, "  turn %d: a round of tools left out (%s), %d tokens\n", g.Turn, strings.Join(g.Tools, ", "), g.Tokens)
	}
	for _, i := range r.OmittedImages {
		_, err := fmt.Fprintf(w, "  turn %d: image %d left out, %d tokens\n", i.Turn, i.Image, i.Tokens)
		if err != nil {
			return err
		}
	}
	return nil
}

func bar(used, of int) string {
	n := 0
	if of > 0 {
		n = min(barWidth, used*barWidth/of)
	}
	if used > max(of, 0) {
		return strings.Repeat("!", barWidth)
	}
	return strings.Repeat("#", n) + strings.Repeat(".", barWidth-n)
}
