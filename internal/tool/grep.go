package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/drover-dev/drover/internal/llm"
)

const (
	// maxMatches and maxGrepBytes bound the lines of one search.
	maxMatches   = 200
	maxGrepBytes = 40 << 10
	// maxMatchBytes bounds the text of one line.
	maxMatchBytes = 300
	// maxGrepFile bounds a file that is searched: 64 MiB.
	maxGrepFile = 64 << 20
)

type grepTool struct {
	w   *Workspace
	def llm.ToolDef
}

// Grep makes the tool that finds lines by a regular expression.
func Grep(w *Workspace) Tool {
	return &grepTool{w: w, def: llm.NewToolDef("grep",
		"Search files for a regexp (RE2). glob selects files, like *.go.",
		[]byte(`{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string"},
			"glob":{"type":"string"},"ignore_case":{"type":"boolean"}},"required":["pattern"]}`))}
}

func (t *grepTool) Def() llm.ToolDef { return t.def }

func (t *grepTool) Prepare(ctx context.Context, text string) (*Action, error) {
	a := parseArguments(text, "pattern", "path", "glob", "ignore_case")
	pattern, path, glob := a.text("pattern"), a.optionalText("path"), a.optionalText("glob")
	fold := a.flag("ignore_case")
	if err := a.err(); err != nil {
		return nil, err
	}
	e, err := compileExpr(pattern, fold)
	if err != nil {
		return nil, err
	}
	selects, err := compileSelection(glob)
	if err != nil {
		return nil, err
	}
	if path == "" {
		path = "."
	}
	p, err := t.w.locate(path)
	if err != nil {
		return nil, err
	}
	return searchAction(p, pattern, func(ctx context.Context) (Result, error) {
		return t.grep(ctx, p, e, selects)
	}), nil
}

// compileSelection compiles the filter of files, nil for none. A pattern without
// a slash is for names, "!" leaves out what matches.
func compileSelection(glob string) (func(rel string) bool, error) {
	if glob == "" {
		return nil, nil
	}
	pattern, not := strings.CutPrefix(filepath.ToSlash(glob), "!")
	if err := boundGlob(pattern); err != nil {
		return nil, fmt.Errorf("glob %w", err)
	}
	if !doublestar.ValidatePattern(pattern) {
		return nil, fmt.Errorf("glob %q has an open [ or { or ends with a backslash", cutText(glob, 100))
	}
	pattern = strings.TrimPrefix(pattern, "./")
	if !strings.Contains(pattern, "/") {
		pattern = "**/" + pattern
	} else if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	pattern = strings.TrimPrefix(pattern, "/")
	return func(rel string) bool { return doublestar.MatchUnvalidated(pattern, rel) != not }, nil
}

func (t *grepTool) grep(ctx context.Context, p place, e *expr, selects func(string) bool) (Result, error) {
	name := t.w.display(p.abs)
	info, err := p.stat()
	switch {
	case errors.Is(err, fs.ErrNotExist) || isNotDir(err):
		return Result{}, t.w.missing(ctx, p)
	case err != nil:
		return Result{}, fmt.Errorf("%s: %w", name, plainError(err))
	case !info.IsDir():
		return t.grepFile(ctx, p, e)
	}
	files, limited, err := t.candidates(ctx, p, e, selects)
	if ctx.Err() != nil {
		return Result{}, errSearchStopped
	}
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", name, plainError(err))
	}
	found := searchFiles(ctx, files, e)
	if ctx.Err() != nil {
		return Result{}, errSearchStopped
	}
	r := t.report(p, found)
	if limited {
		r.Text += "\n" + strings.TrimSuffix(limitedNote, "\n")
	}
	return r, nil
}

var errSearchStopped = errors.New("the search was stopped")

// grepFile searches a single file, which may be one that is ignored.
func (t *grepTool) grepFile(ctx context.Context, p place, e *expr) (Result, error) {
	name := t.w.display(p.abs)
	f, err := p.open()
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", name, plainError(err))
	}
	defer f.Close()
	found, err := searchFile(ctx, f, e)
	if ctx.Err() != nil {
		return Result{}, errSearchStopped
	}
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", name, plainError(err))
	}
	if found.binary {
		return Result{}, fmt.Errorf("%s is a binary file", name)
	}
	return t.report(p, []fileMatches{found}), nil
}

// candidates lists the files to search, in order.
func (t *grepTool) candidates(ctx context.Context, p place, e *expr, selects func(string) bool) (files []walked, limited bool, err error) {
	wanted := func(f walked) bool {
		return f.mode.IsRegular() && (selects == nil || selects(f.rel))
	}
	if files, ok := t.ripgrep(ctx, p, e, wanted); ok {
		return files, false, nil
	}
	walk := newWalker(p, func(f walked) bool {
		if wanted(f) {
			files = append(files, f)
		}
		return true
	})
	err = walk.run(ctx)
	return files, walk.limited(), err
}

// report writes the matches, bounded, and how many there are.
func (t *grepTool) report(p place, found []fileMatches) Result {
	var b strings.Builder
	total, shown, files := 0, 0, 0
	for _, f := range found {
		if f.count == 0 {
			continue
		}
		total += f.count
		files++
		name := t.w.display(filepath.Join(p.abs, f.rel))
		for _, m := range f.matches {
			line := fmt.Sprintf("%s:%d: %s\n", name, m.line, m.text)
			if shown == maxMatches || b.Len()+len(line) > maxGrepBytes {
				break
			}
			b.WriteString(line)
			shown++
		}
	}
	switch {
	case total == 0:
		return Result{Status: StatusOK, Text: "[no match]"}
	case shown < total:
		fmt.Fprintf(&b, "[the first %d of %d matching lines in %s; narrow pattern, path or glob]",
			shown, total, plural(files, "file"))
	default:
		fmt.Fprintf(&b, "[%s in %s]", plural(total, "matching line"), plural(files, "file"))
	}
	return Result{Status: StatusOK, Text: b.String()}
}
