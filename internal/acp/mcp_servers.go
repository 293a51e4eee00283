package acp

import (
	"fmt"

	"github.com/drover-dev/drover/internal/tool"
)

// readServers reads the MCP servers that a client wants for a session. They are
// not started yet, which is said; a server that cannot be used is named and left
// out, and costs nothing else.
func readServers(o object) (servers []tool.ServerSpec, notices []string) {
	elements, _ := o.array("mcpServers")
	var names []string
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
		names = append(names, spec.Name)
	}
	if len(names) > 0 {
		notices = append(notices, fmt.Sprintf("MCP servers of the editor are not started yet by this version: %.500q.", names))
	}
	return servers, notices
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
		return spec, "the transport " + kind + " is not supported"
	default:
		return spec, fmt.Sprintf("the transport %.50q is unknown", kind)
	}
	return spec, ""
}
