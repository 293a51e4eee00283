package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/brief"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/openai"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/tool"
)

// exportFormats are the values of --format.
var exportFormats = []string{"md", "json", "openai"}

func newSessionsExport(a *app) *cobra.Command {
	format := exportFormats[0]
	cmd := &cobra.Command{
		Use:   "export ID",
		Short: "Print a session as Markdown, JSON or a Chat Completions request",
		Long: `Print a session whole.

  md      Markdown, with results in full
  json    one document: what the list says, and every record of the log
  openai  the body of a Chat Completions request with the whole conversation,
          the system turn and the tools of the last request; drover plan reads it`,
		Example:           `  drover sessions export last > session.md`,
		Args:              oneArgument("ID"),
		ValidArgsFunction: a.completeSessions,
		RunE:              func(_ *cobra.Command, args []string) error { return a.exportSession(args[0], format) },
	}
	cmd.Flags().StringVar(&format, "format", format, "the `FORMAT`: md, json or openai")
	a.complete(cmd, "format", func() []string { return exportFormats })
	return cmd
}

func (a *app) exportSession(name, format string) error {
	var export func(io.Writer, *session.Store, *session.State) error
	switch format {
	case "md":
		export = exportMarkdown
	case "json":
		export = exportJSON
	case "openai":
		export = exportRequest
	default:
		return usageError("--format %s: want %s", format, strings.Join(exportFormats, ", "))
	}
	store, state, err := a.readSession(name)
	if err != nil {
		return err
	}
	return export(a.stdout, store, state)
}

// exportRequest prints the conversation as one request that leaves nothing out.
func exportRequest(w io.Writer, _ *session.Store, s *session.State) error {
	if s.Header == nil {
		return fmt.Errorf("session %s has no request yet", s.ID)
	}
	req := llm.Request{Snapshot: s.Header.Snapshot, System: s.Header.System, Tools: s.Header.ToolDefs(), Messages: s.Messages}
	if s.Plan != nil {
		req.MaxTokens = s.Plan.MaxTokens
	}
	body, err := openai.EncodeRequest(&req)
	if err != nil {
		return err
	}
	_, err = w.Write(escapeJSON(append(indentJSON(body), '\n')))
	return err
}

// recordJSON is a record in the form that it has in the log.
type recordJSON struct {
	Seq  int            `json:"seq"`
	Time string         `json:"time"`
	Type string         `json:"type"`
	Data session.Record `json:"data"`
}

// usageJSON is [session.Totals] in the form of JSON.
type usageJSON struct {
	Requests         int  `json:"requests"`
	PromptTokens     int  `json:"prompt_tokens"`
	CompletionTokens int  `json:"completion_tokens"`
	CachedTokens     int  `json:"cached_tokens"`
	ReasoningTokens  int  `json:"reasoning_tokens"`
	Estimated        bool `json:"estimated"`
}

// exportTime is the form of times in the log.
const exportTime = "2006-01-02T15:04:05.000Z07:00"

// exportJSON prints a document record by record: a session may be large.
func exportJSON(w io.Writer, store *session.Store, s *session.State) error {
	head, err := safeJSON(sessionJSONOf(s))
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "{\n  \"session\": %s,\n  \"records\": [", head); err != nil {
		return err
	}
	separator := "\n    "
	for rec, err := range store.Records(s.ID) {
		if err != nil {
			return err
		}
		st := session.StampOf(rec)
		line, err := safeJSON(recordJSON{st.Seq, st.Time.Format(exportTime), rec.Kind(), rec})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s%s", separator, line); err != nil {
			return err
		}
		separator = ",\n    "
	}
	_, err = io.WriteString(w, "\n  ]\n}\n")
	return err
}

func sessionJSONOf(s *session.State) any {
	out := struct {
		ID      string    `json:"id"`
		CWD     string    `json:"cwd"`
		Title   string    `json:"title"`
		Model   string    `json:"model,omitempty"`
		Turns   int       `json:"turns"`
		Created string    `json:"created"`
		Updated string    `json:"updated"`
		Usage   usageJSON `json:"usage"`
	}{ID: s.ID, CWD: s.CWD, Title: s.Title, Turns: s.Turns, Usage: usageJSON(s.Usage),
		Created: s.Created.Format(exportTime), Updated: s.Updated.Format(exportTime)}
	if s.Header != nil {
		out.Model = s.Header.Snapshot.Target.String()
	}
	return out
}

func exportMarkdown(w io.Writer, store *session.Store, s *session.State) error {
	v := &sessionView{w: w, names: make(map[string]string)}
	title := oneLine(s.Title)
	if title == "" {
		title = "Session " + s.ID
	}
	v.line("# %s\n", title)
	v.line("- session `%s`", s.ID)
	v.line("- folder `%s`", oneLine(s.CWD))
	v.line("- created %s, changed %s", localTime(s.Created), localTime(s.Updated))
	if s.Header != nil {
		v.line("- model `%s`", oneLine(s.Header.Snapshot.Target.String()))
	}
	for rec, err := range store.Records(s.ID) {
		if err != nil {
			return err
		}
		if v.markdown(rec); v.err != nil {
			return v.err
		}
	}
	return v.err
}

func (v *sessionView) markdown(rec session.Record) {
	switch rec := rec.(type) {
	case *session.TurnStart:
		v.line("\n## Turn %d", rec.Turn)
	case *session.UserMessage:
		who := "User"
		if agent.IsNote(&llm.Message{Role: llm.User, Continuation: rec.Continuation, Parts: rec.Parts}) {
			who = "drover"
		}
		v.line("\n**%s**\n\n%s", who, strings.TrimRight(partsText(rec.Parts), "\n"))
	case *session.AssistantMessage:
		if rec.Discarded {
			return
		}
		v.line("\n**%s**%s", oneLine(rec.Target.String()), answerMarks(rec))
		if rec.Reasoning != nil && rec.Reasoning.Text != "" {
			v.line("\n%s", indent(strings.TrimRight(harmless(rec.Reasoning.Text), "\n"), "> "))
		}
		if text := strings.TrimRight(rec.Text, "\n"); text != "" {
			v.line("\n%s", text)
		}
		for _, c := range rec.Calls {
			v.names[c.ID] = c.Name
			v.line("\nCall of %s:\n", v.call(c.ID))
			v.fenced("json", c.Arguments)
		}
	case *session.ToolResult:
		v.line("\nResult of %s: %s\n", v.call(rec.ID), brief.Outcome(tool.Status(rec.Status)))
		v.fenced("", rec.Text)
	case *session.PlanNotice:
		v.line("\n_%s_", oneLine(rec.Text))
	case *session.TurnEnd:
		if rec.Reason != session.EndCompleted {
			v.line("\n_Turn %d ended: %s_", rec.Turn, endText(rec))
		}
	}
}

// fenced prints a block that no text inside can end.
func (v *sessionView) fenced(language, s string) {
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	v.line("%s%s\n%s\n%s", fence, language, strings.TrimRight(s, "\n"), fence)
}
