package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/config"
	"github.com/drover-dev/drover/internal/engine"
	"github.com/drover-dev/drover/internal/hosted"
	"github.com/drover-dev/drover/internal/llm"
)

// deepSeekKey is where DeepSeek's key is unless the configuration says.
const deepSeekKey = "env:DEEPSEEK_API_KEY"

// online is a provider on the internet: nothing is asked about its models.
type online interface {
	llm.Provider
	llm.Describer
	Endpoint() engine.Endpoint
	Close()
}

// engineOnly reports whether the command line names one engine, to the exclusion
// of everything else.
func (a *app) engineOnly() bool { return a.flags.url != "" || a.flags.preset != "" }

// online makes the providers on the internet that this user has, unless they are
// registered: DeepSeek where something says so, then those of [hosted]. The
// catalogue is read only for [hosted].
func (a *app) online(cfg *config.Config, key config.KeySource) ([]online, error) {
	if a.engineOnly() || a.hasOnline {
		return nil, nil
	}
	var list []online
	if _, err := a.registry.Lookup(hosted.DeepSeekRoute); err != nil && a.wantsDeepSeek(cfg) {
		p, err := a.deepSeek(cfg, key)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	for i := range cfg.Hosted {
		p, err := a.hosted(cfg, &cfg.Hosted[i], key)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// wantsDeepSeek reports whether DeepSeek is this user's: it has a table, there is
// a key for it, or the chosen model is DeepSeek's. Nobody else sees a provider
// that they have no account at. An engine that the file names deepseek has the
// route.
func (a *app) wantsDeepSeek(cfg *config.Config) bool {
	if _, taken := cfg.Engine(hosted.DeepSeekRoute); taken {
		return false
	}
	chosen := cfg.Model.Provider == hosted.DeepSeekRoute || strings.HasPrefix(a.flags.model, hosted.DeepSeekRoute+"/")
	if cfg.DeepSeek != nil || chosen {
		return true
	}
	_, err := config.Credential(deepSeekKey)
	return llm.CodeOf(err) != llm.CodeMissingCredential
}

func (a *app) deepSeek(cfg *config.Config, key config.KeySource) (*hosted.Client, error) {
	opts := &hosted.Options{Proxy: http.ProxyFromEnvironment, Logger: a.logger}
	ref := deepSeekKey
	if c := cfg.DeepSeek; c != nil {
		if c.Key != "" {
			ref = c.Key
		}
		opts.URL = c.URL
		if c.Models != nil {
			opts.Models = []llm.ModelInfo{}
		}
		for _, m := range c.Models {
			opts.Models = append(opts.Models, llm.ModelInfo{ID: m.ID, Name: m.Name, Description: m.Description})
		}
	}
	opts.Key, opts.KeyErr = key(ref)
	p, err := hosted.NewDeepSeek(opts)
	if err != nil {
		return nil, usageError("deepseek.url: %w", err)
	}
	return p, nil
}

func (a *app) hosted(cfg *config.Config, c *config.HostedProvider, key config.KeySource) (*hosted.Provider, error) {
	e, ok := hosted.Find(c.ID)
	if !ok {
		return nil, &statusError{status: exitUsage, err: &config.Error{Path: cfg.Path, Problems: []config.Problem{{
			Line: c.Line, Column: c.Column,
			Message: fmt.Sprintf("hosted.providers: the installed catalogue has no provider %q (it has: %s)", c.ID, hostedNames()),
		}}}}
	}
	opts := &hosted.Options{URL: c.URL, Profile: c.Profile, Proxy: http.ProxyFromEnvironment, Logger: a.logger}
	ref := c.Key
	if ref == "" {
		ref = "env:" + e.KeyEnv
	}
	opts.Key, opts.KeyErr = key(ref)
	p, err := hosted.New(e, opts)
	if err != nil {
		return nil, usageError("hosted.settings.%w", err)
	}
	return p, nil
}

// hostedNames lists the providers of the catalogue that [hosted] can name.
func hostedNames() string {
	var names []string
	for _, e := range hosted.Entries() {
		if e.ID != hosted.DeepSeekRoute {
			names = append(names, e.ID)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// addOnline registers what [app.online] made.
func (a *app) addOnline(list []online) error {
	a.hasOnline = true
	for _, p := range list {
		if err := a.register(p); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) register(p online) error {
	if _, err := a.registry.Register(p, p.Info("").ID); err != nil {
		return err
	}
	a.providers = append(a.providers, p)
	return nil
}

// named makes sure that DeepSeek is there when a command names it.
func (a *app) named(route string) error {
	if route != hosted.DeepSeekRoute || a.engineOnly() {
		return nil // at once, also while engines are looked for
	}
	if _, err := a.registry.Lookup(route); err == nil {
		return nil // here, too
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.registry.Lookup(route); err == nil {
		return nil
	}
	cfg, err := a.load()
	if err != nil {
		return err
	}
	p, err := a.deepSeek(cfg, config.Credential)
	if err != nil {
		return err
	}
	return a.register(p)
}

// asked is what a provider says of one model when it is asked now, and where it
// was asked.
func (a *app) asked(ctx context.Context, t llm.Target) (llm.ModelInfo, string, error) {
	if err := a.named(t.Provider); err != nil {
		return llm.ModelInfo{}, "", err
	}
	for _, p := range a.providers {
		if p.Info("").ID == t.Provider {
			info, err := a.registry.Describe(ctx, t)
			return info, p.Endpoint().String(), err
		}
	}
	e := a.engine(t.Provider)
	if e == nil {
		return llm.ModelInfo{}, "", a.unknownProvider(t.Provider)
	}
	info, err := e.Examine(ctx, t)
	if err != nil {
		return llm.ModelInfo{}, "", fmt.Errorf("%s: %w", t.Provider, err)
	}
	return info, e.Endpoint().String(), nil
}

// inCatalogue says how to get at a provider that is not registered but known to
// the catalogue; "" for any other.
func (a *app) inCatalogue(route string) string {
	if a.engineOnly() || route == hosted.DeepSeekRoute {
		return ""
	}
	e, ok := hosted.Find(route)
	switch {
	case !ok:
		return ""
	case e.Unsupported != "" && !e.NeedsURL:
		return fmt.Sprintf("%s is not supported: %s", e.Name, e.Unsupported)
	}
	return fmt.Sprintf("%s is in the installed catalogue: name it in the configuration to use it ([hosted] providers = [%q], key in %s)", e.Name, e.ID, e.KeyEnv)
}
