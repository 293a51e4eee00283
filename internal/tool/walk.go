package tool

import (
	"cmp"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxWalk is how many entries one walk looks at: a tree that has more needs a
// narrower path.
const maxWalk = 500_000

// walker goes through the files below a folder that are not ignored, in the
// order of their paths. Folders named .git are left out, symbolic links are
// files and never followed.
type walker struct {
	dir string // resolved, absolute
	// base is dir or a folder above it: .gitignore files count from there on.
	base string
	// visit is called for every file; false ends the walk.
	visit func(walked) bool

	entries int
}

// walked is one file that a walk came to.
type walked struct {
	path string // absolute
	rel  string // from the walk's dir, with slashes
	mode fs.FileMode
}

// newWalker makes a walk below a place: a repository's ignore files count from
// its root on, others from the root of the work tree.
func newWalker(p place, visit func(walked) bool) *walker {
	w := &walker{dir: p.real, base: p.real, visit: visit}
	if root := gitRoot(p.real); root != "" {
		w.base = root
	} else if p.inside() {
		w.base = p.root
	}
	return w
}

// limited reports whether the walk ended because there was too much.
func (w *walker) limited() bool { return w.entries >= maxWalk }

// run walks. The error is that of ctx or of the folder itself; what cannot be
// read further down is left out.
func (w *walker) run(ctx context.Context) error {
	var rules *ignoreRules
	var names []string
	if rel, ok := below(w.base, w.dir); ok {
		names = splitPath(rel)
	}
	for i := range names {
		rules = rules.enter(filepath.Join(append([]string{w.base}, names[:i]...)...), i)
	}
	entries, err := readFolder(ctx, w.dir)
	if err != nil {
		return err
	}
	w.folder(ctx, w.dir, "", names, entries, rules)
	return ctx.Err()
}

func (w *walker) folder(ctx context.Context, dir, rel string, names []string, entries []fs.DirEntry, rules *ignoreRules) bool {
	if rel != "" && hasEntry(entries, ".git") {
		rules = nil // another repository: the rules outside do not count in it
	}
	if hasEntry(entries, ".gitignore") {
		rules = rules.enter(dir, len(names))
	}
	names = append(slices.Clip(names), "")
	for _, e := range entries {
		if w.entries++; w.limited() || ctx.Err() != nil {
			return false
		}
		name := e.Name()
		names[len(names)-1] = name
		if name == ".git" || rules.ignored(names, e.IsDir()) {
			continue
		}
		path := filepath.Join(dir, name)
		if !e.IsDir() {
			if !w.visit(walked{path: path, rel: rel + name, mode: e.Type()}) {
				return false
			}
			continue
		}
		inner, err := readFolder(ctx, path)
		if err != nil {
			continue
		}
		if !w.folder(ctx, path, rel+name+"/", names, inner, rules) {
			return false
		}
	}
	return true
}

// readBatch is how many entries of a folder are read at once.
const readBatch = 1000

// readFolder reads the entries of a folder with a resolved path, sorted, and no
// more than a walk may see.
func readFolder(ctx context.Context, dir string) ([]fs.DirEntry, error) {
	f, err := openResolved(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readEntries(ctx, f, maxWalk)
}

// readEntries reads at most limit entries of an open folder, sorted.
func readEntries(ctx context.Context, f *os.File, limit int) ([]fs.DirEntry, error) {
	var all []fs.DirEntry
	for len(all) < limit {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		batch, err := f.ReadDir(min(readBatch, limit-len(all)))
		all = append(all, batch...)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return sortedEntries(all), nil
}

// hasEntry looks for a name in a sorted listing.
func hasEntry(entries []fs.DirEntry, name string) bool {
	_, ok := slices.BinarySearchFunc(entries, name, func(e fs.DirEntry, name string) int {
		return cmp.Compare(e.Name(), name)
	})
	return ok
}

func sortedEntries(entries []fs.DirEntry) []fs.DirEntry {
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries
}

// comparePaths orders paths as a walk meets them: what lies in a folder stands
// where the folder's name does.
func comparePaths(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}
