package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/session"
)

// lastSession is what may be said instead of the id of the newest session of the
// current folder in which something was said: an editor makes one whenever it
// opens its panel.
const lastSession = "last"

func newSessions(a *app) *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List, show, export, remove, repair and verify saved sessions",
		Long: `List the sessions of the current folder, the one changed last first.

Wherever an ID is wanted, so much of its beginning as no other session shares is
enough, and "last" is the newest session of the current folder in which something
was said.`,
		Args: listAlone,
		RunE: func(*cobra.Command, []string) error { return a.listSessions(all, asJSON) },
	}
	cmd.Flags().BoolVar(&all, "all", false, "also the sessions of other folders")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(newSessionsShow(a), newSessionsExport(a), newSessionsRemove(a), newSessionsRepair(a), newSessionsVerify(a))
	return cmd
}

func newSessionsRemove(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "rm ID...",
		Short: "Remove sessions with everything that belongs to them",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError("%s wants at least one argument, ID (see %s --help)", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: a.completeSessions,
		RunE:              func(_ *cobra.Command, args []string) error { return a.removeSessions(args) },
	}
}

func newSessionsRepair(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "repair ID",
		Short: "Write a damaged session anew from what can be read, and keep the old file",
		Long: `Write a session anew from what can be read of it, such that it can be gone on
with and shows no problem any more. The old file is kept beside it, and removed
with the session. A session with nothing wrong is left alone.`,
		Args:              oneArgument("ID"),
		ValidArgsFunction: a.completeSessions,
		RunE:              func(_ *cobra.Command, args []string) error { return a.repairSession(args[0]) },
	}
}

func newSessionsVerify(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "verify [ID...]",
		Short: "Read sessions wholly and tell what is wrong with them",
		Long: `Read sessions wholly, with their images, and tell what is wrong with them.
Without an ID all sessions are read. Nothing is changed.

Exit status: 0 nothing is wrong; 1 something is.`,
		ValidArgsFunction: a.completeSessions,
		RunE:              func(_ *cobra.Command, args []string) error { return a.verifySessions(args) },
	}
}

// sessionStore is the store without the configuration: a mistake in that is no
// reason to hide sessions.
func (a *app) sessionStore() (*session.Store, error) {
	_, _ = a.load() // finds the folders, whatever it says of the file
	if a.dirs.State == "" {
		return nil, errors.New("there is no home folder, so no session is saved")
	}
	return a.sessions(), nil
}

// resolveSession gives the id that a person means.
func resolveSession(store *session.Store, name string) (string, error) {
	if name != lastSession {
		id, err := store.Resolve(name)
		if err != nil {
			return "", &statusError{status: exitUsage, err: err}
		}
		return id, nil
	}
	dir, err := workDir()
	if err != nil {
		return "", err
	}
	infos, err := store.List(&session.ListOptions{CWD: dir})
	if err != nil {
		return "", err
	}
	if len(infos) == 0 {
		return "", usageError("there is no session of this folder (drover sessions --all lists those of others)")
	}
	for i := range infos {
		if infos[i].Turns > 0 || infos[i].Problem != nil {
			return infos[i].ID, nil
		}
	}
	return infos[0].ID, nil
}

func (a *app) completeSessions(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	store, err := a.sessionStore()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	infos, _ := store.List(nil) // nothing to offer then
	var list []string
	for i := range infos {
		list = append(list, cobra.CompletionWithDesc(infos[i].ID, oneLine(infos[i].Title)))
	}
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

func (a *app) listSessions(all, asJSON bool) error {
	store, err := a.sessionStore()
	if err != nil {
		return err
	}
	opts := &session.ListOptions{}
	if !all {
		if opts.CWD, err = workDir(); err != nil {
			return err
		}
	}
	infos, err := store.List(opts)
	if err != nil {
		return err
	}
	if asJSON {
		return printSessionsJSON(a.stdout, infos)
	}
	if len(infos) > 0 {
		return printSessions(a.stdout, infos, all)
	}
	if !all {
		fmt.Fprintln(a.stderr, "drover: there is no session of this folder (--all lists those of others)")
		return nil
	}
	fmt.Fprintln(a.stderr, "drover: there is no session yet")
	return nil
}

// printSessions lists sessions; folders shows that of each, which is the same for
// all unless every folder was asked for.
func printSessions(w io.Writer, infos []session.Info, folders bool) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	row := func(id, updated, turns, size, model, folder, title string) {
		cells := []string{id, updated, turns, size, model}
		if folders {
			cells = append(cells, folder)
		}
		fmt.Fprintln(tw, strings.Join(append(cells, title), "\t"))
	}
	row("ID", "UPDATED", "TURNS", "SIZE", "MODEL", "FOLDER", "TITLE")
	for i := range infos {
		s := &infos[i]
		title := oneLine(s.Title)
		if s.Problem != nil {
			title = oneLine(title + " (" + s.Problem.Error() + ")")
		}
		row(s.ID, localTime(s.Updated), strconv.Itoa(s.Turns), sizeText(s.Size), oneLine(s.Target.String()), oneLine(s.CWD), title)
	}
	return tw.Flush()
}

func localTime(t time.Time) string {
	if t.IsZero() {
		return "?"
	}
	return t.Local().Format("2006-01-02 15:04")
}

// sizeText is a size in bytes for people.
func sizeText(n int64) string {
	const kilo = 1024
	switch {
	case n < kilo:
		return strconv.FormatInt(n, 10) + " B"
	case n < kilo*kilo:
		return strconv.FormatFloat(float64(n)/kilo, 'f', 1, 64) + " KiB"
	}
	return strconv.FormatFloat(float64(n)/kilo/kilo, 'f', 1, 64) + " MiB"
}

// sessionJSON is a session in the output of --json.
type sessionJSON struct {
	ID      string    `json:"id"`
	CWD     string    `json:"cwd"`
	Title   string    `json:"title"`
	Model   string    `json:"model,omitempty"` // provider/model of the last request
	Turns   int       `json:"turns"`
	Size    int64     `json:"size"` // of the log, in bytes
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	Problem string    `json:"problem,omitempty"`
}

func printSessionsJSON(w io.Writer, infos []session.Info) error {
	out := make([]sessionJSON, len(infos))
	for i := range infos {
		s := &infos[i]
		out[i] = sessionJSON{ID: s.ID, CWD: s.CWD, Title: s.Title, Turns: s.Turns, Size: s.Size, Created: s.Created, Updated: s.Updated}
		if !s.Target.IsZero() {
			out[i].Model = s.Target.String()
		}
		if s.Problem != nil {
			out[i].Problem = s.Problem.Error()
		}
	}
	return printSafeJSON(w, out)
}

func (a *app) removeSessions(names []string) error {
	store, err := a.sessionStore()
	if err != nil {
		return err
	}
	var ids []string
	for _, name := range names { // all before any is gone
		id, err := resolveSession(store, name)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	failed := false
	for _, id := range ids {
		err := store.Remove(id)
		if dir := a.outputs(); err == nil && dir != "" {
			err = os.RemoveAll(filepath.Join(dir, id))
		}
		if err != nil {
			fmt.Fprintln(a.stderr, "drover: "+explain(err))
			failed = true
			continue
		}
		fmt.Fprintln(a.stdout, "removed", id)
	}
	if failed {
		return exit(exitFailed)
	}
	return nil
}

func (a *app) repairSession(name string) error {
	store, err := a.sessionStore()
	if err != nil {
		return err
	}
	id, err := resolveSession(store, name)
	if err != nil {
		return err
	}
	done, err := store.Repair(id)
	if err != nil {
		return err
	}
	if done.Old == "" {
		_, err = fmt.Fprintf(a.stdout, "session %s: nothing is wrong\n", id)
		return err
	}
	images := ""
	if done.Images > 0 {
		images = fmt.Sprintf("; a text instead of %d images that are lost", done.Images)
	}
	_, err = fmt.Fprintf(a.stdout, "session %s: %d records kept, %d left out, %d made up; %d unreadable lines left out%s\nthe old file is %s\n",
		id, done.Kept, done.Left, done.Added, done.Damaged, images, done.Old)
	return err
}

func (a *app) verifySessions(names []string) error {
	store, err := a.sessionStore()
	if err != nil {
		return err
	}
	var ids []string
	for _, name := range names {
		id, err := resolveSession(store, name)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	checks, err := store.Verify(ids...)
	if err != nil {
		return err
	}
	bad := 0
	for i := range checks {
		c := &checks[i]
		if c.OK() {
			if c.OpenTurn {
				fmt.Fprintf(a.stdout, "session %s ends inside a turn: it runs, or the next prompt closes it\n", c.ID)
			}
			continue
		}
		bad++
		fmt.Fprintf(a.stdout, "session %s (%s)\n", c.ID, c.Path)
		if c.Err != nil {
			fmt.Fprintf(a.stdout, "  %s\n", oneLine(c.Err.Error()))
		}
		for _, w := range c.Warnings {
			fmt.Fprintf(a.stdout, "  %s\n", oneLine(w.String()))
		}
	}
	if _, err := fmt.Fprintf(a.stdout, "sessions read: %d, with problems: %d\n", len(checks), bad); err != nil {
		return err
	}
	if bad > 0 {
		fmt.Fprintln(a.stderr, "drover: drover sessions repair ID writes a session anew from what can be read")
		return exit(exitFailed)
	}
	return nil
}
