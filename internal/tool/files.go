package tool

import (
	"context"
	"path/filepath"
)

// Files lists the files below a folder that are not ignored, as paths from there
// with slashes, at most limit of them. What cannot be read is left out.
func Files(ctx context.Context, dir string, limit int) []string {
	w := &Workspace{Dir: dir}
	p, err := w.locate(".")
	if err != nil {
		return nil
	}
	var names []string
	walk := newWalker(p, func(f walked) bool {
		names = append(names, filepath.ToSlash(f.rel))
		return len(names) < limit
	})
	_ = walk.run(ctx) // what is there is better than nothing
	return names
}
