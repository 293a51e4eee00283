package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/drover-dev/drover/internal/config"
	"github.com/drover-dev/drover/internal/engine"
	"github.com/drover-dev/drover/internal/llm"
)

func newDoctor(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look at everything drover needs: what is right, what is wrong, what to do",
		Long: `Look at everything drover needs: the configuration, the engines, the keys, its own
folders, the saved sessions, the programs that tools run, the sandbox that they
run in, and the terminal. What is wrong is named with what to do about it, and
then the exit status is 1. No key is shown, no model is loaded, and nothing is
changed.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// state is how something is.
type state string

const (
	fine  state = "ok"
	note  state = "note" // works, but there is something to know
	wrong state = "wrong"
)

// finding is one thing that drover doctor has looked at.
type finding struct {
	Area  string `json:"area"`
	State state  `json:"state"`
	Text  string `json:"text"`
	Hint  string `json:"hint,omitempty"` // what to do
}

// findings collects what drover doctor sees.
type findings []finding

func (f *findings) add(area string, s state, hint, format string, args ...any) {
	*f = append(*f, finding{area, s, fmt.Sprintf(format, args...), hint})
}

// failed adds an error, with its hint.
func (f *findings) failed(area, format string, err error) {
	f.add(area, wrong, hint(err), format, err)
}

func (a *app) doctor(ctx context.Context, asJSON bool) error {
	var f findings
	cfg := a.examineConfig(&f)
	if cfg != nil {
		rows := a.engineRows(ctx, cfg)
		a.examineEngines(&f, cfg, rows)
		a.examineKeys(ctx, &f, cfg)
	}
	a.examineFolders(&f)
	a.examineSessions(&f)
	examinePrograms(&f)
	if cfg != nil {
		examineSandbox(&f, newSandbox(cfg))
	}
	a.examineTerminal(&f)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	bad := 0
	for _, x := range f {
		if x.State == wrong {
			bad++
		}
	}
	var err error
	if asJSON {
		err = printJSON(a.stdout, f)
	} else {
		err = printFindings(a.stdout, f, bad)
	}
	if err == nil && bad > 0 {
		return exit(exitFailed)
	}
	return err
}

func printFindings(w io.Writer, list findings, bad int) error {
	var b strings.Builder
	area := ""
	for _, x := range list {
		if x.Area != area {
			area = x.Area
			b.WriteString(area + "\n")
		}
		fmt.Fprintf(&b, "  %-5s  %s\n", x.State, strings.ReplaceAll(x.Text, "\n", "\n         "))
		if x.Hint != "" {
			fmt.Fprintf(&b, "         %s\n", strings.ReplaceAll(x.Hint, "\n", "\n         "))
		}
	}
	switch bad {
	case 0:
		b.WriteString("\nNothing is wrong.\n")
	case 1:
		b.WriteString("\n1 thing is wrong.\n")
	default:
		fmt.Fprintf(&b, "\n%d things are wrong.\n", bad)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// examineConfig gives the configuration, nil if it cannot be used.
func (a *app) examineConfig(f *findings) *config.Config {
	const area = "configuration"
	path, exists, err := configFile()
	if err != nil {
		f.add(area, note, "", "%v", err)
		return &config.Config{}
	}
	if err := config.Check(path, moreMistakes); err != nil {
		f.add(area, wrong, "Correct the file; docs/configuration.md names every key. Engines and keys were not looked at.", "%v", err)
		return nil
	}
	cfg, err := a.load()
	if err != nil {
		f.failed(area, "%v", err)
		return nil
	}
	if !exists {
		f.add(area, fine, "", "%s is not there, and need not be", path)
		return cfg
	}
	f.add(area, fine, "", "%s", path)
	for _, file := range cfg.Instructions {
		if _, err := os.Stat(file); err != nil {
			f.add(area, note, "Correct instructions.files, or write the file.", "instructions are left out: %v", err)
		}
	}
	return cfg
}

func (a *app) examineEngines(f *findings, cfg *config.Config, rows []engineRow) {
	const area = "engines"
	for i := range rows {
		r := &rows[i]
		switch code := llm.CodeOf(r.err); {
		case code == llm.CodeMissingCredential || r.key != "" && code == llm.CodeInvalidCredential:
			f.add(area, wrong, "", "%s at %s: %s", r.name, r.address, r.state()) // what to do stands beside the key
		case r.err != nil:
			f.add(area, wrong, hint(r.err), "%s at %s: %s", r.name, r.address, r.state())
		case len(r.health.Models) == 0:
			f.add(area, wrong, "Get a model first (ollama pull NAME, say).", "%s at %s: it lists no model", r.name, r.address)
		default:
			f.add(area, fine, "", "%s at %s: %s", r.name, r.address, r.state())
		}
	}
	if len(rows) == 0 && !a.wantsDeepSeek(cfg) && len(cfg.Hosted) == 0 {
		tried := strings.ReplaceAll(a.discovery.Load().String(), "\n", "\n  ")
		f.add(area, wrong, wayToAnEngine, "none is configured, and none was found on this machine:\n  %s", tried)
	}
	for i := range rows {
		if r := &rows[i]; r.name == cfg.Model.Provider && r.err == nil && !lists(&r.health, cfg.Model) {
			f.add(area, note, "drover models lists the models there are; drover engines use PROVIDER/MODEL chooses one.",
				"%s does not list the model %s of the configuration; it is asked for all the same", r.name, cfg.Model.Model)
		}
	}
}

func lists(h *engine.Health, t llm.Target) bool {
	return slices.ContainsFunc(h.Models, func(m llm.ModelInfo) bool { return is(&m, t) })
}

// examineKeys says whether the keys can be had, and never what they are.
func (a *app) examineKeys(ctx context.Context, f *findings, cfg *config.Config) {
	const area = "keys"
	refs := keyReferences(cfg)
	for _, r := range refs {
		if !strings.HasPrefix(r.by, "engines.") && !strings.HasPrefix(r.by, "mcp.") {
			continue // a provider on the internet: see below
		}
		place, err := within(ctx, keyringLimit, func() (string, error) { return config.FindCredential(r.ref) })
		if err != nil {
			h := hint(err)
			if strings.HasPrefix(r.ref, "keyring:") && llm.CodeOf(err) == llm.CodeMissingCredential {
				h = "" // the error says how to store it
			}
			f.add(area, wrong, h, "%s: %s: %v", r.by, r.ref, err)
			continue
		}
		f.add(area, fine, "", "%s: %s is there, in %s", r.by, r.ref, place)
		if path, ok := strings.CutPrefix(r.ref, "file:"); ok {
			examineMode(f, area, path)
		}
	}
	keys := config.FindDirs().Keys()
	if _, err := os.Stat(keys.File()); err == nil {
		examineMode(f, area, keys.File())
	}
	providers, err := within(ctx, keyringLimit, func() ([]online, error) { return a.online(cfg, config.Credential) })
	if err != nil {
		f.failed(area, "%v", err)
	}
	a.examineOnline(f, providers)
	if len(refs) == 0 {
		f.add(area, fine, "", "the configuration refers to none")
	}
}

// examineOnline looks at the keys of the providers on the internet, which are
// not asked.
func (a *app) examineOnline(f *findings, providers []online) {
	for _, p := range providers {
		c, ok := p.(interface{ CheckKey() error })
		if !ok {
			continue
		}
		if err := c.CheckKey(); err != nil {
			f.failed("keys", p.Info("").ID+": %v", err)
		} else {
			f.add("keys", fine, "", "%s: a key is there", p.Info("").ID)
		}
		p.Close()
	}
}

func (a *app) examineTerminal(f *findings) {
	const area = "terminal"
	if !isTerminal(a.stdout) {
		if in, out, err := openTerminal(); err == nil {
			in.Close()
			out.Close()
			f.add(area, fine, "", "stdout is none; questions are asked on the terminal of the session")
			return
		}
		f.add(area, note, "Give drover run --mode edit or --mode full where it runs without one.",
			"there is none: what is asked about counts as refused")
		return
	}
	size := ""
	if w, h, err := term.GetSize(int(a.stdout.(*os.File).Fd())); err == nil {
		size = fmt.Sprintf(", %d columns and %d lines", w, h)
	}
	kind := environ("TERM")
	if kind == "" {
		kind = "a terminal"
	}
	if environ("NO_COLOR") != "" {
		size += ", without colours (NO_COLOR)"
	}
	f.add(area, fine, "", "%s%s", kind, size)
}

// environ is a variable of the environment, empty if it is not set.
func environ(name string) string {
	value := ""
	for _, e := range config.Environment() {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v // the last one counts
		}
	}
	return value
}
