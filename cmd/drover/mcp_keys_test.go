package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/config"
)

// Keys of servers are asked for by the source with a limit alone: a keyring that is
// locked would keep drover acp from answering its editor at all. A server that needs
// no key from it is used all the same.
func TestKeysOfServersHaveALimit(t *testing.T) {
	cfg := &config.Config{MCP: []config.MCPServer{
		{Name: "locked", Command: "a", Env: map[string]string{"KEY": "keyring:A"}},
		{Name: "web", URL: "http://127.0.0.1:1/", Headers: map[string]string{"Authorization": "Bearer keyring:B"}},
		{Name: "free", Command: "b", Env: map[string]string{"LEVEL": "1"}},
		{Name: "known", Command: "c", Env: map[string]string{"KEY": "keyring:C"}},
	}}
	var asked []string
	specs, notices := mcpServers(cfg, func(ref string) (string, error) {
		asked = append(asked, ref)
		if ref == "keyring:C" {
			return "sesame", nil
		}
		return "", errors.New("the keyring did not answer")
	})
	if want := []string{"keyring:A", "keyring:B", "keyring:C"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q", asked)
	}
	if len(specs) != 2 || specs[0].Name != "free" || specs[1].Name != "known" || !slices.Equal(specs[1].Env, []string{"KEY=sesame"}) {
		t.Errorf("%+v", specs)
	}
	if len(notices) != 2 || !strings.Contains(notices[0], "MCP server locked is left out: env.KEY: the keyring did not answer") ||
		!strings.Contains(notices[1], "MCP server web is left out: headers.Authorization: ") {
		t.Errorf("%q", notices)
	}
}
