package agent_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/tool"
)

// shelf is a source of tools as package mcp has one.
type shelf struct {
	mu      sync.Mutex
	tools   []tool.Tool
	notices []string
	waited  int
	closed  bool
}

func (s *shelf) Tools() []tool.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools
}

func (s *shelf) Notices() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.notices
	s.notices = nil
	return list
}

func (s *shelf) Wait(context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waited++; s.waited == 2 { // the list has changed
		s.tools = append(slices.Clone(s.tools), book("shelf__new"))
	}
}

func (s *shelf) Close() error {
	s.closed = true
	return nil
}

type book string

func (b book) Def() llm.ToolDef { return llm.NewToolDef(string(b), "A book", nil) }
func (book) Server() string     { return "shelf" }
func (b book) Prepare(context.Context, string) (*tool.Action, error) {
	return &tool.Action{
		Title: string(b), Access: tool.AccessExternal, ReadOnly: true, Scopes: []string{"shelf: " + string(b)},
		Run: func(context.Context, func(string)) tool.Result { return tool.Result{Text: "read " + string(b)} },
	}, nil
}

func TestToolsOfServers(t *testing.T) {
	s := &shelf{tools: []tool.Tool{book("shelf__old"), book("shelf__off")}, notices: []string{"The MCP server x is left out."}}
	p := &llmtest.Provider{Facts: window(32768)}
	f := newFixture(t, p, nil, agent.Options{
		Gate: tool.NewGate(tool.ModeFull), ToolsOff: []string{"shelf__off"},
		Connect: func(o *agent.Options) tool.Source {
			if o.Dir == "" {
				t.Error("no folder")
			}
			return s
		},
	})
	offered := func(n int) string {
		var names []string
		for _, d := range p.Requests()[n].Tools {
			if strings.HasPrefix(d.Name, "shelf") {
				names = append(names, d.Name)
			}
		}
		return strings.Join(names, " ")
	}
	notices := find[agent.Notice](f.turn(t.Context(), "go"))
	if !slices.ContainsFunc(notices, func(n agent.Notice) bool { return n.Text == "The MCP server x is left out." }) {
		t.Errorf("%+v", notices)
	}
	f.turn(t.Context(), "again")
	if offered(0) != "shelf__old" || offered(1) != "shelf__new shelf__old" {
		t.Errorf("%q, then %q", offered(0), offered(1))
	}
	if err := f.agent.SetTool("mcp:shelf", false); err != nil {
		t.Error(err)
	}
	f.turn(t.Context(), "and again")
	if offered(2) != "" {
		t.Errorf("%q", offered(2))
	}
	if err := f.agent.SetTool("mcp:none", false); err == nil || !strings.Contains(err.Error(), "mcp:shelf") {
		t.Errorf("%v", err)
	}
	if err := f.agent.Close(); err != nil || !s.closed {
		t.Errorf("%v, closed %v", err, s.closed)
	}
}

// far is a tool of another server, with a description that has no room in a
// small window.
type far struct{ book }

func (far) Server() string { return "far" }

func (f far) Def() llm.ToolDef {
	return llm.NewToolDef(string(f.book), strings.Repeat("A long description of a tool. ", 200), nil)
}

func TestASmallWindowTakesTheServersThatHaveRoom(t *testing.T) {
	s := &shelf{waited: 2, tools: []tool.Tool{far{"far__atlas"}, book("shelf__novel")}}
	for size, want := range map[int]bool{8192: false, 32768: true} {
		p := &llmtest.Provider{Facts: window(size)}
		f := newFixture(t, p, nil, agent.Options{Connect: func(*agent.Options) tool.Source { return s }})
		events := f.turn(t.Context(), "go")
		var names []string
		for _, d := range p.Requests()[0].Tools {
			names = append(names, d.Name)
		}
		if slices.Contains(names, "far__atlas") != want || !slices.Contains(names, "shelf__novel") {
			t.Errorf("window %d: offered %v", size, names)
		}
		told := false
		for _, n := range find[agent.Notice](events) {
			told = told || strings.Contains(n.Text, "no room for those of mcp:far")
		}
		if told == want {
			t.Errorf("window %d: told %v", size, told)
		}
	}
}
