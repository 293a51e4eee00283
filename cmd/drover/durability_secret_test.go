package main

import (
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/engine/enginetest"
)

// planted are variables of the environment that nobody else is to see.
var planted = map[string]string{
	"ENGINE_KEY":            "planted-engine-key-4f2a9c",
	"WRONG_KEY":             "planted-wrong-key-77b1e0",
	"GITHUB_TOKEN":          "planted-github-token-e81d",
	"AWS_SECRET_ACCESS_KEY": "planted-aws-secret-90c3",
	"DB_PASSWORD":           "planted-db-password-11aa",
	"SSH_PASSPHRASE":        "planted-ssh-passphrase-5d",
	"my_credential_file":    "planted-credential-b00b1e",
	"MCP_PLANTED":           "planted-mcp-token-6e7d",
}

// plantedInURL is a password that somebody writes into a URL.
const plantedInURL = "planted-url-password-3c"

// TestNoSecretIsWritten looks for planted secrets in everything that drover
// writes: the folders of the person, stdout, stderr and the diagnostics.
func TestNoSecretIsWritten(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a POSIX shell")
	}
	r := rigFor(t, "", "brook-7b")
	s := enginetest.New(t, &enginetest.Options{
		Preset: enginetest.Custom, Key: planted["ENGINE_KEY"],
		Models: []enginetest.Model{{ID: "brook-7b", Window: 16384, Tools: true}},
		Answer: func(c *enginetest.Chat) enginetest.Answer {
			if rounds(c) > 0 {
				return enginetest.Answer{Text: "done"}
			}
			return enginetest.Answer{Calls: []enginetest.Call{
				shellCall("a", "env || set"), shellCall("b", "echo $ENGINE_KEY $GITHUB_TOKEN ${DB_PASSWORD:-none}"),
				{ID: "c", Name: "read", Arguments: `{"path":"/no/such/file"}`},
			}}
		},
	})
	r.url, r.preset = s.URL, "custom"
	for name, value := range planted {
		r.env = append(r.env, name+"="+value)
	}
	// MCP servers that get a token: one prints it and ends, one cannot be reached.
	configured := filepath.Join(r.home, "drover.toml")
	servers := `[mcp.servers.talks]
command = "sh"
args = ["-c", "echo the token is $TOKEN >&2; exit 1"]
env = { TOKEN = "env:MCP_PLANTED" }
[mcp.servers.web]
url = "http://127.0.0.1:1/mcp"
headers = { Authorization = "Bearer env:MCP_PLANTED" }
`
	if err := os.WriteFile(configured, []byte(servers), 0o600); err != nil {
		t.Fatal(err)
	}
	r.env = append(r.env, "DROVER_CONFIG="+configured)
	logFile := filepath.Join(r.home, "diagnostics")
	run := func(status int, want, key string, args ...string) {
		t.Helper()
		cmd := r.turn("", "print the environment", append(args, "--key-env", key, "--log-file", logFile, "--log-level", "debug")...)
		o := r.run(cmd)
		if o.status != status || !strings.Contains(o.stdout, want) {
			t.Errorf("%v: %+v, want %q", args, o, want)
		}
		noSecret(t, fmt.Sprint("stdout and stderr of ", args), o.stdout+o.stderr)
		o = r.run(r.command("sessions", "export", "last", "--format", "json"))
		noSecret(t, "export", o.stdout+o.stderr)
	}
	run(0, "NO_COLOR=1", "ENGINE_KEY")
	run(0, "The MCP server talks", "ENGINE_KEY")
	run(exitFailed, "AUTH", "WRONG_KEY")
	// An engine that repeats what it was sent, as some do.
	body := `{"error":{"message":"Incorrect API key provided: ` + planted["WRONG_KEY"] + `","type":"authentication_error"}}`
	s.Fault("POST /v1/chat/completions", enginetest.Fault{Times: 1, Status: http.StatusUnauthorized, Body: body})
	run(exitFailed, "AUTH", "WRONG_KEY")
	s.Fault("POST /v1/chat/completions", enginetest.Fault{Times: 1, Status: http.StatusBadRequest,
		Body: strings.ReplaceAll(body, "authentication", "invalid_request")})
	run(exitFailed, "error", "WRONG_KEY")
	s.Heal()
	// And one that is not there.
	r.url = "http://127.0.0.1:9"
	run(exitFailed, "TRANSPORT", "ENGINE_KEY")

	host := strings.TrimPrefix(s.URL, "http://")
	for _, url := range []string{
		"http://ann:" + plantedInURL + "@" + host, "http://" + plantedInURL + "@" + host, s.URL + "/v1?key=" + plantedInURL,
		"http://ann:" + plantedInURL + "@" + host + ":x", "http://ann:" + plantedInURL + "@[" + host, s.URL + "/#" + plantedInURL,
	} {
		r.url = url
		run(exitUsage, "--url", "ENGINE_KEY")
		o := r.run(r.command("models", "--url", url, "--log-file", logFile, "--log-level", "debug"))
		if o.status != exitUsage {
			t.Errorf("models --url %s: %+v", url, o)
		}
		noSecret(t, "models --url", o.stdout+o.stderr)
	}

	err := filepath.WalkDir(filepath.Dir(r.home), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		noSecret(t, path, string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(logFile); err != nil || len(data) == 0 {
		t.Errorf("no diagnostics were written, so that nothing was looked at: %v", err)
	}
	if r.newest() == "" {
		t.Error("no session was saved, so that nothing was looked at")
	}
}

func noSecret(t *testing.T, where, text string) {
	t.Helper()
	for _, secret := range append(slices.Collect(maps.Values(planted)), plantedInURL) {
		if i := strings.Index(text, secret); i >= 0 {
			t.Errorf("%s holds %s: …%s", where, secret, text[max(0, i-200):min(len(text), i+100)])
		}
	}
}
