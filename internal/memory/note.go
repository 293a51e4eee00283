// Package memory keeps notes from one session to the next: Markdown files with a
// title and a summary in front, some for a project and some for all of them.
//
// A [Store] reads and writes two folders, each through an [os.Root], so that no
// link leads out of them. Every size and count is bounded; a file that is no
// note is named as a [Problem] and hides no other. [Store.Tools] lets a model
// write and remove notes, which a person is asked about, and [Digest] is what of
// the notes goes into a system turn.
package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drover-dev/drover/internal/llm"
)

// Bounds of a note.
const (
	MaxTitle   = 100      // characters
	MaxSummary = 300      // characters
	MaxText    = 16 << 10 // bytes
	maxFile    = 32 << 10 // bytes: front matter of other programs besides
)

// Scope says which sessions see a note.
type Scope string

// The scopes, in the order of the digest.
const (
	Project Scope = "project" // those in the work tree that holds it
	Global  Scope = "global"  // all of this user
)

// Note is one note.
type Note struct {
	Title   string // one line, never empty
	Summary string // one line, may be empty
	Text    string // Markdown, without white space around it
	Scope   Scope
	// File is the name of the file in its folder and Path that file, absolute.
	// Both are set by the store.
	File, Path string
}

// clean brings a note into the form in which it is kept, or says what is wrong.
func (n *Note) clean() error {
	var err error
	if n.Title, err = cleanLine("title", n.Title, MaxTitle); err != nil {
		return err
	}
	if n.Title == "" {
		return errors.New("title must not be empty")
	}
	if n.Summary, err = cleanLine("summary", n.Summary, MaxSummary); err != nil {
		return err
	}
	n.Text = strings.TrimSpace(strings.ReplaceAll(n.Text, "\r\n", "\n"))
	switch {
	case len(n.Text) > MaxText:
		return fmt.Errorf("text has %d bytes, more than %d", len(n.Text), MaxText)
	case !utf8.ValidString(n.Text):
		return errors.New("text is no UTF-8")
	case strings.ContainsFunc(n.Text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		return errors.New("text holds control characters")
	}
	return nil
}

func cleanLine(name, s string, limit int) (string, error) {
	s = strings.Join(strings.Fields(s), " ")
	switch {
	case utf8.RuneCountInString(s) > limit:
		return "", fmt.Errorf("%s has %d characters, more than %d", name, utf8.RuneCountInString(s), limit)
	case !utf8.ValidString(s):
		return "", fmt.Errorf("%s is no UTF-8", name)
	case strings.ContainsFunc(s, invisible):
		return "", fmt.Errorf("%s holds characters that cannot be seen", name)
	}
	return s, nil
}

// invisible reports whether a character does something other than being seen:
// what would turn the direction of a list around or hide what it says. The two
// joiners belong to scripts and emoji.
func invisible(r rune) bool {
	return r != '\u200c' && r != '\u200d' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

const fence = "---"

// format is the content of the note's file.
func (n *Note) format() string {
	var b bytes.Buffer
	b.WriteString(fence + "\ntitle: ")
	writeValue(&b, n.Title)
	if n.Summary != "" {
		b.WriteString("\nsummary: ")
		writeValue(&b, n.Summary)
	}
	b.WriteString("\n" + fence + "\n")
	if n.Text != "" {
		b.WriteString("\n" + n.Text + "\n")
	}
	return b.String()
}

// writeValue writes a value of the front matter such that YAML reads it alike.
func writeValue(b *bytes.Buffer, s string) {
	first, _ := utf8.DecodeRuneInString(s)
	plain := unicode.IsLetter(first) && !strings.ContainsAny(s, `:#"'\`)
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
		plain = false
	}
	if plain {
		b.WriteString(s)
		return
	}
	llm.AppendJSONString(b, s)
}

// parse reads the content of a file. Of the front matter it takes title and
// summary and passes over what other programs have put there.
func parse(content string) (Note, error) {
	var n Note
	content = strings.ReplaceAll(strings.TrimPrefix(content, "\ufeff"), "\r\n", "\n")
	head, rest, _ := strings.Cut(content, "\n")
	if strings.TrimRight(head, " \t") != fence {
		return n, errors.New(`it does not begin with front matter, a line "---"`)
	}
	seen := make(map[string]bool)
	for {
		line, more, found := strings.Cut(rest, "\n")
		if strings.TrimRight(line, " \t") == fence {
			n.Text = more
			return n, n.clean()
		}
		if !found {
			return n, errors.New(`its front matter has no end, a second line "---"`)
		}
		rest = more
		key, value, ok := strings.Cut(line, ":")
		if !ok || key != "title" && key != "summary" {
			continue
		}
		if seen[key] {
			return n, fmt.Errorf("%s is given twice", key)
		}
		seen[key] = true
		text, err := readValue(strings.TrimSpace(value))
		if err != nil {
			return n, fmt.Errorf("%s: %w", key, err)
		}
		if key == "title" {
			n.Title = text
		} else {
			n.Summary = text
		}
	}
}

func readValue(s string) (string, error) {
	switch {
	case strings.HasPrefix(s, `"`):
		var text string
		if json.Unmarshal([]byte(s), &text) != nil {
			return "", errors.New("it is no complete quoted text")
		}
		return text, nil
	case strings.HasPrefix(s, "'"):
		inner := strings.TrimSuffix(s[1:], "'")
		if len(inner) != len(s)-2 {
			return "", errors.New("it is no complete quoted text")
		}
		return strings.ReplaceAll(inner, "''", "'"), nil
	case s == "|", s == ">", s == "|-", s == ">-":
		return "", errors.New("it must stand in one line")
	}
	return s, nil
}

const extension = ".md"

// maxSlug bounds the part of a file name that comes from the title, in bytes.
const maxSlug = 60

// slug makes a file name, without extension, out of a title: lower-case ASCII
// letters, digits and hyphens. What a title loses by that is told apart by a
// checksum.
func slug(title string) string {
	var b strings.Builder
	lost, gap := false, false
	for _, r := range strings.ToLower(title) {
		switch {
		case b.Len() >= maxSlug:
			lost = true
		case r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			if gap && b.Len() > 0 {
				b.WriteByte('-')
			}
			b.WriteRune(r)
			gap = false
		default:
			gap = true
			lost = lost || r >= utf8.RuneSelf
		}
	}
	name := b.String()
	if name == "" || lost || reserved(name) {
		h := fnv.New32a()
		_, _ = h.Write([]byte(title)) // never fails
		name = strings.TrimPrefix(fmt.Sprintf("%s-%08x", name, h.Sum32()), "-")
	}
	return name
}

// reserved reports whether Windows takes a name for a device.
func reserved(name string) bool {
	switch name {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(name) == 4 && (strings.HasPrefix(name, "com") || strings.HasPrefix(name, "lpt"))
}
