package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/agent/agenttest"
	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/tool"
)

func TestATurnOfTextAlone(t *testing.T) {
	f := newFixture(t, &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Say("Hello.")}}, nil, agent.Options{})
	events := f.turn(t.Context(), "Hi there,\nplease say hello")
	if text(events) != "Hello." || endOf(events).Reason != agent.EndCompleted {
		t.Errorf("events %v", events)
	}
	if got := f.agent.Title(); got != "Hi there," {
		t.Errorf("title %q", got)
	}
	f.check()
}

func TestEveryRequestIsRebuiltFromTheLog(t *testing.T) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprint("policy ", version), func(t *testing.T) {
			policy, _ := budget.PolicyByVersion(version)
			p := &llmtest.Provider{Facts: window(8192)}
			// Rounds of tool calls with large results, an answer, again.
			p.Answer = func(n int, _ *llm.Request) llmtest.Answer {
				if n%4 == 3 {
					return llmtest.Say(strings.Repeat("An answer that takes some room. ", 20))
				}
				return llmtest.Call(llm.ToolCall{ID: fmt.Sprint("c", n), Name: "read", Arguments: fmt.Sprintf(`{"path":"big.txt","offset":%d}`, n%4+1)})
			}
			f := newFixture(t, p, nil, agent.Options{Policy: policy})
			big := strings.Repeat("A line of a file that is read again and again.\n", 60)
			if err := os.WriteFile(filepath.Join(f.dir, "big.txt"), []byte(big), 0o600); err != nil {
				t.Fatal(err)
			}
			trimmed := false
			for i := range 4 {
				events := f.turn(t.Context(), fmt.Sprint("prompt ", i))
				if end := endOf(events); end.Reason != agent.EndCompleted {
					t.Fatalf("turn %d: %v %v", i, end.Reason, end.Err)
				}
				for _, planned := range find[agent.Planned](events) {
					trimmed = trimmed || planned.Report.Trimmed()
				}
			}
			if !trimmed || len(p.Requests()) != 16 {
				t.Errorf("trimmed %v, %d requests: the test does not reach what it is about", trimmed, len(p.Requests()))
			}
			f.check()
		})
	}
}

func TestNothingFits(t *testing.T) {
	p := &llmtest.Provider{Facts: window(600)}
	f := newFixture(t, p, nil, agent.Options{})
	end := endOf(f.turn(t.Context(), "go"))
	if end.Reason != agent.EndError || agent.Code(end.Err) != llm.CodeContextWindowExceeded {
		t.Errorf("ended %+v", end)
	}
	if len(p.Requests()) != 0 {
		t.Error("a request was sent")
	}
}

func TestASelectionTakesEffectAtTheNextStep(t *testing.T) {
	p := &llmtest.Provider{Facts: window(8192)}
	f := newFixture(t, p, nil, agent.Options{Gate: tool.NewGate(tool.ModeEdit)})
	p.Answer = func(n int, _ *llm.Request) llmtest.Answer {
		if n == 0 {
			f.selector.Select(t.Context(), llm.Target{Provider: "p", Model: "other"})
			return llmtest.Call(edit("1"))
		}
		return llmtest.Say("done")
	}
	events := f.turn(t.Context(), "go")
	for i, want := range []string{"m", "other"} {
		req := p.Requests()[i]
		if req.Snapshot.Target.Model != want || !strings.Contains(req.System, "the model "+want+" of p") {
			t.Errorf("request %d goes to %s and says:\n%s", i, req.Snapshot.Target, req.System)
		}
	}
	if models := find[agent.Model](events); len(models) != 2 {
		t.Errorf("%d model events", len(models))
	}
	f.check()
}

// TestAPlannedRequestGoesToItsProvider chooses a model of another provider when the
// request is planned and not sent.
func TestAPlannedRequestGoesToItsProvider(t *testing.T) {
	registry := new(catalog.Registry)
	providers := map[string]*llmtest.Provider{"p": {Facts: window(8192)}, "q": {Facts: window(16384)}}
	for route, p := range providers {
		if _, err := registry.Register(p, route); err != nil {
			t.Fatal(err)
		}
	}
	sel := target.NewSelector(registry, new(target.Store), 0)
	log, err := session.NewStore("").Create(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := agent.New(sel, log, log.NewState(), nil, nil)
	sel.Select(t.Context(), llm.Target{Provider: "p", Model: "m"})
	for turn := range 2 {
		for ev := range a.Turn(t.Context(), []llm.Part{llm.Text("go")}) {
			if _, ok := ev.(agent.Planned); ok && turn == 0 {
				sel.Select(t.Context(), llm.Target{Provider: "q", Model: "n"})
			}
		}
	}
	var sent []llm.Request
	for _, route := range []string{"p", "q"} {
		requests := providers[route].Requests()
		if len(requests) != 1 || requests[0].Snapshot.Target.Provider != route ||
			!strings.Contains(requests[0].System, "of "+route+".") {
			t.Fatalf("%s got %+v", route, requests)
		}
		sent = append(sent, requests...)
	}
	agenttest.Check(t, log.Records(), sent)
}

// named is a provider whose note on each model is the model's name.
type named struct{ llmtest.Provider }

func (n *named) Describe(_ context.Context, t llm.Target) (llm.ModelInfo, error) {
	info := window(8192)
	info.Notes = []string{t.Model}
	return info, nil
}

// TestNotesAreOfTheStepsModel chooses models all the time. What a step tells of its
// model is about that one.
func TestNotesAreOfTheStepsModel(t *testing.T) {
	registry := new(catalog.Registry)
	if _, err := registry.Register(&named{}, "p"); err != nil {
		t.Fatal(err)
	}
	sel := target.NewSelector(registry, new(target.Store), 0)
	log, err := session.NewStore("").Create(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	models := []llm.Target{{Provider: "p", Model: "m"}, {Provider: "p", Model: "n"}}
	sel.Select(t.Context(), models[0])
	over := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(over)
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			default:
				sel.Restore(t.Context(), models[i%2])
			}
		}
	})
	a := agent.New(sel, log, log.NewState(), nil, nil)
	for range 50 {
		for ev := range a.Turn(t.Context(), []llm.Part{llm.Text("go")}) {
			if m, ok := ev.(agent.Model); ok && len(m.Notes) > 0 && m.Notes[0] != m.Snapshot.Target.Model {
				t.Fatalf("a step of %s has the notes %q", m.Snapshot.Target, m.Notes)
			}
		}
	}
}

func TestAResumedSessionGoesOn(t *testing.T) {
	store := session.NewStore(t.TempDir())
	dir := t.TempDir()
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Say("one"), llmtest.Say("two")}}
	registry := new(catalog.Registry)
	if _, err := registry.Register(p, "p"); err != nil {
		t.Fatal(err)
	}
	sel := target.NewSelector(registry, new(target.Store), 0)
	sel.Select(t.Context(), llm.Target{Provider: "p", Model: "m"})
	log, err := store.Create(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	id := log.ID()
	first := agent.New(sel, log, log.NewState(), nil, &agent.Options{Dir: dir})
	for range first.Turn(t.Context(), []llm.Part{llm.Text("first")}) {
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	log, state, err := store.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	second := agent.New(sel, log, state, nil, &agent.Options{Dir: dir})
	for range second.Turn(t.Context(), []llm.Part{llm.Text("second")}) {
	}
	if got := p.Requests()[1].Messages; len(got) != 3 || got[1].Text() != "one" {
		t.Errorf("the second request holds %+v", got)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	agenttest.Check(t, store.Records(id), p.Requests())
}

func TestAClosedSessionRunsNothing(t *testing.T) {
	p := &llmtest.Provider{Facts: window(8192)}
	f := newFixture(t, p, nil, agent.Options{})
	f.turn(t.Context(), "one")
	if err := f.agent.Close(); err != nil {
		t.Fatal(err)
	}
	if end := endOf(f.turn(t.Context(), "two")); end.Reason != agent.EndError || len(p.Requests()) != 1 {
		t.Errorf("ended %+v after %d requests", end, len(p.Requests()))
	}
}

func TestAPanicInTheLoopEndsTheTurn(t *testing.T) {
	p := &llmtest.Provider{Facts: window(8192), Script: []llmtest.Answer{llmtest.Hang("half"), llmtest.Say("ok")}}
	f := newFixture(t, p, nil, agent.Options{})
	func() {
		defer func() { _ = recover() }()
		for ev := range f.agent.Turn(t.Context(), []llm.Part{llm.Text("go")}) {
			if _, ok := ev.(agent.Text); ok {
				panic("front end")
			}
		}
	}()
	if end := endOf(f.turn(t.Context(), "next")); end.Reason != agent.EndCompleted {
		t.Errorf("ended %+v", end)
	}
	f.check()
}

// A damaged image does not stand in the way of what is said after it: once the
// engine has failed, it is left out, also in later turns.
func TestDamagedImageIsLeftOut(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 64, 64))); err != nil {
		t.Fatal(err)
	}
	whole, err := llm.NewImage("whole.png", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	torn, err := llm.NewImage("torn.png", b.Bytes()[:b.Len()/2])
	if err != nil {
		t.Fatal(err)
	}
	for name, failure := range map[string]*llm.Error{
		"refused": {Code: llm.CodeInvalidRequest, Message: "Failed to load image or audio file"},
		"crashed": {Code: llm.CodeServer, Message: "model runner has unexpectedly stopped", Status: 500},
	} {
		t.Run(name, func(t *testing.T) {
			p := &llmtest.Provider{Facts: window(32768), Script: []llmtest.Answer{
				llmtest.Say("a sheep"), llmtest.Fail(failure), llmtest.Say("ok"), llmtest.Say("yes"), llmtest.Fail(failure),
			}}
			f := newFixture(t, p, nil, agent.Options{})
			turn := func(parts ...llm.Part) (end agent.End, notices string) {
				var events []agent.Event
				for ev := range f.agent.Turn(t.Context(), parts) {
					events = append(events, ev)
				}
				return endOf(events), fmt.Sprint(find[agent.Notice](events))
			}
			if end, notices := turn(whole, llm.Text("what is it?")); end.Reason != agent.EndCompleted || strings.Contains(notices, "left out") {
				t.Errorf("a whole image: %s, ended %+v", notices, end)
			}
			if end, notices := turn(torn, torn, llm.Text("and this?")); end.Reason != agent.EndCompleted || strings.Count(notices, "left out from now on") != 1 || !strings.Contains(notices, "torn.png") {
				t.Errorf("a damaged image: %s, ended %+v", notices, end)
			}
			if end, notices := turn(llm.Text("go on")); end.Reason != agent.EndCompleted || strings.Contains(notices, "left out") {
				t.Errorf("the turn after it: %s, ended %+v", notices, end)
			}
			// Where no damaged image is sent the failure has another reason.
			if failure.Code == llm.CodeInvalidRequest {
				if end, notices := turn(llm.Text("and now?")); end.Reason != agent.EndError || strings.Contains(notices, "left out") {
					t.Errorf("another failure: %s, ended %+v", notices, end)
				}
			}
			f.check()
		})
	}
}

func TestImagesAreSentWithAWarning(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	img, err := llm.NewImage("dot.png", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	refused := &llm.Error{Code: llm.CodeInvalidRequest, Message: "no images", Option: llm.RefusedImages}
	p := &llmtest.Provider{Facts: window(16384), Script: []llmtest.Answer{llmtest.Fail(refused), llmtest.Say("ok")}}
	f := newFixture(t, p, nil, agent.Options{})
	var events []agent.Event
	for ev := range f.agent.Turn(t.Context(), []llm.Part{img, llm.Text("what is it?")}) {
		events = append(events, ev)
	}
	notices := fmt.Sprint(find[agent.Notice](events))
	if !strings.Contains(notices, "not proven") || !strings.Contains(notices, "refuses images") || endOf(events).Reason != agent.EndCompleted {
		t.Errorf("notices %s, ended %+v", notices, endOf(events))
	}
	f.check()
}
