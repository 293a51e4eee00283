package acp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drover-dev/drover/internal/jsonrpc2"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

// approver asks the person in front of the editor. The call is on their screen
// as a pending tool call by then.
type approver struct{ c *conversation }

// Approve implements [tool.Approver]. When ctx ends the client is told that its
// answer is not needed any more, and a late one is dropped.
func (a *approver) Approve(ctx context.Context, q *tool.Question) (tool.Decision, error) {
	w := a.c.workbench()
	if w == nil {
		return tool.Cancelled, nil
	}
	var terminal []any // that the card has, and keeps
	if t := w.runningTurn(); t != nil {
		oc, err := t.shown(ctx, q.CallID)
		if err != nil {
			return tool.Cancelled, nil
		}
		terminal = oc.terminalContent()
	}
	card := describeCall(llm.ToolCall{ID: q.CallID, Name: q.Tool, Arguments: q.Arguments}, w.dir)
	call := card.announce()
	call.Kind = ""
	if call.Content = card.question(q.Action); call.Content != nil {
		call.Content = append(call.Content, terminal...)
	}
	request := permissionRequest{SessionID: a.c.id, ToolCall: call, Options: permissionOptions(q.Action.Scopes)}

	var answer struct {
		Outcome struct {
			Outcome  string `json:"outcome"`
			OptionID string `json:"optionId"`
		} `json:"outcome"`
	}
	err := a.c.srv.conn.Call(ctx, "session/request_permission", request, &answer)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, jsonrpc2.ErrClosed) {
			return tool.Cancelled, nil
		}
		return tool.RejectOnce, fmt.Errorf("the editor could not ask the user (%w); mode edit or full allows more without asking", err)
	}
	switch answer.Outcome.Outcome {
	case "cancelled":
		return tool.Cancelled, nil
	case "selected":
		return decision(answer.Outcome.OptionID, request.Options), nil
	}
	return tool.RejectOnce, nil
}

// permissionOptions are the answers on offer. Exactly one allows, for this call
// alone; whatever covers more says so and is an "always".
func permissionOptions(scopes []string) []permissionOption {
	option := func(d tool.Decision, name string) permissionOption {
		return permissionOption{ID: d.String(), Name: name, Kind: d.String()}
	}
	once := []permissionOption{option(tool.AllowOnce, "Allow"), option(tool.RejectOnce, "Reject")}
	if len(scopes) == 0 {
		return once
	}
	covered := line(strings.Join(scopes, ", "))
	return []permissionOption{
		once[0], option(tool.AllowAlways, "Always allow in this session: "+covered),
		once[1], option(tool.RejectAlways, "Always reject in this session: "+covered),
	}
}

// decision reads an option id. One that was not offered is a refusal.
func decision(id string, offered []permissionOption) tool.Decision {
	for _, o := range offered {
		if o.ID != id {
			continue
		}
		for _, d := range []tool.Decision{tool.AllowOnce, tool.AllowAlways, tool.RejectAlways} {
			if d.String() == id {
				return d
			}
		}
	}
	return tool.RejectOnce
}
