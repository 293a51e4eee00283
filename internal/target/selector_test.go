package target_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/target"
)

func at(provider, model string) llm.Target { return llm.Target{Provider: provider, Model: model} }

func registry(t testing.TB, providers map[string]llm.Provider) *catalog.Registry {
	t.Helper()
	r := new(catalog.Registry)
	for route, p := range providers {
		if _, err := r.Register(p, route); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func facts(window int) llm.ModelInfo {
	return llm.ModelInfo{Window: llm.Window{Tokens: window, Source: llm.Effective}}
}

func TestWaitGivesTheProbedSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := registry(t, map[string]llm.Provider{"a": &llmtest.Provider{Facts: facts(4096)}})
		s := target.NewSelector(r, new(target.Store), llm.Trot)
		s.Select(t.Context(), at("a", "m"))
		snap, err := s.Wait(t.Context())
		if err != nil || snap.Window.Tokens != 4096 || snap.Target != at("a", "m") || snap.Effort != llm.Trot {
			t.Errorf("%+v, %v", snap, err)
		}
		if _, pending := s.Current(); pending {
			t.Error("still pending")
		}
	})
}

// deaf ignores its context.
type deaf struct {
	llmtest.Provider
	release chan struct{}
}

func (d *deaf) Describe(context.Context, llm.Target) (llm.ModelInfo, error) {
	<-d.release
	return facts(4096), nil
}

func TestASlowProbeEndsAfterItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deaf{release: make(chan struct{})}
		defer close(d.release)
		s := target.NewSelector(registry(t, map[string]llm.Provider{"a": d}), new(target.Store), 0)
		start := time.Now()
		s.Select(t.Context(), at("a", "m"))
		if snap, pending := s.Current(); !pending || snap.Target != at("a", "m") {
			t.Errorf("the choice does not hold at once: %+v, %v", snap, pending)
		}
		snap, err := s.Wait(t.Context())
		if took := time.Since(start); took != target.ProbeTimeout {
			t.Errorf("waited %v", took)
		}
		if err != nil || snap.Window.Source != llm.Fallback {
			t.Errorf("%+v, %v: want the generic state", snap, err)
		}
		if len(s.Info().Notes) == 0 {
			t.Error("nobody is told that the probe timed out")
		}
	})
}

func TestOnlyTheNewestProbePublishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &llmtest.Provider{Facts: facts(1111), Hold: make(chan struct{})}
		r := registry(t, map[string]llm.Provider{"slow": slow, "fast": &llmtest.Provider{Facts: facts(2222)}})
		store := new(target.Store)
		s := target.NewSelector(r, store, 0)
		s.Select(t.Context(), at("slow", "m"))
		s.Select(t.Context(), at("fast", "m"))
		snap, err := s.Wait(t.Context())
		if err != nil || snap.Window.Tokens != 2222 {
			t.Fatalf("%+v, %v", snap, err)
		}
		close(slow.Hold)
		synctest.Wait()
		if snap, _ := s.Current(); snap.Window.Tokens != 2222 || snap.Target.Provider != "fast" {
			t.Errorf("a stale probe published: %+v", snap)
		}
		if _, ok := store.Get(at("slow", "m")); ok {
			t.Error("a stale probe reached the store")
		}
	})
}

func TestRefusalsOfTheProvider(t *testing.T) {
	s := target.NewSelector(registry(t, nil), new(target.Store), 0)
	s.Select(t.Context(), at("gone", "m"))
	if _, err := s.Wait(t.Context()); llm.CodeOf(err) != llm.CodeNoAdapter {
		t.Errorf("%v", err)
	}
}

func TestRestoreReusesWhatIsKnown(t *testing.T) {
	p := &llmtest.Provider{Facts: facts(4096)}
	r := registry(t, map[string]llm.Provider{"a": p})
	store := new(target.Store)
	first := target.NewSelector(r, store, 0)
	first.Select(t.Context(), at("a", "m"))
	if _, err := first.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Facts = facts(8192)
	second := target.NewSelector(r, store, 0)
	second.Restore(t.Context(), at("a", "m"))
	if snap, pending := second.Current(); pending || snap.Window.Tokens != 4096 {
		t.Errorf("restored %+v, pending %v", snap.Window, pending)
	}
	second.Select(t.Context(), at("a", "m"))
	if snap, err := second.Wait(t.Context()); err != nil || snap.Window.Tokens != 8192 {
		t.Errorf("an explicit selection gives %+v, %v", snap.Window, err)
	}
	store.Forget("a")
	if _, ok := store.Get(at("a", "m")); ok {
		t.Error("the store did not forget")
	}
}

func TestRefusalsReachTheSnapshot(t *testing.T) {
	r := registry(t, map[string]llm.Provider{"a": &llmtest.Provider{}})
	store := new(target.Store)
	s := target.NewSelector(r, store, 0)
	s.Select(t.Context(), at("a", "m"))
	s.Refuse(at("a", "m"), llm.RefusedSampling)
	snap, err := s.Wait(t.Context())
	if err != nil || snap.Temperature() != nil {
		t.Errorf("%+v, %v", snap, err)
	}
	s.Select(t.Context(), at("a", "other"))
	if snap, _ := s.Wait(t.Context()); snap.Temperature() == nil {
		t.Error("a refusal of one model holds for another")
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := registry(t, map[string]llm.Provider{"a": &llmtest.Provider{Hold: make(chan struct{})}})
		s := target.NewSelector(r, new(target.Store), 0)
		s.Select(t.Context(), at("a", "m"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Wait(ctx); err != context.DeadlineExceeded {
			t.Errorf("%v", err)
		}
		s.Close()
		synctest.Wait()
		if _, pending := s.Current(); pending {
			t.Error("a cancelled probe leaves the loading state")
		}
	})
}

// watching is a provider that notes when the question about a model is taken back.
type watching struct {
	llmtest.Provider
	stopped chan llm.Target
}

func (w *watching) Describe(ctx context.Context, t llm.Target) (llm.ModelInfo, error) {
	select {
	case <-ctx.Done():
		w.stopped <- t
	case <-time.After(time.Second):
	}
	return facts(4096), nil
}

// TestAProbeEndsWithItsSelection and with nothing else: whoever selected may be
// gone before it is answered.
func TestAProbeEndsWithItsSelection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watching{stopped: make(chan llm.Target, 4)}
		s := target.NewSelector(registry(t, map[string]llm.Provider{"a": w}), new(target.Store), 0)
		start := time.Now()
		s.Select(t.Context(), at("a", "old"))
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		s.Select(ctx, at("a", "new"))
		cancel()
		if got := <-w.stopped; got.Model != "old" || time.Since(start) != 0 {
			t.Errorf("%v is taken back after %v", got, time.Since(start))
		}
		snap, err := s.Wait(t.Context())
		if err != nil || snap.Target.Model != "new" || snap.Window.Tokens != 4096 || len(w.stopped) != 0 {
			t.Errorf("%+v, %v, %d probes taken back", snap, err, len(w.stopped))
		}
	})
}

// TestSelectorMachine selects, waits and closes in any order: the revision
// never goes back and the snapshot is always that of the last selection.
func TestSelectorMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := new(catalog.Registry)
		for _, route := range []string{"a", "b"} {
			if _, err := r.Register(&llmtest.Provider{Facts: facts(4096)}, route); err != nil {
				t.Fatal(err)
			}
		}
		s := target.NewSelector(r, new(target.Store), 0)
		var last llm.Target
		var revision uint64
		t.Repeat(map[string]func(*rapid.T){
			"select": func(t *rapid.T) {
				last = at(rapid.SampledFrom([]string{"a", "b", "gone"}).Draw(t, "provider"), rapid.SampledFrom([]string{"m", "n"}).Draw(t, "model"))
				s.Select(context.Background(), last)
			},
			"restore": func(t *rapid.T) {
				last = at(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "provider"), "m")
				s.Restore(context.Background(), last)
			},
			"reprobe": func(*rapid.T) { s.Reprobe(context.Background()) },
			"close":   func(*rapid.T) { s.Close() },
			"wait": func(t *rapid.T) {
				snap, err := s.Wait(context.Background())
				if gone := last.Provider == "gone"; (llm.CodeOf(err) == llm.CodeNoAdapter) != gone && snap.Target == last {
					// Closing may have ended the probe before it could refuse.
					if !gone {
						t.Fatalf("wait for %v: %v", last, err)
					}
				}
				if snap.Target != last {
					t.Fatalf("snapshot of %v, selected %v", snap.Target, last)
				}
			},
			"": func(t *rapid.T) {
				if s.Revision() < revision {
					t.Fatal("the revision went back")
				}
				revision = s.Revision()
				if s.Target() != last {
					t.Fatalf("target %v, selected %v", s.Target(), last)
				}
			},
		})
	})
}

// late answers a description with an error of its own when its time is over.
type late struct{ llmtest.Provider }

func (*late) Describe(ctx context.Context, t llm.Target) (llm.ModelInfo, error) {
	<-ctx.Done()
	return llm.ModelInfo{}, llm.Errorf(llm.CodeTimeout, "did not answer in time")
}

func TestATimeoutIsNoRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := registry(t, map[string]llm.Provider{"a": &late{}})
		s := target.NewSelector(r, new(target.Store), 0)
		s.Select(t.Context(), at("a", "m"))
		if snap, err := s.Wait(t.Context()); err != nil || snap.Target != at("a", "m") {
			t.Errorf("%+v, %v", snap, err)
		}
	})
}

// forgetful knows a model once and cannot be asked again.
type forgetful struct {
	llmtest.Provider
	asked int
}

func (f *forgetful) Describe(_ context.Context, t llm.Target) (llm.ModelInfo, error) {
	f.asked++
	if f.asked == 1 {
		return facts(32768), nil
	}
	return llm.ModelInfo{Provider: t.Provider, ID: t.Model, Name: t.Model, Unlearned: true, Notes: []string{"refused"}}, nil
}

func TestAFailedReprobeKeepsWhatIsKnown(t *testing.T) {
	store := new(target.Store)
	s := target.NewSelector(registry(t, map[string]llm.Provider{"a": &forgetful{}}), store, 0)
	s.Select(t.Context(), at("a", "m"))
	if _, err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Reprobe(t.Context())
	snap, err := s.Wait(t.Context())
	if err != nil || snap.Window.Tokens != 32768 {
		t.Errorf("%+v, %v", snap.Window, err)
	}
	if known, _ := store.Get(at("a", "m")); known.Window.Tokens != 32768 {
		t.Errorf("the store holds %+v", known.Window)
	}
	if notes := s.Info().Notes; len(notes) != 1 || notes[0] != "refused" {
		t.Errorf("notes %v", notes)
	}
}

func TestReprobeNeverUndoesASelection(t *testing.T) {
	r := registry(t, map[string]llm.Provider{"a": &llmtest.Provider{}})
	s := target.NewSelector(r, new(target.Store), 0)
	for range 2000 {
		s.Select(t.Context(), at("a", "one"))
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.Reprobe(t.Context())
		}()
		s.Select(t.Context(), at("a", "two"))
		<-done
		if got := s.Target(); got != at("a", "two") {
			t.Fatalf("the selection is %v", got)
		}
	}
}

// odd answers descriptions with what a function says.
type odd struct {
	llmtest.Provider
	describe func(llm.Target) (llm.ModelInfo, error)
}

func (o *odd) Describe(_ context.Context, t llm.Target) (llm.ModelInfo, error) { return o.describe(t) }

// TestTroubleIsNoRefusal: only the provider's own refusal of a model keeps it
// from being used. Of anything else, a panic too, the notes tell.
func TestTroubleIsNoRefusal(t *testing.T) {
	for _, tt := range []struct {
		name     string
		describe func(llm.Target) (llm.ModelInfo, error)
		refused  llm.Code
		note     string
	}{
		{"a panic", func(llm.Target) (llm.ModelInfo, error) { panic("x") }, "", "drover failed"},
		{"another error", func(llm.Target) (llm.ModelInfo, error) {
			return llm.ModelInfo{}, llm.Errorf(llm.CodeMalformedResponse, "no JSON")
		}, "", "no JSON"},
		{"no code", func(llm.Target) (llm.ModelInfo, error) { return llm.ModelInfo{}, context.Canceled }, "", "context canceled"},
		{"unknown", func(llm.Target) (llm.ModelInfo, error) {
			return llm.ModelInfo{}, llm.Errorf(llm.CodeUnknownModel, "no such model")
		}, llm.CodeUnknownModel, ""},
	} {
		store := new(target.Store)
		s := target.NewSelector(registry(t, map[string]llm.Provider{"a": &odd{describe: tt.describe}}), store, 0)
		s.Select(t.Context(), at("a", "m"))
		snap, err := s.Wait(t.Context())
		if llm.CodeOf(err) != tt.refused || snap.Target != at("a", "m") || snap.Window.Source != llm.Fallback {
			t.Errorf("%s: %+v, %v", tt.name, snap, err)
		}
		if notes := strings.Join(s.Info().Notes, "\n"); !strings.Contains(notes, tt.note) || (notes == "") != (tt.note == "") {
			t.Errorf("%s: notes %q", tt.name, notes)
		}
		if known, ok := store.Get(at("a", "m")); ok {
			t.Errorf("%s: the store holds %+v", tt.name, known)
		}
	}
}

// TestWhatIsKnownWithoutAWindowStays: not every engine tells its window.
func TestWhatIsKnownWithoutAWindowStays(t *testing.T) {
	asked := 0
	o := &odd{describe: func(to llm.Target) (llm.ModelInfo, error) {
		info := llm.ModelInfo{Name: to.Model, Profile: llm.Qwen}
		if asked++; asked == 2 {
			info.Capabilities.Tools.Support = llm.Unsupported
		} else {
			info.Unlearned, info.Notes = true, []string{"away"}
		}
		return info, nil
	}}
	s := target.NewSelector(registry(t, map[string]llm.Provider{"a": o}), new(target.Store), 0)
	for i, want := range []llm.Support{llm.Unknown, llm.Unsupported, llm.Unsupported} {
		s.Select(t.Context(), at("a", "m"))
		snap, err := s.Wait(t.Context())
		if err != nil || snap.Capabilities.Tools.Support != want || snap.Profile != llm.Qwen {
			t.Errorf("selection %d: tools %v, profile %v, %v", i, snap.Capabilities.Tools.Support, snap.Profile, err)
		}
		if notes := s.Info().Notes; (len(notes) == 1) != (i != 1) {
			t.Errorf("selection %d: notes %v", i, notes)
		}
	}
}

// TestAnEngineThatWentOfflineIsAskedAgain: its absence shows in a list or in a
// probe. An engine that only does not answer in time is not offline.
func TestAnEngineThatWentOfflineIsAskedAgain(t *testing.T) {
	listing := func(err error) []catalog.Listing {
		return []catalog.Listing{{Provider: llm.ProviderInfo{ID: "other"}}, {Provider: llm.ProviderInfo{ID: "a"}, Err: err}}
	}
	for _, tt := range []struct {
		name   string
		listed error
		probed llm.ModelInfo
		forget bool
	}{
		{name: "a list that is not there", listed: &llm.Error{Code: llm.CodeTransport, Unreached: true}, forget: true},
		{name: "a list that is late", listed: &llm.Error{Code: llm.CodeTimeout}},
		{name: "a list", listed: nil},
		{name: "a probe of nobody", probed: llm.ModelInfo{Unlearned: true, Unreached: true}, forget: true},
		{name: "a probe that is late", probed: llm.ModelInfo{Unlearned: true}},
	} {
		store := new(target.Store)
		answer := facts(4096)
		o := &odd{describe: func(llm.Target) (llm.ModelInfo, error) { return answer, nil }}
		s := target.NewSelector(registry(t, map[string]llm.Provider{"a": o, "other": o}), store, 0)
		for _, route := range []string{"other", "a"} {
			s.Select(t.Context(), at(route, "m"))
			if _, err := s.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if tt.probed.Unlearned {
			answer = tt.probed
			s.Select(t.Context(), at("a", "m"))
			if snap, err := s.Wait(t.Context()); err != nil || snap.Window.Tokens != 4096 {
				t.Errorf("%s: %+v, %v", tt.name, snap.Window, err)
			}
		} else {
			store.Listed(listing(tt.listed))
		}
		answer = facts(8192) // it is back with another window
		for route, want := range map[string]int{"a": map[bool]int{false: 4096, true: 8192}[tt.forget], "other": 4096} {
			opened := target.NewSelector(registry(t, map[string]llm.Provider{route: o}), store, 0)
			opened.Restore(t.Context(), at(route, "m"))
			if snap, err := opened.Wait(t.Context()); err != nil || snap.Window.Tokens != want {
				t.Errorf("%s: a session on %s begins with %+v, want %d, %v", tt.name, route, snap.Window, want, err)
			}
		}
	}
}
