package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-dev/drover/internal/config"
	"github.com/drover-dev/drover/internal/llm"
)

// document writes a file and opens it.
func document(tb testing.TB, text string) *config.Document {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	d, err := config.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func checkText(tb testing.TB, d *config.Document, want string) {
	tb.Helper()
	if got := string(d.Text()); got != want {
		tb.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, err := config.Parse("c.toml", d.Text()); err != nil {
		tb.Error(err)
	}
}

func TestSetModel(t *testing.T) {
	const line = "model = \"lab/some/model:7b\"\n"
	tests := map[string]struct{ in, want string }{
		"empty":          {"", line},
		"there":          {"# mine\nmodel   =  'a/b'   # why\neffort = \"trot\"\n", "# mine\nmodel   =  \"lab/some/model:7b\"   # why\neffort = \"trot\"\n"},
		"quoted key":     {"\"model\" = \"a/b\"\n", "\"model\" = \"lab/some/model:7b\"\n"},
		"many lines":     {"model = \"\"\"\na/b\"\"\" # x\n[tools]\n", "model = \"lab/some/model:7b\" # x\n[tools]\n"},
		"behind others":  {"effort = \"trot\" # x\nmode = \"ask\"\n\n# tools\n[tools]\n", "effort = \"trot\" # x\nmode = \"ask\"\n" + line + "\n# tools\n[tools]\n"},
		"no end of line": {"effort = \"trot\"", "effort = \"trot\"\n" + line},
		"above tables":   {"# about this file\n\n# tools\n[tools]\noff = []\n", "# about this file\n\n" + line + "\n# tools\n[tools]\noff = []\n"},
		"at the top":     {"[tools]\nmodel_s = 1\n", ""},
		"first table":    {"[budget]\npolicy = 1\n", line + "\n[budget]\npolicy = 1\n"},
		"comments alone": {"# nothing here", "# nothing here\n" + line},
		"shown as a comment": {"# The model.\n#model = \"x/y\"\n\n#mode = \"ask\"\n[tools]\n",
			"# The model.\n#model = \"x/y\"\n" + line + "\n#mode = \"ask\"\n[tools]\n"},
		"windows": {"effort = \"trot\"\r\n\r\n[tools]\r\n", "effort = \"trot\"\r\n" + strings.TrimSuffix(line, "\n") + "\r\n\r\n[tools]\r\n"},
		"looks like it": {"# [engines.x]\neffort = \"\"\"\ntrot\"\"\" # model = 1\n[engines.model]\npreset = \"ollama\"\n",
			"# [engines.x]\neffort = \"\"\"\ntrot\"\"\" # model = 1\n" + line + "[engines.model]\npreset = \"ollama\"\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.want == "" { // a file with mistakes
				if _, err := config.Open(writeTemp(t, test.in)); err == nil {
					t.Error("a file with mistakes was opened")
				}
				return
			}
			d := document(t, test.in)
			if err := d.SetModel(llm.Target{Provider: "lab", Model: "some/model:7b"}); err != nil {
				t.Fatal(err)
			}
			checkText(t, d, test.want)
			if d.Config().Model.Model != "some/model:7b" {
				t.Errorf("%+v", d.Config())
			}
		})
	}
}

func writeTemp(tb testing.TB, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

const lab = "[engines.lab]\npreset = \"custom\"\nurl = \"https://llm.example.org\"\nkey = \"env:LAB_KEY\"\ncontext = 32768\n"

func labEngine() *config.Engine {
	return &config.Engine{Name: "lab", Preset: "custom", URL: "https://llm.example.org", Key: "env:LAB_KEY", Context: 32768}
}

func TestAddEngine(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"empty":            {"", lab},
		"behind the rest":  {"effort = \"trot\" # x", "effort = \"trot\" # x\n\n" + lab},
		"behind a comment": {"effort = \"trot\"\n\n# end\n", "effort = \"trot\"\n\n# end\n\n" + lab},
		"behind the engines": {
			"[engines.a]\npreset = \"ollama\"\n\n[engines.a.models.x]\nprofile = \"qwen\"\n# profile = \"replay\"\n\n# no shell\n[tools]\noff = [\n \"shell\", # really\n]\n",
			"[engines.a]\npreset = \"ollama\"\n\n[engines.a.models.x]\nprofile = \"qwen\"\n# profile = \"replay\"\n\n" + lab + "\n# no shell\n[tools]\noff = [\n \"shell\", # really\n]\n",
		},
		"with a catalogue": {"[engines.a]\npreset = \"ollama\"\n[hosted]\nproviders = [\"openrouter\"]\n",
			"[engines.a]\npreset = \"ollama\"\n\n" + lab + "\n[hosted]\nproviders = [\"openrouter\"]\n"},
		"one table":                        {"[engines]\na = {preset = \"ollama\"}\n[tools]\n", "[engines]\na = {preset = \"ollama\"}\n\n" + lab + "\n[tools]\n"},
		"dotted":                           {"engines.a.preset = \"ollama\"\n", "engines.a.preset = \"ollama\"\n\n" + lab},
		"a string that looks like a table": {"[instructions]\nfiles = ['''\n[engines.z]\n# x''']\n", "[instructions]\nfiles = ['''\n[engines.z]\n# x''']\n\n" + lab},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := document(t, test.in)
			if err := d.AddEngine(labEngine()); err != nil {
				t.Fatal(err)
			}
			checkText(t, d, test.want)
			if err := d.AddEngine(labEngine()); err == nil || !strings.Contains(err.Error(), "already") {
				t.Errorf("a second one: %v", err)
			}
		})
	}
}

func TestAddEngineRefusals(t *testing.T) {
	for name, e := range map[string]*config.Engine{
		"cannot be an engine's name":    {Name: "a/b", Preset: "ollama"},
		"no slash, not empty":           {Preset: "ollama"},
		"preset is missing":             {Name: "a"},
		"want env:NAME":                 {Name: "a", Preset: "ollama", Key: "sk-secret"},
		"is not a number of tokens":     {Name: "a", Preset: "ollama", Context: -5},
		"the engine's name: not UTF-8":  {Name: "a\xff", Preset: "ollama"},
		"url: not UTF-8":                {Name: "a", Preset: "custom", URL: "http://\xff"},
		"cannot be an engine's name, w": {Name: "a\n", Preset: "ollama"},
	} {
		d := document(t, "")
		err := d.AddEngine(e)
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "sk-secret") {
			t.Errorf("%s: %v", name, err)
		}
		checkText(t, d, "")
	}
	d := document(t, "engines = {a = {preset = \"ollama\"}}\n")
	if err := d.AddEngine(labEngine()); err == nil || !strings.Contains(err.Error(), "change it by hand:\n[engines.lab]\npreset") {
		t.Errorf("an inline table: %v", err)
	}
	if err := d.RemoveEngine("a"); err == nil || !strings.Contains(err.Error(), "by hand") {
		t.Errorf("an inline table: %v", err)
	}
}

func TestRemoveEngine(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"alone":         {lab, ""},
		"with comments": {"effort = \"trot\"\n\n# the lab\n" + lab + "# insecure = true\n\n# the end\n", "effort = \"trot\"\n\n# the end\n"},
		"the last": {"[engines.a]\npreset = \"ollama\"\n\n" + lab + "\n[engines.lab.models.\"x/y\"]\nprofile = \"qwen\"\n",
			"[engines.a]\npreset = \"ollama\"\n"},
		"the first": {"# about this file\n" + lab + "\n# b\n[engines.b]\npreset = \"ollama\"\n", "# about this file\n# b\n[engines.b]\npreset = \"ollama\"\n"},
		"in two places": {"[engines.\"lab\"]\npreset = 'vllm'\n[tools] # no\noff = []\n[engines.lab.models.x]\nprofile = \"qwen\"\n[budget]\npolicy = 1\n",
			"[tools] # no\noff = []\n[budget]\npolicy = 1\n"},
		"dotted":    {"engines.lab.preset = \"vllm\" # x\neffort = \"trot\"\nengines.lab.context = 5\n", "effort = \"trot\"\n"},
		"one table": {"[engines]\nlab = {preset = \"ollama\"}\nb.preset = \"vllm\"\nlabor.preset = \"vllm\"\n", "[engines]\nb.preset = \"vllm\"\nlabor.preset = \"vllm\"\n"},
		"no blank lines": {"[engines.a]\npreset = \"ollama\"\n[engines.lab]\npreset = \"vllm\"\n# c\n[engines.c]\npreset = \"vllm\"\n",
			"[engines.a]\npreset = \"ollama\"\n# c\n[engines.c]\npreset = \"vllm\"\n"},
		"windows": {"[engines.lab]\r\npreset = \"vllm\"\r\n\r\n[tools]\r\n", "[tools]\r\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := document(t, test.in)
			if err := d.RemoveEngine("nobody"); err == nil {
				t.Error("an engine that is not there was removed")
			}
			if err := d.RemoveEngine("lab"); err != nil {
				t.Fatal(err)
			}
			checkText(t, d, test.want)
		})
	}
}

// An engine with any name can be added and removed, and then the file is as it
// was but for line breaks at its end.
func TestAddThenRemove(t *testing.T) {
	files := []string{
		"", "# only words\n", "effort = \"trot\"", "model = \"a/b\"\n\n# mine\n[engines.a]\npreset = \"ollama\"\n\n\n# and\n\n[tools]\noff = []\n",
		"[engines.a]\r\npreset = \"ollama\"\r\n", "[tools]\noff = [\"\"\"\n[engines.q]\n\"\"\"]\n# c",
	}
	rapid.Check(t, func(rt *rapid.T) {
		in := rapid.SampledFrom(files).Draw(rt, "file")
		d := document(t, in)
		e := &config.Engine{Name: rapid.StringMatching(`[^/\x00-\x1f\x7f]{1,12}`).Draw(rt, "name"), Preset: "custom", URL: rapid.String().Draw(rt, "url")}
		if e.Name == "a" {
			e.Name = "aa"
		}
		if err := d.AddEngine(e); err != nil {
			rt.Fatal(err)
		}
		if got, ok := d.Config().Engine(e.Name); !ok || got.URL != e.URL {
			rt.Fatalf("%+v", got)
		}
		if err := d.SetModel(llm.Target{Provider: e.Name, Model: rapid.StringN(1, 20, -1).Draw(rt, "model")}); err != nil {
			rt.Fatal(err)
		}
		if err := d.RemoveEngine(e.Name); err != nil {
			rt.Fatal(err)
		}
		got := string(d.Text())
		for line := range strings.Lines(in) {
			if !strings.HasPrefix(line, "model") && !strings.Contains(got, strings.TrimRight(line, "\r\n")) {
				rt.Fatalf("%q is gone from\n%s", line, got)
			}
		}
	})
}

func TestSave(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	path := filepath.Join(dir, "config.toml")
	d, err := config.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.AddEngine(labEngine()); err != nil {
		t.Fatal(err)
	}
	if err := d.Save(); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" {
		for p, mode := range map[string]fs.FileMode{path: 0o600, dir: 0o700} {
			if st, err := os.Stat(p); err != nil || st.Mode().Perm() != mode {
				t.Errorf("%s: %v, %v", p, st.Mode(), err)
			}
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}

	// Somebody else's change is kept.
	if err := d.SetModel(llm.Target{Provider: "lab", Model: "m"}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("effort = \"trot\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Save(); err == nil || !strings.Contains(err.Error(), "changed by somebody else") {
		t.Errorf("%v", err)
	}
	if data, _ := os.ReadFile(path); string(data) != "effort = \"trot\"\n" {
		t.Errorf("%s", data)
	}
}

// A configuration that is a link into somebody's collection stays one.
func TestSaveThroughALink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	real := writeTemp(t, "effort = \"trot\"\n")
	link := filepath.Join(t.TempDir(), "config.toml")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	d, err := config.Open(link)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.AddEngine(labEngine()), d.Save()); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Lstat(link); err != nil || st.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("%v, %v", st, err)
	}
	if data, _ := os.ReadFile(real); !strings.Contains(string(data), "[engines.lab]") {
		t.Errorf("%s", data)
	}
}

func TestOpenRefuses(t *testing.T) {
	if _, err := config.Open(""); !errors.Is(err, config.ErrNoHome) {
		t.Errorf("%v", err)
	}
	if _, err := config.Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("%v", err)
	}
	_, err := config.Open(writeTemp(t, "modle = \"a/b\"\n"))
	if e, ok := errors.AsType[*config.Error](err); !ok || e.Problems[0].Line != 1 {
		t.Errorf("%v", err)
	}
}

func TestCheckTellsEveryMistake(t *testing.T) {
	path := writeTemp(t, "modle = \"a/b\"\neffort = \"gallop\"\n[engines.x]\npreset = \"olama\"\nurk = 1\n[engines.y]\n")
	err := config.Check(path, func(c *config.Config) []config.Mistake {
		if len(c.Engines) != 2 {
			t.Errorf("%+v", c.Engines)
		}
		return []config.Mistake{{Key: []string{"engines", "x", "preset"}, Message: "unknown preset"}}
	})
	var got []string
	for line := range strings.Lines(err.Error()) {
		got = append(got, strings.TrimSpace(strings.TrimPrefix(line, path)))
	}
	want := []string{
		":1:1: unknown key modle; did you mean mode?",
		":2:1: effort: unknown effort \"gallop\"",
		":4:1: engines.x.preset: unknown preset",
		":5:1: unknown key engines.x.urk; did you mean url?",
		":6:2: engines.y: preset is missing",
	}
	for i, w := range want {
		if i >= len(got) || !strings.HasPrefix(got[i], w) {
			t.Fatalf("got\n%s", strings.Join(got, "\n"))
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %q", got)
	}
	if err := config.Check(writeTemp(t, "effort = \"trot\"\n"), nil); err != nil {
		t.Error(err)
	}
	if err := config.Check(writeTemp(t, "effort = \n"), nil); err == nil || !strings.Contains(err.Error(), ":1:") {
		t.Errorf("%v", err)
	}
	t.Setenv("DROVER_CONFIG", "")
	none := filepath.Join(t.TempDir(), "none.toml")
	if err := config.Check(none, nil); err != nil {
		t.Error(err)
	}
	t.Setenv("DROVER_CONFIG", none)
	if err := config.Check(none, nil); err == nil {
		t.Error("a named file that is not there")
	}
}
