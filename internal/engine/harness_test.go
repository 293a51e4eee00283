package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/llm"
)

// realHandshake is the handshake's limit where the clock is the real one: a busy
// machine must not decide a test. Virtual time proves the true limit.
const realHandshake = time.Minute

// start serves a fake engine on loopback and makes an engine for it.
func start(tb testing.TB, fake *enginetest.Options, preset Preset, opts *Options) (*Engine, *enginetest.Server) {
	tb.Helper()
	var o Options
	if opts != nil {
		o = *opts
	}
	o.Limits.Handshake = realHandshake
	srv := enginetest.New(tb, fake)
	e := New("lab", mustParse(tb, srv.URL), preset, &o)
	tb.Cleanup(e.Close)
	return e, srv
}

// startInMemory is start for a test inside a bubble.
func startInMemory(tb testing.TB, fake *enginetest.Options, preset Preset, opts *Options) (*Engine, *enginetest.Server) {
	tb.Helper()
	f, o := enginetest.Options{}, Options{}
	if fake != nil {
		f = *fake
	}
	if opts != nil {
		o = *opts
	}
	f.InMemory = true
	srv := enginetest.New(tb, &f)
	o.Dial = srv.Dial
	e := New("lab", mustParse(tb, srv.URL), preset, &o)
	tb.Cleanup(e.Close)
	return e, srv
}

// bubble runs a test with virtual time.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func target(model string) llm.Target { return llm.Target{Provider: "lab", Model: model} }

// request is a short chat request for a model.
func request(model, text string) *llm.Request {
	return &llm.Request{
		Snapshot:  llm.Snapshot{Target: target(model)},
		Messages:  []llm.Message{llm.UserText(text)},
		MaxTokens: 64,
	}
}

// reply is what a stream said.
type reply struct {
	text, reasoning string
	calls           llm.ToolCalls
	usage           llm.Usage
	finish          *llm.Finish
	err             *llm.Error
}

func collect(tb testing.TB, e *Engine, ctx context.Context, req *llm.Request) reply {
	tb.Helper()
	var r reply
	for event, err := range e.Stream(ctx, req) {
		if r.err != nil {
			tb.Errorf("something came after the error: %v, %v", event, err)
		}
		switch event := event.(type) {
		case llm.TextDelta:
			r.text += string(event)
		case llm.ReasoningDelta:
			r.reasoning += string(event)
		case llm.ToolCalls:
			r.calls = event
		case llm.Usage:
			r.usage = event
		case llm.Finish:
			r.finish = &event
		}
		if err != nil {
			var ok bool
			if r.err, ok = errors.AsType[*llm.Error](err); !ok {
				tb.Errorf("an error that is no *llm.Error: %T %v", err, err)
				r.err = &llm.Error{Message: err.Error()}
			}
		}
	}
	return r
}

// checkError compares an error's code and looks for a part of its message.
func checkError(tb testing.TB, err error, code llm.Code, part string) {
	tb.Helper()
	if err == nil || llm.CodeOf(err) != code || !strings.Contains(err.Error(), part) {
		tb.Errorf("got %s %v, want %s with %q", llm.CodeOf(err), err, code, part)
	}
}

// checkAsked compares what a server was asked, in order.
func checkAsked(tb testing.TB, srv *enginetest.Server, want ...string) {
	tb.Helper()
	if got := srv.Asked(); !slices.Equal(got, want) {
		tb.Errorf("asked\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}
