package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/config"
	"github.com/drover-dev/drover/internal/tui"
)

// uiOptions are the flags of the terminal UI alone.
type uiOptions struct {
	resume  string
	plain   bool
	version bool
}

func (a *app) uiFlags(cmd *cobra.Command, o *uiOptions) {
	a.engineFlags(cmd)
	a.turnFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.resume, "resume", "", "go on with the session `ID` (its beginning is enough; alone, or last: the newest of this folder)")
	f.Lookup("resume").NoOptDefVal = lastSession
	if err := cmd.RegisterFlagCompletionFunc("resume", a.completeSessions); err != nil {
		panic(err) // the flag does not exist: a mistake in this function
	}
	f.BoolVar(&o.plain, "plain", false, "lines alone: no colour, no moving cursor (for screen readers; also where TERM is dumb)")
	f.BoolVar(&o.version, "version", false, "print the version, as drover version does")
}

// arguments takes the ID of --resume ID, which to the flags is a word of its own.
func (o *uiOptions) arguments(cmd *cobra.Command, args []string) error {
	if o.resume == lastSession && len(args) == 1 {
		o.resume = args[0]
		return nil
	}
	return noArguments(cmd, args)
}

// ui opens a conversation in the terminal.
func (a *app) ui(ctx context.Context, o *uiOptions) error {
	if o.version {
		return a.printVersion()
	}
	if !isTerminal(a.stdin) || !isTerminal(a.stdout) {
		return usageError("drover alone opens a conversation, and needs a terminal for that. " +
			"Without one, drover run PROMPT runs one turn; drover --help lists the commands")
	}
	if a.flags.level != "" && a.flags.logFile == "" {
		return usageError("--log-level: the diagnostics would be written over the conversation; name a file with --log-file FILE")
	}
	s, err := a.settings()
	if err != nil {
		return err
	}
	opts := &tui.Options{
		In: a.stdin, Out: a.stdout, Environ: config.Environment(),
		Registry: &a.registry, Targets: &a.targets,
		Connect: a.connect, NoModel: a.noModel, Provided: a.provided,
		Sessions: a.sessions(), Resume: o.resume, Mode: s.mode, Agent: a.agentOptions(s, keysWithin(ctx, unlockLimit)), Explain: explain,
	}
	opts.Open = func(id string) (*tui.Session, error) { return a.openForUI(s, opts, id) }
	show := tui.Run
	if o.plain || dumb(opts.Environ) {
		show = tui.RunPlain
		// From here on an interrupt cancels a turn, of which there may be many: the
		// process no longer counts them, so that none of them ends it.
		signal.Reset(os.Interrupt)
		if ctx.Err() != nil {
			return exit(exitCancelled)
		}
	}
	ended, err := show(ctx, opts)
	if ended.Session != "" {
		fmt.Fprintf(a.stderr, "drover --resume %s goes on with this session\n", ended.Session)
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return exit(exitCancelled)
	}
	return err
}

// dumb reports whether a terminal can show lines alone.
func dumb(environ []string) bool {
	for _, e := range environ {
		if name, value, _ := strings.Cut(e, "="); name == "TERM" && value != "" {
			return value == "dumb"
		}
	}
	return runtime.GOOS != "windows" // whose consoles need no name
}

func (a *app) openForUI(s *settings, opts *tui.Options, id string) (*tui.Session, error) {
	var o *opened
	var err error
	if id != "" {
		o, err = a.openSaved(s, id)
	} else {
		o = &opened{effort: s.effort, target: s.target}
		if o.dir, err = workDir(); err == nil {
			err = a.create(o)
		}
	}
	if err != nil {
		return nil, err
	}
	if n := sandboxNotice(opts.Agent.Sandbox.State(), s.mode); n != "" {
		o.notes = append(o.notes, n)
	}
	return &tui.Session{
		Log: o.log, State: o.state, Dir: o.dir, Target: o.target, Restored: o.restored, Named: s.flagTarget, Effort: o.effort, Notes: o.notes,
	}, nil
}

// provided says why a route has no provider.
func (a *app) provided(route string) error {
	if err := a.named(route); err != nil {
		return err
	}
	if _, err := a.registry.Lookup(route); err != nil {
		return a.unknownProvider(route)
	}
	return nil
}
