package session

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

const (
	folderMode = 0o700
	fileMode   = 0o600
)

// file is what a log writes to.
type file interface {
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

// memory is a file in memory.
type memory struct{ data []byte }

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	m.data = append(m.data[:off], p...)
	return len(p), nil
}

func (m *memory) Truncate(size int64) error {
	m.data = m.data[:size]
	return nil
}

func (m *memory) contents() []byte { return m.data }

func (m *memory) Sync() error  { return nil }
func (m *memory) Close() error { return nil }

// makeFolder makes a folder and what lies above it, on disk when it returns.
func makeFolder(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	if err := os.MkdirAll(path, folderMode); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes changes of a folder's entries durable. Windows has no such
// call and does not need it; some file systems have none either, and do what they
// can by themselves.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// writeTemp writes a new file beside path, on disk when it returns, and gives
// its name.
func writeTemp(path string, write func(io.Writer) error) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return "", err
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// publish puts a new file in place, whole or not at all, and never over another
// one: then the error is fs.ErrExist.
func publish(path string, write func(io.Writer) error) error {
	temp, err := writeTemp(path, write)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	if err := linkOrRename(temp, path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// linkOrRename gives the file a second name, or a new one where the file system
// has no links.
func linkOrRename(old, new string) error {
	err := os.Link(old, new)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, statErr := os.Lstat(new); statErr == nil {
		return fmt.Errorf("%s: %w", new, fs.ErrExist)
	}
	return os.Rename(old, new)
}
