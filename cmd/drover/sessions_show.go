package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/brief"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/tool"
)

func newSessionsShow(a *app) *cobra.Command {
	var plan bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Print a session for reading",
		Long: `Print a session for reading: its turns, calls with the beginning of their
results, and what drover said. What is wrong with the log goes to stderr.`,
		Args:              oneArgument("ID"),
		ValidArgsFunction: a.completeSessions,
		RunE:              func(_ *cobra.Command, args []string) error { return a.showSession(args[0], plan) },
	}
	cmd.Flags().BoolVar(&plan, "plan", false, "also the plan of each request: what it cost and what was left out")
	return cmd
}

// readSession reads a session that a person named, and tells what is wrong with
// its log.
func (a *app) readSession(name string) (*session.Store, *session.State, error) {
	store, err := a.sessionStore()
	if err != nil {
		return nil, nil, err
	}
	id, err := resolveSession(store, name)
	if err != nil {
		return nil, nil, err
	}
	state, err := store.Read(id)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range state.Warnings {
		fmt.Fprintf(a.stderr, "drover: session %s: %s\n", id, oneLine(w.String()))
	}
	return store, state, nil
}

func (a *app) showSession(name string, plan bool) error {
	store, state, err := a.readSession(name)
	if err != nil {
		return err
	}
	v := &sessionView{w: a.stdout, plan: plan, names: make(map[string]string)}
	v.head(state)
	for rec, err := range store.Records(state.ID) {
		if err != nil {
			return err
		}
		if v.record(rec); v.err != nil {
			return v.err
		}
	}
	if state.OpenTurn {
		v.line("turn not ended: it runs, or the next prompt closes it")
	}
	return v.err
}

// sessionView prints records for reading.
type sessionView struct {
	w     io.Writer
	plan  bool
	names map[string]string // of the tools, by the id of the call
	err   error             // the first of a write
}

// line prints a line of ours; arguments are made harmless.
func (v *sessionView) line(format string, args ...any) {
	if v.err == nil {
		_, v.err = fmt.Fprintln(v.w, harmless(fmt.Sprintf(format, args...)))
	}
}

// text prints a text below a line.
func (v *sessionView) text(s string) {
	if s = strings.TrimRight(harmless(s), "\n"); s != "" {
		v.line("%s", indent(s, "  "))
	}
}

func (v *sessionView) head(s *session.State) {
	v.line("session  %s", s.ID)
	v.line("folder   %s", oneLine(s.CWD))
	v.line("title    %s", oneLine(s.Title))
	v.line("created  %s, changed %s", localTime(s.Created), localTime(s.Updated))
	if s.Header != nil {
		snap := &s.Header.Snapshot
		v.line("model    %s, window %s, effort %s", oneLine(snap.Target.String()), windowText(&snap.Window), snap.Effort)
		if len(snap.Refusals) > 0 {
			v.line("refused  %s", snap.Refusals.Describe())
		}
	}
	if u := s.Usage; u.Requests > 0 {
		about := ""
		if u.Estimated {
			about = "about "
		}
		v.line("tokens   %s%d of prompts and %d generated, in %d requests", about, u.PromptTokens, u.CompletionTokens, u.Requests)
	}
}

func (v *sessionView) record(rec session.Record) {
	switch rec := rec.(type) {
	case *session.TurnStart:
		v.line("\n=== turn %d, %s", rec.Turn, localTime(rec.Time))
	case *session.UserMessage:
		if rec.Continuation {
			v.line("added:")
		} else {
			v.line("user:")
		}
		v.text(partsText(rec.Parts))
	case *session.RequestPlan:
		if v.plan && v.err == nil {
			var b bytes.Buffer
			v.err = printPlan(&b, &rec.Report)
			v.line("request, at most %d tokens of answer:", rec.MaxTokens)
			v.text(b.String())
		}
	case *session.AssistantMessage:
		v.answer(rec)
	case *session.PermissionDecision:
		v.line("%s of %s: %s%s", allowedText(rec.Allowed), v.call(rec.CallID), rec.Decision, becauseText(rec.Reason))
	case *session.ToolResult:
		v.line("%s: %s%s", v.call(rec.ID), brief.Outcome(tool.Status(rec.Status)), afterText(rec.DurationMS))
		v.text(shorten(rec.Text))
	case *session.PlanNotice:
		v.line("notice: %s", oneLine(rec.Text))
	case *session.Retry:
		v.line("retry: %s %s; again in %.1f s", rec.Code, oneLine(rec.Message), (time.Duration(rec.WaitMS) * time.Millisecond).Seconds())
	case *session.TurnEnd:
		v.line("turn %d: %s", rec.Turn, endText(rec))
	}
}

func (v *sessionView) answer(rec *session.AssistantMessage) {
	v.line("%s%s:", oneLine(rec.Target.String()), answerMarks(rec))
	if rec.Reasoning != nil && rec.Reasoning.Text != "" {
		v.text("[thinking] " + shorten(rec.Reasoning.Text))
	}
	v.text(rec.Text)
	for _, c := range rec.Calls {
		v.names[c.ID] = c.Name
		v.text(oneLine(c.Name) + " " + shorten(c.Arguments))
	}
}

// call names a call by its tool and id.
func (v *sessionView) call(id string) string {
	name, ok := v.names[id]
	if !ok {
		name = "a call"
	}
	return oneLine(fmt.Sprintf("%s (%s)", name, id))
}

func answerMarks(rec *session.AssistantMessage) string {
	marks := ""
	if rec.Interrupted {
		marks += ", broken off"
	}
	if rec.Discarded {
		marks += ", not used"
	}
	return marks
}

func allowedText(allowed bool) string {
	if allowed {
		return "permission"
	}
	return "refusal"
}

func becauseText(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + oneLine(reason)
}

func afterText(ms int64) string {
	if ms == 0 {
		return ""
	}
	return fmt.Sprintf(" after %d ms", ms)
}

func endText(rec *session.TurnEnd) string {
	text := string(rec.Reason)
	if rec.Code != "" {
		text += " (" + string(rec.Code) + ")"
	}
	if rec.Message != "" {
		text += ": " + rec.Message
	}
	return oneLine(text)
}

// partsText is the text of a message with a line for each image.
func partsText(parts []llm.Part) string {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			b.WriteString(string(p))
		case *llm.Image:
			fmt.Fprintf(&b, "[image %s, %s, %dx%d]\n", p.Name, p.MediaType, p.Width, p.Height)
		}
	}
	return b.String()
}
