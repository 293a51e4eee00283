package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/config"
	"github.com/drover-dev/drover/internal/engine"
)

func newEngines(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "engines",
		Short: "List the engines with their health; discover, add, rm and use change what is configured",
		Long: `List the engines of the configuration, or without any those that are found on
this machine, each with its health. All are asked side by side for their models,
for at most two seconds.

The commands below this one change the configuration file in place. Comments,
order and form of everything else in it stay as they are.`,
		Args: listAlone,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listEngines(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(newEnginesDiscover(a), newEnginesAdd(a), newEnginesRemove(a), newEnginesUse(a))
	return cmd
}

// wayToAnEngine is what a person without an engine can do.
const wayToAnEngine = "Start one (ollama serve; llama-server -m MODEL.gguf), or add one that is elsewhere: drover engines add NAME --preset PRESET --url URL"

// engineRow is one engine and how it is.
type engineRow struct {
	name, preset, address string
	key                   string // the reference
	health                engine.Health
	// err is why the engine cannot be used or gives no list, nil if it does.
	err error
}

func (a *app) listEngines(ctx context.Context, asJSON bool) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	rows := a.engineRows(ctx, cfg)
	if asJSON {
		return printJSON(a.stdout, rowsJSON(rows))
	}
	if len(rows) == 0 {
		return fmt.Errorf("no engine is configured, and none was found on this machine:\n    %s\n  %s",
			strings.ReplaceAll(a.discovery.Load().String(), "\n", "\n    "), wayToAnEngine)
	}
	if err := printEngines(a.stdout, rows); err != nil {
		return err
	}
	for _, r := range rows {
		if h := hint(r.err); h != "" {
			fmt.Fprintf(a.stderr, "drover: %s: %s\n", r.name, h)
		}
	}
	return nil
}

// engineRows asks the configured engines, or looks for some when there are none.
// One that cannot be set up is a row with its reason.
func (a *app) engineRows(ctx context.Context, cfg *config.Config) []engineRow {
	if len(cfg.Engines) == 0 {
		found := engine.Discover(ctx, &engine.DiscoverOptions{Logger: a.logger})
		a.discovery.Store(found)
		return foundRows(found)
	}
	rows := make([]engineRow, len(cfg.Engines))
	var wg sync.WaitGroup
	for i := range cfg.Engines {
		rows[i] = a.engineRow(ctx, &cfg.Engines[i])
		e := a.engine(cfg.Engines[i].Name)
		if rows[i].err != nil || e == nil {
			continue
		}
		wg.Go(func() {
			rows[i].health = e.Health(ctx)
			if rows[i].address = e.Endpoint().String(); rows[i].health.Err != nil {
				rows[i].err = rows[i].health.Err
			}
		})
	}
	wg.Wait()
	return rows
}

// engineRow sets an engine up and asks nothing yet.
func (a *app) engineRow(ctx context.Context, c *config.Engine) engineRow {
	r := engineRow{name: c.Name, preset: c.Preset, key: c.Key, address: "?"}
	if ep, err := endpointOf(c); err == nil {
		r.address = ep.String()
	}
	r.err = a.addConfigured(c, func(ref string) (string, error) { return credential(ctx, ref, keyringLimit) })
	return r
}

// endpointOf is where a configured engine listens.
func endpointOf(c *config.Engine) (engine.Endpoint, error) {
	preset, err := engine.ParsePreset(c.Preset)
	if err != nil {
		return engine.Endpoint{}, fmt.Errorf("preset: %w", err)
	}
	if c.URL != "" {
		ep, err := engine.ParseEndpoint(c.URL)
		if err != nil {
			return ep, fmt.Errorf("url: %w", err)
		}
		return ep, nil
	}
	ep, ok := preset.DefaultEndpoint()
	if !ok {
		return ep, fmt.Errorf("url is missing: the preset %s has no address of its own", preset)
	}
	return ep, nil
}

func foundRows(d *engine.Discovery) []engineRow {
	rows := make([]engineRow, 0, len(d.Found))
	for _, f := range d.Found {
		r := engineRow{name: f.Route, preset: string(f.Preset), address: f.Endpoint.String(), health: f.Health}
		if f.Health.Err != nil {
			r.err = f.Health.Err
		}
		rows = append(rows, r)
	}
	return rows
}

func printEngines(w io.Writer, rows []engineRow) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "NAME\tPRESET\tADDRESS\tKEY\tHEALTH")
	for _, r := range rows {
		key := r.key
		if key == "" {
			key = "-"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", r.name, r.preset, r.address, key, r.state())
	}
	return tw.Flush()
}

// state says in a line how an engine is.
func (r *engineRow) state() string {
	if r.err != nil {
		text := strings.TrimPrefix(r.err.Error(), "engines."+r.name+": ")
		return printable(strings.TrimPrefix(text, r.address+": "))
	}
	text := "ok, " + count(len(r.health.Models), "model")
	for _, n := range r.health.Notes {
		text += "; " + strings.TrimPrefix(n, r.address+": ")
	}
	return printable(text)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

type engineJSON struct {
	Name    string     `json:"name"`
	Preset  string     `json:"preset"`
	Address string     `json:"address"`
	Key     string     `json:"key,omitempty"` // the reference
	Healthy bool       `json:"healthy"`
	Kind    string     `json:"kind,omitempty"` // what the engine says it is
	Models  []string   `json:"models"`
	Notes   []string   `json:"notes,omitempty"`
	Error   *errorJSON `json:"error,omitempty"`
}

func rowsJSON(rows []engineRow) []engineJSON {
	list := make([]engineJSON, 0, len(rows))
	for _, r := range rows {
		j := engineJSON{
			Name: r.name, Preset: r.preset, Address: r.address, Key: r.key, Healthy: r.err == nil,
			Kind: string(r.health.Kind), Models: []string{}, Notes: r.health.Notes,
		}
		for _, m := range r.health.Models {
			j.Models = append(j.Models, m.ID)
		}
		if r.err != nil {
			j.Error = newErrorJSON(r.err)
		}
		list = append(list, j)
	}
	return list
}

func newEnginesDiscover(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "discover",
		Short: "Look for engines at the default ports of this machine, and say what was tried",
		Long: `Look for engines at the default ports of this machine, side by side, without any
key, and for at most two seconds. Every address that was tried is shown, and for
each engine the command that puts it into the configuration.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := engine.Discover(cmd.Context(), &engine.DiscoverOptions{Logger: a.logger})
			if asJSON {
				return printJSON(a.stdout, discoveryJSONOf(d))
			}
			cfg, err := a.load()
			if err != nil {
				cfg = &config.Config{} // what is found can be shown all the same
				fmt.Fprintf(a.stderr, "drover: %v\n", err)
			}
			return a.printDiscovery(d, cfg)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printDiscovery shows what was tried, and how to add what was found.
func (a *app) printDiscovery(d *engine.Discovery, cfg *config.Config) error {
	tw := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	for _, t := range d.Tried {
		what := ""
		if t.Err != nil {
			what = printable(strings.TrimPrefix(t.Err.Message, t.Endpoint.String()+": "))
		}
		rows := foundRows(d)
		for i, f := range d.Found {
			if f.Endpoint == t.Endpoint {
				what = fmt.Sprintf("%s: %s", f.Preset.Title(), rows[i].state())
			}
		}
		fmt.Fprintf(tw, "%s\t%s\n", t.Endpoint, what)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if len(d.Found) == 0 {
		return errors.New("no engine was found.\n  " + wayToAnEngine)
	}
	heading := "\nFound engines are used as they are while the configuration has none. To add one:"
	if len(cfg.Engines) > 0 {
		heading = "\nOnly the engines of the configuration are used. To add one:"
	}
	fmt.Fprintln(a.stdout, heading)
	for _, f := range d.Found {
		line := addCommand(&f, cfg)
		for i := range cfg.Engines {
			if ep, err := endpointOf(&cfg.Engines[i]); err == nil && ep == f.Endpoint {
				line = fmt.Sprintf("(%s is in the configuration as %s)", f.Endpoint, cfg.Engines[i].Name)
			}
		}
		if _, err := fmt.Fprintln(a.stdout, "  "+line); err != nil {
			return err
		}
	}
	return nil
}

// addCommand is the command that adds a found engine.
func addCommand(f *engine.Found, cfg *config.Config) string {
	name := f.Route
	if _, taken := cfg.Engine(name); taken {
		name = fmt.Sprintf("%s-%d", name, f.Endpoint.Port())
	}
	line := fmt.Sprintf("drover engines add %s --preset %s", name, f.Preset)
	if ep, ok := f.Preset.DefaultEndpoint(); !ok || ep != f.Endpoint {
		line += " --url " + f.Endpoint.Root()
	}
	return line
}

type discoveryJSON struct {
	Found []foundJSON `json:"found"`
	Tried []triedJSON `json:"tried"`
}

type foundJSON struct {
	engineJSON
	URL string `json:"url"`
}

type triedJSON struct {
	Address string     `json:"address"`
	Error   *errorJSON `json:"error,omitempty"`
}

func discoveryJSONOf(d *engine.Discovery) discoveryJSON {
	out := discoveryJSON{Found: []foundJSON{}, Tried: []triedJSON{}}
	for i, row := range rowsJSON(foundRows(d)) {
		out.Found = append(out.Found, foundJSON{row, d.Found[i].Endpoint.Root()})
	}
	for _, t := range d.Tried {
		j := triedJSON{Address: t.Endpoint.String()}
		if t.Err != nil {
			j.Error = newErrorJSON(t.Err)
		}
		out.Tried = append(out.Tried, j)
	}
	return out
}
