package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestMCPServers(t *testing.T) {
	c, err := Parse("c.toml", []byte(`
[mcp.servers.zulu]
command = "npx"
args = ["-y", "server", "."]
env = { TOKEN = "env:TEST_MCP_TOKEN", PLAIN = "file:stays" }
[mcp.servers.alpha]
url = "https://example.org/mcp"
sse = true
headers = { Authorization = "Bearer env:TEST_MCP_TOKEN" }
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []MCPServer{
		{
			Name: "zulu", Command: "npx", Args: []string{"-y", "server", "."},
			Env: map[string]string{"TOKEN": "env:TEST_MCP_TOKEN", "PLAIN": "file:stays"},
		},
		{
			Name: "alpha", URL: "https://example.org/mcp", SSE: true,
			Headers: map[string]string{"Authorization": "Bearer env:TEST_MCP_TOKEN"},
		},
	}
	if !reflect.DeepEqual(c.MCP, want) {
		t.Fatalf("%+v", c.MCP)
	}
	if _, err := c.MCP[0].Environ(Credential); err == nil || !strings.Contains(err.Error(), "env.TOKEN: the environment variable TEST_MCP_TOKEN is not set") {
		t.Errorf("%v", err)
	}
	t.Setenv("TEST_MCP_TOKEN", "s3cret")
	if env, err := c.MCP[0].Environ(Credential); err != nil || !slices.Equal(env, []string{"PLAIN=file:stays", "TOKEN=s3cret"}) {
		t.Errorf("%q, %v", env, err)
	}
	if h, err := c.MCP[1].HTTPHeaders(Credential); err != nil || h["Authorization"] != "Bearer s3cret" {
		t.Errorf("%q, %v", h, err)
	}
	if refs := c.KeyReferences(); !slices.Contains(refs, "env:TEST_MCP_TOKEN") {
		t.Errorf("%q", refs)
	}
}

func TestMCPMistakesNameTheirPlace(t *testing.T) {
	tests := []struct{ in, want string }{
		{"[mcp.servers.a]\nsse = true\n", "c.toml:1:2: mcp.servers.a: command or url is missing"},
		{"[mcp.servers.a]\ncommand = \"x\"\nurl = \"http://h\"\n", "c.toml:3:1: mcp.servers.a.url: a server has a command or a url, not both"},
		{"[mcp.servers.a]\ncommand = \"x\"\nheaders = { A = \"b\" }\n", "c.toml:3:1: mcp.servers.a.headers: this is for a server with a url"},
		{"[mcp.servers.a]\nurl = \"https://h\"\nargs = []\n", "c.toml:3:1: mcp.servers.a.args: this is for a server with a command"},
		{"[mcp.servers.a]\nurl = \"ftp://h\"\n", "c.toml:2:1: mcp.servers.a.url: want http://HOST"},
		{"[mcp.servers.a]\nurl = \"https://me:hunter2@h\"\n", "c.toml:2:1: mcp.servers.a.url: a user name"},
		{"[mcp.servers.a]\nurl = \"http://example.org\"\nheaders = { A = \"b\" }\n", "c.toml:2:1: mcp.servers.a.url: headers would be sent over plain http"},
		{"[mcp.servers.a]\nurl = \"https://h\"\nheaders = { \"A B\" = \"hunter2\" }\n", "c.toml:3:1: mcp.servers.a.headers: \"A B\" is no header"},
		{"[mcp.servers.a]\ncommand = \"x\"\ncomand = \"y\"\n", "c.toml:3:1: unknown key mcp.servers.a.comand; did you mean command?"},
	}
	for _, tt := range tests {
		_, err := Parse("c.toml", []byte(tt.in))
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s%v\nwant %s", tt.in, err, tt.want)
		}
	}
	if _, err := Parse("c.toml", []byte("[mcp.servers.a]\nurl = \"http://192.168.1.2/mcp\"\nheaders = { A = \"b\" }\n")); err != nil {
		t.Error(err)
	}
}
