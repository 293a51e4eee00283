package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/drover-dev/drover/internal/config"
	"github.com/drover-dev/drover/internal/llm"
)

// maxKeyInput bounds what is read as a key, in bytes: more than any key has.
const maxKeyInput = 64 << 10

// keyringLimit is how long a list waits for the system keyring, which may be
// asking the person to unlock it.
const keyringLimit = 5 * time.Second

// unlockLimit is how long a conversation waits for a key before it goes on without:
// somebody may be typing the keyring's password.
const unlockLimit = time.Minute

func newAuth(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "auth",
		Short: "Store, list and remove keys of engines",
		Long: `Store, list and remove keys of engines. A key is kept in the system keyring, or
where there is none, in a file that you alone can read. The configuration refers
to it with key = "keyring:NAME". No command ever shows a key.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAuthSet(a), newAuthRemove(a), newAuthList(a))
	return cmd
}

func newAuthSet(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "set NAME",
		Short: "Store a key, which is read from the terminal without being shown, or from a pipe",
		Args:  oneArgument("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if err := config.CheckKeyName(name); err != nil {
				return usageError("%q: %w", name, err)
			}
			key, err := a.readKey(cmd.Context(), name)
			if err != nil {
				return err
			}
			place, note, err := config.FindDirs().Keys().Set(name, key)
			if err != nil {
				return &statusError{status: exitUsage, err: err}
			}
			fmt.Fprintf(a.stdout, "stored the key %s in %s\n", name, place)
			if note != "" {
				fmt.Fprintf(a.stderr, "drover: %s\n", note)
			}
			_, err = fmt.Fprintf(a.stdout, "An engine uses it with key = \"keyring:%s\".\n", name)
			return err
		},
	}
}

// readKey reads a key from the terminal without showing it, or from a pipe.
func (a *app) readKey(ctx context.Context, name string) (string, error) {
	from := "stdin"
	var data []byte
	var err error
	if isTerminal(a.stdin) {
		from = "the terminal"
		fmt.Fprintf(a.stderr, "Key for %s (it is not shown): ", name)
		data, err = readHidden(ctx, int(a.stdin.(*os.File).Fd()))
		fmt.Fprintln(a.stderr)
	} else {
		data, err = readAll(ctx, a.stdin, "stdin", maxKeyInput)
	}
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return "", err
	case strings.TrimSpace(string(data)) == "":
		return "", usageError("no key came from %s: nothing was stored", from)
	}
	key, err := config.CheckKey(from, string(data))
	if err != nil {
		return "", &statusError{status: exitUsage, err: err}
	}
	return key, nil
}

// readHidden reads a line of a terminal with its echo off, which is on again
// when the context ends.
func readHidden(ctx context.Context, fd int) ([]byte, error) {
	before, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	// The goroutine ends with the process: a read of a terminal cannot be
	// interrupted.
	go func() {
		text, err := term.ReadPassword(fd)
		read <- line{text, err}
	}()
	select {
	case l := <-read:
		return l.text, l.err
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), term.Restore(fd, before))
	}
}

func newAuthRemove(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "rm NAME",
		Aliases: []string{"remove"},
		Short:   "Remove a stored key",
		Args:    oneArgument("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			places, err := config.FindDirs().Keys().Remove(args[0])
			if llm.CodeOf(err) == llm.CodeMissingCredential {
				return usageError("no key %q is stored (drover auth list shows those that are)", args[0])
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "removed the key %s from %s\n", args[0], strings.Join(places, " and "))
			if users := a.keyUsers()[args[0]]; len(users) > 0 {
				fmt.Fprintf(a.stderr, "drover: the configuration still refers to it: %s\n", strings.Join(users, ", "))
			}
			return nil
		},
	}
}

func newAuthList(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the names of the stored keys, where each is and what uses it",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.listKeys(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

type keyJSON struct {
	Name   string     `json:"name"`
	Place  string     `json:"place,omitempty"`
	UsedBy []string   `json:"used_by,omitempty"`
	Error  *errorJSON `json:"error,omitempty"`
}

func (a *app) listKeys(ctx context.Context, asJSON bool) error {
	users := a.keyUsers()
	var names []string
	for name := range users {
		names = append(names, name)
	}
	keys, err := within(ctx, keyringLimit, func() ([]config.StoredKey, error) { return config.FindDirs().Keys().List(names...) })
	if err != nil {
		return err
	}
	if asJSON {
		list := make([]keyJSON, 0, len(keys))
		for _, k := range keys {
			j := keyJSON{Name: k.Name, Place: k.Place, UsedBy: users[k.Name]}
			if k.Problem != nil {
				j.Error = newErrorJSON(k.Problem)
			}
			list = append(list, j)
		}
		return printJSON(a.stdout, list)
	}
	if len(keys) == 0 {
		_, err := fmt.Fprintln(a.stdout, "no key is stored: drover auth set NAME stores one")
		return err
	}
	tw := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "NAME\tKEPT IN\tUSED BY")
	for _, k := range keys {
		place, by := k.Place, strings.Join(users[k.Name], ", ")
		if k.Problem != nil {
			place = k.Problem.Error()
		}
		if by == "" {
			by = "-"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", k.Name, place, by)
	}
	return tw.Flush()
}

// keyUsers says which parts of the configuration refer to which stored key. A
// broken configuration refers to none.
func (a *app) keyUsers() map[string][]string {
	users := make(map[string][]string)
	cfg, err := a.load()
	if err != nil {
		return users
	}
	for _, r := range keyReferences(cfg) {
		if name, ok := strings.CutPrefix(r.ref, "keyring:"); ok && !slices.Contains(users[name], r.by) {
			users[name] = append(users[name], r.by)
		}
	}
	return users
}

// keyReference is a reference to a key and the table that has it.
type keyReference struct{ by, ref string }

func keyReferences(cfg *config.Config) []keyReference {
	var list []keyReference
	add := func(by, ref string) {
		if ref != "" {
			list = append(list, keyReference{by, ref})
		}
	}
	for _, e := range cfg.Engines {
		add("engines."+e.Name, e.Key)
	}
	if cfg.DeepSeek != nil {
		add("deepseek", cfg.DeepSeek.Key)
	}
	for _, h := range cfg.Hosted {
		add("hosted.settings."+h.ID, h.Key)
	}
	for i := range cfg.MCP {
		for _, ref := range cfg.MCP[i].KeyReferences() {
			add("mcp.servers."+cfg.MCP[i].Name, ref)
		}
	}
	return list
}

func inKeyring(ref string) bool { return strings.HasPrefix(ref, "keyring:") }

// keysWithin resolves each reference once, within a limit. After a keyring that did
// not answer none is asked again.
func keysWithin(ctx context.Context, limit time.Duration) config.KeySource {
	type answer struct {
		key string
		err error
	}
	got := make(map[string]answer)
	var locked error
	return func(ref string) (string, error) {
		if a, ok := got[ref]; ok {
			return a.key, a.err
		}
		if inKeyring(ref) && locked != nil {
			return "", locked
		}
		key, err := credential(ctx, ref, limit)
		if inKeyring(ref) && errors.Is(err, errNoAnswer) {
			locked = err
		}
		got[ref] = answer{key, err}
		return key, err
	}
}

// credential resolves a reference to a key within a limit: a keyring may wait to
// be unlocked, and a file may be a pipe that nobody writes to.
func credential(ctx context.Context, ref string, limit time.Duration) (string, error) {
	key, err := within(ctx, limit, func() (string, error) { return config.Credential(ref) })
	if errors.Is(err, errNoAnswer) && !inKeyring(ref) {
		err = llm.Errorf(llm.CodeMissingCredential, "%s gave no key within %v", ref, limit)
	}
	return key, err
}

// errNoAnswer is the cause of an error of [within].
var errNoAnswer = errors.New("it may be waiting to be unlocked")

// within gives up on a question to the system keyring, which knows no deadline.
func within[T any](ctx context.Context, limit time.Duration, f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan answer, 1)
	go func() {
		v, err := f()
		done <- answer{v, err}
	}()
	select {
	case a := <-done:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return none, llm.Errorf(llm.CodeMissingCredential, "the system keyring did not answer within %v: %w", limit, errNoAnswer)
		}
		return none, ctx.Err()
	}
}
