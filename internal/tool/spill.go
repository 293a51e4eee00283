package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxSpillBytes bounds one file of full output: 64 MiB.
const maxSpillBytes = 64 << 20

// capture keeps the start and the end of a text that is written to it. Once
// something falls out between them, the whole text goes to a file as well.
type capture struct {
	dir    string // for the file, empty for none
	prefix string // of its name
	limit  int    // bytes to keep in all

	head, tail []byte
	next       int   // where in tail the next byte goes, once tail is full
	total      int64 // bytes written
	file       *os.File
	path       string
	problem    error // why there is no file, or not all of the text in it
}

// Write never fails: a command is not stopped because its output cannot be kept.
func (c *capture) Write(p []byte) (int, error) {
	n := len(p)
	if c.total+int64(n) > int64(c.limit) && c.file == nil && c.problem == nil {
		c.open()
	}
	c.total += int64(n)
	if c.file != nil && c.problem == nil {
		c.spill(p)
	}
	half := c.limit / 2
	if room := half - len(c.head); room > 0 {
		k := min(room, len(p))
		c.head = append(c.head, p[:k]...)
		p = p[k:]
	}
	size := c.limit - half
	p = p[max(0, len(p)-size):]
	if room := size - len(c.tail); room > 0 {
		k := min(room, len(p))
		c.tail = append(c.tail, p[:k]...)
		p = p[k:]
	}
	for len(p) > 0 {
		k := copy(c.tail[c.next:], p)
		p = p[k:]
		c.next = (c.next + k) % len(c.tail)
	}
	return n, nil
}

// open makes the file with what came so far.
func (c *capture) open() {
	if c.dir == "" {
		return
	}
	if c.problem = os.MkdirAll(c.dir, 0o700); c.problem != nil {
		return
	}
	clearSpills(c.dir, time.Now())
	// CreateTemp gives mode 0600: output may hold what only its owner may read.
	if c.file, c.problem = os.CreateTemp(c.dir, c.prefix+"-*.txt"); c.problem != nil {
		c.file = nil
		return
	}
	c.path = c.file.Name()
	c.spill(c.head)
	c.spill(c.ordered())
}

const (
	// spillAge is how long full outputs are kept: a month, in which a session that
	// names them may be gone on with.
	spillAge = 30 * 24 * time.Hour
	// maxSpillFolders and maxSpillFiles bound how many folders of sessions, and how
	// many files of one, are looked at for each new file.
	maxSpillFolders = 500
	maxSpillFiles   = 200
)

// The names of a session's folder and of a file in it. What is called otherwise is
// not drover's.
var (
	spillFolder = pattern(`^[0-9a-z]{26}$`)
	spillFile   = pattern(`-[0-9]+\.txt$`)
)

// clearSpills removes old outputs from the folders of other sessions beside dir. What
// cannot be removed stays. Links are not followed: commands may write here.
func clearSpills(dir string, now time.Time) {
	if !spillFolder.matches(filepath.Base(dir)) {
		return
	}
	root, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return
	}
	defer root.Close()
	for _, e := range someEntries(root, ".", maxSpillFolders) {
		if !e.IsDir() || !spillFolder.matches(e.Name()) || e.Name() == filepath.Base(dir) {
			continue
		}
		for _, f := range someEntries(root, e.Name(), maxSpillFiles) {
			info, err := f.Info()
			if err == nil && info.Mode().IsRegular() && spillFile.matches(f.Name()) && now.Sub(info.ModTime()) > spillAge {
				_ = root.Remove(filepath.Join(e.Name(), f.Name()))
			}
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > spillAge {
			_ = root.Remove(e.Name()) // only if nothing is in it
		}
	}
}

func someEntries(root *os.Root, name string, n int) []os.DirEntry {
	f, err := root.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(n) // what there is will do
	return entries
}

func (c *capture) spill(p []byte) {
	if c.problem == nil {
		if c.total > maxSpillBytes {
			c.problem = fmt.Errorf("only the first %s are kept", byteSize(maxSpillBytes))
			return
		}
		_, c.problem = c.file.Write(p)
	}
}

// ordered is the tail in the order in which it was written.
func (c *capture) ordered() []byte {
	return append(append([]byte(nil), c.tail[c.next:]...), c.tail[:c.next]...)
}

// close closes the file and gives the text, with a note where it was cut.
func (c *capture) close() string {
	if c.file != nil {
		if err := c.file.Close(); c.problem == nil {
			c.problem = err
		}
	}
	tail := c.ordered()
	left := c.total - int64(len(c.head)) - int64(len(tail))
	if left == 0 {
		return strings.ToValidUTF8(string(c.head)+string(tail), "\uFFFD")
	}
	where := "lost"
	if c.path != "" {
		where = "all of it is in " + c.path
	}
	if c.problem != nil {
		where += ", " + plainError(c.problem).Error()
	}
	return fmt.Sprintf("%s\n[... %d bytes left out; %s ...]\n%s",
		strings.ToValidUTF8(string(c.head), "\uFFFD"), left, where, strings.ToValidUTF8(string(tail), "\uFFFD"))
}

// Bound cuts a text that is longer than limit bytes to its start and its end and
// puts all of it into a file in SpillDir, which the text then names. prefix
// starts the file's name.
func (w *Workspace) Bound(text string, limit int, prefix string) string {
	if len(text) <= limit {
		return text
	}
	c := capture{dir: w.SpillDir, prefix: prefix, limit: limit}
	_, _ = c.Write([]byte(text)) // never fails
	return c.close()
}
