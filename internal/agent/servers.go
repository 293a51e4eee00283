package agent

import (
	"context"
	"slices"

	"github.com/drover-dev/drover/internal/tool"
)

// The tools of MCP servers come and go: a step takes those that are there.

// waiter is a source that can be waited for, within a bound of its own.
type waiter interface{ Wait(ctx context.Context) }

// connect starts the session's MCP servers, without waiting for them.
func (a *Agent) connect() {
	if a.opts.Connect != nil && a.opts.Dir != "" {
		a.servers = a.opts.Connect(&a.opts)
	}
}

// remote are the tools of MCP servers, those that are turned off too.
func (a *Agent) remote() []tool.Tool {
	if a.servers == nil {
		return nil
	}
	return slices.Clone(a.servers.Tools())
}

// serverOf is how a tool's server is turned off, "" for a built-in tool.
func serverOf(t tool.Tool) string {
	if s, ok := t.(interface{ Server() string }); ok {
		return "mcp:" + s.Server()
	}
	return ""
}

// switchable are the names by which tools are turned on and off.
func (a *Agent) switchable() []string {
	var names []string
	for _, t := range a.everyTool() {
		names = append(names, t.Def().Name)
		if server := serverOf(t); server != "" && !slices.Contains(names, server) {
			names = append(names, server)
		}
	}
	return names
}

// awaitServers waits for servers that start or have other tools now, and tells
// what a person should know of them.
func (t *turn) awaitServers(ctx context.Context) {
	if t.servers == nil {
		return
	}
	if w, ok := t.servers.(waiter); ok {
		w.Wait(ctx)
	}
	for _, text := range t.servers.Notices() {
		t.emit(Notice{Kind: NoticeInfo, Text: text})
	}
}

func (a *Agent) closeServers() error {
	if a.servers == nil {
		return nil
	}
	return a.servers.Close()
}
