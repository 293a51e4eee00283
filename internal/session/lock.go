package session

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// InUseError refuses to write a session that somebody writes already.
type InUseError struct {
	ID  string
	PID int // 0 if it could not be found out
}

func (e *InUseError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("session %s is in use by another process", e.ID)
	}
	return fmt.Sprintf("session %s is in use by pid %d", e.ID, e.PID)
}

// lock is the right to write a session. It is a lock on a file of its own, since
// on Windows a locked log could not be read by others. The file holds the pid of
// the writer, behind the first byte, which is what Windows locks. A lock ends
// with its process, so that a file left behind by a crash hinders nobody.
type lock struct {
	path  string
	flock *flock.Flock
}

// maxLockTries bounds how often the lock's file may vanish under us.
const maxLockTries = 100

// A process that is killed just when it starts a command leaves its lock to the
// command, until that has begun. So a lock of a process that is gone is waited
// for, this long and with these pauses.
const (
	lockGrace = 500 * time.Millisecond
	lockPause = 5 * time.Millisecond
)

// takeLock locks the log at path, a path without symbolic links.
func takeLock(id, path string) (*lock, error) {
	l := &lock{path: lockPath(path)}
	start := time.Now()
	for try := 0; ; try++ {
		l.flock = flock.New(l.path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(fileMode))
		ok, err := l.flock.TryLock()
		if err != nil {
			return nil, fmt.Errorf("lock session %s: %w", id, err)
		}
		if !ok {
			owner := l.owner()
			if gone(owner) && time.Since(start) < lockGrace {
				time.Sleep(lockPause)
				try--
				continue
			}
			return nil, &InUseError{ID: id, PID: owner}
		}
		if l.current() {
			break
		}
		// The one before removed the file between our opening and locking it.
		l.flock.Close()
		if try == maxLockTries {
			return nil, fmt.Errorf("lock session %s: %s does not stay in place", id, l.path)
		}
	}
	if err := l.sign(); err != nil {
		l.release()
		return nil, fmt.Errorf("lock session %s: %w", id, err)
	}
	return l, nil
}

// current reports whether the locked file still has its name.
func (l *lock) current() bool {
	mine, err := l.flock.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(l.path)
	return err == nil && os.SameFile(mine, named)
}

func (l *lock) sign() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	// No truncation: a shorter pid is ended by its line feed. On a full disk the
	// lock holds all the same, without a name.
	f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 1)
	return nil
}

func (l *lock) owner() int {
	f, err := os.Open(l.path)
	if err != nil {
		return 0
	}
	defer f.Close()
	var b [24]byte
	n, _ := f.ReadAt(b[:], 1)
	text, _, _ := bytes.Cut(b[:n], []byte("\n"))
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		return 0
	}
	return pid
}

// gone reports whether there is surely no process of a number on this machine.
func gone(pid int) bool {
	if pid <= 0 {
		return false
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return true // Windows tells here
	}
	defer p.Release()
	return runtime.GOOS != "windows" && errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// release gives the lock up and removes its file while still holding it, so that
// nobody else's is removed. Where an open file cannot be removed it stays.
func (l *lock) release() {
	if l != nil {
		os.Remove(l.path)
		l.flock.Close()
	}
}
