package hosted

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/drover-dev/drover/internal/engine"
	"github.com/drover-dev/drover/internal/llm"
)

// Options are the settings of a provider. Nil means all defaults.
type Options struct {
	// Key is the API key. KeyErr says why there is none, or why it cannot be
	// used.
	Key    string
	KeyErr error
	// URL replaces the provider's address.
	URL string
	// Profile is the profile of a catalogue provider's models. DeepSeek has its
	// own.
	Profile llm.Profile
	// Models, when not nil, are what DeepSeek advertises instead of its defaults.
	// A provider of the catalogue has its own.
	Models []llm.ModelInfo

	// Proxy and Logger are as in [engine.Options].
	Proxy  func(*http.Request) (*url.URL, error)
	Logger *slog.Logger
}

// Client is an [engine.Engine] that needs a key to generate, and none to tell
// what it has.
type Client struct {
	*engine.Engine
	keyErr *llm.Error // why the configured key cannot be used
}

// newClient makes a client at an address. set adds to the engine's options.
func newClient(route, address, apiPath string, o *Options, set *engine.Options) (*Client, error) {
	var ep engine.Endpoint
	if address != "" {
		var err error
		if ep, err = engine.ParseEndpoint(address); err != nil {
			return nil, err
		}
	}
	set.APIPath = apiPath
	set.Key, set.KeyRequired, set.Proxy, set.Logger = o.Key, true, o.Proxy, o.Logger
	c := &Client{}
	if o.KeyErr != nil {
		set.KeyHint = o.KeyErr.Error()
		if e, ok := errors.AsType[*llm.Error](o.KeyErr); ok && e.Code != llm.CodeMissingCredential {
			c.keyErr = e
		}
	}
	c.Engine = engine.New(route, ep, engine.Custom, set)
	return c, nil
}

// CheckKey says whether there is a key that may be sent, without any I/O.
func (c *Client) CheckKey() error {
	if c.keyErr != nil {
		return c.keyErr
	}
	return c.Engine.CheckKey()
}

// Stream implements [llm.Provider].
func (c *Client) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	if c.keyErr != nil {
		return failed(c.keyErr)
	}
	return c.Engine.Stream(ctx, req)
}

// failed is the stream of a request that was not sent.
func failed(err error) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) { yield(nil, err) }
}

// Provider is a provider of the installed catalogue.
type Provider struct {
	*Client
	entry   *Entry
	refusal *llm.Error // why the provider cannot be used, nil if it can
	// elsewhere says that the address is the owner's.
	elsewhere bool
}

var (
	_ llm.Describer = (*Client)(nil)
	_ llm.Provider  = (*Provider)(nil)
	_ llm.Describer = (*Provider)(nil)
)

// New makes the provider of an entry. One that is not supported can be made,
// too: it gives the reason wherever it is asked. The error is that of an address
// that cannot be read.
func New(e *Entry, opts *Options) (*Provider, error) {
	if opts == nil {
		opts = new(Options)
	}
	address := e.Address
	path := apiPath(address)
	if opts.URL != "" {
		if address = opts.URL; path == "/" || e.Address == "" {
			path = apiPath(address)
		}
	}
	p := &Provider{entry: e, elsewhere: opts.URL != ""}
	if e.Unsupported != "" && (!e.NeedsURL || opts.URL == "") {
		p.refusal = llm.Errorf(llm.CodeNoAdapter, "%s is not supported: %s", e.Name, e.Unsupported)
		address = ""
	}
	var err error
	p.Client, err = newClient(e.ID, address, path, opts, &engine.Options{
		Name: e.Name, Header: e.header, Profile: opts.Profile,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.ID, err)
	}
	return p, nil
}

// apiPath is what stands between an engine's root, which never ends in a
// version 1, and /chat/completions.
func apiPath(address string) string {
	if strings.HasSuffix(strings.TrimRight(address, "/"), "/v1") {
		return "/v1"
	}
	return "/"
}

// Models lists the entry's models, without asking anybody.
func (p *Provider) Models(_ context.Context, route string) ([]llm.ModelInfo, error) {
	switch {
	case route != p.entry.ID:
		return nil, llm.Errorf(llm.CodeNoAdapter, "%s is not registered as %q", p.entry.Name, route)
	case p.refusal != nil:
		return nil, p.refusal
	}
	list := p.entry.Models()
	for i := range list {
		p.own(&list[i])
	}
	return list, nil
}

// Describe gives what the entry says of a model, without asking anybody. The
// error is UNKNOWN_MODEL for a model that the entry does not have.
func (p *Provider) Describe(_ context.Context, t llm.Target) (llm.ModelInfo, error) {
	m, err := p.lookup(t)
	if err != nil {
		return llm.ModelInfo{Provider: t.Provider, ID: t.Model, Name: t.Model}, err
	}
	p.own(&m)
	return m, nil
}

// own puts in what is the owner's and not the catalogue's. Nobody knows what
// somebody takes at an address of theirs.
func (p *Provider) own(m *llm.ModelInfo) {
	m.Profile = p.Profile(m.ID)
	if p.elsewhere {
		m.Prices = llm.Prices{}
	}
}

// Stream implements [llm.Provider]. The error of a model that the entry does not
// have is UNKNOWN_MODEL, and nothing is sent.
func (p *Provider) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	if _, err := p.lookup(req.Snapshot.Target); err != nil {
		return failed(err)
	}
	return p.Client.Stream(ctx, req)
}

// Health says that the catalogue is there; the provider is not asked.
func (p *Provider) Health(ctx context.Context) engine.Health {
	h := engine.Health{Endpoint: p.Endpoint(), Err: p.refusal}
	if h.Err == nil {
		h.Models, _ = p.Models(ctx, p.entry.ID)
	}
	return h
}

// CheckKey says whether there is a key that may be sent, without any I/O.
func (p *Provider) CheckKey() error {
	if p.refusal != nil {
		return p.refusal
	}
	return p.Client.CheckKey()
}

func (p *Provider) lookup(t llm.Target) (llm.ModelInfo, error) {
	switch {
	case t.Provider != p.entry.ID:
		return llm.ModelInfo{}, llm.Errorf(llm.CodeNoAdapter, "%s is not registered as %q", p.entry.Name, t.Provider)
	case p.refusal != nil:
		return llm.ModelInfo{}, p.refusal
	}
	m, ok := p.entry.Model(t.Model)
	if !ok {
		return llm.ModelInfo{}, llm.Errorf(llm.CodeUnknownModel, "%s has no model %q in the installed catalogue", p.entry.Name, t.Model)
	}
	return m, nil
}
