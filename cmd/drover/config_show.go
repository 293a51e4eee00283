package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/config"
	"github.com/drover-dev/drover/internal/engine"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

// configText writes a configuration as TOML.
type configText struct {
	strings.Builder
}

func (t *configText) table(parts ...string) {
	t.WriteString("\n[" + tomlKey(parts...) + "]\n")
}

// line writes a setting; one that is not in the file is marked.
func (t *configText) line(key, value string, set bool) {
	t.WriteString(key + " = " + value)
	if !set {
		t.WriteString(" # default")
	}
	t.WriteString("\n")
}

func tomlKey(parts ...string) string {
	quoted := make([]string, len(parts))
	for i, p := range parts {
		q, err := config.QuoteKey(p)
		if err != nil {
			q = strconv.Quote(p) // a TOML file is UTF-8: does not happen
		}
		quoted[i] = q
	}
	return strings.Join(quoted, ".")
}

func tomlString(s string) string {
	q, err := config.Quote(s)
	if err != nil {
		q = strconv.Quote(s) // a TOML file is UTF-8: does not happen
	}
	return q
}

func tomlStrings(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = tomlString(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// configShow prints the values in force. The text is a configuration again.
func (a *app) configShow() error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	var t configText
	if cfg.Path == "" {
		t.WriteString("# There is no configuration file.\n")
	} else {
		t.WriteString("# " + cfg.Path + "\n")
	}
	if cfg.Model.IsZero() {
		t.WriteString("# model: the first coding model that is found, else the first one\n")
	} else {
		t.line("model", tomlString(cfg.Model.String()), true)
	}
	mode, err := tool.ParseMode(cfg.Mode)
	if err != nil {
		return err
	}
	t.line("effort", tomlString(cfg.Effort.Or(llm.DefaultEffort).String()), cfg.Effort != 0)
	t.line("mode", tomlString(mode.String()), cfg.Mode != "")
	t.table("budget")
	t.line("policy", strconv.Itoa(cmp.Or(cfg.Policy, budget.DefaultVersion)), cfg.Policy != 0)
	t.table("instructions")
	t.line("files", tomlStrings(cfg.Instructions), cfg.Instructions != nil)
	t.table("images")
	t.line("scale", strconv.FormatBool(!cfg.ImagesAsTheyAre), cfg.ImagesAsTheyAre)
	titles := "words"
	if cfg.ModelTitles {
		titles = "model"
	}
	t.table("session")
	t.line("titles", tomlString(titles), cfg.ModelTitles)
	t.table("tools")
	t.line("off", tomlStrings(cfg.ToolsOff), cfg.ToolsOff != nil)
	t.table("sandbox")
	t.line("off", strconv.FormatBool(cfg.SandboxOff), cfg.SandboxOff)
	t.line("write", tomlStrings(cfg.SandboxWrite), cfg.SandboxWrite != nil)
	t.table("acp")
	t.line("terminal", strconv.FormatBool(cfg.EditorTerminal), cfg.EditorTerminal)
	if len(cfg.Engines) == 0 {
		t.WriteString("\n# engines: those that are found at the default ports of this machine\n")
	}
	for i := range cfg.Engines {
		t.engine(&cfg.Engines[i])
	}
	t.online(cfg)
	t.mcp(cfg)
	_, err = fmt.Fprint(a.stdout, t.String())
	return err
}

func (t *configText) engine(e *config.Engine) {
	t.table("engines", e.Name)
	t.line("preset", tomlString(e.Preset), true)
	t.address(e)
	if e.Key != "" {
		t.line("key", tomlString(e.Key), true)
	}
	if e.Context > 0 {
		t.line("context", strconv.Itoa(e.Context), true)
	}
	t.line("profile", tomlString(e.Profile.String()), e.Profile != llm.Generic)
	t.line("insecure", strconv.FormatBool(e.Insecure), e.Insecure)
	sampling := "effort"
	if e.EngineSampling {
		sampling = "engine"
	}
	t.line("sampling", tomlString(sampling), e.EngineSampling)
	for _, m := range e.Models {
		t.table("engines", e.Name, "models", m.ID)
		t.line("profile", tomlString(m.Profile.String()), true)
	}
}

// address writes where an engine is. An address that cannot be used is not
// shown: there may be a password in it.
func (t *configText) address(e *config.Engine) {
	ep, err := endpointOf(e)
	if err != nil {
		t.WriteString("# " + err.Error() + "\n")
		return
	}
	t.line("url", tomlString(ep.Root()), e.URL != "")
}

// online writes the providers on the internet.
func (t *configText) online(cfg *config.Config) {
	if d := cfg.DeepSeek; d != nil {
		t.table("deepseek")
		t.setting("key", d.Key)
		t.url(d.URL)
		if d.Models != nil {
			entries := make([]string, len(d.Models))
			for i, m := range d.Models {
				entries[i] = fmt.Sprintf("{ id = %s, name = %s, description = %s }", tomlString(m.ID), tomlString(m.Name), tomlString(m.Description))
			}
			t.line("models", "["+strings.Join(entries, ", ")+"]", true)
		}
	}
	if len(cfg.Hosted) == 0 {
		return
	}
	ids := make([]string, len(cfg.Hosted))
	for i, h := range cfg.Hosted {
		ids[i] = h.ID
	}
	t.table("hosted")
	t.line("providers", tomlStrings(ids), true)
	for _, h := range cfg.Hosted {
		t.table("hosted", "settings", h.ID)
		t.setting("key", h.Key)
		t.url(h.URL)
		t.line("profile", tomlString(h.Profile.String()), h.Profile != llm.Generic)
	}
}

func (t *configText) setting(key, value string) {
	if value != "" {
		t.line(key, tomlString(value), true)
	}
}

func (t *configText) url(s string) {
	if s == "" {
		return
	}
	if _, err := engine.ParseEndpoint(s); err != nil {
		t.WriteString("# url: " + err.Error() + "\n")
		return
	}
	t.setting("url", s)
}
