package tool

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// maxRipgrepOutput bounds the list of files that ripgrep may give; with a longer
// one the search goes on without it.
const maxRipgrepOutput = 16 << 20

// ripgrep asks ripgrep, if it is there, which files hold one of the expression's
// literals. It only narrows the files down: what matches and what is shown is
// decided by the same code with and without it, so the results are the same. ok
// is false when all files have to be looked at.
//
// It is used inside a repository only, where it agrees on where ignore files
// begin to count, and needs a literal of some length to be worth a process.
func (t *grepTool) ripgrep(ctx context.Context, p place, e *expr, wanted func(walked) bool) (files []walked, ok bool) {
	if shortest(e.literals) < 3 {
		return nil, false
	}
	base := gitRoot(p.real)
	program := lookPath(t.w.Environ, "rg", t.w.roots()...)
	if base == "" || program == "" || hasOwnRules(base) || hasOwnRules(p.real) {
		return nil, false
	}
	args := []string{"--no-config", "--files-with-matches", "--null", "--fixed-strings", "--hidden", "--text",
		"--no-messages", "--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot", "--glob=!.git"}
	if e.fold {
		args = append(args, "--ignore-case")
	}
	for _, l := range e.literals {
		args = append(args, "--regexp="+l)
	}
	cmd := exec.CommandContext(ctx, program, append(args, "--", p.real)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = p.real, safeEnviron(t.w.Environ), time.Second
	out, err := cmd.Output()
	// 1 says that nothing was found; 2 that something went wrong.
	if err != nil && cmd.ProcessState.ExitCode() != 1 || len(out) > maxRipgrepOutput {
		return nil, false
	}
	filter := ignoreFilter{base: base, dir: p.real}
	for name := range bytes.SplitSeq(out, []byte{0}) {
		f := walked{path: filepath.Clean(string(name))}
		rel, inside := below(p.real, f.path)
		if len(name) == 0 || !inside {
			continue
		}
		info, err := os.Lstat(f.path)
		if err != nil {
			continue
		}
		f.rel, f.mode = filepath.ToSlash(rel), info.Mode().Type()
		if wanted(f) && !filter.ignored(rel) {
			files = append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b walked) int { return comparePaths(a.rel, b.rel) })
	return files, true
}

// hasOwnRules reports that a folder has an ignore file of ripgrep's own, which
// versions before 14 cannot be told to leave alone.
func hasOwnRules(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, ".rgignore"))
	return err == nil
}

// ignoreFilter answers for single paths what a walk from base would leave out
// below dir.
type ignoreFilter struct {
	base, dir string
	rules     map[string]*ignoreRules // by folder, base and what lies below
	out       map[string]bool         // folders that are ignored
}

// ignored takes a path from dir.
func (f *ignoreFilter) ignored(rel string) bool {
	path := filepath.Join(f.dir, rel)
	rules, out := f.folder(filepath.Dir(path))
	return out || rules.ignored(f.names(path), false)
}

func (f *ignoreFilter) names(path string) []string {
	rel, _ := below(f.base, path)
	return splitPath(rel)
}

func (f *ignoreFilter) folder(dir string) (rules *ignoreRules, out bool) {
	if f.rules == nil {
		f.rules, f.out = make(map[string]*ignoreRules), make(map[string]bool)
	}
	if r, known := f.rules[dir]; known {
		return r, f.out[dir]
	}
	names := f.names(dir)
	if dir != f.base {
		rules, out = f.folder(filepath.Dir(dir))
		if rel, ok := below(f.dir, dir); ok && rel != "." {
			out = out || filepath.Base(dir) == ".git" || rules.ignored(names, true)
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			rules = nil // another repository, as in a walk
		}
	}
	rules = rules.enter(dir, len(names))
	f.rules[dir], f.out[dir] = rules, out
	return rules, out
}
