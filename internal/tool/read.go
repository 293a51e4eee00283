package tool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/drover-dev/drover/internal/llm"
)

const (
	// maxReadLines and maxReadBytes bound the text of one read.
	maxReadLines = 2000
	maxReadBytes = 50 << 10
	// maxLineBytes bounds one line of it; the rest of the line is only counted.
	maxLineBytes = 2000
	// maxScanBytes is how far a file is read to count its lines: 256 MiB.
	maxScanBytes = 256 << 20
	// maxUTF16Bytes bounds a UTF-16 file, which is converted as a whole.
	maxUTF16Bytes = maxEditBytes
	// noteBytes is room for the note that ends a partial read.
	noteBytes = 200
)

type readTool struct {
	w   *Workspace
	def llm.ToolDef
}

// Read makes the tool that reads a text file by lines, shows an image or lists
// a directory.
func Read(w *Workspace) Tool {
	return &readTool{w: w, def: llm.NewToolDef("read",
		"Read a file, image or directory: at most limit (2000) lines from line offset (1).",
		[]byte(`{"type":"object","properties":{"path":{"type":"string"},
			"offset":{"type":"integer"},"limit":{"type":"integer"}},"required":["path"]}`))}
}

func (t *readTool) Def() llm.ToolDef { return t.def }

func (t *readTool) Prepare(ctx context.Context, text string) (*Action, error) {
	a := parseArguments(text, "path", "offset", "limit")
	path := a.text("path")
	offset := max(1, a.number("offset", 1, 0))
	limit := min(maxReadLines, a.number("limit", maxReadLines, 1))
	if err := a.err(); err != nil {
		return nil, err
	}
	p, err := t.w.locate(path)
	if err != nil {
		return nil, err
	}
	action := &Action{
		Title: t.w.display(p.abs), Kind: KindRead, Access: p.readAccess(), ReadOnly: true,
		Locations: []Location{{Path: p.abs}}, Scopes: p.readScopes(false),
		Run: runner(func(ctx context.Context) (Result, error) { return t.read(ctx, p, offset, limit) }),
	}
	if offset > 1 {
		action.Locations[0].Line = offset
		action.Title = fmt.Sprintf("%s from line %d", action.Title, offset)
	}
	return action, nil
}

func (t *readTool) read(ctx context.Context, p place, offset, limit int) (Result, error) {
	name := t.w.display(p.abs)
	f, err := p.open()
	if errors.Is(err, fs.ErrNotExist) || isNotDir(err) {
		if unsaved, err := t.w.loadUnsaved(ctx, p); err == nil && unsaved.exists {
			return readLines(ctx, name, strings.NewReader(unsaved.text), offset, limit)
		}
		return Result{}, t.w.missing(ctx, p)
	}
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", name, plainError(err))
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return Result{}, fmt.Errorf("%s: %w", name, plainError(err))
	case info.IsDir():
		return readDir(ctx, name, f, offset, limit)
	case !info.Mode().IsRegular():
		return Result{}, fmt.Errorf("%s is no regular file", name)
	}
	return t.readFile(ctx, name, p, f, info.Size(), offset, limit)
}

func (t *readTool) readFile(ctx context.Context, name string, p place, f *os.File, size int64, offset, limit int) (Result, error) {
	in := bufio.NewReaderSize(f, sniffBytes)
	head, err := in.Peek(sniffBytes)
	if err != nil && err != io.EOF {
		return Result{}, fmt.Errorf("%s: %w", name, plainError(err))
	}
	if _, err := llm.NewImage("", head); err == nil {
		return readImage(name, in, size)
	}
	if decode := utf16Decoder(head); decode != nil {
		data, err := io.ReadAll(io.LimitReader(in, maxUTF16Bytes))
		if err != nil {
			return Result{}, fmt.Errorf("%s: %w", name, plainError(err))
		}
		r, err := readLines(ctx, name, strings.NewReader(decode(data)), offset, limit)
		if r.Text != "" && !strings.HasSuffix(r.Text, "\n") {
			r.Text += "\n"
		}
		r.Text += "[the file is UTF-16]"
		return r, err
	}
	if isBinary(head) {
		return Result{}, fmt.Errorf("%s is a binary file (%s)", name, byteSize(size))
	}
	if text, ok, err := t.w.held(ctx, p); ok {
		if err != nil {
			return Result{}, fmt.Errorf("%s: %w", name, err)
		}
		return readLines(ctx, name, strings.NewReader(text), offset, limit)
	}
	return readLines(ctx, name, in, offset, limit)
}

func readImage(name string, in io.Reader, size int64) (Result, error) {
	if size > llm.MaxImageBytes {
		return Result{}, fmt.Errorf("%s is an image of %s, more than %s", name, byteSize(size), byteSize(llm.MaxImageBytes))
	}
	data, err := io.ReadAll(io.LimitReader(in, llm.MaxImageBytes+1))
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", name, plainError(err))
	}
	img, err := llm.NewImage(filepath.Base(name), data)
	if err != nil {
		return Result{}, err
	}
	text := "[image 1: " + img.Name + "]"
	if img.Width > 0 {
		text = fmt.Sprintf("[image 1: %s, %dx%d]", img.Name, img.Width, img.Height)
	}
	return Result{Status: StatusOK, Text: text, Images: []*llm.Image{img}}, nil
}

// readDir lists a directory: folders end with a slash, links show their target.
func readDir(ctx context.Context, name string, f *os.File, offset, limit int) (Result, error) {
	entries, err := readEntries(ctx, f, maxWalk)
	if ctx.Err() != nil {
		return Result{}, fmt.Errorf("%s: reading was stopped", name)
	}
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", name, plainError(err))
	}
	if len(entries) == 0 {
		return Result{Status: StatusOK, Text: "[" + name + " is an empty directory]"}, nil
	}
	lines := make([]string, 0, len(entries))
	for _, e := range entries {
		line := shownPath(e.Name())
		switch {
		case e.IsDir():
			line += "/"
		case e.Type()&fs.ModeSymlink != 0:
			if target, err := os.Readlink(filepath.Join(f.Name(), e.Name())); err == nil {
				line += " -> " + shownPath(filepath.ToSlash(target))
			}
		}
		lines = append(lines, line)
	}
	return readLines(ctx, name, strings.NewReader(strings.Join(lines, "\n")+"\n"), offset, limit)
}

// readLines gives limit lines from line offset on, without a byte order mark.
// A text that ends before the file does says so at its end.
func readLines(ctx context.Context, name string, in io.Reader, offset, limit int) (Result, error) {
	window := lineWindow{offset: offset, limit: limit}
	in = io.LimitReader(in, maxScanBytes)
	buf := make([]byte, 64<<10)
	for first := true; ; {
		if err := ctx.Err(); err != nil {
			return Result{}, fmt.Errorf("%s: reading was stopped", name)
		}
		n, err := io.ReadFull(in, buf)
		chunk := buf[:n]
		if first {
			chunk = bytes.TrimPrefix(chunk, []byte("\ufeff"))
			first = false
		}
		window.add(chunk)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return Result{}, fmt.Errorf("%s: %w", name, plainError(err))
		}
	}
	return window.result(name)
}

// lineWindow collects some lines of a text that comes in pieces, and counts all.
type lineWindow struct {
	offset, limit int

	text   strings.Builder // the lines asked for, as far as they fit
	last   int             // the last line in text
	full   bool            // text takes no more
	broken bool            // text shows replacements of bytes that are no UTF-8

	lines   int    // lines that have ended
	current []byte // the start of the line that has not, if it is asked for
	length  int    // its bytes so far
	bytes   int64  // all bytes
}

func (w *lineWindow) add(chunk []byte) {
	w.bytes += int64(len(chunk))
	for len(chunk) > 0 {
		if w.full { // count the rest fast
			n := bytes.Count(chunk, []byte("\n"))
			if n > 0 {
				w.lines += n
				w.length = 0
				chunk = chunk[bytes.LastIndexByte(chunk, '\n')+1:]
			}
			w.length += len(chunk)
			return
		}
		piece, rest, ended := bytes.Cut(chunk, []byte("\n"))
		chunk = rest
		w.length += len(piece)
		if w.lines+1 >= w.offset {
			// A little more than is shown, so that a cut sees whole characters.
			room := max(0, maxLineBytes+utf8.UTFMax-len(w.current))
			w.current = append(w.current, piece[:min(room, len(piece))]...)
		}
		if ended {
			w.endLine("\n")
		}
	}
}

// endLine moves the current line to the text.
func (w *lineWindow) endLine(end string) {
	w.lines++
	if w.lines >= w.offset && !w.full {
		w.text.WriteString(w.shown())
		w.text.WriteString(end)
		w.last = w.lines
		w.full = w.lines-w.offset+1 >= w.limit || w.text.Len() > maxReadBytes-maxLineBytes-2*noteBytes
	}
	w.current, w.length = w.current[:0], 0
}

// shown is the current line as the model sees it: without a carriage return,
// since edit does not ask for it either, and cut where it is too long.
func (w *lineWindow) shown() string {
	line, length := strings.TrimSuffix(string(w.current), "\r"), w.length
	if length > maxLineBytes+1 {
		line = line[:runeStart(line, maxLineBytes)]
	}
	kept := len(line)
	if !utf8.ValidString(line) {
		w.broken = true
		line = strings.ToValidUTF8(line, "\uFFFD")
		if len(line) > maxLineBytes {
			line = line[:runeStart(line, maxLineBytes)]
		}
	}
	if length > maxLineBytes+1 {
		line = fmt.Sprintf("%s...[+%d bytes]", line, length-kept)
	}
	return line
}

func (w *lineWindow) result(name string) (Result, error) {
	if w.length > 0 {
		w.endLine("") // the last line has no newline
	}
	switch {
	case w.bytes == 0:
		return Result{Status: StatusOK, Text: "[" + name + " is empty]"}, nil
	case w.last == 0:
		return Result{}, fmt.Errorf("%s has only %s", name, plural(w.lines, "line"))
	}
	note := ""
	if w.broken {
		note = "[the file is not UTF-8: other bytes are shown as \uFFFD]\n"
	}
	total := fmt.Sprint(w.lines)
	if w.bytes >= maxScanBytes {
		total = "more than " + total
	}
	switch {
	case w.last < w.lines:
		note += fmt.Sprintf("[lines %d-%d of %s; continue with offset=%d]", w.offset, w.last, total, w.last+1)
	case w.offset > 1:
		note += fmt.Sprintf("[lines %d-%d of %s, the end]", w.offset, w.last, total)
	}
	text := w.text.String()
	if note != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return Result{Status: StatusOK, Text: text + note}, nil
}

// utf16Decoder tells UTF-16 by its byte order mark.
func utf16Decoder(head []byte) func([]byte) string {
	var at func(b []byte) uint16
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		at = func(b []byte) uint16 { return uint16(b[0]) | uint16(b[1])<<8 }
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		at = func(b []byte) uint16 { return uint16(b[1]) | uint16(b[0])<<8 }
	default:
		return nil
	}
	return func(data []byte) string {
		units := make([]uint16, 0, len(data)/2)
		for i := 2; i+1 < len(data); i += 2 {
			units = append(units, at(data[i:]))
		}
		return string(utf16.Decode(units))
	}
}
