package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/config"
	"github.com/drover-dev/drover/internal/engine"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/picker"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/tool"
)

// app is the process: its streams, its flags, and what is built from the
// configuration when a command first needs it.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	flags          flags
	logger         *slog.Logger
	closers        []func() error
	children       *tool.Children

	loaded sync.Once
	dirs   config.Dirs
	config *config.Config
	cfgErr error

	registry catalog.Registry
	targets  target.Store
	// discovery is what the last search for engines saw, nil when they are configured.
	discovery atomic.Pointer[engine.Discovery]

	mu        sync.Mutex
	connected bool
	engines   []*engine.Engine
	providers []online          // on the internet
	hasOnline bool              // they were added
	searched  time.Time         // the last search for engines
	silent    []engine.Endpoint // where somebody listens who does not answer: not waited for twice

	dial func(ctx context.Context, network, address string) (net.Conn, error) // for tests, else nil
}

func (a *app) close() {
	for _, e := range a.engines {
		e.Close()
	}
	for _, p := range a.providers {
		p.Close()
	}
	for _, c := range a.closers {
		if err := c(); err != nil {
			fmt.Fprintln(a.stderr, "drover:", err)
		}
	}
}

// load reads the configuration once.
func (a *app) load() (*config.Config, error) {
	a.loaded.Do(func() {
		a.dirs = config.FindDirs()
		a.config, a.cfgErr = config.Load(config.Path(a.dirs))
		if a.cfgErr != nil {
			a.cfgErr = &statusError{status: exitUsage, err: a.cfgErr}
		}
	})
	return a.config, a.cfgErr
}

// settings are the flags and the configuration together.
type settings struct {
	// target and effort are what the flags say, else the configuration; zero if
	// neither does. flagTarget and flagEffort say that it was the flags: they
	// outweigh what a session was left with. Flags that name an engine and no model
	// leave a session its model of that engine, whose route is flagRoute then.
	target                 llm.Target
	effort                 llm.Effort
	flagTarget, flagEffort bool
	flagRoute              string
	mode                   tool.Mode
	policy                 *budget.Policy
}

func (a *app) settings() (*settings, error) {
	cfg, err := a.load()
	if err != nil {
		return nil, err
	}
	if a.flags.keyEnv != "" && a.flags.url == "" && a.flags.preset == "" {
		return nil, usageError("--key-env is the key for --url or --preset: name one of them too")
	}
	s := &settings{target: cfg.Model, flagTarget: a.flags.model != "" || a.flags.url != "" || a.flags.preset != ""}
	switch {
	case a.flags.model != "":
		if s.target, err = a.parseModel(a.flags.model); err != nil {
			return nil, usageError("--model: %w", err)
		}
	case s.flagTarget:
		s.target = llm.Target{}       // of an engine that is not looked at
		s.flagRoute, _ = a.urlRoute() // a mistake is told where the engine is made
	}
	if s.effort, err = llm.ParseEffort(a.flags.effort); err != nil {
		return nil, usageError("--effort: %w", err)
	}
	s.flagEffort = s.effort != 0
	s.effort = s.effort.Or(cfg.Effort)
	mode := cfg.Mode
	if a.flags.mode != "" {
		mode = a.flags.mode
	}
	if s.mode, err = tool.ParseMode(mode); err != nil {
		return nil, usageError("--mode: %w", err)
	}
	version := budget.DefaultVersion
	for _, v := range []int{cfg.Policy, a.flags.policy} {
		if v != 0 {
			version = v
		}
	}
	policy, ok := budget.PolicyByVersion(version)
	if !ok {
		return nil, usageError("--policy %d: there are the policies 1 and 2", version)
	}
	s.policy = policy
	return s, nil
}

// parseModel reads --model. With --url or --preset the engine is known, so that
// the model alone is enough; its id may hold slashes.
func (a *app) parseModel(s string) (llm.Target, error) {
	if a.flags.url == "" && a.flags.preset == "" {
		return llm.ParseTarget(s)
	}
	route, err := a.urlRoute()
	if err != nil {
		return llm.Target{}, err
	}
	return llm.Target{Provider: route, Model: strings.TrimPrefix(s, route+"/")}, nil
}

// urlRoute names the engine of --url: its preset.
func (a *app) urlRoute() (string, error) {
	p, err := engine.ParsePreset(a.flags.preset)
	return string(p), err
}

// connect builds and registers the engines: that of --url or --preset, those of the
// configuration, or those that are found on this machine. Without any engine it
// looks again at the next call.
func (a *app) connect(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.connected {
		return a.searchAgain(ctx)
	}
	cfg, err := a.load()
	if err != nil {
		return err
	}
	key := keysWithin(ctx, unlockLimit)
	providers, err := a.online(cfg, key)
	if err != nil {
		return err
	}
	configured := cfg.Engines
	if a.flags.url != "" || a.flags.preset != "" {
		e, err := a.flagEngine()
		if err != nil {
			return err
		}
		configured = []config.Engine{e}
	}
	for i := range configured {
		if ref := configured[i].Key; ref != "" {
			_, _ = key(ref) // waited for before anything is registered
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range configured {
		if err := a.addConfigured(&configured[i], key); err != nil {
			return a.placed(err)
		}
	}
	if len(configured) == 0 {
		if err := a.search(ctx, nil); err != nil {
			return err
		}
	}
	if err := a.addOnline(providers); err != nil {
		return err
	}
	a.connected = len(a.engines) > 0
	return nil
}

// placed is the mistake of an engine with its place in the configuration, and with
// the others that are there; one of the flags has none.
func (a *app) placed(err error) error {
	if a.flags.url != "" || a.flags.preset != "" {
		return err
	}
	if all := config.Check(a.config.Path, moreMistakes); all != nil {
		return &statusError{status: exitUsage, err: all}
	}
	return err
}

// search looks for engines that are not known yet on their usual ports, without
// those to skip.
func (a *app) search(ctx context.Context, skip []engine.Endpoint) error {
	opts := &engine.DiscoverOptions{Dial: a.dial, Logger: a.logger, Known: slices.Clone(skip)}
	for _, e := range a.engines {
		opts.Known = append(opts.Known, e.Endpoint())
	}
	for _, p := range a.registry.Providers() {
		opts.Taken = append(opts.Taken, p.ID)
	}
	found := engine.Discover(ctx, opts)
	if a.discovery.Load() == nil || len(a.engines) == 0 {
		a.discovery.Store(found)
	}
	a.searched, a.silent = time.Now(), slices.Clone(skip)
	for _, t := range found.Tried {
		if t.Err != nil && t.Err.Code == llm.CodeTimeout {
			a.silent = append(a.silent, t.Endpoint)
		}
	}
	for _, f := range found.Found {
		if err := a.add(f.Route, f.Endpoint, f.Preset, &engine.Options{Dial: a.dial, Logger: a.logger}); err != nil {
			return err
		}
	}
	return nil
}

// searchInterval is how long after a search for engines the next one finds those
// that were started later: an editor keeps drover running for days.
const searchInterval = 10 * time.Second

// searchAgain adds engines that were started since the last search, where the
// configuration names none.
func (a *app) searchAgain(ctx context.Context) error {
	if a.discovery.Load() == nil || time.Since(a.searched) < searchInterval {
		return nil
	}
	return a.search(ctx, a.silent)
}

// flagEngine is the engine that --url and --preset name.
func (a *app) flagEngine() (config.Engine, error) {
	route, err := a.urlRoute()
	if err != nil {
		return config.Engine{}, usageError("--preset: %w", err)
	}
	e := config.Engine{Name: route, Preset: route, URL: a.flags.url}
	if a.flags.keyEnv != "" {
		e.Key = "env:" + a.flags.keyEnv
	}
	return e, nil
}

// addConfigured adds an engine with its key.
func (a *app) addConfigured(c *config.Engine, key config.KeySource) error {
	where := "engines." + c.Name
	switch {
	case a.flags.url != "":
		where = "--url"
	case a.flags.preset != "":
		where = "--preset"
	}
	preset, err := engine.ParsePreset(c.Preset)
	if err != nil {
		return usageError("%s: preset: %w", where, err)
	}
	ep, ok := preset.DefaultEndpoint()
	if c.URL != "" {
		if ep, err = engine.ParseEndpoint(c.URL); err != nil {
			return usageError("%s: %w", where, err)
		}
	} else if !ok {
		return usageError("%s: the preset %s needs a url", where, preset)
	}
	opts := &engine.Options{
		Insecure: c.Insecure, Context: c.Context, Profile: c.Profile,
		EngineSampling: c.EngineSampling, Logger: a.logger, Proxy: http.ProxyFromEnvironment,
		Profiles: make(map[string]llm.Profile),
	}
	if c.Name != string(preset) {
		opts.Name = c.Name
	}
	for _, m := range c.Models {
		opts.Profiles[m.ID] = m.Profile
	}
	if c.Key != "" {
		// A key that cannot be had is this engine's trouble and no other's.
		if opts.Key, err = key(c.Key); err != nil {
			opts.KeyErr = llm.Errorf(llm.CodeOf(err), "%s: %w", where, err)
		}
	}
	return a.add(c.Name, ep, preset, opts)
}

func (a *app) add(route string, ep engine.Endpoint, preset engine.Preset, opts *engine.Options) error {
	e := engine.New(route, ep, preset, opts)
	if _, err := a.registry.Register(e, route); err != nil {
		return err
	}
	a.engines = append(a.engines, e)
	return nil
}

// engine finds a connected engine by its route.
func (a *app) engine(route string) *engine.Engine {
	for _, e := range a.engines {
		if e.Info(route).ID == route {
			return e
		}
	}
	return nil
}

// choose gives the target of a command: the configured one, else the picker's
// default. note tells the person when drover chose.
func (a *app) choose(ctx context.Context, configured llm.Target) (t llm.Target, note string, err error) {
	if !configured.IsZero() {
		if err := a.provided(configured.Provider); err != nil {
			return llm.Target{}, "", err
		}
		return configured, "", nil
	}
	listings := a.registry.All(ctx)
	t, ok := picker.Default(llm.Target{}, listings)
	if !ok {
		return llm.Target{}, "", a.noModel(listings)
	}
	return t, fmt.Sprintf("using %s (--model chooses another)", t), nil
}

// sessions is the store of this user, or one in memory.
func (a *app) sessions() *session.Store {
	if a.dirs.State == "" {
		return session.NewStore("")
	}
	return session.NewStore(filepath.Join(a.dirs.State, "sessions"))
}

// agentOptions are what every session of the process has in common. key gives the
// keys of MCP servers.
func (a *app) agentOptions(s *settings, key config.KeySource) agent.Options {
	o := agent.Options{
		Sandbox: newSandbox(a.config), Children: a.children,
		Environ: withoutVariables(config.Environment(), a.keyVariables()), Policy: s.policy, Logger: a.logger,
		ScaleImages: !a.config.ImagesAsTheyAre, ModelTitles: a.config.ModelTitles, ToolsOff: a.config.ToolsOff, Instructions: a.config.Instructions, Memory: a.memory(),
	}
	o.SpillDir = a.outputs()
	a.useServers(&o, key)
	return o
}

// outputs is the folder that has one for each session with outputs that were too
// long for a result, "" if there is none.
func (a *app) outputs() string {
	if a.dirs.Cache == "" {
		return ""
	}
	return filepath.Join(a.dirs.Cache, "output")
}

// workDir is the folder that tools work in.
func workDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", usageError("the current folder: %w", err)
	}
	return filepath.EvalSymlinks(dir)
}

// keyVariables are the environment variables that hold keys of engines. Commands
// that tools run do not see them, whatever they are called.
func (a *app) keyVariables() []string {
	var names []string
	if a.flags.keyEnv != "" {
		names = append(names, a.flags.keyEnv)
	}
	for _, ref := range a.config.KeyReferences() {
		if name, ok := strings.CutPrefix(ref, "env:"); ok {
			names = append(names, name)
		}
	}
	return names
}

func withoutVariables(environ, names []string) []string {
	return slices.DeleteFunc(environ, func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.Contains(names, name)
	})
}
