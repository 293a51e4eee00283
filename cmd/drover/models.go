package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/picker"
	"github.com/drover-dev/drover/internal/probe"
)

// maxProbes is how many models --probe asks about at the same time.
const maxProbes = 8

type modelsOptions struct {
	provider string
	all      bool
	probe    bool
	json     bool
}

func newModels(a *app) *cobra.Command {
	var o modelsOptions
	cmd := &cobra.Command{
		Use:   "models",
		Short: "List the models of the engines that are configured, or found on this machine",
		Long: `List the models of the engines that are configured, or found on this machine.
Coding models come first; a star marks the default. The list is advice: a model
that is not in it may be used all the same.

An engine that does not answer is named on stderr and leaves the others listed.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.models(cmd.Context(), &o) },
	}
	a.engineFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.provider, "provider", "", "only the models of the provider `NAME`")
	f.BoolVar(&o.all, "all", false, "also models that say they are not for chat")
	f.BoolVar(&o.probe, "probe", false, "ask the engines about each model (metadata alone, at most 2 s a model)")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

func (a *app) models(ctx context.Context, o *modelsOptions) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	if err := a.connect(ctx); err != nil {
		return err
	}
	if err := a.named(o.provider); err != nil {
		return err
	}
	listings := a.registry.All(ctx)
	standard, _ := picker.Default(s.target, listings) // of all, whatever is shown
	if o.provider != "" {
		if listings, err = a.only(listings, o.provider); err != nil {
			return err
		}
	}
	none := a.noModel(listings)
	shown := 0
	for i := range listings {
		l := &listings[i]
		if !o.all {
			l.Models = withoutOthers(l.Models)
		}
		l.Models = picker.Order(l.Models)
		shown += len(l.Models)
	}
	if shown == 0 && len(a.registry.Providers()) <= 1 && !o.json {
		return none
	}
	if o.probe {
		a.probeAll(ctx, listings)
	}
	if o.json {
		err = printModelsJSON(a.stdout, listings, standard)
	} else {
		err = printModels(a.stdout, listings, standard)
		a.tellFailures(listings)
	}
	if err == nil && shown == 0 {
		return exit(exitFailed)
	}
	return err
}

func (a *app) only(listings []catalog.Listing, provider string) ([]catalog.Listing, error) {
	for _, l := range listings {
		if l.Provider.ID == provider {
			return []catalog.Listing{l}, nil
		}
	}
	return nil, a.unknownProvider(provider)
}

func withoutOthers(models []llm.ModelInfo) []llm.ModelInfo {
	var chat []llm.ModelInfo
	for _, m := range models {
		if !m.NotChat {
			chat = append(chat, m)
		}
	}
	return chat
}

// probeAll replaces what the lists say by what the engines say of each model.
func (a *app) probeAll(ctx context.Context, listings []catalog.Listing) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxProbes)
	for i := range listings {
		for j := range listings[i].Models {
			m := &listings[i].Models[j]
			wg.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				if info, err := a.registry.Describe(ctx, m.Target()); err == nil {
					info.Name, info.Description, info.NotChat = m.Name, m.Description, m.NotChat
					*m = info
				}
			})
		}
	}
	wg.Wait()
}

// tellFailures names the engines that gave no list.
func (a *app) tellFailures(listings []catalog.Listing) {
	for i := range listings {
		if err := listings[i].Err; err != nil {
			fmt.Fprintf(a.stderr, "drover: %s: %s\n", listings[i].Provider.ID, explain(err))
		}
	}
}

func printModels(w io.Writer, listings []catalog.Listing, standard llm.Target) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "\tMODEL\tWINDOW\tTOOLS\tVISION\tREASONING\tBADGES")
	for i := range listings {
		for j := range listings[i].Models {
			m := &listings[i].Models[j]
			mark := ""
			if is(m, standard) {
				mark = "*"
			}
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", mark, printable(m.Target().String()), shortWindow(&m.Window),
				yesNo(m.Capabilities.Tools.Support), yesNo(m.Capabilities.Vision.Support),
				yesNo(m.Capabilities.Reasoning.Support), badges(m))
		}
	}
	return tw.Flush()
}

// is reports whether a target is a model of a list: to Ollama no tag means latest.
func is(m *llm.ModelInfo, t llm.Target) bool {
	return m.Provider == t.Provider && probe.SameTag(m.ID, t.Model)
}

func badges(m *llm.ModelInfo) string {
	var list []string
	for _, b := range picker.Badges(m) {
		list = append(list, string(b))
	}
	if m.NotChat {
		list = append(list, "not for chat")
	}
	return strings.Join(list, ", ")
}

func shortWindow(w *llm.Window) string {
	if w.Tokens == 0 {
		return "?"
	}
	return strconv.Itoa(w.Tokens) + " " + w.Source.String()
}

func yesNo(s llm.Support) string {
	switch s {
	case llm.Supported:
		return "yes"
	case llm.Unsupported:
		return "no"
	}
	return "?"
}

type modelJSON struct {
	llm.ModelInfo
	Default bool     `json:"default,omitempty"`
	Badges  []string `json:"badges,omitempty"`
}

type listingJSON struct {
	Provider llm.ProviderInfo `json:"provider"`
	Models   []modelJSON      `json:"models"`
	Error    *errorJSON       `json:"error,omitempty"`
}

func printModelsJSON(w io.Writer, listings []catalog.Listing, standard llm.Target) error {
	out := make([]listingJSON, len(listings))
	for i, l := range listings {
		out[i] = listingJSON{Provider: l.Provider, Models: []modelJSON{}}
		if l.Err != nil {
			out[i].Error = newErrorJSON(l.Err)
		}
		for _, m := range l.Models {
			j := modelJSON{ModelInfo: m, Default: is(&m, standard)}
			for _, b := range picker.Badges(&m) {
				j.Badges = append(j.Badges, string(b))
			}
			out[i].Models = append(out[i].Models, j)
		}
	}
	return printJSON(w, out)
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
