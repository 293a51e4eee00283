package acp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/mcp"
	"github.com/drover-dev/drover/internal/tool"
)

// A server that the editor names is started with the session, its tools are
// offered in the first request, and it ends with the session.
func TestServersOfTheEditor(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "shelf", Version: "1"}, nil)
	server.AddTool(&sdk.Tool{Name: "look", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{}, nil
		})
	ended := make(chan struct{})
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "open" {
			http.Error(w, "closed", http.StatusForbidden)
			return
		}
		if r.Method == http.MethodDelete {
			defer close(ended)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })

	p := &llmtest.Provider{Route: "a", List: models("m")}
	f := newFixture(t, p)
	f.opts.Agent.Connect = func(o *agent.Options) tool.Source {
		return mcp.Connect(context.Background(), o.Servers, &mcp.Options{Dir: o.Dir, Children: o.Children})
	}
	e := f.open(plain)
	var o opened
	e.Call("session/new", object{"cwd": f.dir, "mcpServers": []any{object{
		"type": "http", "name": "shelf", "url": web.URL, "headers": []any{object{"name": "X-Key", "value": "open"}},
	}}}, &o)
	ask(t, e, o.SessionID, "look")
	var names []string
	for _, d := range p.Requests()[0].Tools {
		names = append(names, d.Name)
	}
	if !slices.Contains(names, "shelf__look") {
		t.Errorf("%q", names)
	}
	e.Call("session/close", object{"sessionId": o.SessionID}, nil)
	<-ended
}
