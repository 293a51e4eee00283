package target_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/target"
)

// probing is a provider whose descriptions wait until the test finishes them. It
// ignores its context, as the worst provider would, and numbers its answers by
// the order in which it was asked.
type probing struct {
	llmtest.Provider

	mu    sync.Mutex
	asked []chan struct{} // one for each description that waits, nil once finished
	first int             // the window of the first description, to tell owners apart
}

func (p *probing) Describe(_ context.Context, t llm.Target) (llm.ModelInfo, error) {
	p.mu.Lock()
	n, wait := len(p.asked), make(chan struct{})
	p.asked = append(p.asked, wait)
	p.mu.Unlock()
	<-wait
	return facts(p.first + n), nil
}

// finish lets one waiting description answer.
func (p *probing) finish(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked[n] != nil {
		close(p.asked[n])
		p.asked[n] = nil
	}
}

func (p *probing) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked)
}

// owner is one registration of a route.
type owner struct {
	*probing
	free func()
}

// machine is a selector beside what it should publish.
type machine struct {
	registry *catalog.Registry
	selector *target.Selector
	owners   []*owner          // every registration there was
	live     map[string]*owner // the present one of each route

	selected llm.Target
	revision uint64
	newest   *owner // who was asked by the newest selection, nil if nobody was
	probe    int    // the number of that description
	pending  bool
	since    time.Time
	window   int                // what is published
	stored   map[llm.Target]int // what is known in the process
}

func newMachine() *machine {
	m := &machine{registry: new(catalog.Registry), live: make(map[string]*owner), stored: make(map[llm.Target]int)}
	m.selector = target.NewSelector(m.registry, new(target.Store), 0)
	return m
}

// end lets every description answer, so that no goroutine stays.
func (m *machine) end() {
	for _, o := range m.owners {
		for n := range o.count() {
			o.finish(n)
		}
	}
	m.selector.Close()
	synctest.Wait()
}

func (m *machine) drawTarget(t *rapid.T) llm.Target {
	return at(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "route"), rapid.SampledFrom([]string{"m", "n"}).Draw(t, "model"))
}

// register brings a new owner for a route, or takes the present one away.
func (m *machine) register(t *rapid.T) {
	route := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "route")
	if o := m.live[route]; o != nil {
		o.free()
		delete(m.live, route)
		return
	}
	o := &owner{probing: &probing{first: 10_000 * (len(m.owners) + 1)}}
	var err error
	if o.free, err = m.registry.Register(o, route); err != nil {
		t.Fatal(err)
	}
	m.owners, m.live[route] = append(m.owners, o), o
}

func (m *machine) pick(t *rapid.T) {
	to := m.drawTarget(t)
	m.selector.Select(context.Background(), to)
	m.selecting(to)
}

// restore is a selection that takes what is known.
func (m *machine) restore(t *rapid.T) {
	to := m.drawTarget(t)
	m.selector.Restore(context.Background(), to)
	if known, ok := m.stored[to]; ok {
		m.selected, m.newest, m.pending, m.window = to, nil, false, known
		return
	}
	m.selecting(to)
}

// selecting notes a selection that has started a probe.
func (m *machine) selecting(to llm.Target) {
	if to != m.selected {
		m.window = 0
	}
	m.selected, m.newest, m.since = to, m.live[to.Provider], time.Now()
	synctest.Wait()
	if m.pending = m.newest != nil; m.pending {
		m.probe = m.newest.count() - 1
	} else {
		m.window = 0 // refused: there is no such provider
	}
}

// finish lets any description answer, the newest or one that is long stale.
func (m *machine) finish(t *rapid.T) {
	if len(m.owners) == 0 {
		t.Skip("nobody was asked")
	}
	o := rapid.SampledFrom(m.owners).Draw(t, "owner")
	if o.count() == 0 {
		t.Skip("nobody was asked")
	}
	n := rapid.IntRange(0, o.count()-1).Draw(t, "probe")
	o.finish(n)
	if m.pending && o == m.newest && n == m.probe {
		m.pending, m.window = false, o.first+n
		m.stored[m.selected] = m.window
	}
}

func (m *machine) cancel(*rapid.T) {
	m.selector.Close()
	m.pending = false
}

func (m *machine) pass(t *rapid.T) {
	time.Sleep(time.Duration(rapid.IntRange(1, 1500).Draw(t, "ms")) * time.Millisecond)
	if time.Since(m.since) >= target.ProbeTimeout {
		m.pending = false
	}
}

// check compares the selector with the machine after each action.
func (m *machine) check(t *rapid.T) {
	synctest.Wait()
	if r := m.selector.Revision(); r < m.revision {
		t.Fatalf("the revision went from %d to %d", m.revision, r)
	}
	m.revision = m.selector.Revision()
	snap, pending := m.selector.Current()
	if snap.Target != m.selected || pending != m.pending || snap.Window.Tokens != m.window {
		t.Fatalf("published %v, window %d, loading %v; want %v, %d, %v",
			snap.Target, snap.Window.Tokens, pending, m.selected, m.window, m.pending)
	}
}

// noDeadline hides the deadline of a test, which has no meaning in a bubble.
type noDeadline struct{ testing.TB }

// TestSelectionMachine selects, restores, finishes probes in any order, cancels,
// lets time pass, and takes providers away and brings others in their place. The
// revision never goes back, only the newest probe is published, and the loading
// state always ends.
func TestSelectionMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(noDeadline{t}, func(t *rapid.T) {
			m := newMachine()
			defer m.end()
			t.Repeat(map[string]func(*rapid.T){
				"register": m.register, "select": m.pick, "restore": m.restore, "finish": m.finish,
				"cancel": m.cancel, "pass": m.pass, "": m.check,
			})
		})
	})
}
