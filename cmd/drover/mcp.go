package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/config"
	"github.com/drover-dev/drover/internal/mcp"
	"github.com/drover-dev/drover/internal/tool"
)

// mcpServers are the servers of the configuration that are not turned off. One
// whose settings refer to what is not there is named in a notice and left out.
func mcpServers(cfg *config.Config, key config.KeySource) (specs []tool.ServerSpec, notices []string) {
	for i := range cfg.MCP {
		s := &cfg.MCP[i]
		if slices.Contains(cfg.ToolsOff, "mcp:"+s.Name) {
			continue
		}
		env, err := s.Environ(key)
		var headers map[string]string
		if err == nil {
			headers, err = s.HTTPHeaders(key)
		}
		if err != nil {
			notices = append(notices, fmt.Sprintf("The MCP server %s is left out: %v.", s.Name, err))
			continue
		}
		specs = append(specs, tool.ServerSpec{
			Name: s.Name, Command: s.Command, Args: s.Args, Env: env, URL: s.URL, SSE: s.SSE, Headers: headers,
		})
	}
	return specs, notices
}

// useServers gives sessions the servers of the configuration, and the means to
// start those and an editor's.
func (a *app) useServers(o *agent.Options, key config.KeySource) {
	specs, notices := mcpServers(a.config, key)
	o.Servers = specs
	o.Connect = func(o *agent.Options) tool.Source {
		return mcp.Connect(context.Background(), o.Servers, &mcp.Options{
			Dir: o.Dir, Environ: o.Environ, SpillDir: o.SpillDir, Version: version(),
			Proxy: http.ProxyFromEnvironment, Children: o.Children, Notices: notices, Logger: a.logger,
		})
	}
}

// mcp shows the servers. Values of variables and headers are shown where they
// are references alone.
func (t *configText) mcp(cfg *config.Config) {
	for i := range cfg.MCP {
		s := &cfg.MCP[i]
		t.table("mcp", "servers", s.Name)
		t.setting("command", s.Command)
		if s.Args != nil {
			t.line("args", tomlStrings(s.Args), true)
		}
		t.setting("url", withoutQuery(s.URL))
		if s.URL != "" {
			t.line("sse", strconv.FormatBool(s.SSE), s.SSE)
		}
		for _, group := range []struct {
			key    string
			values map[string]string
		}{{"env", s.Env}, {"headers", s.Headers}} {
			for _, name := range slices.Sorted(maps.Keys(group.values)) {
				t.line(group.key+"."+tomlKey(name), tomlString(config.MaskValue(group.values[name])), true)
			}
		}
	}
}

// withoutQuery hides what stands behind the question mark of a URL: often a key.
func withoutQuery(u string) string {
	if before, _, ok := strings.Cut(u, "?"); ok {
		return before + "?***"
	}
	return u
}
