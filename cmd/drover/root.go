package main

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/engine"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

// flags are those that several commands share.
type flags struct {
	url     string
	preset  string
	model   string
	keyEnv  string
	effort  string
	mode    string
	policy  int
	logFile string
	level   string
}

func newRoot(a *app) *cobra.Command {
	var ui uiOptions
	root := &cobra.Command{
		Use:   "drover",
		Short: "Any editor or terminal, any language model, and the truth about what was sent",
		Long: `drover lets any editor or terminal work with any language model, local ones
first. It plans every request against the model's real window, asks the engine
what the model supports, sends an option that not every engine knows only where
it is proven, and keeps a log from which every request can be rebuilt.

Without a command it opens a conversation in the current folder, in the terminal
(docs/terminal.md shows the keys; /help shows them there).

Without configuration it finds Ollama, llama.cpp, LM Studio, oMLX, vMLX, vLLM
and SGLang on their default ports. "drover demo" needs no engine at all.`,
		Args:              func(cmd *cobra.Command, args []string) error { return ui.arguments(cmd, args) },
		SilenceUsage:      true,
		SilenceErrors:     true,
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.ui(cmd.Context(), &ui) },
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.openLog() },
	}
	root.SuggestionsMinimumDistance = 2
	a.uiFlags(root, &ui)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError("%w (see %s --help)", err, cmd.CommandPath())
	})
	root.PersistentFlags().StringVar(&a.flags.logFile, "log-file", "", "write diagnostics to `FILE`")
	root.PersistentFlags().StringVar(&a.flags.level, "log-level", "", "write diagnostics of `LEVEL` (debug, info, warn, error) and above")
	root.AddCommand(newRun(a), newACP(a), newModels(a), newEngines(a), newProbe(a), newAuth(a), newConfig(a), newDoctor(a), newPlan(a), newSessions(a), newMemory(a), newDemo(a), newVersion(a))
	root.CompletionOptions.HiddenDefaultCmd = true
	strictDefaults(root)
	return root
}

// strictDefaults makes mistakes of the commands that cobra adds, which answer them
// with a help text and the status of success: a shell would run that text.
func strictDefaults(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Run = nil
			c.RunE = func(_ *cobra.Command, args []string) error {
				about, rest, err := root.Find(args)
				if err != nil || len(rest) > 0 {
					return usageError("there is no command %q (see drover --help)", strings.Join(args, " "))
				}
				about.InitDefaultHelpFlag()
				return about.Help()
			}
		case "completion":
			c.Args = noArguments
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
			for _, shell := range c.Commands() {
				shell.Args = noArguments
			}
		}
	}
}

// listAlone is noArguments for a command that lists: the word "list", which people
// try, asks for no more.
func listAlone(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] == "list" {
		return nil
	}
	return noArguments(cmd, args)
}

// noArguments is cobra.NoArgs with an error that names the command to ask.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasParent() {
		return usageError("%s takes no argument %q (see %s --help)", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += fmt.Sprintf("; did you mean %q?", near[0])
	}
	return usageError("%s (see drover --help)", text)
}

func oneArgument(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usageError("%s wants one argument, %s (see %s --help)", cmd.CommandPath(), name, cmd.CommandPath())
		}
		return nil
	}
}

// engineFlags adds the flags that name an engine without a configuration.
func (a *app) engineFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&a.flags.url, "url", "", "use the engine at `URL` and none of the configuration")
	f.StringVar(&a.flags.preset, "preset", "", "the engine's kind, `PRESET`: ollama, llamacpp, lmstudio, omlx, vmlx, vllm, sglang, custom")
	f.StringVar(&a.flags.keyEnv, "key-env", "", "take the key for --url from the environment variable `NAME`")
	a.complete(cmd, "preset", func() []string {
		var names []string
		for _, p := range engine.Presets() {
			names = append(names, string(p))
		}
		return names
	})
}

// turnFlags adds the flags of commands that run turns.
func (a *app) turnFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&a.flags.model, "model", "", "the model, `PROVIDER/MODEL`; with --url the model alone")
	f.StringVar(&a.flags.effort, "effort", "", "the `EFFORT`: graze, trot, climb or summit (default climb)")
	f.StringVar(&a.flags.mode, "mode", "", "the `MODE`, what runs without asking: ask, edit, read-only or full (default ask)")
	f.IntVar(&a.flags.policy, "policy", 0, "the `NUMBER` of the budget's policy: 1 or 2 (default 2)")
	a.complete(cmd, "effort", effortNames)
	a.complete(cmd, "mode", modeNames)
}

func (a *app) complete(cmd *cobra.Command, flag string, values func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values(), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the flag does not exist: a mistake in this package
	}
}

func effortNames() []string {
	var names []string
	for _, e := range llm.Efforts() {
		names = append(names, e.String())
	}
	return names
}

func modeNames() []string {
	var names []string
	for _, m := range tool.Modes() {
		names = append(names, m.String())
	}
	return names
}

// openLog starts diagnostics as the flags say.
func (a *app) openLog() error {
	defer func() { a.registry.Logger = a.logger }()
	a.logger = slog.New(slog.DiscardHandler)
	level := slog.LevelInfo
	if a.flags.level != "" {
		if !slices.Contains([]string{"debug", "info", "warn", "error"}, a.flags.level) {
			return usageError("--log-level %s: want debug, info, warn or error", a.flags.level)
		}
		if err := level.UnmarshalText([]byte(a.flags.level)); err != nil {
			return usageError("--log-level: %w", err)
		}
	}
	switch {
	case a.flags.logFile != "":
		f, err := os.OpenFile(a.flags.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return usageError("--log-file: %w", err)
		}
		a.closers = append(a.closers, f.Close)
		a.logger = slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{Level: level}))
	case a.flags.level != "":
		a.logger = slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
	}
	return nil
}
