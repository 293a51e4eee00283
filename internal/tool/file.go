package tool

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// maxEditBytes bounds a file that is changed as a whole: 10 MiB. What is
	// larger is data, and better changed by a program.
	maxEditBytes = 10 << 20
	// sniffBytes is how much of a file is looked at to tell text from binary, as
	// in git.
	sniffBytes = 8000
)

// isBinary tells by a NUL byte near the start, as git does.
func isBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), sniffBytes)], 0) >= 0
}

// textFile is a file as it is now.
type textFile struct {
	text   string
	exists bool
}

// load reads a whole text file that is to be changed. A file that does not exist
// is no error.
func (w *Workspace) load(ctx context.Context, p place) (textFile, error) {
	name := w.display(p.abs)
	info, err := p.stat()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return w.loadUnsaved(ctx, p)
	case err != nil:
		return textFile{}, fmt.Errorf("%s: %w", name, plainError(err))
	case info.IsDir():
		return textFile{}, fmt.Errorf("%s is a directory", name)
	case !info.Mode().IsRegular():
		return textFile{}, fmt.Errorf("%s is no regular file", name)
	case info.Size() > maxEditBytes:
		return textFile{}, fmt.Errorf("%s has %s, more than the %s that can be changed this way: use the shell",
			name, byteSize(info.Size()), byteSize(maxEditBytes))
	case info.Mode().Perm()&0o200 == 0:
		// Replacing the file would get around its protection.
		return textFile{}, fmt.Errorf("%s is read-only", name)
	}
	text, err := w.loadRegular(ctx, p)
	switch {
	case err != nil:
		return textFile{}, fmt.Errorf("%s: %w", name, plainError(err))
	case isBinary([]byte(text[:min(len(text), sniffBytes)])):
		return textFile{}, fmt.Errorf("%s is a binary file", name)
	}
	return textFile{text: text, exists: true}, nil
}

// loadUnsaved looks for a file that so far exists in an editor only.
func (w *Workspace) loadUnsaved(ctx context.Context, p place) (textFile, error) {
	if w.FS == nil {
		return textFile{}, nil
	}
	text, err := w.FS.ReadTextFile(ctx, p.abs)
	if err != nil || text == "" {
		return textFile{}, ctx.Err() // editors say "no such file" in many ways
	}
	return textFile{text: text, exists: true}, nil
}

func (w *Workspace) loadRegular(ctx context.Context, p place) (string, error) {
	if text, ok, err := w.held(ctx, p); ok {
		return text, err
	}
	f, err := p.open()
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxEditBytes+1))
	if err == nil && len(data) > maxEditBytes {
		err = errors.New("the file is growing")
	}
	return string(data), err
}

// held reads a file from FS. ok is false where what is on disk counts.
func (w *Workspace) held(ctx context.Context, p place) (text string, ok bool, err error) {
	if w.FS == nil || !p.inside() {
		return "", false, nil
	}
	text, err = w.FS.ReadTextFile(ctx, p.abs)
	return text, !errors.Is(err, fs.ErrNotExist), err
}

// store writes a whole text file and the folders above it. On disk the file is
// replaced at once, so that nobody sees half of it, and keeps its mode.
func (w *Workspace) store(ctx context.Context, p place, text string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	root, err := p.openRoot()
	if err != nil {
		return plainError(err)
	}
	defer root.Close()
	dir := filepath.Dir(p.rel)
	if err := root.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("folder %s: %w", filepath.ToSlash(dir), plainError(err))
	}
	if w.FS != nil {
		if err := w.FS.WriteTextFile(ctx, p.abs, text); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return plainError(replaceFile(root, p.rel, text))
}

func replaceFile(root *os.Root, rel, text string) (err error) {
	temp := filepath.Join(filepath.Dir(rel), ".drover-"+rand.Text()+".tmp")
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = root.Remove(temp) // the first error is the one to tell
		}
	}()
	if info, statErr := root.Stat(rel); statErr == nil {
		err = f.Chmod(info.Mode().Perm())
	}
	if err == nil {
		_, err = io.WriteString(f, text)
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = root.Rename(temp, rel)
	}
	return err
}

// missing says that there is no such file, with names that may have been meant.
func (w *Workspace) missing(ctx context.Context, p place) error {
	name := w.display(p.abs)
	if strings.HasPrefix(name, "~") {
		return fmt.Errorf("there is no %s (~ is not expanded: give the whole path)", name)
	}
	hint := ""
	if near := w.similarPaths(ctx, p); len(near) > 0 {
		hint = ": did you mean " + strings.Join(near, ", ") + "?"
	}
	return fmt.Errorf("there is no %s%s", name, hint)
}

const (
	maxSuggestions = 3
	// maxSuggestWalk is how many entries are looked at for a suggestion.
	maxSuggestWalk = 5000
)

// similarPaths looks for what may have been meant by a path inside the roots
// that does not exist: a similar name where the path stops to exist, then the
// same name anywhere in the root. Names outside the roots are not told.
func (w *Workspace) similarPaths(ctx context.Context, p place) []string {
	if !p.inside() {
		return nil
	}
	var found []string
	rest := splitPath(p.rel)
	for dir := p.root; len(rest) > 0; rest = rest[1:] {
		next := filepath.Join(dir, rest[0])
		if _, err := os.Lstat(next); err == nil {
			dir = next
			continue
		}
		var names []string
		if f, err := openResolved(dir); err == nil {
			entries, _ := readEntries(ctx, f, maxSuggestWalk) // nothing to suggest is fine
			f.Close()
			for _, e := range entries {
				names = append(names, e.Name())
			}
		}
		if near := nearest(rest[0], names); near != "" {
			guess := filepath.Join(append([]string{dir, near}, rest[1:]...)...)
			if _, err := os.Lstat(guess); err == nil {
				found = append(found, w.display(guess))
			}
		}
		break
	}
	base := filepath.Base(p.rel)
	walk := walker{dir: p.root, base: p.root, entries: maxWalk - maxSuggestWalk, visit: func(f walked) bool {
		if path := w.display(f.path); filepath.Base(f.path) == base && len(found) < maxSuggestions &&
			(len(found) == 0 || found[0] != path) {
			found = append(found, path)
		}
		return len(found) < maxSuggestions
	}}
	_ = walk.run(ctx) // what was found until then will do
	return found
}
