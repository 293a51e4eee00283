package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/memory"
)

func newMemory(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "List, show and remove the notes that sessions keep",
		Long: `List the notes that the sessions of this folder are shown: those of the project
in .drover/memory, then the global ones of this user.

Wherever a NOTE is wanted, its title will do, or the name of its file. A note of
the project comes before a global one; --global passes over the project's.`,
		Args: listAlone,
	}
	var global bool
	cmd.PersistentFlags().BoolVar(&global, "global", false, "the global notes alone")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(*cobra.Command, []string) error { return a.listNotes(global, asJSON) }
	show := &cobra.Command{
		Use:   "show NOTE",
		Short: "Print a note",
		Args:  oneArgument("NOTE"),
		RunE:  func(_ *cobra.Command, args []string) error { return a.showNote(args[0], global) },
	}
	remove := &cobra.Command{
		Use:   "rm NOTE...",
		Short: "Remove notes",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError("%s wants at least one argument, NOTE (see %s --help)", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.removeNotes(args, global) },
	}
	complete := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return a.noteTitles(global), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
	show.ValidArgsFunction, remove.ValidArgsFunction = complete, complete
	cmd.AddCommand(show, remove)
	return cmd
}

// memory is the store of the global notes of this user. The configuration must
// have been asked for.
func (a *app) memory() *memory.Store {
	if a.dirs.Config == "" {
		return memory.Open("")
	}
	return memory.Open(filepath.Join(a.dirs.Config, "memory"))
}

// notes is the store of the current folder. A mistake in the configuration is no
// reason to hide notes.
func (a *app) notes(global bool) (*memory.Store, error) {
	_, _ = a.load() // finds the folders, whatever it says of the file
	if global {
		return a.memory(), nil
	}
	dir, err := workDir()
	if err != nil {
		return nil, err
	}
	return a.memory().In(dir), nil
}

func (a *app) noteTitles(global bool) []string {
	store, err := a.notes(global)
	if err != nil {
		return nil
	}
	notes, _ := store.List() // what can be read is offered
	var list []string
	for i := range notes {
		list = append(list, cobra.CompletionWithDesc(oneLine(notes[i].Title), oneLine(notes[i].Summary)))
	}
	return list
}

func (a *app) listNotes(global, asJSON bool) error {
	store, err := a.notes(global)
	if err != nil {
		return err
	}
	notes, problems := store.List()
	for _, p := range problems {
		fmt.Fprintln(a.stderr, "drover: left out:", oneLine(p.String()))
	}
	if asJSON {
		return printNotesJSON(a.stdout, notes)
	}
	if len(notes) == 0 {
		fmt.Fprintln(a.stderr, "drover: there is no note")
		return nil
	}
	tw := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "TITLE\tOF\tSIZE\tFILE\tSUMMARY")
	for i := range notes {
		n := &notes[i]
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", oneLine(n.Title), n.Scope, sizeText(int64(len(n.Text))), oneLine(n.File), oneLine(n.Summary))
	}
	return tw.Flush()
}

// noteJSON is a note in the output of --json.
type noteJSON struct {
	Title   string       `json:"title"`
	Summary string       `json:"summary"`
	Text    string       `json:"text"`
	Scope   memory.Scope `json:"scope"` // "project" or "global"
	Path    string       `json:"path"`
}

func printNotesJSON(w io.Writer, notes []memory.Note) error {
	out := make([]noteJSON, len(notes))
	for i := range notes {
		n := &notes[i]
		out[i] = noteJSON{n.Title, n.Summary, n.Text, n.Scope, n.Path}
	}
	return printSafeJSON(w, out)
}

func (a *app) showNote(name string, global bool) error {
	store, err := a.notes(global)
	if err != nil {
		return err
	}
	n, err := store.Get(name)
	if err != nil {
		return noNote(err)
	}
	fmt.Fprintf(a.stdout, "title    %s\n", oneLine(n.Title))
	if n.Summary != "" {
		fmt.Fprintf(a.stdout, "summary  %s\n", oneLine(n.Summary))
	}
	_, err = fmt.Fprintf(a.stdout, "file     %s (%s)\n\n%s\n", oneLine(n.Path), n.Scope, harmless(n.Text))
	return err
}

func (a *app) removeNotes(names []string, global bool) error {
	store, err := a.notes(global)
	if err != nil {
		return err
	}
	var paths []string
	for _, name := range names { // all before any is gone
		n, err := store.Get(name)
		if err != nil {
			return noNote(err)
		}
		if !slices.Contains(paths, n.Path) { // a title given twice is one note
			paths = append(paths, n.Path)
		}
	}
	for _, path := range paths {
		n, err := store.Remove(path)
		if err != nil {
			return noNote(err)
		}
		if _, err := fmt.Fprintf(a.stdout, "removed %s\n", oneLine(n.Path)); err != nil {
			return err
		}
	}
	return nil
}

// noNote is the error of a name that no note has: a mistake of the command line.
func noNote(err error) error {
	if errors.Is(err, memory.ErrNotFound) {
		return &statusError{status: exitUsage, err: fmt.Errorf("%w (drover memory lists them)", err)}
	}
	return err
}
