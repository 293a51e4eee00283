package memory

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of a folder.
const (
	MaxNotes   = 200  // that are read, and that a folder may come to have
	maxEntries = 2000 // of a folder that is read at all
)

const (
	fileMode   = 0o600
	folderMode = 0o700
)

// Problem is a file or folder that is left out, and why.
type Problem struct {
	Path string
	Err  error
}

func (p Problem) String() string { return p.Path + ": " + p.Err.Error() }

// folder holds the notes of one scope.
type folder struct {
	scope Scope
	base  string // absolute; no link may lead out of it
	sub   string // the folder's name from there
}

func (f *folder) path(file string) string { return filepath.Join(f.base, f.sub, file) }

// open opens the base. A folder that does not exist is fs.ErrNotExist.
func (f *folder) open() (*os.Root, error) {
	root, err := os.OpenRoot(f.base)
	if err != nil {
		return nil, plain(err)
	}
	return root, nil
}

// names lists the files that may be notes, sorted.
func (f *folder) names(root *os.Root) ([]string, error) {
	st, err := root.Stat(f.sub)
	if err != nil {
		return nil, linked(root, f.sub, err)
	}
	if !st.IsDir() {
		return nil, errors.New("it is no folder")
	}
	dir, err := root.Open(f.sub)
	if err != nil {
		return nil, plain(err)
	}
	defer dir.Close()
	entries, err := dir.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, plain(err)
	}
	if len(entries) > maxEntries {
		return nil, fmt.Errorf("it holds more than %d files", maxEntries)
	}
	var names []string
	for _, e := range entries {
		if name := e.Name(); strings.EqualFold(filepath.Ext(name), extension) && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// linked words the error of a name that may lie behind a link.
func linked(root *os.Root, name string, err error) error {
	for ; name != "."; name = filepath.Dir(name) {
		if st, e := root.Lstat(name); e == nil && st.Mode()&fs.ModeSymlink != 0 {
			return errors.New("it is a link that leads out of the folder, or to nothing")
		}
	}
	return plain(err)
}

// read reads all notes, in the order of their file names.
func (f *folder) read() (notes []Note, problems []Problem) {
	root, err := f.open()
	var names []string
	if err == nil {
		defer root.Close()
		names, err = f.names(root)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && len(names) > MaxNotes {
		problems = append(problems, Problem{f.path(""), fmt.Errorf("of its %d notes only the first %d are read", len(names), MaxNotes)})
		names = names[:MaxNotes]
	}
	if err != nil {
		return nil, append(problems, Problem{f.path(""), err})
	}
	for _, name := range names {
		n, err := f.note(root, name)
		if err != nil {
			problems = append(problems, Problem{f.path(name), err})
			continue
		}
		notes = append(notes, n)
	}
	return notes, problems
}

func (f *folder) note(root *os.Root, name string) (Note, error) {
	content, err := f.content(root, name)
	if err != nil {
		return Note{}, err
	}
	n, err := parse(content)
	n.Scope, n.File, n.Path = f.scope, name, f.path(name)
	return n, err
}

// content reads one file.
func (f *folder) content(root *os.Root, name string) (string, error) {
	rel := filepath.Join(f.sub, name)
	st, err := root.Stat(rel) // before opening, which waits for a named pipe
	switch {
	case err != nil:
		return "", linked(root, rel, err)
	case !st.Mode().IsRegular():
		return "", errors.New("it is no file")
	}
	file, err := root.Open(rel)
	if err != nil {
		return "", plain(err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return "", plain(err)
	}
	if len(data) > maxFile {
		return "", fmt.Errorf("it has more than %d bytes", maxFile)
	}
	return string(data), nil
}

// errChanged says that a file is not what somebody decided about.
var errChanged = errors.New("the note was changed since this call was prepared")

// replace makes the file have the content now, "" for no file, if it has the
// content old. On disk the file is replaced at once.
func (f *folder) replace(file, old, now string) error {
	if now != "" && f.scope == Global {
		if err := os.MkdirAll(f.base, folderMode); err != nil {
			return plain(err)
		}
	}
	root, err := f.open()
	if err != nil {
		return err
	}
	defer root.Close()
	if f.sub != "." && now != "" {
		if err := root.MkdirAll(f.sub, folderMode); err != nil {
			return linked(root, f.sub, err)
		}
	}
	is, err := f.content(root, file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if is != old {
		return errChanged
	}
	name := filepath.Join(f.sub, file)
	if now == "" {
		return plain(root.Remove(name))
	}
	return plain(write(root, name, now))
}

func write(root *os.Root, name, text string) (err error) {
	temp := filepath.Join(filepath.Dir(name), ".drover-"+rand.Text()+".tmp")
	file, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, text)
	if err == nil {
		err = file.Sync()
	}
	err = cmp.Or(err, file.Close())
	if err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		_ = root.Remove(temp) // the first error is the one to tell
	}
	return err
}

// plain takes the operation and the path off a file system error: the message
// around it names the path.
func plain(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	if le, ok := errors.AsType[*os.LinkError](err); ok {
		return le.Err
	}
	return err
}
