package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/acp"
	"github.com/drover-dev/drover/internal/config"
	"github.com/drover-dev/drover/internal/tool"
)

func newACP(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "acp",
		Short: "Serve the Agent Client Protocol on stdin and stdout, for editors",
		Long: `Serve the Agent Client Protocol (version 1) on stdin and stdout. Editors start
this command themselves: name it in their settings for external agents.

Nothing is looked for and nothing is asked until the editor opens a session. A
broken configuration is told there, too.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serveACP(cmd.Context()) },
	}
	a.engineFlags(cmd)
	a.turnFlags(cmd)
	return cmd
}

func (a *app) serveACP(ctx context.Context) error {
	out, err := takeStdout(a.stdout)
	if err != nil {
		return err
	}
	opts := &acp.Options{
		Registry: &a.registry, Targets: &a.targets, Ready: a.ready,
		Version: version(), Logger: a.logger,
	}
	s, err := a.settings()
	if err != nil {
		opts.ConfigError = err
	} else {
		opts.Sessions = a.sessions()
		opts.Target, opts.Effort, opts.Mode = s.target, s.effort, s.mode
		// The editor's first message waits for this.
		opts.Agent = a.agentOptions(s, keysWithin(ctx, keyringLimit))
		opts.Terminals, opts.Secrets = a.config.EditorTerminal, secretsOf(config.Environment(), opts.Agent.Environ)
	}
	return acp.Serve(ctx, a.stdin, out, opts)
}

// secretsOf names the variables that are in an environment and that a command
// with the other one does not see.
func secretsOf(environ, given []string) []string {
	seen := make(map[string]bool)
	for _, e := range tool.SafeEnviron(given) {
		name, _, _ := strings.Cut(e, "=")
		seen[name] = true
	}
	var names []string
	for _, e := range environ {
		if name, _, _ := strings.Cut(e, "="); name != "" && !seen[name] {
			names = append(names, name)
		}
	}
	return names
}

// ready connects, and says what was tried when there is no engine. Who waits for it
// goes on without when ctx ends; that does not end the wait for a key, behind which
// the engines are there for whoever asks next.
func (a *app) ready(ctx context.Context) error {
	if err := a.connect(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	if seen := a.discovery.Load(); seen != nil && len(a.registry.Providers()) == 0 {
		return errors.New(strings.ReplaceAll(seen.String(), "\n", "; "))
	}
	return nil
}
