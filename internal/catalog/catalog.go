// Package catalog registers providers and lists, as advice, the models they
// recommend.
//
// A route has one owner. A list drives pickers and diagnostics and nothing
// else: it never changes where a request goes and never refuses one. A list is
// a value with its own error, so one broken or slow provider leaves the others
// as they are.
package catalog

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-dev/drover/internal/llm"
)

// ListTimeout bounds one provider's list of models. The provider itself gets a
// little less, so that it can say why it has none.
const (
	ListTimeout = 2 * time.Second
	listMargin  = 200 * time.Millisecond
)

// Registry holds the providers of the process by route. The zero value is
// empty and ready. It is safe for concurrent use.
type Registry struct {
	// Logger takes what is known of a provider that panics. It is set before the
	// first use; nil drops it.
	Logger *slog.Logger

	mu     sync.RWMutex
	routes []*route // in the order of registration
}

type route struct {
	name     string
	provider llm.Provider
	info     llm.ProviderInfo
}

// Register makes the provider the owner of the routes, all of them or none.
// The provider's info is copied now; later changes to it are not seen. The
// function that is returned frees the routes and may be called twice.
//
// Errors are INVALID_ADAPTER (no route, an empty one, or info that does not fit
// its route) and DUPLICATE_ADAPTER.
func (r *Registry) Register(p llm.Provider, routes ...string) (unregister func(), err error) {
	if p == nil || len(routes) == 0 {
		return nil, llm.Errorf(llm.CodeInvalidAdapter, "register provider: no route")
	}
	added := make([]*route, 0, len(routes))
	for _, name := range routes {
		if name == "" {
			return nil, llm.Errorf(llm.CodeInvalidAdapter, "register provider: empty route")
		}
		if slices.ContainsFunc(added, func(a *route) bool { return a.name == name }) {
			return nil, llm.Errorf(llm.CodeDuplicateAdapter, "register provider %q: route given twice", name)
		}
		info := p.Info(name)
		if info.ID != name {
			return nil, llm.Errorf(llm.CodeInvalidAdapter, "register provider %q: it calls itself %q", name, info.ID)
		}
		if strings.TrimSpace(info.Name) == "" {
			return nil, llm.Errorf(llm.CodeInvalidAdapter, "register provider %q: blank name", name)
		}
		added = append(added, &route{name: name, provider: p, info: info})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range added {
		if r.find(a.name) != nil {
			return nil, llm.Errorf(llm.CodeDuplicateAdapter, "register provider %q: the route is taken", a.name)
		}
	}
	r.routes = append(r.routes, added...)
	return func() { r.remove(added) }, nil
}

func (r *Registry) remove(gone []*route) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// A new slice: whoever is reading the old one goes on undisturbed.
	r.routes = slices.DeleteFunc(slices.Clone(r.routes), func(x *route) bool { return slices.Contains(gone, x) })
}

func (r *Registry) find(name string) *route {
	for _, x := range r.routes {
		if x.name == name {
			return x
		}
	}
	return nil
}

// Providers lists the registered providers in the order of registration.
func (r *Registry) Providers() []llm.ProviderInfo {
	r.mu.RLock()
	defer r.mu.RUnlock()
	infos := make([]llm.ProviderInfo, len(r.routes))
	for i, x := range r.routes {
		infos[i] = x.info
	}
	return infos
}

// Lookup finds the owner of a route. A stream that was started on it goes on
// when the route is freed. The error is NO_ADAPTER.
func (r *Registry) Lookup(name string) (llm.Provider, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if x := r.find(name); x != nil {
		return x.provider, nil
	}
	return nil, llm.Errorf(llm.CodeNoAdapter, "no provider %q: drover models lists those there are", name)
}

// Models asks the owner of a route for its list, bounded by [ListTimeout], and
// checks it: the whole list is INVALID_CATALOG when an entry belongs to another
// provider, has a blank id or name, or repeats an id.
func (r *Registry) Models(ctx context.Context, name string) ([]llm.ModelInfo, error) {
	p, err := r.Lookup(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, ListTimeout)
	defer cancel()
	own, cancelOwn := context.WithTimeout(ctx, ListTimeout-listMargin)
	defer cancelOwn()

	// A provider that ignores its context must not hold up the caller.
	type answer struct {
		models []llm.ModelInfo
		err    error
	}
	done := make(chan answer, 1)
	go func() {
		models, err := guarded(r, name, func() ([]llm.ModelInfo, error) { return p.Models(own, name) })
		done <- answer{models, err}
	}()
	select {
	case a := <-done:
		if a.err != nil {
			return nil, a.err
		}
		return checked(name, a.models)
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, llm.Errorf(llm.CodeTimeout, "%s: no list of models within %v", name, ListTimeout)
		}
		return nil, llm.Errorf(llm.CodeAborted, "%s: listing models: %w", name, ctx.Err())
	}
}

// Describe asks the owner of a target's route about the model. The answer is
// usable whatever the error says; a provider that is no [llm.Describer] knows
// nothing more. The provider bounds itself.
func (r *Registry) Describe(ctx context.Context, t llm.Target) (llm.ModelInfo, error) {
	generic := llm.ModelInfo{Provider: t.Provider, ID: t.Model, Name: t.Model}
	p, err := r.Lookup(t.Provider)
	if err != nil {
		return generic, err
	}
	d, ok := p.(llm.Describer)
	if !ok {
		return generic, nil
	}
	info, err := guarded(r, t.Provider, func() (llm.ModelInfo, error) { return d.Describe(ctx, t) })
	info.Provider, info.ID, info.Name = t.Provider, t.Model, cmp.Or(info.Name, t.Model)
	return info, err
}

// guarded calls a provider. One that panics, in whatever goroutine it is asked,
// has failed by itself: the process and the other providers go on.
func guarded[T any](r *Registry, route string, ask func() (T, error)) (answer T, err error) {
	defer func() {
		if p := recover(); p != nil {
			if r.Logger != nil {
				r.Logger.Error("catalog: provider panics", "provider", route, "panic", p, "stack", string(debug.Stack()))
			}
			err = llm.Errorf(llm.CodeUnknown, "%s: drover failed while it asked for models; "+
				"one that is named is used all the same, and --log-file tells more", route)
		}
	}()
	return ask()
}

func checked(route string, models []llm.ModelInfo) ([]llm.ModelInfo, error) {
	seen := make(map[string]bool, len(models))
	for i := range models {
		m := &models[i]
		switch {
		case m.Provider != route:
			return nil, llm.Errorf(llm.CodeInvalidCatalog, "%s: model %q claims to belong to provider %q", route, m.ID, m.Provider)
		case strings.TrimSpace(m.ID) == "" || strings.TrimSpace(m.Name) == "":
			return nil, llm.Errorf(llm.CodeInvalidCatalog, "%s: entry %d of the list of models has a blank id or name", route, i)
		case seen[m.ID]:
			return nil, llm.Errorf(llm.CodeInvalidCatalog, "%s: model %q is listed twice", route, m.ID)
		}
		seen[m.ID] = true
	}
	detached := make([]llm.ModelInfo, len(models))
	for i := range models {
		detached[i] = models[i].Clone()
	}
	return detached, nil
}

// Listing is what one provider said when it was asked for its models.
type Listing struct {
	Provider llm.ProviderInfo
	Models   []llm.ModelInfo
	Err      error
}

// All asks every provider side by side, each bounded by [ListTimeout], and
// returns their answers in the order of registration.
func (r *Registry) All(ctx context.Context) []Listing {
	infos := r.Providers()
	list := make([]Listing, len(infos))
	var wg sync.WaitGroup
	for i, info := range infos {
		wg.Go(func() {
			models, err := r.Models(ctx, info.ID)
			list[i] = Listing{Provider: info, Models: models, Err: err}
		})
	}
	wg.Wait()
	return list
}
