package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/config"
	"github.com/drover-dev/drover/internal/llm"
)

func TestParse(t *testing.T) {
	c, err := config.Parse("/etc/drover/config.toml", []byte(`
model  = "zulu/some/model"
effort = "trot"
mode   = "read-only"
[budget]
policy = 1
[engines.zulu]
preset = "ollama"
[engines.alpha]
preset = "custom"
url = "https://llm.example.org/v1"
key = "env:LAB_KEY"
context = 32768
profile = "replay"
sampling = "engine"
[engines.alpha.models."some/model"]
profile = "qwen"
[instructions]
files = ["HOUSE.md", "/abs/RULES.md"]
[images]
scale = false
[session]
titles = "model"
[tools]
off = ["shell"]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &config.Config{
		Path: "/etc/drover/config.toml", Model: llm.Target{Provider: "zulu", Model: "some/model"},
		Effort: llm.Trot, Mode: "read-only", Policy: 1,
		Engines: []config.Engine{
			{Name: "zulu", Preset: "ollama"},
			{
				Name: "alpha", Preset: "custom", URL: "https://llm.example.org/v1", Key: "env:LAB_KEY",
				Context: 32768, Profile: llm.Replay, EngineSampling: true,
				Models: []config.Model{{ID: "some/model", Profile: llm.Qwen}},
			},
		},
		Instructions: []string{"/etc/drover/HOUSE.md", "/abs/RULES.md"},
		ModelTitles:  true, ImagesAsTheyAre: true,
		ToolsOff: []string{"shell"},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

// checkMistake wants an error of in that holds want, and never the key in it.
func checkMistake(t *testing.T, name, in, want string) {
	t.Helper()
	_, err := config.Parse("c.toml", []byte(in))
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v\nwant %s", name, err, want)
	}
	if err != nil && strings.Contains(err.Error(), "sk-secret-key") {
		t.Errorf("%s: the message holds the key", name)
	}
}

func TestMistakesNameTheirPlace(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"unknown key", "modle = \"a/b\"\n", "c.toml:1:1: unknown key modle; did you mean mode?"},
		{"unknown key in a table", "\n[engines.x]\npreset = \"ollama\"\nurk = 1\n", "c.toml:4:1: unknown key engines.x.urk; did you mean url?"},
		{"nothing near", "zzzzzzzzz = 1\n", "c.toml:1:1: unknown key zzzzzzzzz (known here: acp, budget, deepseek, effort, engines, hosted, images, instructions, mcp, mode, model, sandbox, session, tools)"},
		{"bad effort", "effort = \"gallop\"\n", "c.toml:1:1: effort: unknown effort \"gallop\""},
		{"bad model", "\nmodel = \"x\"\n", "c.toml:2:1: model: model \"x\": want PROVIDER/MODEL"},
		{"bad mode", "mode = \"yolo\"\n", "c.toml:1:1: mode: unknown mode \"yolo\" (one of ask, edit, read-only, full)"},
		{"bad policy", "[budget]\npolicy = 3\n", "c.toml:2:1: budget.policy: 3 is not a policy (1 or 2)"},
		{"bad titles", "[session]\ntitles = \"mine\"\n", "c.toml:2:1: session.titles: unknown value \"mine\" (words or model)"},
		{"no preset", "[engines.x]\nurl = \"http://localhost:1\"\n", "c.toml:1:2: engines.x: preset is missing"},
		{"slash in a name", "[engines.\"a/b\"]\npreset = \"ollama\"\n", "engines.a/b: an engine's name"},
		{"key in the clear", "[engines.x]\npreset = \"custom\"\nkey = \"sk-secret-key\"\n", "c.toml:3:1: engines.x.key: want env:NAME, keyring:NAME or file:PATH"},
		{"bad context", "[engines.x]\npreset = \"custom\"\ncontext = -1\n", "c.toml:3:1: engines.x.context: -1 is not a number of tokens"},
		{"no TOML", "model = \n", "c.toml:1:"},
		{"wrong type", "model = 3\n", "c.toml:1:"},
	}
	for _, tt := range tests {
		checkMistake(t, tt.name, tt.in, tt.want)
	}
}

func TestAllMistakesAreTold(t *testing.T) {
	_, err := config.Parse("c.toml", []byte("effort = \"x\"\nmode = \"y\"\n"))
	if n := strings.Count(err.Error(), "c.toml:"); n != 2 {
		t.Errorf("%d mistakes in:\n%v", n, err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("DROVER_CONFIG", "")
	if c, err := config.Load(filepath.Join(dir, "none.toml")); err != nil || c.Path != "" {
		t.Errorf("no file: %+v, %v", c, err)
	}
	t.Setenv("DROVER_CONFIG", filepath.Join(dir, "none.toml"))
	if _, err := config.Load(config.Path(config.Dirs{})); err == nil || !strings.Contains(err.Error(), "none.toml") {
		t.Errorf("a named file that is not there: %v", err)
	}
	if _, err := config.Load(dir); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("a folder: %v", err)
	}
	file := filepath.Join(dir, "big.toml")
	for n, ok := range map[int]bool{config.MaxFileBytes: true, config.MaxFileBytes + 1: false} {
		if err := os.WriteFile(file, bytes.Repeat([]byte("\n"), n), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(file); (err == nil) != ok {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func TestCredential(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	if err := os.WriteFile(file, []byte("  from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOD_KEY", " from-env\r\n")
	t.Setenv("BAD_KEY", "caf\u00e9-key")
	t.Setenv("TWO_KEYS", "one two")
	tests := []struct {
		ref, want string
		code      llm.Code
	}{
		{"env:GOOD_KEY", "from-env", ""},
		{"file:" + file, "from-file", ""},
		{"env:NO_SUCH_KEY", "", llm.CodeMissingCredential},
		{"env:BAD_KEY", "", llm.CodeInvalidCredential},
		{"env:TWO_KEYS", "", llm.CodeInvalidCredential},
		{"file:" + filepath.Join(dir, "none"), "", llm.CodeMissingCredential},
		{"sk-plain", "", llm.CodeInvalidCredential},
	}
	for _, tt := range tests {
		got, err := config.Credential(tt.ref)
		if got != tt.want || llm.CodeOf(err) != tt.code {
			t.Errorf("%s: %q, %v; want %q, %s", tt.ref, got, err, tt.want, tt.code)
		}
		for _, secret := range []string{"caf\u00e9", "one two", "sk-plain"} {
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error holds the key: %v", tt.ref, err)
			}
		}
	}
}
