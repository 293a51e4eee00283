package acp

import (
	"fmt"
	"reflect"

	"github.com/drover-dev/drover/internal/tool"
)

// readServers reads the MCP servers that a client wants for a session. They are
// started with the session; a server that cannot be used is named and left
// out, and costs nothing else.
func readServers(o object) (servers []tool.ServerSpec, notices []string) {
	elements, _ := o.array("mcpServers")
	for i, raw := range elements {
		spec, problem := readServer(readObject(raw))
		if problem != "" {
			name := spec.Name
			if name == "" {
				name = fmt.Sprintf("number %d", i+1)
			}
			notices = append(notices, fmt.Sprintf("The MCP server %.100s is left out: %s.", name, problem))
			continue
		}
		servers = append(servers, spec)
	}
	return servers, notices
}

// sameServers reports whether two messages name the same servers.
func sameServers(a, b []tool.ServerSpec) bool {
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
}

// readServer reads one server; problem is "" if it is complete.
func readServer(o object) (spec tool.ServerSpec, problem string) {
	spec.Name = o.textOr("name")
	if o == nil || spec.Name == "" {
		return spec, "it has no name"
	}
	switch kind := o.textOr("type"); kind {
	case "", "stdio":
		spec.Command = o.textOr("command")
		if spec.Command == "" {
			return spec, "it has no command"
		}
		spec.Args = o.texts("args")
		env, _ := o.array("env")
		for _, raw := range env {
			v := readObject(raw)
			if name := v.textOr("name"); name != "" {
				spec.Env = append(spec.Env, name+"="+v.textOr("value"))
			}
		}
	case "http", "sse":
		spec.URL, spec.SSE = o.textOr("url"), kind == "sse"
		if spec.URL == "" {
			return spec, "it has no url"
		}
		headers, _ := o.array("headers")
		spec.Headers = make(map[string]string, len(headers))
		for _, raw := range headers {
			h := readObject(raw)
			if name := h.textOr("name"); name != "" {
				spec.Headers[name] = h.textOr("value")
			}
		}
	default:
		return spec, fmt.Sprintf("the transport %.50q is unknown", kind)
	}
	return spec, ""
}
