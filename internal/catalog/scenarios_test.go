package catalog_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
)

// ask sends a request for a target through the registry and gives the answer.
func ask(ctx context.Context, r *catalog.Registry, target llm.Target) (string, error) {
	p, err := r.Lookup(target.Provider)
	if err != nil {
		return "", err
	}
	text := ""
	for ev, err := range p.Stream(ctx, &llm.Request{Snapshot: llm.Snapshot{Target: target}}) {
		if err != nil {
			return text, err
		}
		if t, ok := ev.(llm.TextDelta); ok {
			text += string(t)
		}
	}
	return text, nil
}

// TestTheListIsAdvice streams a model that the provider does not list.
func TestTheListIsAdvice(t *testing.T) {
	var r catalog.Registry
	p := &llmtest.Provider{List: []llm.ModelInfo{{ID: "m1"}}}
	mustRegister(t, &r, p, "a")
	if list, err := r.Models(t.Context(), "a"); err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	if _, err := ask(t.Context(), &r, llm.Target{Provider: "a", Model: "m2"}); err != nil {
		t.Fatal(err)
	}
	if got := p.Requests()[0].Snapshot.Target.Model; got != "m2" {
		t.Errorf("the provider was asked for %q", got)
	}
}

// TestOddIDsReachTheProvider lists ids as people make them and asks for each.
func TestOddIDsReachTheProvider(t *testing.T) {
	ids := []string{`say "hello"`, "a/b/c", `C:\m.gguf`, "q:8b", " two  words ", "模型", "\u2028\U0001F411", "/"}
	p := &llmtest.Provider{}
	for _, id := range ids {
		p.List = append(p.List, llm.ModelInfo{ID: id})
	}
	var r catalog.Registry
	mustRegister(t, &r, p, "a")
	list, err := r.Models(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range list {
		target, err := llm.ParseTarget(m.Target().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ask(t.Context(), &r, target); err != nil {
			t.Fatal(err)
		}
		if got := p.Requests()[i].Snapshot.Target; got.Model != ids[i] || got.Provider != "a" {
			t.Errorf("%q reached the provider as %q", ids[i], got.Model)
		}
	}
}

// TestListsAreDetachedBothWays changes what was returned and what the provider
// keeps.
func TestListsAreDetachedBothWays(t *testing.T) {
	var r catalog.Registry
	p := &fixed{list: []llm.ModelInfo{{Provider: "a", ID: "m", Name: "M", Notes: []string{"a note"}}}}
	mustRegister(t, &r, p, "a")
	first, err := r.Models(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	p.list[0].ID, p.list[0].Notes[0] = "renamed", "another"
	if first[0].ID != "m" || first[0].Notes[0] != "a note" {
		t.Error("the provider can change a list that was given out")
	}
	first[0].Provider = "b"
	second, err := r.Models(t.Context(), "a")
	if err != nil || second[0].ID != "renamed" {
		t.Errorf("asked again: %v, %v; a list is never kept", second, err)
	}
}

// TestAStreamOutlivesItsRegistration frees the route in the middle of an answer.
func TestAStreamOutlivesItsRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r catalog.Registry
		started, release := make(chan struct{}), make(chan struct{})
		a := llmtest.Say("from the first owner")
		a.Wait = func(context.Context) { close(started); <-release }
		unregister := mustRegister(t, &r, &llmtest.Provider{Script: []llmtest.Answer{a}}, "a")
		target := llm.Target{Provider: "a", Model: "m"}
		type answer struct {
			text string
			err  error
		}
		done := make(chan answer, 1)
		go func() {
			text, err := ask(t.Context(), &r, target)
			done <- answer{text, err}
		}()
		<-started
		unregister()
		if _, err := ask(t.Context(), &r, target); llm.CodeOf(err) != llm.CodeNoAdapter {
			t.Errorf("the next call: %v", err)
		}
		mustRegister(t, &r, &llmtest.Provider{Script: []llmtest.Answer{llmtest.Say("from the second")}}, "a")
		close(release)
		if got := <-done; got.err != nil || got.text != "from the first owner" {
			t.Errorf("the stream that ran: %q, %v", got.text, got.err)
		}
		if text, err := ask(t.Context(), &r, target); err != nil || text != "from the second" {
			t.Errorf("the route's new owner: %q, %v", text, err)
		}
	})
}

// slow says in its own words that it has no list, when its time is over.
type slow struct{ llmtest.Provider }

func (*slow) Models(ctx context.Context, _ string) ([]llm.ModelInfo, error) {
	<-ctx.Done()
	return nil, llm.Errorf(llm.CodeTimeout, "local:9: did not answer")
}

// TestEveryKindOfBrokenList has one provider of each beside a good one. Each
// says in words what is wrong with it.
func TestEveryKindOfBrokenList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r catalog.Registry
		mustRegister(t, &r, &llmtest.Provider{Hold: make(chan struct{})}, "hanging")
		mustRegister(t, &r, &llmtest.Provider{ListErr: llm.Errorf(llm.CodeTransport, "local:9: connection refused")}, "failing")
		mustRegister(t, &r, &fixed{list: []llm.ModelInfo{{Provider: "bad", ID: "m", Name: "M"}, {Provider: "bad", ID: "m", Name: "M"}}}, "bad")
		mustRegister(t, &r, &slow{}, "slow")
		mustRegister(t, &r, &llmtest.Provider{List: []llm.ModelInfo{{ID: "m"}, {ID: "n"}}}, "good")
		start := time.Now()
		all := r.All(t.Context())
		if took := time.Since(start); took > catalog.ListTimeout {
			t.Errorf("took %v", took)
		}
		for i, want := range []string{"", "connection refused", `bad: model "m" is listed twice`, "local:9: did not answer"} {
			if err := all[i].Err; err == nil || !strings.Contains(err.Error(), want) || len(all[i].Models) != 0 {
				t.Errorf("%s: %v, %v", all[i].Provider.ID, all[i].Models, err)
			}
		}
		if good := all[4]; good.Err != nil || len(good.Models) != 2 {
			t.Errorf("good: %v, %v", good.Models, good.Err)
		}
	})
}

// panicking fails as a mistake in a provider would.
type panicking struct {
	llmtest.Provider
	with func()
}

func (p *panicking) Models(context.Context, string) ([]llm.ModelInfo, error) {
	p.with()
	return nil, nil
}

func (p *panicking) Describe(context.Context, llm.Target) (llm.ModelInfo, error) {
	p.with()
	return llm.ModelInfo{}, nil
}

// TestAPanicIsThatProvidersFailure has a provider of each kind of panic beside a
// good one. The process lives on, the log says where it was, and nothing of the
// panic is shown.
func TestAPanicIsThatProvidersFailure(t *testing.T) {
	var none *llm.Error
	for name, with := range map[string]func(){
		"nil":      func() { _ = none.Error() },
		"index":    func() { _ = t.Name()[len(t.Name())] },
		"a string": func() { panic("secret-key") },
		"an error": func() { panic(llm.Errorf(llm.CodeNoAdapter, "secret-key")) },
	} {
		var log bytes.Buffer
		r := catalog.Registry{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		mustRegister(t, &r, &panicking{with: with}, "bad")
		mustRegister(t, &r, &llmtest.Provider{List: []llm.ModelInfo{{ID: "m"}}}, "good")
		all := r.All(t.Context())
		if all[1].Err != nil || len(all[1].Models) != 1 {
			t.Errorf("%s: the other provider: %+v", name, all[1])
		}
		info, err := r.Describe(t.Context(), llm.Target{Provider: "bad", Model: "m"})
		if info.Target() != (llm.Target{Provider: "bad", Model: "m"}) || info.Name != "m" {
			t.Errorf("%s: described as %+v", name, info)
		}
		for _, err := range []error{all[0].Err, err} {
			if llm.CodeOf(err) != llm.CodeUnknown || !strings.Contains(err.Error(), "bad: drover failed") || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := strings.Count(log.String(), "scenarios_test.go"); n < 2 {
			t.Errorf("%s: the log does not say where:\n%s", name, log.String())
		}
	}
	// Nobody needs a logger.
	var r catalog.Registry
	mustRegister(t, &r, &panicking{with: func() { panic("x") }}, "bad")
	if _, err := r.Models(t.Context(), "bad"); llm.CodeOf(err) != llm.CodeUnknown {
		t.Error(err)
	}
}

func TestDescribe(t *testing.T) {
	var r catalog.Registry
	mustRegister(t, &r, &llmtest.Provider{Facts: llm.ModelInfo{Window: llm.Window{Tokens: 4096}}}, "a")
	mustRegister(t, &r, struct{ llm.Provider }{&llmtest.Provider{}}, "silent")
	for _, tt := range []struct {
		route  string
		tokens int
		code   llm.Code
	}{{"a", 4096, ""}, {"silent", 0, ""}, {"nobody", 0, llm.CodeNoAdapter}} {
		target := llm.Target{Provider: tt.route, Model: "m"}
		info, err := r.Describe(t.Context(), target)
		if llm.CodeOf(err) != tt.code || info.Target() != target || info.Name != "m" || info.Window.Tokens != tt.tokens {
			t.Errorf("%s: %+v, %v", tt.route, info, err)
		}
	}
}
