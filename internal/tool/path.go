package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// maxLinks is how many symbolic links one path may go through, as on Linux.
const maxLinks = 40

// place is a path that a model named, resolved. Nothing is opened by a path
// that did not become a place first.
type place struct {
	// abs is the path as it was asked for, absolute and clean. People and
	// editors know the file by this name.
	abs string
	// real is the same with every symbolic link resolved, as far as the path
	// exists.
	real string
	// root is the resolved root that holds real, empty if there is none, and
	// rel is real seen from root.
	root, rel string
	// spilled says that it is output that drover itself put away: readable
	// although it is outside.
	spilled bool
}

func (p place) inside() bool { return p.root != "" }

// readAccess is what reading the place takes.
func (p place) readAccess() Access {
	if p.inside() || p.spilled {
		return AccessRead
	}
	return AccessReadOutside
}

// readScopes are the scopes of reading the place: what lies outside is allowed
// by folder.
func (p place) readScopes(isDir bool) []string {
	if p.readAccess() == AccessRead {
		return []string{"reads"}
	}
	dir := p.real
	if !isDir {
		dir = filepath.Dir(dir)
	}
	return []string{"reads in " + shownPath(dir)}
}

// locate resolves a path of a call.
func (w *Workspace) locate(path string) (place, error) {
	switch {
	case path == "":
		return place{}, errors.New("path must not be empty")
	case strings.ContainsRune(path, 0):
		return place{}, errors.New("path must not hold a NUL byte")
	}
	abs := filepath.Clean(filepath.FromSlash(w.meantPath(path)))
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(w.Dir, abs)
	}
	real, err := resolve(abs)
	if err != nil {
		return place{}, fmt.Errorf("%s: %w", path, plainError(err))
	}
	p := place{abs: abs, real: real}
	for _, root := range w.roots() {
		if rel, ok := below(root, real); ok && len(root) > len(p.root) {
			p.root, p.rel = root, rel
		}
	}
	if w.SpillDir != "" {
		if dir, err := resolve(filepath.Clean(w.SpillDir)); err == nil {
			_, p.spilled = below(dir, real)
		}
	}
	return p, nil
}

// locateForWriting is locate for a call that changes the file.
func (w *Workspace) locateForWriting(path string) (place, error) {
	p, err := w.locate(path)
	if err != nil {
		return p, err
	}
	if !p.inside() {
		where := ""
		if p.real != p.abs {
			where = " (it leads to " + shownPath(p.real) + ")"
		}
		return p, fmt.Errorf("%s is outside the folder of the session (and its additional folders)%s: files are only written inside %s",
			path, where, strings.Join(w.rootNames(), ", "))
	}
	return p, nil
}

// roots are the resolved roots. A root that cannot be resolved is none.
func (w *Workspace) roots() []string {
	var roots []string
	for _, name := range w.rootNames() {
		if real, err := resolve(name); err == nil {
			roots = append(roots, real)
		}
	}
	return roots
}

// rootNames are the roots as the caller gave them, Dir first.
func (w *Workspace) rootNames() []string {
	names := []string{filepath.Clean(w.Dir)}
	for _, r := range w.Roots {
		if r = filepath.Clean(r); filepath.IsAbs(r) && !slices.Contains(names, r) {
			names = append(names, r)
		}
	}
	return names
}

// display is the name of a path in results: from Dir if it lies there, with
// slashes on every platform, in the form of [shownPath].
func (w *Workspace) display(abs string) string {
	if rel, ok := below(filepath.Clean(w.Dir), abs); ok {
		return shownPath(filepath.ToSlash(rel))
	}
	return shownPath(filepath.ToSlash(abs))
}

// below reports whether path is dir or lies in it, and its name from there.
// Both are clean and absolute.
func below(dir, path string) (rel string, ok bool) {
	rel, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return rel, true
}

// resolve follows the symbolic links of a clean absolute path. Unlike
// filepath.EvalSymlinks it also resolves a path that does not exist: the links
// of the part that does, a link to nowhere included, since writing through one
// would create its target.
func resolve(path string) (string, error) {
	real, _, err := resolveLinks(path)
	return real, err
}

// resolveLinks is resolve with the links on the way, each by its resolved path.
func resolveLinks(path string) (real string, links []string, err error) {
	vol := filepath.VolumeName(path)
	sep := string(filepath.Separator)
	done := vol + sep
	todo := splitPath(path[len(vol):])
	var noFolder error // why nothing can be below done
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		if name == "." || name == ".." {
			// A name is no folder because of what follows it: behind one that is
			// missing the kernel goes neither up nor on.
			if noFolder != nil {
				return "", nil, noFolder
			}
			if name == ".." {
				done = filepath.Dir(done)
			}
			continue
		}
		next := filepath.Join(done, name)
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist), isNotDir(err):
			// Nothing below can be a link. Names that follow stay as they are.
			done, noFolder = next, plainError(err)
			continue
		case err != nil:
			return "", nil, err
		case info.Mode()&fs.ModeSymlink == 0:
			done = next
			if !info.IsDir() {
				noFolder = syscall.ENOTDIR
			}
			continue
		}
		if links = append(links, next); len(links) > maxLinks {
			return "", nil, errors.New("too many symbolic links")
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", nil, err
		}
		target = filepath.FromSlash(target)
		if filepath.IsAbs(target) {
			vol = filepath.VolumeName(target)
			done = vol + sep
			target = target[len(vol):]
		}
		todo = append(linkNames(target), todo...)
	}
	return done, links, nil
}

// linkNames gives the names of a link's target. Unlike those of a clean path they
// may be "." and "..", and a separator at the end asks for a folder as "." does.
func linkNames(target string) []string {
	sep := string(filepath.Separator)
	if strings.HasSuffix(target, sep) {
		target += "."
	}
	return slices.DeleteFunc(strings.Split(target, sep), func(name string) bool { return name == "" })
}

// splitPath gives the names of a path without "." and empty ones.
func splitPath(path string) []string {
	return slices.DeleteFunc(strings.Split(path, string(filepath.Separator)), func(name string) bool {
		return name == "" || name == "."
	})
}

// isNotDir reports that a file stands where a folder would have to.
func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

// plainError takes the operation and the path off a file system error: the
// message around it names the path as the model wrote it.
func plainError(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	if le, ok := errors.AsType[*os.LinkError](err); ok {
		return le.Err
	}
	return err
}

// openRoot opens the root that holds the place. All further operations go
// through it, so that a link that appears after the check leads nowhere.
func (p place) openRoot() (*os.Root, error) { return os.OpenRoot(p.root) }

// errMoved says that a path leads elsewhere than when it was resolved.
var errMoved = errors.New("a symbolic link was put on its way: ask again")

// openResolved opens a resolved path for reading, and fails when a symbolic link
// has been put on it since: a person allowed what it led to before. On Linux the
// kernel sees to it. Elsewhere the file that was opened is compared with what is
// there without links.
func openResolved(path string) (*os.File, error) {
	f, err := openNoLinks(path)
	if !errors.Is(err, errors.ErrUnsupported) {
		return f, err
	}
	if f, err = openNoFollow(path); err != nil {
		return nil, err
	}
	opened, err := f.Stat()
	if err == nil {
		err = stillThere(path, opened)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// stillThere checks that a resolved path leads to a file without links.
func stillThere(path string, opened fs.FileInfo) error {
	now, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if real, err := resolve(path); err != nil || real != path || !os.SameFile(now, opened) {
		return errMoved
	}
	return nil
}

// open opens the place for reading.
func (p place) open() (*os.File, error) {
	if !p.inside() {
		return openResolved(p.real)
	}
	root, err := p.openRoot()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(p.rel, os.O_RDONLY|nonBlock, 0)
}

// stat describes what is at the place.
func (p place) stat() (fs.FileInfo, error) {
	if !p.inside() {
		return os.Lstat(p.real)
	}
	root, err := p.openRoot()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Stat(p.rel)
}

// isGit reports whether the place is part of a repository's own data, where a
// written file (a hook, a configured command) is as good as a command.
func (p place) isGit() bool {
	return slices.ContainsFunc(splitPath(p.rel), func(name string) bool { return strings.EqualFold(name, ".git") })
}

// writeAccess is what writing the place takes.
func (p place) writeAccess() (Access, []string) {
	if p.isGit() {
		return AccessExecute, nil
	}
	return AccessWrite, []string{"edits"}
}
