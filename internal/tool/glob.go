package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/drover-dev/drover/internal/llm"
)

const (
	// maxGlobPaths and maxGlobBytes bound a list of paths.
	maxGlobPaths = 300
	maxGlobBytes = 20 << 10
)

type globTool struct {
	w   *Workspace
	def llm.ToolDef
}

// Glob makes the tool that finds files by the pattern of their path. A folder
// that is named without a wildcard is looked into even if it is ignored.
func Glob(w *Workspace) Tool {
	return &globTool{w: w, def: llm.NewToolDef("glob",
		"Find files by path, like *.go or src/**/*.ts; ignored files are left out.",
		[]byte(`{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string"}},
			"required":["pattern"]}`))}
}

func (t *globTool) Def() llm.ToolDef { return t.def }

func (t *globTool) Prepare(ctx context.Context, text string) (*Action, error) {
	a := parseArguments(text, "pattern", "path")
	pattern, dir := a.text("pattern"), a.optionalText("path")
	if err := a.err(); err != nil {
		return nil, err
	}
	match, base, err := compileGlob(pattern)
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(filepath.FromSlash(base)) {
		base = path.Join(filepath.ToSlash(dir), base)
	}
	p, err := t.w.locate(base)
	if err != nil {
		return nil, err
	}
	return searchAction(p, pattern, func(ctx context.Context) (Result, error) {
		return t.glob(ctx, p, pattern, match)
	}), nil
}

// searchAction is the action of glob and grep: a search for pattern below p.
func searchAction(p place, pattern string, do func(ctx context.Context) (Result, error)) *Action {
	return &Action{
		Title: oneLine(pattern, maxTitleBytes), Kind: KindSearch, Access: p.readAccess(), ReadOnly: true,
		Locations: []Location{{Path: p.abs}}, Scopes: p.readScopes(true),
		Run: runner(do),
	}
}

// compileGlob splits a pattern into the folder that it starts in and what the
// path from there has to match. As in ignore files, a pattern without a slash is
// for names at any depth; "./" ties it to the folder itself.
func compileGlob(pattern string) (match func(rel string) bool, base string, err error) {
	pattern = filepath.ToSlash(pattern)
	if strings.TrimSpace(pattern) == "" {
		return nil, "", errors.New(`pattern must not be empty: "**" is every file`)
	}
	if err := boundGlob(pattern); err != nil {
		return nil, "", fmt.Errorf("pattern %w", err)
	}
	if !doublestar.ValidatePattern(pattern) {
		return nil, "", fmt.Errorf("pattern %q has an open [ or { or ends with a backslash", cutText(pattern, 100))
	}
	if !strings.Contains(pattern, "/") {
		pattern = "**/" + pattern
	}
	if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	base, rest := doublestar.SplitPattern(pattern)
	return func(rel string) bool { return doublestar.MatchUnvalidated(rest, rel) }, base, nil
}

// maxGlobWays bounds how many patterns the alternatives {a,b} of a pattern stand
// for together: each is tried on each path, and that cannot be stopped.
const maxGlobWays = 256

// boundGlob refuses a pattern that takes too long to match.
func boundGlob(pattern string) error {
	if len(pattern) > maxPatternBytes {
		return fmt.Errorf("has %d bytes, more than %d", len(pattern), maxPatternBytes)
	}
	ways, group := 1, 1
	for _, c := range pattern {
		switch c {
		case ',':
			group++
		case '{', '}': // an upper bound, whatever is in one another
			ways *= group
			group = 1
		}
		if ways*group > maxGlobWays {
			return fmt.Errorf("%q stands for more than %d patterns: use fewer alternatives", cutText(pattern, 100), maxGlobWays)
		}
	}
	return nil
}

func (t *globTool) glob(ctx context.Context, p place, pattern string, match func(string) bool) (Result, error) {
	name := t.w.display(p.abs)
	info, err := p.stat()
	switch {
	case errors.Is(err, fs.ErrNotExist) || isNotDir(err):
		return Result{}, t.w.missing(ctx, p)
	case err != nil:
		return Result{}, fmt.Errorf("%s: %w", name, plainError(err))
	case !info.IsDir():
		return Result{}, fmt.Errorf("%s is no directory", name)
	}
	var b strings.Builder
	total, shown, files := 0, 0, 0
	walk := newWalker(p, func(f walked) bool {
		files++
		if !match(f.rel) {
			return true
		}
		total++
		line := t.w.display(filepath.Join(p.abs, f.rel)) + "\n"
		if shown == total-1 && shown < maxGlobPaths && b.Len()+len(line) <= maxGlobBytes {
			b.WriteString(line)
			shown++
		}
		return true
	})
	if err := walk.run(ctx); err != nil {
		if ctx.Err() != nil {
			err = errSearchStopped
		}
		return Result{}, fmt.Errorf("%s: %w", name, plainError(err))
	}
	if total == 0 {
		b.WriteString(fmt.Sprintf("[no match among %s]\n", plural(files, "file")))
	}
	if shown < total {
		b.WriteString(fmt.Sprintf("[the first %d of %d files; narrow the pattern]\n", shown, total))
	}
	if walk.limited() {
		b.WriteString(limitedNote)
	}
	return Result{Status: StatusOK, Text: strings.TrimSuffix(b.String(), "\n")}, nil
}

// limitedNote ends the result of a walk that was too long.
var limitedNote = fmt.Sprintf("[stopped after %d entries: give a path]\n", maxWalk)
