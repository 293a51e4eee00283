package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/engine"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/practice"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/tool"
)

func newDemo(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show the whole path with no engine installed",
		Long: `Show the whole path with no engine installed. A practice engine, which is a
script and no model, is started on a loopback port and used like any other:
its model is listed, probed, and asked a question at the end of a long
conversation that has to be trimmed; it calls a read-only tool in the current
folder and answers. Nothing is written and nothing leaves this machine.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context()) },
	}
}

const demoRoute = "practice"

func (a *app) demo(ctx context.Context) error {
	// The demo is the same whatever is configured, and works with a broken
	// configuration too.
	policy, _ := budget.PolicyByVersion(budget.DefaultVersion)
	s := &settings{effort: llm.DefaultEffort, policy: policy}
	server, err := practice.Start(ctx)
	if err != nil {
		return err
	}
	defer server.Close()
	ep, err := engine.ParseEndpoint(server.URL())
	if err != nil {
		return err
	}
	if err := a.add(demoRoute, ep, engine.Custom, &engine.Options{Name: "practice engine", Logger: a.logger}); err != nil {
		return err
	}

	a.heading("A practice engine listens at %s. It is a script and no model; everything else is real.", ep)
	a.heading("drover models")
	listings := a.registry.All(ctx)
	t := llm.Target{Provider: demoRoute, Model: practice.Model}
	if err := printModels(a.stdout, listings, t); err != nil {
		return err
	}
	a.tellFailures(listings)
	a.heading("drover probe %s", t)
	if err := a.demoProbe(ctx, t, s); err != nil {
		return err
	}
	log, state, err := demoSession()
	if err != nil {
		return err
	}
	sel := target.NewSelector(&a.registry, &a.targets, s.effort)
	sel.Select(ctx, t)
	opts := &agent.Options{Policy: policy, NoInstructions: true, Gate: tool.NewGate(tool.ModeReadOnly), Logger: a.logger}
	if opts.Dir, err = workDir(); err != nil {
		return err
	}
	ag := agent.New(sel, log, state, nil, opts)
	defer ag.Close()

	const prompt = "What is in this folder?"
	parts := []llm.Part{llm.Text(prompt)}
	a.heading("A long conversation went before (made up, %d messages). What the next request will hold:", len(state.Messages))
	plan, err := ag.Preview(ctx, parts)
	if err != nil {
		return err
	}
	if err := printPlan(a.stdout, &plan.Report); err != nil {
		return err
	}
	a.heading("drover run %q", prompt)
	if err := runTurn(ctx, ag, parts, newTextReporter(a.stdout, a.stdout)); err != nil {
		return err
	}
	a.heading("Now with a real model: start Ollama, llama.cpp or LM Studio, then")
	_, err = fmt.Fprintln(a.stdout, "  drover models\n  drover run \"What is in this folder?\"")
	return err
}

func (a *app) heading(format string, args ...any) {
	fmt.Fprintf(a.stdout, "\n== "+format+"\n\n", args...)
}

func (a *app) demoProbe(ctx context.Context, t llm.Target, s *settings) error {
	e := a.engine(t.Provider)
	info, err := e.Describe(ctx, t)
	if err != nil {
		return err
	}
	snap := info.Snapshot(s.effort, nil)
	fields, err := requestFields(&snap, s.policy)
	if err != nil {
		return err
	}
	return printProbe(a.stdout, &info, e.Endpoint().String(), &snap, fields)
}

// demoExchanges is how many made-up exchanges stand before the demo's question:
// more than the practice engine's window holds.
const demoExchanges = 12

// demoSession makes a session in memory with a conversation that is too long.
func demoSession() (*session.Log, *session.State, error) {
	log, err := session.NewStore("").Create("/", &session.CreateOptions{Program: version()})
	if err != nil {
		return nil, nil, err
	}
	state := log.NewState()
	for i := range demoExchanges {
		answer := fmt.Sprintf("Answer %d of the made-up conversation. ", i+1) +
			strings.Repeat("Sheep are moved along old roads, and somebody has to count them. ", 12)
		for _, rec := range []session.Record{
			&session.TurnStart{},
			&session.UserMessage{Parts: []llm.Part{llm.Text(fmt.Sprintf("Question %d about driving sheep?", i+1))}},
			&session.AssistantMessage{
				Target: llm.Target{Provider: demoRoute, Model: practice.Model},
				Text:   answer, Finish: llm.FinishStop,
			},
			&session.TurnEnd{Reason: session.EndCompleted},
		} {
			if err := log.Append(rec); err != nil {
				return nil, nil, err
			}
			state.Apply(rec)
		}
	}
	return log, state, nil
}
