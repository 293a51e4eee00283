package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/tool"
)

// maxStdin bounds what a pipe adds to a prompt: 8 MiB, more than any window
// holds.
const maxStdin = 8 << 20

// runOptions are the flags of run alone.
type runOptions struct {
	json   bool
	resume string
	images []string
}

func newRun(a *app) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run PROMPT",
		Short: "Run one turn: the answer on stdout, everything else on stderr",
		Long: `Run one turn in the current folder. The answer goes to stdout and everything
else to stderr. A pipe on stdin is added to the prompt; the prompt "-" is stdin
alone.

Calls that the mode does not allow are asked about on the terminal. Without a
terminal they are denied.

Exit status: 0 done; 1 the turn failed or its answer reached the token limit;
2 command line or configuration; 3 the request does not fit the model's window;
130 cancelled.`,
		Example: `  drover run "what does this project do?"
  git diff | drover run "review this change"
  drover run --mode edit "fix the typo in README.md"
  drover run --url http://127.0.0.1:8080 --preset llamacpp --model qwen "hello"`,
		Args: oneArgument("PROMPT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.run(cmd.Context(), args[0], &o)
		},
	}
	a.engineFlags(cmd)
	a.turnFlags(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print one JSON event a line (docs/protocol.md)")
	f.StringVar(&o.resume, "resume", "", "go on with the session `ID`")
	f.StringArrayVar(&o.images, "image", nil, "add the image in `FILE` to the prompt (may be given again)")
	return cmd
}

func (a *app) run(ctx context.Context, prompt string, o *runOptions) error {
	var rep reporter = newTextReporter(a.stdout, a.stderr)
	if o.json {
		rep = newJSONReporter(a.stdout)
	}
	err := a.runWith(ctx, prompt, o, rep)
	if err == nil || !o.json {
		return err
	}
	if text := err.Error(); text != "" { // it failed before the turn could begin
		rep.failed(err)
	}
	return exit(status(ctx, err))
}

func (a *app) runWith(ctx context.Context, prompt string, o *runOptions, rep reporter) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	parts, err := a.prompt(prompt, o.images)
	if err != nil {
		return err
	}
	if err := a.connect(ctx); err != nil {
		return err
	}
	log, state, notes, err := a.openSession(o.resume)
	if err != nil {
		return err
	}
	if s.target.IsZero() && state.Header != nil {
		s.target = state.Header.Snapshot.Target
	}
	t, note, err := a.choose(ctx, s.target)
	if err != nil {
		log.Close()
		return err
	}
	if note != "" {
		notes = append(notes, note)
	}
	for _, n := range notes {
		rep.event(agent.Notice{Kind: agent.NoticeInfo, Text: n})
	}
	sel := target.NewSelector(&a.registry, &a.targets, s.effort)
	sel.Select(ctx, t)
	opts := a.agentOptions(s)
	if opts.Dir, err = workDir(); err != nil {
		return err
	}
	opts.Gate = tool.NewGate(s.mode)
	ag := agent.New(sel, log, state, newTerminalApprover(a.stderr), &opts)
	defer ag.Close()
	return runTurn(ctx, ag, parts, rep)
}

// runTurn runs one turn and reports it. Its error only chooses the exit status.
func runTurn(ctx context.Context, ag *agent.Agent, parts []llm.Part, rep reporter) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var end agent.End
	var failed error
	for ev := range ag.Turn(ctx, parts) {
		if err := rep.event(ev); err != nil && failed == nil {
			failed = err // the reader is gone: stop, and let the log be closed
			cancel()
		}
		if e, ok := ev.(agent.End); ok {
			end = e
		}
	}
	if failed != nil {
		return &statusError{status: status(context.Background(), failed)}
	}
	switch end.Reason {
	case agent.EndCompleted:
		return nil
	case agent.EndCancelled:
		return exit(exitCancelled)
	case agent.EndError:
		return exit(status(context.Background(), end.Err))
	}
	return exit(exitFailed)
}

// openSession opens a session to go on with, or makes one. When none can be
// saved the session lives in memory, and a note says so.
func (a *app) openSession(id string) (*session.Log, *session.State, []string, error) {
	store := a.sessions()
	if id != "" {
		log, state, err := store.Open(id)
		if err != nil {
			return nil, nil, nil, &statusError{status: exitUsage, err: err}
		}
		var notes []string
		for _, w := range state.Warnings {
			notes = append(notes, "session "+id+": "+w.String())
		}
		return log, state, notes, nil
	}
	dir, err := workDir()
	if err != nil {
		return nil, nil, nil, err
	}
	var notes []string
	log, err := store.Create(dir, &session.CreateOptions{Program: version()})
	if err != nil {
		notes = append(notes, "the session is kept in memory only: "+err.Error())
		if log, err = session.NewStore("").Create(dir, &session.CreateOptions{Program: version()}); err != nil {
			return nil, nil, nil, err
		}
	}
	return log, log.NewState(), notes, nil
}

// prompt puts the prompt, stdin and images together.
func (a *app) prompt(prompt string, images []string) ([]llm.Part, error) {
	var parts []llm.Part
	for _, file := range images {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, usageError("--image: %w", err)
		}
		img, err := llm.NewImage(filepath.Base(file), data)
		if err != nil {
			return nil, usageError("--image: %w", err)
		}
		parts = append(parts, img)
	}
	piped := ""
	if prompt == "-" || isPipe(a.stdin) {
		data, err := io.ReadAll(io.LimitReader(a.stdin, maxStdin+1))
		if err != nil {
			return nil, usageError("stdin: %w", err)
		}
		if len(data) > maxStdin {
			return nil, usageError("stdin: more than %d bytes", maxStdin)
		}
		piped = string(data)
	}
	switch {
	case prompt == "-":
		prompt = piped
	case strings.TrimSpace(piped) != "":
		prompt += "\n\n" + piped
	}
	if strings.TrimSpace(prompt) == "" && len(parts) == 0 {
		return nil, usageError("the prompt is empty")
	}
	return append(parts, llm.Text(prompt)), nil
}

// isPipe reports whether somebody feeds stdin: a pipe or a file, no terminal
// and no /dev/null.
func isPipe(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return r != nil
	}
	st, err := f.Stat()
	return err == nil && (st.Mode()&os.ModeNamedPipe != 0 || st.Mode().IsRegular())
}

// reporter shows a turn.
type reporter interface {
	// event shows one event. Its error means that nobody reads any more.
	event(ev agent.Event) error
	// failed shows an error from before the turn.
	failed(err error)
}

// textReporter writes the answer to stdout and the rest to stderr.
type textReporter struct {
	stdout, stderr io.Writer
	midLine        bool   // stdout stands behind an unfinished line
	thinking       bool   // told, and nothing else has come since
	model          string // the line about the model that was told last
}

func newTextReporter(stdout, stderr io.Writer) *textReporter {
	return &textReporter{stdout: stdout, stderr: stderr}
}

func (r *textReporter) failed(error) {}

func (r *textReporter) event(ev agent.Event) error {
	switch ev := ev.(type) {
	case agent.Text:
		r.thinking = false
		r.midLine = !strings.HasSuffix(string(ev), "\n")
		_, err := io.WriteString(r.stdout, string(ev))
		return err
	case agent.Model:
		w := ev.Snapshot.Window
		line := fmt.Sprintf("model %s, window %s, effort %s", ev.Snapshot.Target, windowText(&w), ev.Snapshot.Effort)
		if line == r.model {
			return nil
		}
		r.model = line
		for _, n := range append([]string{line}, ev.Notes...) {
			r.note("%s", n)
		}
	case agent.Reasoning:
		if !r.thinking {
			r.note("thinking …")
		}
		r.thinking = true
	case agent.Waiting:
		r.note("the engine is reading the prompt (%.0f s)", ev.Elapsed.Seconds())
	case agent.Notice:
		r.note("%s", ev.Text)
	case agent.Retrying:
		r.note("%s; again in %.1f s", ev.Err.Message, ev.Wait.Seconds())
	case agent.CallPending:
		r.note("%s", callText(&ev))
	case agent.CallFinished:
		if ev.Result.Status != tool.StatusOK {
			r.note("%s: %s: %s", ev.Name, ev.Result.Status, firstLine(ev.Result.Text))
		}
	case agent.Usage:
		r.note("%s", usageText(&ev))
	case agent.End:
		return r.end(ev)
	}
	return nil
}

func (r *textReporter) end(ev agent.End) error {
	var err error
	if r.midLine {
		r.midLine = false
		_, err = io.WriteString(r.stdout, "\n")
	}
	switch ev.Reason {
	case agent.EndCancelled:
		r.note("cancelled")
	case agent.EndError:
		fmt.Fprintln(r.stderr, "drover: "+explain(ev.Err))
	}
	return err
}

// note writes a line to stderr, on a line of its own also when both streams are
// one terminal.
func (r *textReporter) note(format string, args ...any) {
	if r.midLine && sameTerminal(r.stdout, r.stderr) {
		fmt.Fprintln(r.stderr)
		r.midLine = false
	}
	fmt.Fprintf(r.stderr, "· "+format+"\n", args...)
}

func callText(ev *agent.CallPending) string {
	if ev.Action == nil {
		return ev.Call.Name + " " + firstLine(ev.Call.Arguments)
	}
	return ev.Call.Name + " " + firstLine(ev.Action.Title)
}

func usageText(ev *agent.Usage) string {
	of := ""
	if ev.Window.Tokens > 0 {
		of = fmt.Sprintf(" of %d", ev.Window.Tokens)
	}
	if ev.Usage.Estimated {
		return fmt.Sprintf("about %d prompt tokens%s (the engine did not count)", ev.Usage.PromptTokens, of)
	}
	return fmt.Sprintf("%d prompt tokens%s (estimated %d), %d generated", ev.Usage.PromptTokens, of, ev.Estimate, ev.Usage.CompletionTokens)
}

func windowText(w *llm.Window) string {
	if w.Tokens == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%d (%s)", w.Tokens, w.Source)
}

// maxLine bounds what a line for people shows of a text, in characters.
const maxLine = 200

func firstLine(s string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(s), "\n")
	runes := []rune(strings.ToValidUTF8(line, "\uFFFD"))
	if len(runes) > maxLine {
		return string(runes[:maxLine]) + " …"
	}
	if rest != "" {
		return line + " …"
	}
	return line
}
