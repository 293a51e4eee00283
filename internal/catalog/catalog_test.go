package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
)

// renamed is a provider that gives another info than its route asks for.
type renamed struct {
	llmtest.Provider
	info llm.ProviderInfo
}

func (r *renamed) Info(string) llm.ProviderInfo { return r.info }

func mustRegister(t *testing.T, r *catalog.Registry, p llm.Provider, routes ...string) func() {
	t.Helper()
	unregister, err := r.Register(p, routes...)
	if err != nil {
		t.Fatal(err)
	}
	return unregister
}

func routes(r *catalog.Registry) []string {
	var ids []string
	for _, p := range r.Providers() {
		ids = append(ids, p.ID)
	}
	return ids
}

func TestRegisterRefusals(t *testing.T) {
	tests := []struct {
		name   string
		p      llm.Provider
		routes []string
		want   llm.Code
	}{
		{"no route", &llmtest.Provider{}, nil, llm.CodeInvalidAdapter},
		{"no provider", nil, []string{"a"}, llm.CodeInvalidAdapter},
		{"empty route", &llmtest.Provider{}, []string{"a", ""}, llm.CodeInvalidAdapter},
		{"given twice", &llmtest.Provider{}, []string{"a", "b", "a"}, llm.CodeDuplicateAdapter},
		{"third is taken", &llmtest.Provider{}, []string{"a", "b", "taken"}, llm.CodeDuplicateAdapter},
		{"another id", &renamed{info: llm.ProviderInfo{ID: "x", Name: "x"}}, []string{"a"}, llm.CodeInvalidAdapter},
		{"blank name", &renamed{info: llm.ProviderInfo{ID: "a", Name: " \t"}}, []string{"a"}, llm.CodeInvalidAdapter},
	}
	for _, tt := range tests {
		var r catalog.Registry
		mustRegister(t, &r, &llmtest.Provider{}, "taken")
		if _, err := r.Register(tt.p, tt.routes...); llm.CodeOf(err) != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
		if got := routes(&r); !slices.Equal(got, []string{"taken"}) {
			t.Errorf("%s: left %v behind", tt.name, got)
		}
	}
}

func TestInfoIsCopiedAtRegistration(t *testing.T) {
	var r catalog.Registry
	p := &renamed{info: llm.ProviderInfo{ID: "a", Name: "first"}}
	mustRegister(t, &r, p, "a")
	p.info.Name = "second"
	r.Providers()[0].Name = "third"
	if got := r.Providers()[0].Name; got != "first" {
		t.Errorf("name %q", got)
	}
}

func TestUnregister(t *testing.T) {
	var r catalog.Registry
	gone := mustRegister(t, &r, &llmtest.Provider{}, "a", "b")
	mustRegister(t, &r, &llmtest.Provider{}, "c")
	gone()
	if _, err := r.Lookup("a"); llm.CodeOf(err) != llm.CodeNoAdapter {
		t.Errorf("lookup after unregistering: %v", err)
	}
	mustRegister(t, &r, &llmtest.Provider{}, "a")
	gone() // a second time: must not free what somebody else owns now
	if got := routes(&r); !slices.Equal(got, []string{"c", "a"}) {
		t.Errorf("routes %v: a route that is registered again comes last", got)
	}
}

func TestOneOfTwoConcurrentRegistrationsWins(t *testing.T) {
	for range 200 {
		var r catalog.Registry
		var won atomic.Int32
		var wg sync.WaitGroup
		for _, list := range [][]string{{"x", "a"}, {"a", "y"}} {
			wg.Go(func() {
				if _, err := r.Register(&llmtest.Provider{}, list...); err == nil {
					won.Add(1)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || len(r.Providers()) != 2 {
			t.Fatalf("%d registrations won, routes %v", won.Load(), routes(&r))
		}
	}
}

// fixed answers with a list as it is, wrong entries included.
type fixed struct {
	llmtest.Provider
	list []llm.ModelInfo
}

func (f *fixed) Models(context.Context, string) ([]llm.ModelInfo, error) { return f.list, nil }

func TestModelsChecksTheList(t *testing.T) {
	good := llm.ModelInfo{Provider: "a", ID: "m", Name: "M"}
	for name, bad := range map[string]llm.ModelInfo{
		"wrong provider": {Provider: "b", ID: "x", Name: "X"},
		"blank id":       {Provider: "a", ID: " ", Name: "X"},
		"no name":        {Provider: "a", ID: "x", Name: ""},
		"blank name":     {Provider: "a", ID: "x", Name: " \t"},
		"duplicate":      good,
	} {
		var r catalog.Registry
		mustRegister(t, &r, &fixed{list: []llm.ModelInfo{good, bad}}, "a")
		list, err := r.Models(t.Context(), "a")
		if llm.CodeOf(err) != llm.CodeInvalidCatalog || list != nil {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
	var r catalog.Registry
	p := &fixed{list: []llm.ModelInfo{good}}
	mustRegister(t, &r, p, "a")
	list, err := r.Models(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	list[0].ID = "changed"
	if p.list[0].ID != "m" {
		t.Error("the caller holds the provider's own list")
	}
	if _, err := r.Models(t.Context(), "nobody"); llm.CodeOf(err) != llm.CodeNoAdapter {
		t.Errorf("unknown route: %v", err)
	}
}

// deaf ignores its context.
type deaf struct {
	llmtest.Provider
	release chan struct{}
}

func (d *deaf) Models(context.Context, string) ([]llm.ModelInfo, error) {
	<-d.release
	return nil, errors.New("too late")
}

func TestABrokenProviderLeavesTheOthersListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r catalog.Registry
		d := &deaf{release: make(chan struct{})}
		mustRegister(t, &r, d, "deaf")
		mustRegister(t, &r, &llmtest.Provider{ListErr: llm.Errorf(llm.CodeAuth, "needs a key")}, "failing")
		mustRegister(t, &r, &llmtest.Provider{List: []llm.ModelInfo{{ID: "m"}}}, "good")
		start := time.Now()
		all := r.All(t.Context())
		if took := time.Since(start); took != catalog.ListTimeout {
			t.Errorf("took %v", took)
		}
		codes := fmt.Sprintln(llm.CodeOf(all[0].Err), llm.CodeOf(all[1].Err), all[2].Err, len(all[2].Models))
		if codes != "TIMEOUT AUTH <nil> 1\n" {
			t.Errorf("got %s", codes)
		}
		close(d.release)
	})
}

func TestSameModelOnTwoRoutes(t *testing.T) {
	var r catalog.Registry
	a := &llmtest.Provider{Script: []llmtest.Answer{llmtest.Say("from a")}}
	b := &llmtest.Provider{Script: []llmtest.Answer{llmtest.Say("from b")}}
	mustRegister(t, &r, a, "a")
	mustRegister(t, &r, b, "b")
	for route, want := range map[string]string{"a": "from a", "b": "from b"} {
		p, err := r.Lookup(route)
		if err != nil {
			t.Fatal(err)
		}
		req := &llm.Request{Snapshot: llm.Snapshot{Target: llm.Target{Provider: route, Model: "unlisted"}}}
		for ev, err := range p.Stream(t.Context(), req) {
			if err != nil {
				t.Fatal(err)
			}
			if text, ok := ev.(llm.TextDelta); ok && string(text) != want {
				t.Errorf("route %s answered %q", route, text)
			}
		}
	}
	if len(a.Requests()) != 1 || len(b.Requests()) != 1 {
		t.Error("a request went to the wrong provider")
	}
}

// TestRegistryMachine runs random registrations against a plain model of the
// registry.
func TestRegistryMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r catalog.Registry
		var want []string
		type owned struct {
			routes []string
			free   func()
			freed  bool
		}
		var all []*owned
		t.Repeat(map[string]func(*rapid.T){
			"register": func(t *rapid.T) {
				list := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 3, rapid.ID).Draw(t, "routes")
				free, err := r.Register(&llmtest.Provider{}, list...)
				taken := slices.ContainsFunc(list, func(s string) bool { return slices.Contains(want, s) })
				if (err != nil) != taken {
					t.Fatalf("register %v with %v: %v", list, want, err)
				}
				if err == nil {
					want = append(want, list...)
					all = append(all, &owned{routes: list, free: free})
				}
			},
			"unregister": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip("nothing registered")
				}
				o := rapid.SampledFrom(all).Draw(t, "owner")
				o.free()
				if !o.freed {
					want = slices.DeleteFunc(want, func(s string) bool { return slices.Contains(o.routes, s) })
				}
				o.freed = true
			},
			"": func(t *rapid.T) {
				if got := routes(&r); !slices.Equal(got, want) {
					t.Fatalf("routes %v, want %v", got, want)
				}
			},
		})
	})
}
