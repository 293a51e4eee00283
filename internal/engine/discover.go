package engine

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/probe"
)

// discoveryPort is a port to look at without any configuration, and the engine
// that is expected there when the answer does not name another.
type discoveryPort struct {
	port     uint16
	expected Preset
}

// discoveryPorts are the default and fallback ports of the presets, in the order
// of the results. oMLX, vMLX and vLLM share 8000 and name themselves.
var discoveryPorts = [...]discoveryPort{
	{11434, Ollama}, {1234, LMStudio}, {8080, LlamaCpp}, {8000, OMLX}, {8001, OMLX}, {30000, SGLang},
}

// DiscoverOptions are the settings of [Discover]. Nil means all defaults.
type DiscoverOptions struct {
	// Dial, Limits and Logger are as in [Options].
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Limits Limits
	Logger *slog.Logger
	// Known are addresses that are not looked at, and Taken are routes that no
	// engine gets.
	Known []Endpoint
	Taken []string
}

// Found is an engine that answered.
type Found struct {
	// Route is a name for the engine, unique in the result and not taken: the
	// preset's, or "local" for an engine that does not say what it is, the second
	// of a kind with "-PORT".
	Route    string
	Preset   Preset
	Endpoint Endpoint
	Health   Health
}

// Tried is one address that was looked at.
type Tried struct {
	Endpoint Endpoint
	// Err is why no engine was found there, nil if one was.
	Err *llm.Error
}

// Discovery is what [Discover] saw.
type Discovery struct {
	Found []Found
	Tried []Tried
}

// String says what was looked at, for a person who has no engine yet.
func (d *Discovery) String() string {
	if len(d.Tried) == 0 {
		return "no address was looked at"
	}
	lines := make([]string, 0, len(d.Tried))
	for _, t := range d.Tried {
		if t.Err == nil {
			lines = append(lines, fmt.Sprintf("%s: found", t.Endpoint))
		} else {
			lines = append(lines, t.Err.Message)
		}
	}
	return strings.Join(lines, "\n")
}

// Discover looks for engines at the presets' ports of 127.0.0.1, side by side
// and without keys, within [HandshakeLimit] in all. An engine that asks for a
// key or is still loading is found, with the reason in its Health.
func Discover(parent context.Context, opts *DiscoverOptions) *Discovery {
	var o DiscoverOptions
	if opts != nil {
		o = *opts
	}
	ctx, cancel := context.WithTimeoutCause(parent, o.Limits.or(loopback(0)).Handshake, errHandshake)
	defer cancel()

	ports := slices.DeleteFunc(slices.Clone(discoveryPorts[:]), func(p discoveryPort) bool {
		return slices.Contains(o.Known, loopback(p.port))
	})
	looks := make([]look, len(ports))
	var wg sync.WaitGroup
	for i, p := range ports {
		wg.Go(func() { looks[i] = lookAt(parent, ctx, p, &o) })
	}
	wg.Wait()

	d := &Discovery{}
	taken := map[string]bool{}
	for _, route := range o.Taken {
		taken[route] = true
	}
	for _, l := range looks {
		d.Tried = append(d.Tried, Tried{l.endpoint, l.missing})
		if l.missing != nil {
			continue
		}
		preset := presetOf(l.health.Kind)
		route := string(preset)
		if preset == Custom {
			route = "local"
		}
		if taken[route] {
			route = fmt.Sprintf("%s-%d", route, l.endpoint.Port())
		}
		taken[route] = true
		for i := range l.health.Models {
			l.health.Models[i].Provider = route
		}
		d.Found = append(d.Found, Found{Route: route, Preset: preset, Endpoint: l.endpoint, Health: l.health})
	}
	return d
}

// look is what was seen at one port.
type look struct {
	endpoint Endpoint
	health   Health
	missing  *llm.Error // why there is no engine
}

func lookAt(parent, ctx context.Context, p discoveryPort, o *DiscoverOptions) look {
	ep := loopback(p.port)
	e := New("", ep, Custom, &Options{Dial: o.Dial, Limits: o.Limits, Logger: o.Logger})
	defer e.Close()
	l, failure := e.list(parent, ctx, ep)
	if failure != nil {
		if l != nil && isEngineBehind(l, failure) {
			return look{endpoint: ep, health: Health{Endpoint: ep, Kind: l.kind, Err: failure}}
		}
		return look{endpoint: ep, missing: failure}
	}
	if l.kind == probe.KindUnknown {
		l.kind = e.askKind(parent, ctx, ep, p.expected)
	}
	return look{endpoint: ep, health: e.health(l, presetOf(l.kind).row().adapter)}
}

// isEngineBehind reports whether a refused list still proves an engine: one that
// names itself in the header and asks for a key, or one that loads a model.
// Anything may answer 401, so that alone proves nothing.
func isEngineBehind(l *listing, failure *llm.Error) bool {
	if failure.Loading {
		return true
	}
	refused := failure.Status == http.StatusUnauthorized || failure.Status == http.StatusForbidden
	return refused && l.kind != probe.KindUnknown
}
