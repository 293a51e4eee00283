// Package llmtest has a scripted provider for tests: it answers each request
// with the next answer of a script, or with what a function says, and records
// what it was sent.
package llmtest

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/drover-dev/drover/internal/llm"
)

// Provider is a scripted [llm.Provider] and [llm.Describer]. Fill in the fields
// before use.
type Provider struct {
	Route string
	Name  string // default: the route
	// List is what Models answers; the provider's route is filled in.
	List    []llm.ModelInfo
	ListErr error
	// Facts is what Describe answers for every model; its zero value is the
	// generic-compatible state.
	Facts llm.ModelInfo
	// Hold, if set, delays Models and Describe until it is closed or the
	// context ends.
	Hold chan struct{}
	// Answer gives the answer to the n-th request, from 0. Default: the
	// scripted ones of [Provider.Script] in order, then a fixed sentence.
	Answer func(n int, req *llm.Request) Answer
	Script []Answer

	mu       sync.Mutex
	requests []llm.Request
}

// Answer is one scripted answer: events, then Err if it is set. Wait, if set, is
// called before the first event with the request's context.
type Answer struct {
	Events []llm.Event
	Err    error
	Wait   func(ctx context.Context)
}

// Say is an answer of one text.
func Say(text string) Answer {
	return Answer{Events: []llm.Event{
		llm.TextDelta(text),
		llm.Usage{PromptTokens: 100, CompletionTokens: len(text)/4 + 1},
		llm.Finish{Reason: llm.FinishStop},
	}}
}

// Call is an answer of tool calls.
func Call(calls ...llm.ToolCall) Answer {
	return Answer{Events: []llm.Event{
		llm.ToolCalls(calls),
		llm.Usage{PromptTokens: 100, CompletionTokens: 10},
		llm.Finish{Reason: llm.FinishToolCalls},
	}}
}

// Fail is an answer that is an error.
func Fail(err error) Answer { return Answer{Err: err} }

// Hang is an answer that says text and then nothing more until the request is
// cancelled.
func Hang(text string) Answer {
	a := Answer{Err: llm.Errorf(llm.CodeAborted, "cancelled")}
	if text != "" {
		a.Events = []llm.Event{llm.TextDelta(text), hang{}}
	} else {
		a.Wait = func(ctx context.Context) { <-ctx.Done() }
	}
	return a
}

// hang stands in an answer for waiting until the context ends.
type hang struct{ llm.Event }

// Info implements [llm.Provider].
func (p *Provider) Info(route string) llm.ProviderInfo {
	name := p.Name
	if name == "" {
		name = route
	}
	return llm.ProviderInfo{ID: route, Name: name}
}

func (p *Provider) hold(ctx context.Context) error {
	if p.Hold == nil {
		return nil
	}
	select {
	case <-p.Hold:
		return nil
	case <-ctx.Done():
		return llm.Errorf(llm.CodeAborted, "%w", ctx.Err())
	}
}

// Models implements [llm.Provider].
func (p *Provider) Models(ctx context.Context, route string) ([]llm.ModelInfo, error) {
	if err := p.hold(ctx); err != nil {
		return nil, err
	}
	if p.ListErr != nil {
		return nil, p.ListErr
	}
	list := slices.Clone(p.List)
	for i := range list {
		list[i].Provider = route
		if list[i].Name == "" {
			list[i].Name = list[i].ID
		}
	}
	return list, nil
}

// Describe implements [llm.Describer].
func (p *Provider) Describe(ctx context.Context, t llm.Target) (llm.ModelInfo, error) {
	info := p.Facts
	info.Provider, info.ID, info.Name = t.Provider, t.Model, t.Model
	return info, p.hold(ctx)
}

// Stream implements [llm.Provider].
func (p *Provider) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		a := p.next(req)
		if a.Wait != nil {
			a.Wait(ctx)
		}
		for _, ev := range a.Events {
			if _, ok := ev.(hang); ok {
				<-ctx.Done()
			}
			if ctx.Err() != nil {
				yield(nil, llm.Errorf(llm.CodeAborted, "%w", ctx.Err()))
				return
			}
			if !yield(ev, nil) {
				return
			}
		}
		if a.Err != nil {
			yield(nil, a.Err)
		}
	}
}

func (p *Provider) next(req *llm.Request) Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.requests)
	p.requests = append(p.requests, *req)
	switch {
	case p.Answer != nil:
		return p.Answer(n, req)
	case n < len(p.Script):
		return p.Script[n]
	}
	return Say("The script is at its end.")
}

// Requests returns what was sent so far.
func (p *Provider) Requests() []llm.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}
