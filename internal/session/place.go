package session

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// errReplaced says that the log's name leads to a file that is not ours.
var errReplaced = errors.New("another file has taken the place of the log")

// giveWay goes on behind what somebody else has written to the log. The lock keeps
// others out; where it does not (some network file systems, or its file was
// removed) nobody writes over what another one was told is saved.
func (l *Log) giveWay() error {
	f, ok := l.file.(interface{ Stat() (fs.FileInfo, error) })
	if !ok { // in memory
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() <= max(l.synced+int64(l.written), l.spoiled) {
		return nil
	}
	if l.written > 0 { // in the file already, and not to be written again
		if err := l.file.Sync(); err != nil {
			return err
		}
	}
	l.tail, l.written = l.tail[l.written:], 0
	l.synced = info.Size()
	return nil
}

// keepPlace checks that what was written can be found again. A log that was
// removed while it is written, alone or with its folder, would take records
// without a word and be gone with the process: then it is written anew from what
// the open file still holds. A file that somebody put in its place is left alone.
func (l *Log) keepPlace() error {
	f, ok := l.file.(*os.File)
	if !ok || l.path == "" {
		return nil
	}
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(l.path)
	switch {
	case err == nil && os.SameFile(mine, named), errors.Is(err, fs.ErrPermission):
		return nil
	case err == nil:
		return errReplaced
	}
	if err := l.restore(f, mine.Size()); err != nil {
		return fmt.Errorf("the log was removed, and cannot be written again: %w", err)
	}
	return nil
}

// restore puts a copy of a removed log in its place and goes on with it.
func (l *Log) restore(old *os.File, size int64) error {
	if err := makeFolder(filepath.Dir(l.path)); err != nil {
		return err
	}
	for sha, img := range l.stored {
		if err := l.images.put(sha, img.Data); err != nil {
			return err
		}
	}
	held := l.lock
	fresh := held
	if !held.current() {
		var err error
		if fresh, err = takeLock(l.ID(), l.path); err != nil {
			return err
		}
	}
	f, err := publishOpen(l.path, io.NewSectionReader(old, 0, size))
	if err != nil {
		if fresh != held {
			fresh.release()
		}
		return err
	}
	if fresh != held {
		held.flock.Close() // its name is the new lock's
	}
	l.lock, l.file = fresh, f
	return old.Close()
}

// publishOpen puts a new file in place and opens it.
func publishOpen(path string, content io.Reader) (*os.File, error) {
	err := publish(path, func(w io.Writer) error {
		_, err := io.Copy(w, content)
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR, 0)
}
