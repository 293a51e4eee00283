package session

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/drover-dev/drover/internal/llm"
)

// Check is what [Store.Verify] found out about one log.
type Check struct {
	ID       string
	Path     string
	Warnings []Warning
	// OpenTurn says that the log ends inside a turn, as it does while a turn
	// runs. [Store.Open] closes it.
	OpenTurn bool
	// Err is set when the log cannot be read at all.
	Err error
}

// OK reports whether nothing is wrong.
func (c *Check) OK() bool { return c.Err == nil && len(c.Warnings) == 0 }

// Verify reads logs wholly, images included, and changes nothing. Without ids
// it reads all.
func (s *Store) Verify(ids ...string) ([]Check, error) {
	var checks []Check
	if len(ids) == 0 {
		err := s.eachLog("", func(path string) { checks = append(checks, verify(path)) })
		if err != nil {
			return nil, fmt.Errorf("verify sessions: %w", err)
		}
		return checks, nil
	}
	for _, id := range ids {
		path, err := s.find(id)
		if err != nil {
			return nil, err
		}
		checks = append(checks, verify(path))
	}
	return checks, nil
}

func verify(path string) Check {
	c := Check{ID: idOf(path), Path: path}
	f, err := os.Open(path)
	if err != nil {
		c.Err = err
		return c
	}
	defer f.Close()
	state, _, _, err := foldFile(f, path)
	if err != nil {
		c.Err = err
		return c
	}
	c.Warnings, c.OpenTurn = state.Warnings, state.OpenTurn
	return c
}

// Repaired says what [Store.Repair] did.
type Repaired struct {
	// Old is the path of the log as it was, "" when nothing was to be done.
	Old     string
	Kept    int // records taken over
	Left    int // records left out, since nothing they belong to is there
	Added   int // results made up for calls without one, and the end of a turn
	Damaged int // unreadable lines left out
	Images  int // lost images that a text stands for now
}

// Repair writes a log anew from what can be read, numbered without gaps, such
// that it folds to the same messages without a warning, and keeps the old file
// beside it. A log with nothing wrong is left alone. A session in use is
// refused.
func (s *Store) Repair(id string) (*Repaired, error) {
	path, lock, err := s.findLocked(id)
	if err != nil {
		return nil, err
	}
	defer lock.release()
	done, err := repair(path)
	if err != nil {
		return nil, fmt.Errorf("repair session: %w", err)
	}
	return done, nil
}

func repair(path string) (*Repaired, error) {
	old, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer old.Close()
	state, _, _, err := foldFile(old, path)
	if err != nil {
		return nil, err
	}
	done := new(Repaired)
	if len(state.Warnings) == 0 && !state.OpenTurn {
		return done, nil
	}
	if _, err := old.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	temp, err := writeTemp(path, func(w io.Writer) error {
		b := bufio.NewWriter(w)
		if err := done.copy(b, old, path); err != nil {
			return err
		}
		return b.Flush()
	})
	if err != nil {
		return nil, err
	}
	defer os.Remove(temp)
	old.Close() // Windows renames no open file
	if done.Old, err = keep(path); err != nil {
		return nil, err
	}
	if err := os.Rename(temp, path); err != nil {
		return nil, fmt.Errorf("%w (the log is kept as %s)", err, done.Old)
	}
	return done, syncFolder(filepath.Dir(path))
}

// keep gives a file a second name that is free.
func keep(path string) (string, error) {
	for n := 1; ; n++ {
		old := fmt.Sprintf("%s%s%d", path, oldSuffix, n)
		if _, err := os.Lstat(old); err == nil {
			continue
		}
		return old, linkOrRename(path, old)
	}
}

// copy writes what can be read of a log, in order and completed.
func (done *Repaired) copy(w io.Writer, r io.Reader, path string) error {
	state := new(State)
	images := imagesOf(path)
	rd := NewReader(r, &ReaderOptions{Image: func(ref *llm.Image) (*llm.Image, error) { return loadImage(images, ref) }})
	c := copier{w: w, rd: rd, id: idOf(path)}
	for {
		e, err := rd.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		for _, rec := range state.required(e.rec) {
			rec.stamp().Time = e.time
			if err := c.add(rec); err != nil {
				return err
			}
			done.Added++
		}
		if why := state.orphan(e.rec); why != "" {
			done.Left++
			continue
		}
		m, _ := e.rec.(*UserMessage)
		if lost := m.forgetLost(); lost > 0 {
			err = c.add(m)
			done.Images += lost
		} else {
			err = c.copy(e)
		}
		if err != nil {
			return err
		}
		done.Kept++
		state.Apply(e.rec)
	}
	for _, rec := range state.Interruption() {
		rec.stamp().Time = state.Updated
		if end, ok := rec.(*TurnEnd); ok {
			end.Turn, end.Title = state.Turns, state.Title
			if state.Header != nil {
				end.Target = state.Header.Snapshot.Target
			}
		}
		if err := c.add(rec); err != nil {
			return err
		}
		done.Added++
	}
	done.Damaged = rd.unreadable
	return c.begin()
}

// copier writes lines with new numbers.
type copier struct {
	w     io.Writer
	rd    *Reader
	id    string
	begun bool
	seq   int
}

// begin writes the header once. It is known when the first record was read.
func (c *copier) begin() error {
	if c.begun {
		return nil
	}
	c.begun = true
	h := c.rd.header
	h.Type, h.Version, h.ID = headerType, formatVersion, c.id
	_, err := c.w.Write(h.line())
	return err
}

// add writes a new record.
func (c *copier) add(rec Record) error {
	data, err := settle(rec)
	if err != nil {
		return err
	}
	return c.write(rec.stamp(), rec.Kind(), data)
}

// copy writes a record with the very data that it had.
func (c *copier) copy(e *entry) error {
	return c.write(e.rec.stamp(), e.kind, e.data)
}

func (c *copier) write(st *Stamp, kind string, data []byte) error {
	if err := c.begin(); err != nil {
		return err
	}
	placed := Stamp{Seq: c.seq, Time: st.Time}
	c.seq++
	line, err := appendLine(nil, &placed, kind, data)
	if err != nil {
		return err
	}
	_, err = c.w.Write(line)
	return err
}
