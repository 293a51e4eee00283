package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/config"
	"github.com/drover-dev/drover/internal/engine"
	"github.com/drover-dev/drover/internal/hosted"
	"github.com/drover-dev/drover/internal/llm"
)

// editConfig opens the configuration file to change it.
func (a *app) editConfig() (*config.Document, error) {
	d, err := config.Open(config.Path(config.FindDirs()))
	if err == nil {
		return d, nil
	}
	if _, ok := errors.AsType[*config.Error](err); ok {
		err = fmt.Errorf("%w\n  Nothing was changed. Correct the file first (drover config check shows all mistakes)", err)
	}
	return nil, &statusError{status: exitUsage, err: err}
}

// saveConfig writes a changed configuration.
func (a *app) saveConfig(d *config.Document, change error) error {
	if change != nil {
		return &statusError{status: exitUsage, err: change}
	}
	if err := d.Save(); err != nil {
		return &statusError{status: exitUsage, err: err}
	}
	return nil
}

func newEnginesAdd(a *app) *cobra.Command {
	var e config.Engine
	cmd := &cobra.Command{
		Use:   "add NAME --preset PRESET",
		Short: "Add an engine to the configuration",
		Long: `Add an engine to the configuration, and look whether it answers. NAME is the part
in front of the slash in PROVIDER/MODEL. The key itself is never given here: store
it with "drover auth set NAME" and refer to it with --key keyring:NAME.`,
		Example: "  drover engines add attic --preset ollama --url http://192.168.1.20:11434\n" +
			"  drover engines add lab --preset custom --url https://llm.example.org --key env:LAB_KEY --context 32768",
		Args: oneArgument("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			e.Name = args[0]
			if cmd.Flags().Changed("context") && e.Context <= 0 {
				return usageError("--context %d: want a number of tokens", e.Context)
			}
			return a.addEngine(cmd.Context(), &e)
		},
	}
	f := cmd.Flags()
	f.StringVar(&e.Preset, "preset", "", "the engine's kind, `PRESET`: ollama, llamacpp, lmstudio, omlx, vmlx, vllm, sglang, custom")
	f.StringVar(&e.URL, "url", "", "its address, `URL`, if it is not the preset's")
	f.StringVar(&e.Key, "key", "", "where its key is, `REF`: env:NAME, keyring:NAME or file:PATH")
	f.IntVar(&e.Context, "context", 0, "the window in `TOKENS`, if the engine reports too much or nothing")
	a.complete(cmd, "preset", presetNames)
	return cmd
}

func presetNames() []string {
	var names []string
	for _, p := range engine.Presets() {
		names = append(names, string(p))
	}
	return names
}

func (a *app) addEngine(ctx context.Context, e *config.Engine) error {
	if e.Preset == "" {
		return usageError("--preset is missing: one of %s", strings.Join(presetNames(), ", "))
	}
	ep, err := endpointOf(e)
	if err != nil {
		return usageError("--%w", err)
	}
	if e.URL != "" {
		e.URL = ep.Root()
	}
	d, err := a.editConfig()
	if err != nil {
		return err
	}
	if _, taken := d.Config().Engine(e.Name); taken {
		return usageError("there is an engine %q already: choose another name, or take it out with drover engines rm %s", e.Name, e.Name)
	}
	first := len(d.Config().Engines) == 0
	if err := a.saveConfig(d, d.AddEngine(e)); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "added %s to %s\n", e.Name, d.Config().Path)
	if first {
		fmt.Fprintln(a.stdout, "Only the engines of the configuration are used from now on; drover does not look for others.")
	}
	rows := a.engineRows(ctx, &config.Config{Engines: []config.Engine{*e}})
	return a.tellRow(&rows[0])
}

// tellRow says how an engine is, on stderr when it is not well.
func (a *app) tellRow(r *engineRow) error {
	if r.err == nil {
		_, err := fmt.Fprintf(a.stdout, "%s at %s: %s\n", r.name, r.address, r.state())
		return err
	}
	fmt.Fprintf(a.stderr, "drover: it does not answer well yet: %s\n", explain(r.err))
	return nil
}

func newEnginesRemove(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rm NAME",
		Aliases: []string{"remove"},
		Short:   "Take an engine out of the configuration",
		Args:    oneArgument("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := a.editConfig()
			if err != nil {
				return err
			}
			before := d.Config()
			gone, ok := before.Engine(args[0])
			if !ok {
				return usageError("the configuration has no engine %q (%s)", args[0], engineNames(before))
			}
			if err := a.saveConfig(d, d.RemoveEngine(args[0])); err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "took %s out of %s\n", args[0], before.Path)
			if before.Model.Provider == args[0] {
				fmt.Fprintf(a.stderr, "drover: model = %q still names it: choose another with drover engines use PROVIDER/MODEL\n", before.Model.String())
			}
			shared := slices.ContainsFunc(keyReferences(d.Config()), func(r keyReference) bool { return r.ref == gone.Key })
			if name, ok := strings.CutPrefix(gone.Key, "keyring:"); ok && !shared {
				fmt.Fprintf(a.stdout, "Its key is still stored; drover auth rm %s removes it.\n", name)
			}
			return nil
		},
	}
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var names []string
		if cfg, err := a.load(); err == nil {
			for _, e := range cfg.Engines {
				names = append(names, e.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

func engineNames(cfg *config.Config) string {
	if len(cfg.Engines) == 0 {
		return "it has none"
	}
	var names []string
	for _, e := range cfg.Engines {
		names = append(names, e.Name)
	}
	return "it has: " + strings.Join(names, ", ")
}

func newEnginesUse(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "use PROVIDER/MODEL",
		Short: "Set the model that drover starts with",
		Args:  oneArgument("PROVIDER/MODEL"),
		RunE:  func(cmd *cobra.Command, args []string) error { return a.useModel(cmd.Context(), args[0]) },
	}
}

func (a *app) useModel(ctx context.Context, model string) error {
	t, err := llm.ParseTarget(model)
	if err != nil {
		return &statusError{status: exitUsage, err: err}
	}
	d, err := a.editConfig()
	if err != nil {
		return err
	}
	cfg := d.Config()
	if !hasProvider(cfg, t.Provider) {
		return usageError("the configuration has no provider %q (%s): add it first with drover engines add", t.Provider, engineNames(cfg))
	}
	if err := a.saveConfig(d, d.SetModel(t)); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "model = %q is in %s\n", t.String(), cfg.Path)
	a.tellUnlisted(ctx, cfg, t)
	return nil
}

// hasProvider reports whether a configuration may have a provider. Without
// engines in it those that run decide, at any later time.
func hasProvider(cfg *config.Config, route string) bool {
	_, engine := cfg.Engine(route)
	return engine || len(cfg.Engines) == 0 || route == hosted.DeepSeekRoute ||
		slices.ContainsFunc(cfg.Hosted, func(h config.HostedProvider) bool { return h.ID == route })
}

// tellUnlisted says when the model's engine does not list it. It is used all the
// same: a list is advice.
func (a *app) tellUnlisted(ctx context.Context, cfg *config.Config, t llm.Target) {
	own := *cfg
	if e, ok := cfg.Engine(t.Provider); ok {
		own.Engines = []config.Engine{*e}
	} else if len(cfg.Engines) > 0 || t.Provider == hosted.DeepSeekRoute {
		return // not an engine
	}
	rows := a.engineRows(ctx, &own)
	i := slices.IndexFunc(rows, func(r engineRow) bool { return r.name == t.Provider })
	switch {
	case i < 0 && slices.ContainsFunc(cfg.Hosted, func(h config.HostedProvider) bool { return h.ID == t.Provider }):
	case i < 0:
		fmt.Fprintf(a.stderr, "drover: no engine %s runs on this machine now; drover engines discover shows what does\n", t.Provider)
	case rows[i].err != nil:
		fmt.Fprintf(a.stderr, "drover: %s could not be asked about it: %s\n", t.Provider, rows[i].state())
	case !lists(&rows[i].health, t):
		fmt.Fprintf(a.stderr, "drover: %s does not list this model; it is asked for all the same (drover models shows those it lists)\n", t.Provider)
	}
}
