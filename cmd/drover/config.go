package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/config"
	"github.com/drover-dev/drover/internal/engine"
	"github.com/drover-dev/drover/internal/hosted"
)

func newConfig(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show, check or begin the configuration file",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	sub := func(use, short string, run func() error) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Args: noArguments, RunE: func(*cobra.Command, []string) error { return run() }}
	}
	cmd.AddCommand(
		sub("path", "Print where the configuration file is", a.configPath),
		sub("show", "Print the values in force, with references instead of keys", a.configShow),
		sub("check", "Look for all mistakes in the configuration file", a.configCheck),
		sub("init", "Write a file that shows every setting as a comment", a.configInit),
	)
	return cmd
}

// configFile is the path of the configuration file, which need not exist.
func configFile() (path string, exists bool, err error) {
	path = config.Path(config.FindDirs())
	if path == "" {
		return "", false, &statusError{status: exitUsage, err: config.ErrNoHome}
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	_, err = os.Stat(path)
	return path, !errors.Is(err, fs.ErrNotExist), nil
}

func (a *app) configPath() error {
	path, exists, err := configFile()
	if err != nil {
		return err
	}
	if !exists {
		fmt.Fprintln(a.stderr, "drover: the file is not there yet; drover config init writes one")
	}
	_, err = fmt.Fprintln(a.stdout, path)
	return err
}

func (a *app) configInit() error {
	path, _, err := configFile()
	if err != nil {
		return err
	}
	err = config.Init(path)
	switch {
	case errors.Is(err, config.ErrExists):
		return usageError("%w\n  It was not touched. drover config show shows what it says.", err)
	case err != nil:
		return &statusError{status: exitUsage, err: err}
	}
	_, err = fmt.Fprintf(a.stdout, "wrote %s: every setting is in it as a comment\n", path)
	return err
}

func (a *app) configCheck() error {
	path, exists, err := configFile()
	if err != nil {
		return err
	}
	if err := config.Check(path, moreMistakes); err != nil {
		return &statusError{status: exitUsage, err: err}
	}
	text := "no mistakes"
	if !exists {
		text = "the file is not there, which is no mistake: drover finds engines by itself (drover config init writes a file)"
	}
	_, err = fmt.Fprintf(a.stdout, "%s: %s\n", path, text)
	return err
}

// moreMistakes finds what only the owners of presets, addresses and the
// catalogue know.
func moreMistakes(c *config.Config) []config.Mistake {
	var list []config.Mistake
	add := func(err error, key ...string) {
		if err != nil {
			list = append(list, config.Mistake{Key: key, Message: err.Error()})
		}
	}
	for i := range c.Engines {
		e := &c.Engines[i]
		preset, err := engine.ParsePreset(e.Preset)
		add(err, "engines", e.Name, "preset")
		if e.URL != "" {
			_, err := engine.ParseEndpoint(e.URL)
			add(err, "engines", e.Name, "url")
		} else if _, ok := preset.DefaultEndpoint(); !ok && err == nil && e.Preset != "" {
			add(fmt.Errorf("the preset %s needs a url", preset), "engines", e.Name)
		}
	}
	if c.DeepSeek != nil && c.DeepSeek.URL != "" {
		_, err := engine.ParseEndpoint(c.DeepSeek.URL)
		add(err, "deepseek", "url")
	}
	for _, h := range c.Hosted {
		if h.URL != "" {
			_, err := engine.ParseEndpoint(h.URL)
			add(err, "hosted", "settings", h.ID, "url")
		}
		if _, ok := hosted.Find(h.ID); !ok && h.ID != "" && h.ID != hosted.DeepSeekRoute {
			add(fmt.Errorf("the installed catalogue has no provider %q (it has: %s)", h.ID, hostedNames()), "hosted", "providers")
		}
	}
	if r := c.Model.Provider; r != "" && !hasProvider(c, r) {
		add(fmt.Errorf("there is no engine %q (%s)", r, engineNames(c)), "model")
	}
	return list
}
