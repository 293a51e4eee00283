package session

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/llm"
)

// ErrNotFound says that there is no session of an id.
var ErrNotFound = errors.New("no such session")

const (
	logSuffix   = ".jsonl"
	filesSuffix = ".files"
	lockSuffix  = ".lock"
)

func lockPath(log string) string { return strings.TrimSuffix(log, logSuffix) + lockSuffix }

func imagesOf(log string) imageFolder {
	return imageFolder(strings.TrimSuffix(log, logSuffix) + filesSuffix)
}

// Store is a folder of sessions. It is safe for concurrent use, by other
// processes too.
type Store struct {
	root string
	now  func() time.Time
}

// NewStore gives the sessions below root, an absolute path. Nothing is read or
// made yet. With an empty root new sessions live in memory and no others are
// found.
func NewStore(root string) *Store { return &Store{root: root, now: time.Now} }

// CreateOptions are the settings of a new session.
type CreateOptions struct {
	// Now is the clock of the session. Default: time.Now.
	Now func() time.Time
	// Rand gives the random part of the id. Default: crypto/rand.
	Rand io.Reader
	// Program is the version of drover, for the header.
	Program string
}

func (o *CreateOptions) orDefault() CreateOptions {
	var opts CreateOptions
	if o != nil {
		opts = *o
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Rand == nil {
		opts.Rand = rand.Reader
	}
	return opts
}

// maxCreate bounds how often another id is tried when one is taken.
const maxCreate = 8

// Create makes a session for a working directory. It is on disk, with its
// header, when Create returns, and locked until [Log.Close].
func (s *Store) Create(cwd string, options *CreateOptions) (*Log, error) {
	opts := options.orDefault()
	if s.root == "" {
		return newMemory(cwd, &opts)
	}
	dir := filepath.Join(s.root, folderOf(cwd))
	if err := makeFolder(dir); err != nil {
		return nil, fmt.Errorf("create session: %w", err)
	}
	for range maxCreate {
		h, err := newHeader(cwd, &opts)
		if err != nil {
			return nil, err
		}
		l, err := s.create(filepath.Join(dir, h.ID+logSuffix), h, opts.Now)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("create session: %w", err)
		}
		return l, nil
	}
	return nil, errors.New("create session: every id is taken")
}

func newHeader(cwd string, opts *CreateOptions) (*header, error) {
	now := opts.Now()
	id, err := newID(now, opts.Rand)
	if err != nil {
		return nil, err
	}
	return &header{
		Type: headerType, Version: formatVersion, ID: id, CWD: cwd, Program: opts.Program,
		Created: timestamp(now.UTC().Truncate(time.Millisecond)),
	}, nil
}

func (s *Store) create(path string, h *header, now func() time.Time) (_ *Log, err error) {
	lock, err := takeLock(h.ID, path)
	if inUse, ok := errors.AsType[*InUseError](err); ok {
		return nil, fmt.Errorf("%w: %w", fs.ErrExist, inUse)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			lock.release()
		}
	}()
	line := h.line()
	f, err := publishOpen(path, bytes.NewReader(line))
	if err != nil {
		return nil, err
	}
	return &Log{
		header: *h, path: path, lock: lock, images: imagesOf(path), now: now,
		file: f, synced: int64(len(line)), stored: make(map[string]*llm.Image),
	}, nil
}

// Memory makes a session that ends with the process.
func Memory(cwd string) *Log {
	var none *CreateOptions
	opts := none.orDefault()
	l, err := newMemory(cwd, &opts)
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return l
}

func newMemory(cwd string, opts *CreateOptions) (*Log, error) {
	h, err := newHeader(cwd, opts)
	if err != nil {
		return nil, err
	}
	line := h.line()
	return &Log{
		header: *h, images: new(imageMap), now: opts.Now,
		file: &memory{data: line}, synced: int64(len(line)), stored: make(map[string]*llm.Image),
	}, nil
}

// find gives the log of an id, without symbolic links.
func (s *Store) find(id string) (string, error) {
	id, err := cleanID(id)
	if err != nil {
		return "", err
	}
	if s.root == "" {
		return "", fmt.Errorf("session %s: %w", id, ErrNotFound)
	}
	folders, err := os.ReadDir(s.root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("session %s: %w", id, err)
	}
	missing := ErrNotFound
	for _, folder := range folders {
		path := filepath.Join(s.root, folder.Name(), id+logSuffix)
		_, err := os.Lstat(path)
		if err == nil {
			return filepath.EvalSymlinks(path)
		}
		if errors.Is(err, fs.ErrPermission) { // it may be there
			missing = err
		}
	}
	return "", fmt.Errorf("session %s: %w", id, missing)
}

func idOf(path string) string { return strings.TrimSuffix(filepath.Base(path), logSuffix) }

// findLocked finds the log of a session and takes its lock.
func (s *Store) findLocked(id string) (path string, held *lock, err error) {
	if path, err = s.find(id); err != nil {
		return "", nil, err
	}
	if held, err = takeLock(idOf(path), path); err != nil {
		return "", nil, err
	}
	return path, held, nil
}

// Open goes on with a session: it takes the lock, folds the log, cuts off a torn
// end and closes a turn that its writer left open. The error is [ErrNotFound],
// an *[InUseError], a *[VersionError] or the file system's.
func (s *Store) Open(id string) (*Log, *State, error) {
	path, lock, err := s.findLocked(id)
	if err != nil {
		return nil, nil, err
	}
	l, state, err := s.open(path)
	if err != nil {
		lock.release()
		return nil, nil, fmt.Errorf("open session: %w", err)
	}
	l.lock = lock
	for _, rec := range state.Interruption() {
		if err := l.Append(rec); err != nil && l.Unsaved() == nil {
			l.Close()
			return nil, nil, fmt.Errorf("open session: %w", err)
		}
		state.Apply(rec)
	}
	return l, state, nil
}

func (s *Store) open(path string) (_ *Log, _ *State, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	state, end, stored, err := foldFile(f, path)
	if err != nil {
		return nil, nil, err
	}
	if end.cut >= 0 {
		if err := f.Truncate(end.cut); err != nil {
			return nil, nil, err
		}
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	l := &Log{
		path: path, images: imagesOf(path), now: s.now,
		file: f, seq: state.NextSeq, synced: info.Size(), stored: stored,
		last: summary{turn: state.Turns, title: state.Title},
	}
	l.header = header{ID: state.ID, CWD: state.CWD, Created: timestamp(state.Created)}
	if state.Header != nil {
		l.last.target = state.Header.Snapshot.Target
	}
	if end.unend {
		l.tail = []byte("\n") // goes before the next record
	}
	return l, state, nil
}

// foldFile folds an open log and lists the images that it has stored.
func foldFile(f *os.File, path string) (*State, tail, map[string]*llm.Image, error) {
	images := imagesOf(path)
	stored := make(map[string]*llm.Image)
	state, end, err := fold(f, func(ref *llm.Image) (*llm.Image, error) {
		img, err := loadImage(images, ref)
		if err == nil {
			stored[img.SHA256] = img
		}
		return img, err
	})
	if err != nil {
		return nil, end, nil, err
	}
	state.ID = idOf(path) // the header may be lost
	return state, end, stored, nil
}

// Read folds a session without writing anything, while another process may be
// writing it. An open turn stays open.
func (s *Store) Read(id string) (*State, error) {
	path, err := s.find(id)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	defer f.Close()
	state, _, _, err := foldFile(f, path)
	if err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	return state, nil
}

// Records yields the records of a session with their images, in file order. What
// cannot be read is left out; [Store.Verify] tells of it.
func (s *Store) Records(id string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		path, err := s.find(id)
		if err != nil {
			yield(nil, err)
			return
		}
		f, err := os.Open(path)
		if err != nil {
			yield(nil, fmt.Errorf("read session: %w", err))
			return
		}
		defer f.Close()
		yieldRecords(f, imagesOf(path), yield)
	}
}

// Remove deletes a session with its images. A session in use is refused.
func (s *Store) Remove(id string) error {
	path, lock, err := s.findLocked(id)
	if err != nil {
		return err
	}
	defer lock.release()
	// The log first: without it there is no session.
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove session: %w", err)
	}
	if err := os.RemoveAll(string(imagesOf(path))); err != nil {
		return fmt.Errorf("remove session: %w", err)
	}
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("remove session: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), filepath.Base(path)+oldSuffix) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("remove session: %w", err)
		}
	}
	return syncFolder(dir)
}

// oldSuffix marks, with a number behind it, what [Store.Repair] replaced.
const oldSuffix = ".old-"
