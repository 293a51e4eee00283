package config

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
)

// MCPServer is one [mcp.servers.NAME] table: Command for a child process, else
// URL.
type MCPServer struct {
	Name    string
	Command string
	Args    []string
	Env     map[string]string // as written, see [MCPServer.Environ]
	URL     string
	SSE     bool
	Headers map[string]string // as written, see [MCPServer.HTTPHeaders]
}

type fileMCP struct {
	Servers map[string]fileServer `toml:"servers"`
}

type fileServer struct {
	Command string            `toml:"command"`
	Args    []string          `toml:"args"`
	Env     map[string]string `toml:"env"`
	URL     string            `toml:"url"`
	SSE     bool              `toml:"sse"`
	Headers map[string]string `toml:"headers"`
}

// mcp checks the [mcp] table. The servers are in the order of the file.
func (p *parser) mcp(f *file) []MCPServer {
	var names []string
	for _, k := range p.keys {
		if len(k.path) > 2 && k.path[0] == "mcp" && k.path[1] == "servers" && !slices.Contains(names, k.path[2]) {
			names = append(names, k.path[2])
		}
	}
	for _, n := range slices.Sorted(maps.Keys(f.MCP.Servers)) { // inline tables
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	var servers []MCPServer
	for _, name := range names {
		if s, ok := f.MCP.Servers[name]; ok {
			servers = append(servers, p.mcpServer(name, s))
		}
	}
	return servers
}

func (p *parser) mcpServer(name string, f fileServer) MCPServer {
	table := []string{"mcp", "servers", name}
	at := func(key string) []string { return append(slices.Clone(table), key) }
	if name == "" || strings.ContainsFunc(name, isControl) {
		p.problem(table, "the name of a server must not be empty")
	}
	switch {
	case f.Command == "" && f.URL == "":
		p.problem(table, "command or url is missing (command = \"npx\" starts a program, url is a server on the network)")
	case f.Command != "" && f.URL != "":
		p.problem(at("url"), "a server has a command or a url, not both")
	case f.Command != "":
		for key, set := range map[string]bool{"sse": f.SSE, "headers": f.Headers != nil} {
			if set {
				p.problem(at(key), "this is for a server with a url")
			}
		}
	default:
		for key, set := range map[string]bool{"args": f.Args != nil, "env": f.Env != nil} {
			if set {
				p.problem(at(key), "this is for a server with a command")
			}
		}
		p.mcpURL(at("url"), f.URL, len(f.Headers) > 0)
	}
	for _, variable := range slices.Sorted(maps.Keys(f.Env)) {
		if variable == "" || strings.ContainsAny(variable, "=\x00") || strings.Contains(f.Env[variable], "\x00") {
			p.problem(at("env"), "%.100q is no environment variable", variable)
		}
	}
	for _, header := range slices.Sorted(maps.Keys(f.Headers)) {
		if header == "" || strings.ContainsFunc(header, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' }) ||
			strings.ContainsFunc(f.Headers[header], isControl) {
			p.problem(at("headers"), "%.100q is no header", header)
		}
	}
	return MCPServer{Name: name, Command: f.Command, Args: f.Args, Env: f.Env, URL: f.URL, SSE: f.SSE, Headers: f.Headers}
}

// mcpURL checks an address. Headers may be keys: they go over plain http to this
// machine and private networks alone.
func (p *parser) mcpURL(at []string, s string, headers bool) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		p.problem(at, "want http://HOST or https://HOST, perhaps with a path")
	case u.User != nil:
		p.problem(at, "a user name or password does not belong in an address; set headers instead")
	case headers && u.Scheme == "http" && !isNear(u.Hostname()):
		p.problem(at, "headers would be sent over plain http to a public host: want https")
	}
}

func isNear(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	return strings.EqualFold(host, "localhost") || !strings.Contains(host, ".") || strings.HasSuffix(strings.ToLower(host), ".local")
}

// Environ is the environment of the server, NAME=value, sorted. A value
// env:NAME or keyring:NAME is replaced by what it refers to. The error names the
// reference.
func (s *MCPServer) Environ(key KeySource) ([]string, error) {
	var env []string
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		value, err := mcpValue(s.Env[name], key)
		if err != nil {
			return nil, fmt.Errorf("env.%s: %w", name, err)
		}
		env = append(env, name+"="+value)
	}
	return env, nil
}

// HTTPHeaders are the headers with their references replaced; a reference may
// stand behind a word, as in "Bearer env:NAME".
func (s *MCPServer) HTTPHeaders(key KeySource) (map[string]string, error) {
	headers := make(map[string]string, len(s.Headers))
	for name, value := range s.Headers {
		scheme, ref := "", value
		if i := strings.LastIndexByte(value, ' '); i >= 0 {
			scheme, ref = value[:i+1], value[i+1:]
		}
		resolved, err := mcpValue(ref, key)
		if err != nil {
			return nil, fmt.Errorf("headers.%s: %w", name, err)
		}
		headers[name] = scheme + resolved
	}
	return headers, nil
}

// mcpValue replaces a reference. Everything else is a value.
func mcpValue(s string, key KeySource) (string, error) {
	kind, name, ok := strings.Cut(s, ":")
	switch {
	case ok && kind == "env" && name != "":
		value, there := os.LookupEnv(name)
		if !there {
			return "", fmt.Errorf("the environment variable %s is not set", name)
		}
		return strings.TrimSpace(value), nil
	case ok && kind == "keyring" && name != "":
		return key(s)
	}
	return s, nil
}

// KeyReferences lists the references to keys of the server: never a key.
func (s *MCPServer) KeyReferences() []string {
	var refs []string
	for _, values := range []map[string]string{s.Env, s.Headers} {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			ref := values[name][strings.LastIndexByte(values[name], ' ')+1:]
			if strings.HasPrefix(ref, "env:") || strings.HasPrefix(ref, "keyring:") {
				refs = append(refs, ref)
			}
		}
	}
	return refs
}

// MaskValue is a value of a server's env or headers as it may be shown: a
// reference, with the word in front of it, or stars.
func MaskValue(value string) string {
	ref := value[strings.LastIndexByte(value, ' ')+1:]
	if strings.HasPrefix(ref, "env:") || strings.HasPrefix(ref, "keyring:") {
		return value
	}
	return "***"
}
