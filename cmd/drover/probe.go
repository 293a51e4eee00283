package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/openai"
)

func newProbe(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "probe PROVIDER/MODEL",
		Short: "Ask an engine about one model, and show every fact with its source",
		Long: `Ask an engine what one model can do: by metadata alone, within two seconds,
without loading the model. Every fact is shown with the endpoint and the field
that it came from, claims that contradict each other too, and then what a
request to the model will look like.`,
		Args: oneArgument("PROVIDER/MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.probe(cmd.Context(), args[0], asJSON)
		},
	}
	a.engineFlags(cmd)
	cmd.Flags().StringVar(&a.flags.effort, "effort", "", "the `EFFORT`: graze, trot, climb or summit (default climb)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	a.complete(cmd, "effort", effortNames)
	return cmd
}

func (a *app) probe(ctx context.Context, model string, asJSON bool) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	t, err := a.parseModel(model)
	if err != nil {
		return &statusError{status: exitUsage, err: err}
	}
	if err := a.connect(ctx); err != nil {
		return err
	}
	info, endpoint, err := a.asked(ctx, t)
	if err != nil {
		return err
	}
	snap := info.Snapshot(s.effort, nil)
	// A window that holds no request at all is a fact to show like the others.
	fields, unfit := requestFields(&snap, s.policy)
	if asJSON {
		return printJSON(a.stdout, struct {
			llm.ModelInfo
			Request json.RawMessage `json:"request,omitempty"`
		}{info, fields})
	}
	if err := printProbe(a.stdout, &info, endpoint, &snap, fields); err != nil {
		return err
	}
	return unfit
}

// requestFields is what a request to the model holds beside its messages. It is
// made by the encoder that makes every request.
func requestFields(snap *llm.Snapshot, policy *budget.Policy) (json.RawMessage, error) {
	plan, err := budget.Make(policy, &budget.Input{
		Snapshot: *snap, System: ".", Messages: []llm.Message{llm.UserText(".")},
	})
	if err != nil {
		return nil, err
	}
	body, err := openai.EncodeRequest(&plan.Request)
	if err != nil {
		return nil, err
	}
	// The members are cut out and not decoded, to show the bytes as sent.
	before, rest, _ := bytes.Cut(body, []byte(`"messages":[`))
	_, after, ok := bytes.Cut(rest, []byte(`],`))
	if !ok {
		return body, nil
	}
	return append(bytes.Clone(before), after...), nil
}

func printProbe(w io.Writer, info *llm.ModelInfo, endpoint string, snap *llm.Snapshot, fields json.RawMessage) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(tw, "model\t%s\n", info.ID)
	fmt.Fprintf(tw, "engine\t%s at %s\n", info.Provider, endpoint)
	window := windowText(&info.Window)
	if info.Window.Tokens == 0 {
		window = "unknown: 8192 are planned with"
	} else if info.Window.Declared > info.Window.Tokens {
		window += fmt.Sprintf(", the model could do %d", info.Window.Declared)
	}
	fact(tw, "window", window, info.Window.Evidence)
	if info.Window.OutputLimit > 0 {
		fmt.Fprintf(tw, "output limit\t%d\n", info.Window.OutputLimit)
	}
	c := &info.Capabilities
	fact(tw, "tools", c.Tools.Support.String(), c.Tools.Evidence)
	fact(tw, "vision", c.Vision.Support.String(), c.Vision.Evidence)
	fact(tw, "reasoning", c.Reasoning.Support.String(), c.Reasoning.Evidence)
	effort := "not advertised: the member is not sent"
	if v, ok := c.WireEffort(snap.Effort, nil); ok {
		effort = fmt.Sprintf("%s for effort %s (of %s)", v, snap.Effort, strings.Join(c.ReasoningEffort.Values, ", "))
	} else if c.ReasoningEffort.Advertised {
		effort = "advertised, but not sent: no value is proven"
	}
	fact(tw, "reasoning_effort", effort, c.ReasoningEffort.Evidence)
	fmt.Fprintf(tw, "profile\t%s\n", info.Profile)
	for _, n := range info.Notes {
		fmt.Fprintf(tw, "note\t%s\n", printable(n))
	}
	if fields != nil {
		fmt.Fprintf(tw, "request\t%s\n", fields)
	}
	return tw.Flush()
}

// fact prints a line and below it what it rests on.
func fact(w io.Writer, name, value string, evidence []llm.Evidence) {
	fmt.Fprintf(w, "%s\t%s\n", name, value)
	for _, e := range evidence {
		fmt.Fprintf(w, "\t  %s  %s = %s\n", e.Endpoint, printable(e.Field), printable(e.Value))
	}
}
