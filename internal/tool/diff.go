package tool

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/drover-dev/drover/internal/llm"
)

// Unified is the change in unified form with three lines of context, under the
// given name. It is empty when nothing changes.
func (d *Diff) Unified(name string) string {
	if name == "" {
		name = filepath.ToSlash(d.Path)
	}
	old := "a/" + name
	if d.Created {
		old = "/dev/null"
	}
	return udiff.Unified(old, "b/"+name, d.Old, d.New)
}

// Lines counts the lines that the change adds and removes.
func (d *Diff) Lines() (added, removed int) {
	before, after := changedPart(d.Old, d.New)
	for _, e := range udiff.Lines(before, after) {
		added += countLines(e.New)
		removed += countLines(before[e.Start:e.End])
	}
	return added, removed
}

// changedPart leaves out the lines that two texts have in common at their start
// and at their end: most of a large file that was edited.
func changedPart(a, b string) (string, string) {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	n = strings.LastIndexByte(a[:n], '\n') + 1
	a, b = a[n:], b[n:]
	n = 0
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	// The common end starts after its first line end, since the line before it
	// may differ in a part.
	i := strings.IndexByte(a[len(a)-n:], '\n')
	if i < 0 {
		return a, b
	}
	n -= i + 1
	return a[:len(a)-n], b[:len(b)-n]
}

// stat is the size of the change for a result: "+3 -1 lines".
func (d *Diff) stat() string {
	added, removed := d.Lines()
	return fmt.Sprintf("+%d -%d lines", added, removed)
}

// LoggedDiff is what a call of write or edit changed that succeeded, as far as
// its arguments and its result tell it, which is what a session keeps. Of a file
// that the call made it is all, with Created set; of an edit it is the text that
// was replaced. It is nil for other calls and for a file that was written over:
// nobody knows any more what was in it. It has no path.
func LoggedDiff(name, arguments, result string) *Diff {
	object, err := llm.RepairArguments(arguments)
	if err != nil {
		return nil
	}
	d := &Diff{Created: strings.HasPrefix(result, createdWord)}
	switch name {
	case "write":
		a := parseArguments(object, "path", "content")
		if d.New = a.text("content"); a.err() != nil || !d.Created {
			return nil
		}
	case "edit":
		a := parseArguments(object, "path", "old", "new", "all")
		if d.Old, d.New = a.text("old"), a.text("new"); a.err() != nil || d.Created && d.Old != "" {
			return nil
		}
	default:
		return nil
	}
	return d
}

// createdWord begins the result of a call that made a file.
const createdWord = "Created "

// createdText is that result.
func createdText(name, content string) string {
	return createdWord + name + ", " + plural(countLines(content), "line") + "."
}

// crlf is the line end of Windows. Models see and write "\n" alone.
const crlf = "\r\n"

// allCRLF reports whether every line of a text ends with CR LF.
func allCRLF(text string) bool {
	n := strings.Count(text, crlf)
	return n > 0 && n == strings.Count(text, "\n")
}

func toLF(text string) string { return strings.ReplaceAll(text, crlf, "\n") }

func toCRLF(text string) string { return strings.ReplaceAll(toLF(text), "\n", crlf) }
