package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/brief"
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
	wait   bool
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
	f.BoolVar(&o.wait, "wait", false, "wait for an engine that does not answer or loads its model")
	f.StringVar(&o.resume, "resume", "", "go on with the session `ID` (its beginning is enough; last is the newest of this folder)")
	f.StringArrayVar(&o.images, "image", nil, "add the image in `FILE` to the prompt (may be given again)")
	return cmd
}

func (a *app) run(ctx context.Context, prompt string, o *runOptions) error {
	if !o.json {
		return a.runWith(ctx, prompt, o, newTextReporter(a.stdout, a.stderr))
	}
	rep := newJSONReporter(a.stdout)
	err := a.runWith(ctx, prompt, o, rep)
	if err == nil {
		return nil
	}
	chosen := status(ctx, err)
	if err.Error() != "" && rep.failed(err, chosen) != nil {
		return &statusError{status: chosen, err: err} // stdout cannot tell it
	}
	return exit(chosen)
}

func (a *app) runWith(ctx context.Context, prompt string, o *runOptions, rep reporter) (err error) {
	s, err := a.settings()
	if err != nil {
		return err
	}
	parts, err := a.prompt(ctx, prompt, o.images)
	if err != nil {
		return err
	}
	if err := a.connect(ctx); err != nil {
		return err
	}
	if o.wait && o.resume == "" { // a session knows its own engine
		if err := a.waitForEngine(ctx, s.target.Provider, rep); err != nil {
			return err
		}
	}
	opened, err := a.openSession(ctx, s, o.resume)
	if err != nil {
		return err
	}
	if o.wait && o.resume != "" {
		if err := a.waitForEngine(ctx, opened.target.Provider, rep); err != nil {
			return errors.Join(err, opened.log.Close())
		}
	}
	sel := target.NewSelector(&a.registry, &a.targets, opened.effort)
	sel.Select(ctx, opened.target)
	opts := a.agentOptions(s, keysWithin(ctx, unlockLimit))
	opts.Dir, opts.Gate = opened.dir, tool.NewGate(s.mode)
	if opts.SpillDir != "" {
		opts.SpillDir = filepath.Join(opts.SpillDir, opened.log.ID())
	}
	ag := agent.New(sel, opened.log, opened.state, new(terminalApprover), &opts)
	defer func() {
		if e := ag.Close(); e != nil {
			rep.lost(e)
			if err == nil {
				err = exit(exitFailed)
			}
		}
	}()
	if err := rep.session(opened.log); err != nil {
		return err
	}
	if n := sandboxNotice(opts.Sandbox.State(), s.mode); n != "" {
		opened.notes = append(opened.notes, n)
	}
	for _, n := range opened.notes {
		if err := rep.event(agent.Notice{Kind: agent.NoticeInfo, Text: n}); err != nil {
			return err
		}
	}
	return runTurn(ctx, ag, parts, rep)
}

// runTurn runs one turn and reports it. Its error only chooses the exit status, or
// says why the report could not be written.
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
		return &statusError{status: status(context.Background(), failed), err: failed}
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

// opened is a session to run a turn in.
type opened struct {
	log    *session.Log
	state  *session.State
	dir    string // that tools work in
	target llm.Target
	// restored says that the target is the one that the session used last.
	restored bool
	effort   llm.Effort
	notes    []string
}

// openSession opens a session to go on with, or makes one. The command line
// outweighs what the session was left with, and that the configuration. Nothing
// is made when no model can be chosen.
func (a *app) openSession(ctx context.Context, s *settings, id string) (*opened, error) {
	if id != "" {
		return a.resume(ctx, s, id)
	}
	o := &opened{effort: s.effort}
	var err error
	if o.dir, err = workDir(); err != nil {
		return nil, err
	}
	if err := a.chooseFor(ctx, o, s.target); err != nil {
		return nil, err
	}
	return o, a.create(o)
}

// create makes a new session, in memory where it cannot be saved.
func (a *app) create(o *opened) (err error) {
	create := &session.CreateOptions{Program: version()}
	if o.log, err = a.sessions().Create(o.dir, create); err != nil {
		o.notes = append(o.notes, "the session is kept in memory only: "+err.Error())
		if o.log, err = session.NewStore("").Create(o.dir, create); err != nil {
			return err
		}
	}
	o.state = o.log.NewState()
	return nil
}

func (a *app) resume(ctx context.Context, s *settings, name string) (*opened, error) {
	o, err := a.openSaved(s, name)
	if err != nil {
		return nil, err
	}
	if err := a.chooseFor(ctx, o, o.target); err != nil {
		return nil, errors.Join(err, o.log.Close())
	}
	return o, nil
}

// openSaved opens a session to go on with, with the target that it shall have; no
// engine is looked at.
func (a *app) openSaved(s *settings, name string) (_ *opened, err error) {
	store := a.sessions()
	id, err := resolveSession(store, name)
	if err != nil {
		return nil, err
	}
	o := &opened{effort: s.effort, target: s.target}
	if o.log, err = store.OpenForAppend(id); err != nil {
		return nil, &statusError{status: exitUsage, err: err}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.log.Close())
		}
	}()
	if o.state, err = o.log.Fold(); err != nil {
		return nil, &statusError{status: exitUsage, err: err}
	}
	for _, w := range o.state.Warnings {
		o.notes = append(o.notes, "session "+id+": "+w.String())
	}
	if err := o.enter(o.state.CWD); err != nil {
		return nil, err
	}
	if h := o.state.Header; h != nil {
		if used := h.Snapshot.Target; !s.flagTarget || s.flagRoute != "" && s.flagRoute == used.Provider {
			o.target, o.restored = used, true
		}
		if !s.flagEffort {
			o.effort = h.Snapshot.Effort
		}
	}
	return o, nil
}

// enter makes the session's folder the one to work in, or the current one when
// it is gone.
func (o *opened) enter(dir string) error {
	here, err := workDir()
	switch st, e := os.Stat(dir); {
	case e == nil && st.IsDir():
		o.dir = dir
		if err != nil || here != dir {
			o.notes = append(o.notes, "working in "+dir+", the folder of the session")
		}
		return nil
	case err != nil:
		return err
	}
	o.dir = here
	why := dir + ", the folder of the session, is gone"
	if dir == "" { // the log has lost its header
		why = "the log does not say which folder the session belongs to"
	}
	o.notes = append(o.notes, why+": working in "+here)
	return nil
}

func (a *app) chooseFor(ctx context.Context, o *opened, wanted llm.Target) error {
	t, note, err := a.choose(ctx, wanted)
	if err != nil {
		return err
	}
	o.target = t
	if note != "" {
		o.notes = append(o.notes, note)
	}
	return nil
}

// prompt puts the prompt, stdin and images together.
func (a *app) prompt(ctx context.Context, prompt string, images []string) ([]llm.Part, error) {
	var parts []llm.Part
	for _, file := range images {
		data, err := readImage(ctx, file)
		if err != nil {
			return nil, err
		}
		img, err := llm.NewImage(filepath.Base(file), data)
		if err != nil {
			return nil, usageError("--image: %w", err)
		}
		parts = append(parts, img)
	}
	piped := ""
	if prompt == "-" || isPipe(a.stdin) {
		data, err := readAll(ctx, a.stdin, "stdin", maxStdin)
		if err != nil {
			return nil, err
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

func readImage(ctx context.Context, file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, usageError("--image: %w", err)
	}
	defer f.Close()
	return readAll(ctx, f, "--image "+file, llm.MaxImageBytes)
}

// reporter shows a turn.
type reporter interface {
	// session shows which session the turn belongs to. Its error, like that of
	// event, means that nobody reads any more.
	session(log *session.Log) error
	event(ev agent.Event) error
	// lost shows that a part of the session could not be saved after all.
	lost(err error)
}

// textReporter writes the answer to stdout and the rest to stderr.
type textReporter struct {
	stdout, stderr io.Writer
	midLine        bool   // stdout stands behind an unfinished line
	clean          bool   // stdout is a terminal, which some characters would change
	thinking       bool   // told, and nothing else has come since
	model          string // the line about the model that was told last
	trim, trimSaid string // the newest trim notice, and the one that was said
}

func newTextReporter(stdout, stderr io.Writer) *textReporter {
	return &textReporter{stdout: stdout, stderr: stderr, clean: isTerminal(stdout)}
}

func (r *textReporter) lost(err error) { fmt.Fprintln(r.stderr, "drover: "+explain(err)) }

func (r *textReporter) session(log *session.Log) error {
	if log.InMemory() {
		return nil
	}
	return r.note("session %s", log.ID())
}

func (r *textReporter) event(ev agent.Event) error {
	switch ev := ev.(type) {
	case agent.Text:
		r.thinking = false
		r.midLine = !strings.HasSuffix(string(ev), "\n")
		text := string(ev)
		if r.clean {
			text = printable(text)
		}
		_, err := io.WriteString(r.stdout, text)
		return err
	case agent.Model:
		w := ev.Snapshot.Window
		line := fmt.Sprintf("model %s, window %s, effort %s", ev.Snapshot.Target, windowText(&w), ev.Snapshot.Effort)
		if line == r.model {
			return nil
		}
		r.model = line
		return r.note("%s", strings.Join(append([]string{line}, ev.Notes...), "\n· "))
	case agent.Reasoning:
		if r.thinking {
			return nil
		}
		r.thinking = true
		return r.note("thinking …")
	case agent.Waiting:
		return r.note("the engine is reading the prompt (%.0f s)", ev.Elapsed.Seconds())
	case agent.Notice:
		if ev.Kind == agent.NoticeTrim {
			// One a turn: the first, and the last one at the end.
			if r.trim = ev.Text; r.trimSaid != "" {
				return nil
			}
			r.trimSaid = ev.Text
		}
		return r.note("%s", ev.Text)
	case agent.Retrying:
		return r.note("%s; again in %.1f s", ev.Err.Message, ev.Wait.Seconds())
	case agent.CallPending:
		return r.note("%s", callText(&ev))
	case agent.CallFinished:
		if ev.Result.Status != tool.StatusOK {
			return r.note("%s: %s: %s", ev.Name, brief.Outcome(ev.Result.Status), firstLine(ev.Result.Text))
		}
	case agent.Usage:
		return r.note("%s", usageText(&ev))
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
	if r.trim != r.trimSaid {
		err = errors.Join(err, r.note("in the end, %s", r.trim))
	}
	switch ev.Reason {
	case agent.EndCancelled:
		return errors.Join(err, r.note("cancelled"))
	case agent.EndError:
		_, e := fmt.Fprintln(r.stderr, "drover: "+explain(ev.Err))
		return errors.Join(err, e)
	}
	return err
}

// note writes a line to stderr, on a line of its own also when both streams are
// one terminal.
func (r *textReporter) note(format string, args ...any) error {
	start := "· "
	if r.midLine && sameTerminal(r.stdout, r.stderr) {
		start = "\n· "
		r.midLine = false
	}
	_, err := io.WriteString(r.stderr, start+printable(fmt.Sprintf(format, args...))+"\n")
	return err
}

func callText(ev *agent.CallPending) string {
	if ev.Action == nil {
		return ev.Call.Name + " " + firstLine(ev.Call.Arguments)
	}
	text := ev.Call.Name + " " + firstLine(ev.Action.Title)
	if d := ev.Action.Diff; d != nil {
		added, removed := d.Lines()
		text += fmt.Sprintf(" (+%d -%d)", added, removed)
	}
	return text
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
