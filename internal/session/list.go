package session

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/llm"
)

// Info is what a list shows of a session.
type Info struct {
	ID      string
	CWD     string
	Title   string
	Target  llm.Target // of the last request
	Turns   int
	Size    int64 // of the log, in bytes
	Created time.Time
	Updated time.Time
	// Problem says why some of this is missing, nil if nothing is.
	Problem error
}

// ListOptions are the settings of [Store.List].
type ListOptions struct {
	// CWD leaves only the sessions of a working directory, whatever path to it
	// they were created with.
	CWD string
}

// List gives the sessions, the one changed last first. It reads the head and the
// end of each log and not what is between, so it does not see damage there.
func (s *Store) List(opts *ListOptions) ([]Info, error) {
	if opts == nil {
		opts = &ListOptions{}
	}
	var infos []Info
	err := s.eachLog(opts.CWD, func(path string) {
		if info, ok := readInfo(path); ok {
			infos = append(infos, info)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	slices.SortFunc(infos, func(a, b Info) int {
		return cmp.Or(b.Updated.Compare(a.Updated), strings.Compare(b.ID, a.ID))
	})
	return infos, nil
}

// eachLog calls f with each log, or with those of one working directory.
func (s *Store) eachLog(cwd string, f func(path string)) error {
	if s.root == "" {
		return nil
	}
	var folders []string
	if cwd != "" {
		folders = []string{folderOf(cwd)}
		if plain := folderName(cwd); plain != folders[0] { // from before there was a link
			folders = append(folders, plain)
		}
	} else {
		entries, err := os.ReadDir(s.root)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			folders = append(folders, e.Name())
		}
	}
	for _, folder := range folders {
		dir := filepath.Join(s.root, folder)
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // not a folder, or just removed
		}
		for _, e := range entries {
			id, ok := strings.CutSuffix(e.Name(), logSuffix)
			if _, err := cleanID(id); ok && err == nil {
				f(filepath.Join(dir, e.Name()))
			}
		}
	}
	return nil
}

// headSize is what is read of the beginning of a log.
const headSize = 4 << 10

// tailSizes are what is read of the end of a log, until the end of a turn is
// found: it tells everything.
var tailSizes = [...]int64{4 << 10, 64 << 10, 1 << 20}

// readInfo reads what a list shows; not ok if there is no such file any more.
func readInfo(path string) (_ Info, ok bool) {
	info := Info{ID: idOf(path)}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return info, false
	}
	if err != nil {
		info.Problem = err
		return info, true
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil || !stat.Mode().IsRegular() {
		info.Problem = cmp.Or(err, errors.New("not a file"))
		return info, true
	}
	info.Size, info.Updated = stat.Size(), stat.ModTime().UTC()
	head := make([]byte, min(headSize, info.Size))
	if _, err := f.ReadAt(head, 0); err != nil && err != io.EOF {
		info.Problem = err
		return info, true
	}
	if info.Problem = info.readHead(head); info.Problem != nil {
		return info, true
	}
	for _, size := range tailSizes {
		var t tailScan
		from := max(0, info.Size-size)
		end := head
		if from > 0 || info.Size > headSize {
			end = make([]byte, info.Size-from)
			if n, err := f.ReadAt(end, from); err != nil && err != io.EOF {
				info.Problem = err
				return info, true
			} else {
				end = end[:n]
			}
		}
		if t.scan(end, from == 0); t.complete || from == 0 || size == tailSizes[len(tailSizes)-1] {
			info.take(&t, from == 0)
			return info, true
		}
	}
	return info, true
}

func (i *Info) readHead(head []byte) error {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	var h header
	if err := json.Unmarshal(line, &h); err != nil || h.Type != headerType {
		return errors.New("the log has no readable header")
	}
	if h.Version > formatVersion {
		return &VersionError{ID: i.ID, Version: h.Version}
	}
	i.CWD, i.Created = h.CWD, time.Time(h.Created)
	return nil
}

// take fills in what the end of the log tells.
func (i *Info) take(t *tailScan, whole bool) {
	i.Title, i.Target, i.Turns = t.title, t.target, t.turns
	if !t.updated.IsZero() {
		i.Updated = t.updated
	}
	if !t.complete && !whole {
		i.Problem = errors.New("the last turn is too long for its title, model and turn number to be found")
	}
}

// tailScan collects from the end of a log, last line first.
type tailScan struct {
	title   string
	target  llm.Target
	turns   int
	updated time.Time
	// complete says that everything is known.
	complete bool

	hasTitle, hasTarget bool
}

// scan reads lines from the last to the first. The first one counts only when
// the end is the whole file, since it may have been cut.
func (t *tailScan) scan(end []byte, whole bool) {
	for len(end) > 0 && !t.complete {
		i := bytes.LastIndexByte(end, '\n')
		if i < 0 && !whole {
			return
		}
		t.line(bytes.TrimSuffix(end[i+1:], []byte("\r")))
		end = end[:max(i, 0)]
	}
}

func (t *tailScan) line(line []byte) {
	e, ok := cutEnvelope(line)
	if !ok {
		return // torn, damaged, or in a form that we do not write
	}
	switch e.kind {
	case "session/info", "turn/start", "turn/end":
		if e.decode() != nil {
			return
		}
	case "request/header":
		t.header(e.data)
	}
	if t.updated.IsZero() {
		t.updated = e.time
	}
	switch rec := e.rec.(type) {
	case *SessionInfo:
		t.setTitle(rec.Title)
	case *TurnStart:
		t.turns = max(t.turns, rec.Turn)
	case *TurnEnd:
		t.turns = max(t.turns, rec.Turn)
		t.setTitle(rec.Title)
		t.setTarget(rec.Target)
		t.complete = true
	}
}

func (t *tailScan) header(data []byte) {
	var h struct {
		Snapshot struct {
			Target llm.Target `json:"target"`
		} `json:"snapshot"`
	}
	if !t.hasTarget && json.Unmarshal(data, &h) == nil {
		t.setTarget(h.Snapshot.Target)
	}
}

func (t *tailScan) setTitle(title string) {
	if !t.hasTitle {
		t.title, t.hasTitle = title, true
	}
}

func (t *tailScan) setTarget(target llm.Target) {
	if !t.hasTarget {
		t.target, t.hasTarget = target, true
	}
}
