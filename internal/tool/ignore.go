package tool

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// maxIgnoreBytes bounds one .gitignore file: 1 MiB.
const maxIgnoreBytes = 1 << 20

// ignoreRules are the patterns of one .gitignore file, on top of those of the
// folders above.
type ignoreRules struct {
	above *ignoreRules
	depth int // how many names lead from the walk's base to the folder of the file
	rules []ignoreRule
}

// ignoreRule is one pattern. The package gitignore lets a pattern match what
// lies below a match too, gives up at the first place that "**/" could stand
// for, and takes "dir/**" for the folder itself. The fields say how to ask it so
// that the answer is git's.
type ignoreRule struct {
	pattern  gitignore.Pattern
	path     bool // has a slash inside: it is matched against the path, not the name
	anywhere bool // starts with **/
	deep     bool // ends with /**: really matches everything below
}

func parseIgnoreRule(line string) (ignoreRule, bool) {
	line = strings.TrimSuffix(line, "\r")
	if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
		return ignoreRule{}, false
	}
	text, not := strings.CutPrefix(line, "!")
	text = strings.ReplaceAll(text, "[!", "[^")
	// An escaped first character, without the escape that Windows does not know.
	if rest, ok := strings.CutPrefix(text, `\!`); ok {
		text = "[!]" + rest
	} else if rest, ok := strings.CutPrefix(text, `\#`); ok {
		text = "#" + rest
	}
	if !strings.HasSuffix(text, `\ `) {
		text = strings.TrimRight(text, " ")
	}
	names := strings.Split(text, "/")
	for i, name := range names {
		if name != "**" && strings.Contains(name, "**") {
			names[i] = strings.ReplaceAll(strings.ReplaceAll(name, "***", "*"), "**", "*")
		}
	}
	r := ignoreRule{
		path:     strings.Contains(strings.TrimSuffix(text, "/"), "/"),
		anywhere: len(names) > 1 && names[0] == "**",
		deep:     len(names) > 1 && names[len(names)-1] == "**",
	}
	if r.deep {
		names = append(names, "*")
	}
	text = strings.Join(names, "/")
	if not {
		text = "!" + text
	}
	r.pattern = gitignore.ParsePattern(text, nil)
	return r, true
}

// match matches names, the path from the folder of the .gitignore file.
func (r *ignoreRule) match(names []string, isDir bool) gitignore.MatchResult {
	if !r.path {
		return r.pattern.Match(names[len(names)-1:], isDir)
	}
	for ; len(names) > 0; names = names[1:] {
		m := r.pattern.Match(names, isDir)
		parent := names[:len(names)-1]
		if m != gitignore.NoMatch && (r.deep || r.pattern.Match(parent, true) == gitignore.NoMatch) {
			return m
		}
		if !r.anywhere {
			break
		}
	}
	return gitignore.NoMatch
}

// ignored reports whether the path, as names from the walk's base, is ignored.
// The last rule of the nearest file wins.
func (r *ignoreRules) ignored(names []string, isDir bool) bool {
	for ; r != nil; r = r.above {
		for i := len(r.rules) - 1; i >= 0; i-- {
			if m := r.rules[i].match(names[r.depth:], isDir); m != gitignore.NoMatch {
				return m == gitignore.Exclude
			}
		}
	}
	return false
}

// enter adds the rules of a folder's own .gitignore file, if it has one.
func (r *ignoreRules) enter(dir string, depth int) *ignoreRules {
	f, err := openNoBlock(filepath.Join(dir, ".gitignore"))
	if err != nil {
		return r
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return r
	}
	data, err := io.ReadAll(io.LimitReader(f, maxIgnoreBytes))
	if err != nil {
		return r
	}
	inner := &ignoreRules{above: r, depth: depth}
	for line := range strings.Lines(strings.TrimPrefix(string(data), "\ufeff")) {
		if rule, ok := parseIgnoreRule(strings.TrimSuffix(line, "\n")); ok {
			inner.rules = append(inner.rules, rule)
		}
	}
	return inner
}
