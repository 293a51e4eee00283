package tool

import (
	"bytes"
	"context"
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
}

func compileExpr(pattern string, fold bool) (*expr, error) {
	if pattern == "" {
		return nil, fmt.Errorf("pattern must not be empty")
	}
	flags := ""
	if fold {
		flags = "(?i)"
	}
	line, err := regexp.Compile(flags + pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern is no RE2 expression: %v", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	e := &expr{line: line}
	tree, err := syntax.Parse("(?m)"+flags+pattern, syntax.Perl)
	if err != nil {
		return e, nil
	}
	if !hasOp(tree, syntax.OpBeginText) && !hasOp(tree, syntax.OpEndText) {
		e.text, _ = regexp.Compile("(?m)" + flags + pattern) // nil is fine
		e.atEnd = hasOp(tree, syntax.OpEndLine)
	}
	e.literals, e.fold = required(tree.Simplify())
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
				results[i] = searchPath(files[i], e)
			}
		})
	}
	wg.Wait()
	if v := panicked.Load(); v != nil {
		panic(v) // where Run expects it
	}
	return results
}

func searchPath(file walked, e *expr) fileMatches {
	f, err := openResolved(file.path)
	if err != nil {
		return fileMatches{}
	}
	defer f.Close()
	found, err := searchFile(f, e)
	if err != nil {
		return fileMatches{}
	}
	found.rel = file.rel
	return found
}

func searchFile(f *os.File, e *expr) (fileMatches, error) {
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
	if _, err := buf.ReadFrom(io.LimitReader(f, maxGrepFile)); err != nil {
		return fileMatches{}, err
	}
	return e.search(bytes.TrimPrefix(buf.Bytes(), []byte(bom))), nil
}

// search finds the matching lines of a text.
func (e *expr) search(data []byte) fileMatches {
	var found fileMatches
	if !e.mayMatch(data) {
		return found
	}
	jump := e.text
	if e.atEnd && bytes.IndexByte(data, '\r') >= 0 {
		jump = nil
	}
	line, counted := 1, 0 // the number of the line at offset counted
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
			found.count++
			if len(found.matches) < maxMatches {
				line += bytes.Count(data[counted:start], []byte("\n"))
				counted = start
				found.matches = append(found.matches, lineMatch{line: line, text: shownMatch(string(text), loc[0])})
			}
		}
		at = end + 1
	}
	return found
}

// mayMatch rules out most files by looking for the literals.
func (e *expr) mayMatch(data []byte) bool {
	return len(e.literals) == 0 || e.fold ||
		slices.ContainsFunc(e.literals, func(l string) bool { return bytes.Contains(data, []byte(l)) })
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
