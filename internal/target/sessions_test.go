package target_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/engine"
	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/target"
)

// Fifty sessions: each provider has every model, so that a model's id alone
// tells nothing.
const (
	crowdScripted = 3
	crowdEngines  = 2
	crowdModels   = 10
	crowdTurns    = 3
)

// seen is what a provider got of one request.
type seen struct{ model, system string }

// crowd is one registry with scripted providers and real engines.
type crowd struct {
	registry *catalog.Registry
	store    target.Store
	routes   []string
	got      map[string]func() []seen
}

func crowdModel(i int) string { return fmt.Sprintf("family/model-%d", i) }

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	c := &crowd{registry: new(catalog.Registry), got: make(map[string]func() []seen)}
	for i := range crowdScripted {
		p := &llmtest.Provider{Facts: facts(8192), Answer: func(int, *llm.Request) llmtest.Answer { return llmtest.Say("ok") }}
		c.add(t, fmt.Sprint("scripted-", i), p, func() []seen {
			var list []seen
			for _, r := range p.Requests() {
				list = append(list, seen{r.Snapshot.Target.Model, r.System})
			}
			return list
		})
	}
	for i := range crowdEngines {
		opts := &enginetest.Options{Preset: enginetest.LlamaCpp}
		for m := range crowdModels {
			opts.Models = append(opts.Models, enginetest.Model{ID: crowdModel(m), Window: 8192})
		}
		s := enginetest.New(t, opts)
		ep, err := engine.ParseEndpoint(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		route := fmt.Sprint("engine-", i)
		e := engine.New(route, ep, engine.LlamaCpp, nil)
		t.Cleanup(e.Close)
		c.add(t, route, e, func() []seen {
			var list []seen
			for _, chat := range s.Chats() {
				var messages []struct{ Content string }
				if err := json.Unmarshal(chat.Fields["messages"], &messages); err != nil {
					t.Error(err)
					continue
				}
				list = append(list, seen{chat.Model, messages[0].Content})
			}
			return list
		})
	}
	return c
}

func (c *crowd) add(t *testing.T, route string, p llm.Provider, got func() []seen) {
	t.Helper()
	if _, err := c.registry.Register(p, route); err != nil {
		t.Fatal(err)
	}
	c.routes, c.got[route] = append(c.routes, route), got
}

// talk is one session that selects another target before each of its turns. It
// returns how many requests each target should have got.
func (c *crowd) talk(t *testing.T, n int) map[llm.Target]int {
	sel := target.NewSelector(c.registry, &c.store, llm.Graze)
	log, err := session.NewStore("").Create("/", nil)
	if err != nil {
		t.Error(err)
		return nil
	}
	ag := agent.New(sel, log, log.NewState(), nil, nil)
	defer ag.Close()
	want := make(map[llm.Target]int)
	for i := range crowdTurns {
		to := at(c.routes[(n+i)%len(c.routes)], crowdModel((n/len(c.routes)+i)%crowdModels))
		sel.Select(t.Context(), to)
		want[to]++
		for ev := range ag.Turn(t.Context(), []llm.Part{llm.Text(fmt.Sprint("session ", n))}) {
			switch ev := ev.(type) {
			case agent.Model:
				if ev.Snapshot.Target != to {
					t.Errorf("session %d: a step runs on %v, selected %v", n, ev.Snapshot.Target, to)
				}
			case agent.End:
				if ev.Reason != agent.EndCompleted {
					t.Errorf("session %d, %v: %v, %v", n, to, ev.Reason, ev.Err)
				}
			}
		}
	}
	return want
}

// TestFiftySessions runs sessions side by side over one registry. Every request
// has to reach the provider and the model that its session selected, and its
// prompt has to name the same two.
func TestFiftySessions(t *testing.T) {
	c := newCrowd(t)
	want := make(map[llm.Target]int)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for n := range len(c.routes) * crowdModels {
		wg.Go(func() {
			counts := c.talk(t, n)
			mu.Lock()
			defer mu.Unlock()
			for to, k := range counts {
				want[to] += k
			}
		})
	}
	wg.Wait()
	got := make(map[llm.Target]int)
	for _, route := range c.routes {
		for _, s := range c.got[route]() {
			got[at(route, s.model)]++
			if name := fmt.Sprintf("You are the model %s of %s.", s.model, route); !strings.Contains(s.system, name) {
				t.Errorf("%s got a request for %s whose prompt does not say %q", route, s.model, name)
			}
		}
	}
	if len(want) != len(c.routes)*crowdModels {
		t.Errorf("%d targets were used", len(want))
	}
	for to, k := range want {
		if got[to] != k {
			t.Errorf("%v got %d requests, want %d", to, got[to], k)
		}
	}
	if len(got) != len(want) {
		t.Errorf("requests went to %d targets, %d were selected", len(got), len(want))
	}
}
