package engine

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/drover-dev/drover/internal/llm"
)

// Limits of time. See [Limits] for what they cover.
const (
	// HandshakeLimit bounds all metadata calls about one model together.
	HandshakeLimit = 2 * time.Second
	// ConnectLimit bounds name lookup, connection and TLS of a generation.
	ConnectLimit = 10 * time.Second
	// LoopbackFirstByteLimit and FirstByteLimit bound the wait for the first byte
	// of an answer. On the own machine it is longer: reading a long prompt takes
	// minutes without a fast GPU.
	LoopbackFirstByteLimit = 10 * time.Minute
	FirstByteLimit         = 2 * time.Minute
	// IdleLimit bounds the wait for any further byte.
	IdleLimit = 5 * time.Minute
)

// Limits replaces limits of time. A zero field keeps the package's constant.
type Limits struct {
	Handshake time.Duration
	Connect   time.Duration
	FirstByte time.Duration
	Idle      time.Duration
}

// Options are the settings of an [Engine]. Nil means all defaults.
type Options struct {
	// Name is the engine's name for people. If empty it is the preset's title, with
	// the route where that is another than the preset's: there may be two of a kind.
	Name string
	// Key is the API key, empty for none. White space around it is dropped.
	Key string
	// KeyErr, if set, is why the configured key could not be had. Every request
	// fails with it.
	KeyErr *llm.Error
	// KeyRequired makes a generation without a key MISSING_CREDENTIAL before
	// anything is sent. KeyHint then says where to put one.
	KeyRequired bool
	KeyHint     string
	// Insecure permits sending the key over plain http to a public host.
	Insecure bool
	// APIPath is what stands between the root and /chat/completions. Empty is
	// "/v1"; "/" is nothing, for an address that has a version of its own.
	APIPath string
	// Header is added to every request.
	Header http.Header

	// Context is the user's word on the window, in tokens: it lowers what the
	// engine reports and stands in where the engine reports nothing. 0 is no
	// word.
	Context int
	// Profile is the profile of the engine's models, Profiles that of single
	// ones by id.
	Profile  llm.Profile
	Profiles map[string]llm.Profile
	// EngineSampling leaves the temperature to the engine.
	EngineSampling bool

	// Models, when not nil, is the list of models: it is given as it is and the
	// engine is not asked. The Provider of its members is set.
	Models []llm.ModelInfo
	// Window and Capabilities are declared facts about all models. With a window
	// the engine is not asked about a model.
	Window       llm.Window
	Capabilities llm.Capabilities

	// Dial replaces the dialer, for tests.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Proxy chooses the proxy of a request, as in [http.Transport]. Nil is none.
	// It is never asked about this machine.
	Proxy  func(*http.Request) (*url.URL, error)
	Limits Limits
	// Logger gets one line a request at level debug. Nil drops them.
	Logger *slog.Logger
}

// Engine is one configured inference engine. It is safe for concurrent use.
type Engine struct {
	route  string
	saved  Endpoint
	preset Preset
	opts   Options
	keyErr *llm.Error // why no request can carry the key, nil if it can
	log    *slog.Logger

	transport *http.Transport

	// active is where the engine answered last: the saved endpoint, or one of
	// the preset's fallback ports.
	active atomic.Pointer[Endpoint]
}

var (
	_ llm.Provider  = (*Engine)(nil)
	_ llm.Describer = (*Engine)(nil)
)

// New makes an engine that is registered under a route. It does no I/O. A key
// that cannot be used is reported by [Engine.CheckKey] and by every request.
func New(route string, ep Endpoint, preset Preset, opts *Options) *Engine {
	e := &Engine{route: route, saved: ep, preset: preset.row().preset}
	if opts != nil {
		e.opts = *opts
	}
	o := &e.opts
	o.Name = cmp.Or(o.Name, e.title())
	o.Key = strings.TrimSpace(o.Key)
	o.APIPath = cmp.Or(o.APIPath, "/v1")
	if o.APIPath = strings.Trim(o.APIPath, "/"); o.APIPath != "" {
		o.APIPath = "/" + o.APIPath
	}
	o.Header = o.Header.Clone()
	o.Profiles = maps.Clone(o.Profiles)
	o.Models = slices.Clone(o.Models)
	for i := range o.Models {
		o.Models[i].Provider = route
		o.Models[i].Name = cmp.Or(o.Models[i].Name, o.Models[i].ID)
	}
	o.Limits = o.Limits.or(ep)
	e.log = o.Logger
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	e.keyErr = e.checkKey()
	e.transport = e.newTransport()
	e.active.Store(&e.saved)
	return e
}

func (l Limits) or(ep Endpoint) Limits {
	firstByte := FirstByteLimit
	if ep.IsLoopback() {
		firstByte = LoopbackFirstByteLimit
	}
	return Limits{
		Handshake: cmp.Or(l.Handshake, HandshakeLimit),
		Connect:   cmp.Or(l.Connect, ConnectLimit),
		FirstByte: cmp.Or(l.FirstByte, firstByte),
		Idle:      cmp.Or(l.Idle, IdleLimit),
	}
}

// Info names the engine. It does no I/O.
func (e *Engine) Info(string) llm.ProviderInfo {
	return llm.ProviderInfo{ID: e.route, Name: e.opts.Name}
}

func (e *Engine) title() string {
	if e.route == "" || e.route == string(e.preset) {
		return e.preset.Title()
	}
	return e.preset.Title() + " (" + e.route + ")"
}

// Preset is the preset the engine was made with.
func (e *Engine) Preset() Preset { return e.preset }

// Endpoint is where requests go: the configured endpoint, or the fallback port
// where the engine was found last.
func (e *Engine) Endpoint() Endpoint { return *e.active.Load() }

// Profile is the profile that a model was given, or else the engine's.
func (e *Engine) Profile(model string) llm.Profile {
	if p, ok := e.opts.Profiles[model]; ok {
		return p
	}
	return e.opts.Profile
}

// EngineSampling reports whether the temperature is left to the engine.
func (e *Engine) EngineSampling() bool { return e.opts.EngineSampling }

// Close drops idle connections. Requests that run are not touched.
func (e *Engine) Close() { e.transport.CloseIdleConnections() }

// checkRoute answers a call for another provider's route.
func (e *Engine) checkRoute(route string) *llm.Error {
	if route != e.route {
		return llm.Errorf(llm.CodeNoAdapter, "no engine is registered as %q", route)
	}
	return nil
}
