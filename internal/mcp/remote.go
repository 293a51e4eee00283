package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

// remoteTool is a tool of a server.
type remoteTool struct {
	server   *server
	name     string // the server's
	def      llm.ToolDef
	readOnly bool
}

// Def implements [tool.Tool].
func (t *remoteTool) Def() llm.ToolDef { return t.def }

// Server is the name of the tool's server in its settings: "mcp:NAME" turns all
// of its tools off.
func (t *remoteTool) Server() string { return t.server.spec.Name }

// maxTitle bounds what of the arguments a person is shown, in bytes.
const maxTitle = 200

// Prepare implements [tool.Tool]. The server checks the arguments.
func (t *remoteTool) Prepare(_ context.Context, arguments string) (*tool.Action, error) {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &object) != nil || object == nil {
		return nil, errors.New("the arguments must be a JSON object")
	}
	shown := strings.Join(strings.Fields(arguments), " ")
	if len(shown) > maxTitle {
		shown = strings.ToValidUTF8(shown[:maxTitle], "") + "..."
	}
	name := t.server.spec.Name + ": " + t.name
	return &tool.Action{
		Title: name + " " + shown, Kind: tool.KindOther, Access: tool.AccessExternal, ReadOnly: t.readOnly,
		Scopes: []string{name},
		Run: func(ctx context.Context, progress func(string)) tool.Result {
			return t.run(ctx, arguments, progress)
		},
	}, nil
}

// errTooLong is why a call is given up.
var errTooLong = errors.New("it took too long")

func (t *remoteTool) run(ctx context.Context, arguments string, progress func(string)) tool.Result {
	if progress == nil {
		progress = func(string) {}
	}
	s := t.server
	ctx, cancel := context.WithTimeoutCause(ctx, s.hub.opts.CallTimeout, errTooLong)
	defer cancel()
	for again := true; ; again = false {
		l, err := s.connection(ctx)
		if err != nil {
			return tool.Failed(fmt.Sprintf("Not executed: the MCP server %s is not there: %s.", s.spec.Name, s.message(reason(err))))
		}
		result, err := l.call(ctx, t.name, arguments, progress)
		switch {
		case err == nil:
			return s.convert(t, result)
		case again && errors.Is(err, sdk.ErrSessionMissing):
			// The server does not know the session any more and ran nothing.
			s.drop(l)
			continue
		}
		return t.failed(ctx, l, err)
	}
}

// failed is the result of a call that gave none.
func (t *remoteTool) failed(ctx context.Context, l *link, err error) tool.Result {
	s := t.server
	status := tool.StatusUnknown // it may have done what it was asked for
	if t.readOnly {
		status = tool.StatusError
	}
	name := s.spec.Name
	switch wire, answered := errors.AsType[*jsonrpc.Error](err); {
	case errors.Is(err, errTooLong):
		return tool.Result{Status: status, Text: fmt.Sprintf("The call was given up after %s: the MCP server %s did not answer.", s.hub.opts.CallTimeout, name)}
	case ctx.Err() != nil:
		return tool.Result{Status: status, Text: fmt.Sprintf("The call was stopped; the MCP server %s was told so.", name)}
	case answered && wire.Code != 0:
		return tool.Failed(fmt.Sprintf("The MCP server %s refused the call: %s.", name, s.message(wire.Message)))
	}
	how := s.message(reason(s.explain(ctx, l, err)))
	if l.isGone() || errors.Is(err, sdk.ErrConnectionClosed) {
		s.drop(l)
		return tool.Result{Status: status, Text: fmt.Sprintf(
			"The MCP server %s ended while the call ran: %s. What the call has done is not known. The next call starts the server again.", name, how)}
	}
	return tool.Result{Status: status, Text: fmt.Sprintf("The call to the MCP server %s failed: %s.", name, how)}
}
