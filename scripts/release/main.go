// Command release builds what a release of drover consists of: an archive for
// each system, Debian packages, the entry for the registry of ACP agents, the
// licences of everything that is linked in, and the sums of all files.
//
// The same commit and the same version of Go give the same bytes, wherever the
// checkout is: -check builds twice, from two folders, and compares. The version is
// the one that Go takes from the tag; nothing is written into the program besides.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is one build of everything.
type release struct {
	source  string    // the root of the checkout
	version string    // as in "1.2.3"
	date    time.Time // of the commit; every file has it
	targets []target
	out     io.Writer // progress
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	dir := flags.String("o", "dist", "the `folder` to write")
	check := flags.Bool("check", false, "build twice, from two folders, and compare; nothing is kept")
	names := flags.String("targets", allTargets, "the systems to build for")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	targets, err := parseTargets(*names)
	if err != nil {
		return err
	}
	source, err := gitOutput(ctx, ".", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	r := &release{source: source, targets: targets, out: out}
	if r.date, err = commitDate(ctx, source); err != nil {
		return err
	}
	if *check {
		return r.checkTwice(ctx)
	}
	if changes, err := gitOutput(ctx, source, "status", "--porcelain"); err != nil || changes != "" {
		return firstError(err, fmt.Errorf("the checkout has changes that are not committed:\n%s", changes))
	}
	return r.write(ctx, *dir)
}

// firstError is the first of two errors that is one.
func firstError(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// releaseVersion is what the registry of agents takes: the commit has a tag.
var releaseVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`)

// write builds everything into a folder, which must not exist or be empty.
func (r *release) write(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if old, err := os.ReadDir(dir); err != nil || len(old) > 0 {
		return firstError(err, fmt.Errorf("%s is not empty", dir))
	}
	scratch, err := os.MkdirTemp("", "drover-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)

	host := filepath.Join(scratch, "drover")
	if err := r.build(ctx, hostTarget(), host); err != nil {
		return err
	}
	if r.version, err = programVersion(ctx, host); err != nil {
		return err
	}
	common, err := r.commonFiles(ctx, host)
	if err != nil {
		return err
	}
	entry := newAgent(r.version)
	for _, t := range r.targets {
		fmt.Fprintln(r.out, t)
		program := filepath.Join(scratch, t.os+"-"+t.arch)
		if err := r.build(ctx, t, program); err != nil {
			return err
		}
		data, err := os.ReadFile(program)
		if err != nil {
			return err
		}
		files := append([]file{{name: t.program(), data: data, executable: true}}, common...)
		archive := filepath.Join(dir, t.archive(r.version))
		if err := writeFile(archive, func(w io.Writer) error { return t.pack(w, files, r.date) }); err != nil {
			return err
		}
		if err := entry.add(t, archive); err != nil {
			return err
		}
		if t.os == "linux" {
			if err := r.writeDeb(filepath.Join(dir, debName(t, r.version)), t, files); err != nil {
				return err
			}
		}
	}
	if releaseVersion.MatchString(r.version) {
		if err := entry.write(filepath.Join(dir, "acp-registry", agentID), r.source); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(r.out, "%s is no version of a release: no entry for the registry of agents\n", r.version)
	}
	return writeSums(dir)
}

// commonFiles are those of every archive beside the program.
func (r *release) commonFiles(ctx context.Context, host string) ([]file, error) {
	var files []file
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		data, err := os.ReadFile(filepath.Join(r.source, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: name, data: data})
	}
	text, err := notices(ctx, r.source, r.targets)
	if err != nil {
		return nil, err
	}
	files = append(files, file{name: "THIRD-PARTY-NOTICES.txt", data: text})
	for shell, name := range completions {
		data, err := exec.CommandContext(ctx, host, "completion", shell).Output()
		if err != nil {
			return nil, fmt.Errorf("completion for %s: %w", shell, err)
		}
		files = append(files, file{name: "completions/" + name, data: data})
	}
	sortFiles(files)
	return files, nil
}

// completions are the files for shells, by shell.
var completions = map[string]string{"bash": "drover.bash", "zsh": "_drover", "fish": "drover.fish", "powershell": "drover.ps1"}

// checkTwice builds from two copies of the checkout and compares.
func (r *release) checkTwice(ctx context.Context) error {
	scratch, err := os.MkdirTemp("", "drover-check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	var sums [2][]byte
	for i, name := range []string{"one", "a-longer-path/two"} {
		again := *r
		again.source = filepath.Join(scratch, name)
		if _, err := gitOutput(ctx, ".", "clone", "-q", "--no-hardlinks", r.source, again.source); err != nil {
			return err
		}
		dir := filepath.Join(scratch, fmt.Sprint("dist", i))
		if err := again.write(ctx, dir); err != nil {
			return err
		}
		if sums[i], err = os.ReadFile(filepath.Join(dir, sumsFile)); err != nil {
			return err
		}
	}
	if !bytes.Equal(sums[0], sums[1]) {
		return fmt.Errorf("two builds of the same commit differ:\n%s\n%s", sums[0], sums[1])
	}
	fmt.Fprintf(r.out, "twice the same:\n%s", sums[0])
	return nil
}

// commitDate is the time of the commit, or $SOURCE_DATE_EPOCH.
func commitDate(ctx context.Context, source string) (time.Time, error) {
	text, err := gitOutput(ctx, source, "log", "-1", "--format=%ct")
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		text, err = epoch, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(seconds, 0).UTC(), err
}

func gitOutput(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}
