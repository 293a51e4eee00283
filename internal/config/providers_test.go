package config_test

import (
	"reflect"
	"testing"

	"github.com/drover-dev/drover/internal/config"
	"github.com/drover-dev/drover/internal/llm"
)

func TestParseDeepSeek(t *testing.T) {
	two := []config.DeepSeekModel{{ID: "deepseek-v4-flash", Name: "deepseek-v4-flash"}, {ID: "mine", Name: "Ours", Description: "the big one"}}
	tests := []struct {
		name, in string
		want     *config.DeepSeek
	}{
		{"no table", "effort = \"trot\"\n", nil},
		{"an empty table", "[deepseek]\n", &config.DeepSeek{}},
		{"a key", "[deepseek]\nkey = \"env:OTHER\"\nurl = \"https://llm.example.org\"\n", &config.DeepSeek{Key: "env:OTHER", URL: "https://llm.example.org"}},
		{"an empty list", "[deepseek]\nmodels = []\n", &config.DeepSeek{Models: []config.DeepSeekModel{}}},
		{"a list", "[deepseek]\nmodels = [{ id = \"deepseek-v4-flash\" }, { id = \"mine\", name = \"Ours\", description = \"the big one\" }]\n", &config.DeepSeek{Models: two}},
		{"tables", "[[deepseek.models]]\nid = \"deepseek-v4-flash\"\n[[deepseek.models]]\nid = \"mine\"\nname = \"Ours\"\ndescription = \"the big one\"\n", &config.DeepSeek{Models: two}},
	}
	for _, tt := range tests {
		c, err := config.Parse("c.toml", []byte(tt.in))
		if err != nil || !reflect.DeepEqual(c.DeepSeek, tt.want) {
			t.Errorf("%s: %+v, %v; want %+v", tt.name, c, err, tt.want)
		}
	}
}

func TestParseHosted(t *testing.T) {
	c, err := config.Parse("c.toml", []byte(`
[hosted]
providers = [
  "openrouter",
  "groq",
]
[hosted.settings.groq]
key     = "file:/run/keys/groq"
url     = "https://proxy.example.org/groq"
profile = "replay"
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []config.HostedProvider{
		{ID: "openrouter", Line: 4, Column: 3},
		{ID: "groq", Key: "file:/run/keys/groq", URL: "https://proxy.example.org/groq", Profile: llm.Replay, Line: 5, Column: 3},
	}
	if !reflect.DeepEqual(c.Hosted, want) {
		t.Errorf("got  %+v\nwant %+v", c.Hosted, want)
	}
}

// TestProviderMistakesNameTheEntry also looks at the place of each.
func TestProviderMistakesNameTheEntry(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"empty id", "[deepseek]\nmodels = [\n  { id = \"a\" },\n  { id = \" \" },\n]\n", "c.toml:4:3: deepseek.models: entry 2: id is empty"},
		{"no id", "[deepseek]\nmodels = [{}]\n", "c.toml:2:11: deepseek.models: entry 1: id is empty"},
		{"duplicate", "[deepseek]\nmodels = [{ id = \"a\" }, { id = \"b\" }, { id = \"a\" }]\n", "c.toml:2:39: deepseek.models: entry 3: id \"a\" is that of entry 1 already"},
		{"blank name", "[deepseek]\nmodels = [{ id = \"a\", name = \"\" }]\n", "c.toml:2:11: deepseek.models: entry 1: the name of \"a\" is blank"},
		{"tables", "[[deepseek.models]]\nid = \"a\"\n\n[[deepseek.models]]\nid = \"a\"\n", "c.toml:4:3: deepseek.models: entry 2: id \"a\""},
		{"unknown key", "[deepseek]\nmodels = [{ id = \"a\", nam = \"A\" }]\n", "unknown key deepseek.models.nam; did you mean name?"},
		{"key in the clear", "[deepseek]\nkey = \"sk-secret-key\"\n", "c.toml:2:1: deepseek.key: want env:NAME"},
		{"the name is taken", "[deepseek]\n[engines.deepseek]\npreset = \"custom\"\n", "c.toml:2:2: engines.deepseek: the table [deepseek] is there, too"},
		{"native", "[hosted]\nproviders = [\"groq\", \"deepseek\"]\n", "c.toml:2:22: hosted.providers: entry 2: deepseek is drover's own provider"},
		{"listed twice", "[hosted]\nproviders = [\"groq\", \"groq\"]\n", "c.toml:2:22: hosted.providers: entry 2: \"groq\" is listed twice"},
		{"empty", "[hosted]\nproviders = [\"\"]\n", "c.toml:2:14: hosted.providers: entry 1: is empty"},
		{"an engine's", "[hosted]\nproviders = [\"groq\"]\n[engines.groq]\npreset = \"custom\"\n", "c.toml:2:14: hosted.providers: entry 1: \"groq\" is the name of an engine"},
		{"hosted key in the clear", "[hosted]\nproviders = [\"groq\"]\n[hosted.settings.groq]\nkey = \"sk-secret-key\"\n", "c.toml:4:1: hosted.settings.groq.key: want env:NAME"},
		{"unknown profile", "[hosted]\nproviders = [\"groq\"]\n[hosted.settings.groq]\nprofile = \"x\"\n", "c.toml:4:1: hosted.settings.groq.profile: unknown profile"},
		{"settings of nobody", "[hosted]\nproviders = [\"groq\"]\n[hosted.settings.xai]\n", "c.toml:3:2: hosted.settings.xai: hosted.providers does not list \"xai\""},
	}
	for _, tt := range tests {
		checkMistake(t, tt.name, tt.in, tt.want)
	}
}
