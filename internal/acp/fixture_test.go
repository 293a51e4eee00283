package acp_test

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"testing"

	"github.com/drover-dev/drover/internal/acp"
	"github.com/drover-dev/drover/internal/acp/acptest"
	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/target"
)

// fixture is what one or more servers of a test share: providers and logs.
type fixture struct {
	t    *testing.T
	dir  string // the working directory of sessions
	opts acp.Options
}

func newFixture(t *testing.T, providers ...*llmtest.Provider) *fixture {
	t.Helper()
	f := &fixture{t: t, dir: t.TempDir()}
	f.opts = acp.Options{
		Registry: new(catalog.Registry), Targets: new(target.Store),
		Sessions: session.NewStore(filepath.Join(t.TempDir(), "sessions")), Version: "1.2.3",
	}
	for _, p := range providers {
		if p.Facts.Window.Tokens == 0 { // a small window has fewer tools
			p.Facts.Window = llm.Window{Tokens: 32768, Source: llm.Effective}
		}
		f.register(p)
	}
	return f
}

func (f *fixture) register(p *llmtest.Provider) (unregister func()) {
	f.t.Helper()
	unregister, err := f.opts.Registry.Register(p, p.Route)
	if err != nil {
		f.t.Fatal(err)
	}
	return unregister
}

// connect starts a server and returns an editor for it, not initialized.
func (f *fixture) connect() *acptest.Editor {
	f.t.Helper()
	return acptest.Connect(f.t, func(ctx context.Context, in io.Reader, out io.Writer) error {
		opts := f.opts
		return acp.Serve(ctx, in, out, &opts)
	})
}

// open connects an editor of the capabilities in text and initializes it.
func (f *fixture) open(capabilities string) *acptest.Editor {
	f.t.Helper()
	e := f.connect()
	e.Advertise(json.RawMessage(capabilities))
	e.Call("initialize", object{
		"protocolVersion": 1, "clientInfo": object{"name": "test", "version": "1"},
		"clientCapabilities": json.RawMessage(capabilities),
	}, nil)
	return e
}

// object is a JSON object in a test.
type object = map[string]any

// opened is the answer that opens a session.
type opened struct {
	SessionID     string
	Modes         struct{ CurrentModeID string }
	ConfigOptions []option
}

type option struct {
	ID, Category, Type, CurrentValue string
	Options                          []value
}

// value is a value or a group of an option.
type value struct {
	Value, Name, Description string
	Group                    string
	Options                  []value
}

func (f *fixture) session(e *acptest.Editor) opened {
	f.t.Helper()
	var o opened
	e.Call("session/new", object{"cwd": f.dir, "mcpServers": []any{}}, &o)
	return o
}

func (o *opened) option(id string) *option { return find(o.ConfigOptions, id) }

func find(options []option, id string) *option {
	for i := range options {
		if options[i].ID == id {
			return &options[i]
		}
	}
	return nil
}

// values are the values of an option, those of groups too.
func (o *option) values() []string {
	var list []string
	for _, v := range o.Options {
		if v.Group != "" {
			for _, inner := range v.Options {
				list = append(list, inner.Value)
			}
			continue
		}
		list = append(list, v.Value)
	}
	return list
}

func text(s string) []object { return []object{{"type": "text", "text": s}} }

func promptOf(session, words string) object {
	return object{"sessionId": session, "prompt": text(words)}
}

// ask sends a prompt and returns why it stopped.
func ask(t *testing.T, e *acptest.Editor, session, words string) string {
	t.Helper()
	var answer struct{ StopReason string }
	e.Call("session/prompt", promptOf(session, words), &answer)
	return answer.StopReason
}

func models(ids ...string) []llm.ModelInfo {
	list := make([]llm.ModelInfo, len(ids))
	for i, id := range ids {
		list[i].ID = id
	}
	return list
}

const plain = `{}`
