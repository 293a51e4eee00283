package memory

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// ErrNotFound says that there is no such note.
var ErrNotFound = errors.New("there is no such note")

// Store reads and writes notes. It is safe for concurrent use. A nil store has
// none.
type Store struct {
	dir     string // the working directory, "" without a project
	folders []*folder
	mu      *sync.Mutex // of changes, one for all stores of a process
}

// Open makes the store whose global notes are in a folder, absolute. Without one
// there are none. Nothing is read yet.
func Open(global string) *Store {
	s := &Store{mu: new(sync.Mutex)}
	if global != "" {
		s.folders = []*folder{{scope: Global, base: global, sub: "."}}
	}
	return s
}

// In is the same store with the notes of the project that a working directory,
// absolute, belongs to. They are in .drover/memory of its work tree: the nearest
// folder at or above it that holds .git, else the directory itself.
func (s *Store) In(dir string) *Store {
	if s == nil || dir == "" {
		return s
	}
	in := &Store{dir: filepath.Clean(dir), mu: s.mu}
	in.folders = append(in.folders, &folder{scope: Project, base: workTree(in.dir), sub: filepath.Join(".drover", "memory")})
	if global := s.folder(Global); global != nil {
		in.folders = append(in.folders, global)
	}
	return in
}

func workTree(dir string) string {
	for d := dir; ; {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return d
		}
		up := filepath.Dir(d)
		if up == d {
			return dir
		}
		d = up
	}
}

// inside reports whether a folder of notes lies in the working directory.
func (s *Store) inside(f *folder) bool {
	rel, err := filepath.Rel(s.dir, f.base)
	return s.dir != "" && err == nil && filepath.IsLocal(rel)
}

func (s *Store) folder(scope Scope) *folder {
	for _, f := range s.folders {
		if f.scope == scope {
			return f
		}
	}
	return nil
}

// List reads all notes: those of the project first, in each folder by file
// name. What is left out is told and hides nothing else.
func (s *Store) List() (notes []Note, problems []Problem) {
	if s == nil {
		return nil, nil
	}
	for _, f := range s.folders {
		n, p := f.read()
		notes, problems = append(notes, n...), append(problems, p...)
	}
	return notes, problems
}

// Get finds a note by its title or its file, the title in any case where none is
// exact; a project's before a global one. The error is or wraps [ErrNotFound].
func (s *Store) Get(name string) (Note, error) {
	notes, _ := s.List()
	name = strings.Join(strings.Fields(name), " ")
	for _, same := range []func(n *Note) bool{
		func(n *Note) bool { return n.Title == name },
		func(n *Note) bool { return n.File == name || n.File == name+extension || n.Path == name },
		func(n *Note) bool { return strings.EqualFold(n.Title, name) },
	} {
		if i := slices.IndexFunc(notes, func(n Note) bool { return same(&n) }); i >= 0 {
			return notes[i], nil
		}
	}
	return Note{}, fmt.Errorf("%w: %q", ErrNotFound, name)
}

// Put keeps a note in its scope, the project's if it has none, and replaces one
// of the same title there. It returns the note as it was kept.
func (s *Store) Put(n Note) (Note, error) {
	c, err := s.prepare(n)
	if err == nil {
		err = s.apply(c)
	}
	if err != nil {
		return Note{}, fmt.Errorf("note %q: %w", n.Title, err)
	}
	return c.note, nil
}

// Remove removes the note that [Store.Get] finds and returns it.
func (s *Store) Remove(name string) (Note, error) {
	n, err := s.Get(name)
	if err != nil {
		return n, err
	}
	c, err := s.prepareRemoval(n)
	if err == nil {
		err = s.apply(c)
	}
	if err != nil {
		return n, fmt.Errorf("note %q: %w", n.Title, err)
	}
	return n, nil
}

// change is a change of one note's file.
type change struct {
	note     Note
	folder   *folder
	old, new string // contents, "" for no file
}

// prepare works out what putting a note changes.
func (s *Store) prepare(n Note) (*change, error) {
	if err := n.clean(); err != nil {
		return nil, err
	}
	n.Scope = cmp.Or(n.Scope, Project)
	if s == nil {
		s = new(Store)
	}
	f := s.folder(n.Scope)
	if f == nil {
		return nil, fmt.Errorf("there is no folder for %s notes", n.Scope)
	}
	c := &change{folder: f, new: n.format()}
	root, err := f.open()
	var names []string
	if err == nil {
		defer root.Close()
		names, err = f.names(root)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", f.path(""), err)
	}
	for _, name := range names {
		if is, err := f.note(root, name); err == nil && is.Title == n.Title {
			n.File = name
			if c.old, err = f.content(root, name); err != nil {
				return nil, err
			}
			break
		}
	}
	if c.old == "" {
		if len(names) >= MaxNotes {
			return nil, fmt.Errorf("there are %d %s notes already: remove one first", len(names), n.Scope)
		}
		n.File = freeName(slug(n.Title), names)
	}
	n.Path = f.path(n.File)
	c.note = n
	return c, nil
}

// freeName is a name for a new file. Names that differ in case alone are one
// file on some systems.
func freeName(base string, taken []string) string {
	name := base + extension
	for i := 2; slices.ContainsFunc(taken, func(t string) bool { return strings.EqualFold(t, name) }); i++ {
		name = fmt.Sprintf("%s-%d%s", base, i, extension)
	}
	return name
}

// prepareRemoval works out what removing a note of this store changes.
func (s *Store) prepareRemoval(n Note) (*change, error) {
	c := &change{note: n, folder: s.folder(n.Scope)}
	root, err := c.folder.open()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	c.old, err = c.folder.content(root, n.File)
	return c, err
}

func (s *Store) apply(c *change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.folder.replace(c.note.File, c.old, c.new)
}

// name is how the note's file is called in titles and to a model: from the
// working directory if it lies there.
func (s *Store) name(n *Note) string {
	if rel, err := filepath.Rel(s.dir, n.Path); s.dir != "" && err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(n.Path)
}
