package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"regexp/syntax"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// maxSearchers is how many files are searched at the same time.
const maxSearchers = 4

// expr is a compiled expression for lines.
type expr struct {
	line *regexp.Regexp // for one line
	// text finds, in a text of many lines, a place at or before the next line
	// that matches. It is nil when the expression has no such form.
	text *regexp.Regexp
	// atEnd says that text does not see the end of a line before "\r\n".
	atEnd bool
	// literals are strings of which every matching line holds at least one, nil
	// when there is no such set. With fold their case does not matter.
	literals []string
	fold     bool
	// chunk is how many bytes are searched before the search may be stopped.
	chunk int
}

const (
	// maxPatternBytes bounds an expression or glob: compiling cannot be stopped.
	maxPatternBytes = 8 << 10
	// maxSteps bounds the work between two looks at whether a search is to stop, in
	// bytes times instructions of the expression: some 30 ms in the worst case.
	maxSteps = 2 << 20
	// minChunk and maxChunk bound what comes of that, in bytes.
	minChunk = 64
	maxChunk = 256 << 10
)

func compileExpr(pattern string, fold bool) (*expr, error) {
	switch {
	case pattern == "":
		return nil, errors.New("pattern must not be empty")
	case len(pattern) > maxPatternBytes:
		return nil, fmt.Errorf("pattern has %d bytes, more than %d", len(pattern), maxPatternBytes)
	}
	flags := ""
	if fold {
		flags = "(?i)"
	}
	line, err := regexp.Compile(flags + pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern is no RE2 expression: %v", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	e := &expr{line: line, chunk: minChunk}
	tree, err := syntax.Parse("(?m)"+flags+pattern, syntax.Perl)
	if err != nil {
		return e, nil
	}
	if !hasOp(tree, syntax.OpBeginText) && !hasOp(tree, syntax.OpEndText) {
		e.text, _ = regexp.Compile("(?m)" + flags + pattern) // nil is fine
		e.atEnd = hasOp(tree, syntax.OpEndLine)
	}
	tree = tree.Simplify()
	e.literals, e.fold = required(tree)
	if prog, err := syntax.Compile(tree); err == nil {
		e.chunk = min(maxChunk, max(minChunk, maxSteps/max(1, len(prog.Inst))))
	}
	return e, nil
}

func hasOp(re *syntax.Regexp, op syntax.Op) bool {
	return re.Op == op || slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return hasOp(sub, op) })
}

// maxLiterals bounds the alternatives of [required].
const maxLiterals = 16

// required finds strings of which every match holds at least one.
func required(re *syntax.Regexp) (literals []string, fold bool) {
	switch re.Op {
	case syntax.OpLiteral:
		text := string(re.Rune)
		if strings.ContainsAny(text, "\r\n\uFFFD") {
			return nil, false // what a line cannot hold, or what stands for other bytes
		}
		return []string{text}, re.Flags&syntax.FoldCase != 0
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			// The longest is the rarest.
			if l, f := required(sub); shortest(l) > shortest(literals) {
				literals, fold = l, f
			}
		}
		return literals, fold
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			l, f := required(sub)
			if l == nil || len(literals)+len(l) > maxLiterals {
				return nil, false
			}
			literals, fold = append(literals, l...), fold || f
		}
		return literals, fold
	}
	return nil, false
}

func shortest(literals []string) int {
	if len(literals) == 0 {
		return 0
	}
	return len(slices.MinFunc(literals, func(a, b string) int { return len(a) - len(b) }))
}

// fileMatches are the matching lines of one file.
type fileMatches struct {
	rel     string // from the folder that is searched, empty for a single file
	count   int
	matches []lineMatch // the first of them
	binary  bool        // it was not searched
}

type lineMatch struct {
	line int
	text string
}

// searchFiles searches the files and gives the results in their order. What
// cannot be read is left out.
func searchFiles(ctx context.Context, files []walked, e *expr) []fileMatches {
	results := make([]fileMatches, len(files))
	var next atomic.Int64
	var wg sync.WaitGroup
	var panicked atomic.Value
	for range min(maxSearchers, runtime.GOMAXPROCS(0), len(files)) {
		wg.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					panicked.Store(panicText(v))
				}
			}()
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(files) {
					return
				}
				results[i] = searchPath(ctx, files[i], e)
			}
		})
	}
	wg.Wait()
	if v := panicked.Load(); v != nil {
		panic(v) // where Run expects it
	}
	return results
}

func searchPath(ctx context.Context, file walked, e *expr) fileMatches {
	f, err := openResolved(file.path)
	if err != nil {
		return fileMatches{}
	}
	defer f.Close()
	found, err := searchFile(ctx, f, e)
	if err != nil {
		return fileMatches{}
	}
	found.rel = file.rel
	return found
}

func searchFile(ctx context.Context, f *os.File, e *expr) (fileMatches, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return fileMatches{}, err
	case !info.Mode().IsRegular():
		return fileMatches{}, fmt.Errorf("no regular file")
	case info.Size() > maxGrepFile:
		return fileMatches{}, fmt.Errorf("%s is more than the %s that are searched: use the shell",
			byteSize(info.Size()), byteSize(maxGrepFile))
	}
	data := make([]byte, 0, info.Size()+bytes.MinRead)
	buf := bytes.NewBuffer(data)
	// Most binary files show it at their start and need not be read whole.
	if _, err := io.CopyN(buf, f, sniffBytes); err != nil && err != io.EOF {
		return fileMatches{}, err
	}
	if isBinary(buf.Bytes()) {
		return fileMatches{binary: true}, nil
	}
	if _, err := buf.ReadFrom(&stoppableReader{ctx, io.LimitReader(f, maxGrepFile)}); err != nil {
		return fileMatches{}, err
	}
	found := e.search(ctx, bytes.TrimPrefix(buf.Bytes(), []byte(bom)))
	return found, ctx.Err()
}

// stoppableReader ends with the error of a context.
type stoppableReader struct {
	ctx context.Context
	r   io.Reader
}

// maxReadAtOnce is how much a stoppableReader reads before it looks again, in bytes.
const maxReadAtOnce = 1 << 20

// Read implements [io.Reader].
func (s *stoppableReader) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p[:min(len(p), maxReadAtOnce)])
}

// search finds the matching lines of a text. What it has found when ctx ends is
// not all.
func (e *expr) search(ctx context.Context, data []byte) fileMatches {
	var found fileMatches
	if !e.mayMatch(ctx, data) {
		return found
	}
	jump := e.text
	if e.atEnd && bytes.IndexByte(data, '\r') >= 0 {
		jump = nil
	}
	line := 1
	for len(data) > 0 && ctx.Err() == nil {
		part := wholeLines(data, e.chunk)
		data = data[len(part):]
		if len(part) > e.chunk {
			e.searchLong(ctx, part, line, &found)
		} else {
			e.searchLines(part, jump, line, &found)
		}
		line += bytes.Count(part, []byte("\n"))
	}
	return found
}

// wholeLines gives the first lines of a text that have at most limit bytes
// together, or a first line that is longer.
func wholeLines(data []byte, limit int) []byte {
	if len(data) <= limit {
		return data
	}
	if i := bytes.LastIndexByte(data[:limit], '\n'); i >= 0 {
		return data[:i+1]
	}
	if i := bytes.IndexByte(data[limit:], '\n'); i >= 0 {
		return data[:limit+i+1]
	}
	return data
}

// searchLines searches lines of which the first has the number line.
func (e *expr) searchLines(data []byte, jump *regexp.Regexp, line int, found *fileMatches) {
	counted := 0 // line is the number of the line at this offset
	for at := 0; at < len(data); {
		if jump != nil {
			loc := jump.FindIndex(data[at:])
			if loc == nil {
				break
			}
			at += loc[0]
			if at == len(data) && data[at-1] == '\n' {
				break // an empty match behind the last line
			}
		}
		start := bytes.LastIndexByte(data[:at], '\n') + 1
		end := len(data)
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			end = at + i
		}
		text := bytes.TrimSuffix(data[start:end], []byte("\r"))
		// The match in the text may have gone over the end of the line.
		if loc := e.line.FindIndex(text); loc != nil {
			line += bytes.Count(data[counted:start], []byte("\n"))
			counted = start
			found.add(line, text, loc[0])
		}
		at = end + 1
	}
}

// searchLong searches one long line, and can be stopped within it.
func (e *expr) searchLong(ctx context.Context, data []byte, line int, found *fileMatches) {
	text := bytes.TrimSuffix(bytes.TrimSuffix(data, []byte("\n")), []byte("\r"))
	loc := e.line.FindReaderIndex(&stoppableRunes{ctx: ctx, text: text, every: e.chunk})
	if loc != nil && ctx.Err() == nil {
		found.add(line, text, loc[0])
	}
}

// stoppableRunes reads a text by characters and ends early when ctx does.
type stoppableRunes struct {
	ctx   context.Context
	text  []byte
	every int // bytes between two looks at ctx
	left  int // bytes until the next one
}

// ReadRune implements [io.RuneReader].
func (r *stoppableRunes) ReadRune() (rune, int, error) {
	if r.left <= 0 {
		if r.ctx.Err() != nil {
			return 0, 0, io.EOF
		}
		r.left = r.every
	}
	if len(r.text) == 0 {
		return 0, 0, io.EOF
	}
	c, n := utf8.DecodeRune(r.text)
	r.text = r.text[n:]
	r.left -= n
	return c, n, nil
}

func (f *fileMatches) add(line int, text []byte, match int) {
	f.count++
	if len(f.matches) < maxMatches {
		f.matches = append(f.matches, lineMatch{line: line, text: shownMatch(string(text), match)})
	}
}

// mayMatch rules out most files by looking for the literals.
func (e *expr) mayMatch(ctx context.Context, data []byte) bool {
	return len(e.literals) == 0 || e.fold ||
		slices.ContainsFunc(e.literals, func(l string) bool { return ctx.Err() == nil && bytes.Contains(data, []byte(l)) })
}

// shownMatch is a line as it is shown: of a long one the part around the match.
func shownMatch(line string, match int) string {
	if len(line) > maxMatchBytes {
		start := runeStart(line, max(0, min(match-maxMatchBytes/3, len(line)-maxMatchBytes)))
		end := runeStart(line, min(len(line), start+maxMatchBytes))
		cut := line[start:end]
		if start > 0 {
			cut = "..." + cut
		}
		if end < len(line) {
			cut += "..."
		}
		line = cut
	}
	return strings.ToValidUTF8(line, "\uFFFD")
}
