package tui

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// completion is a list of words that could stand at the cursor.
type completion struct {
	from    int // where the word begins that they replace
	word    string
	choices []choice
	at      int // the one that is marked
}

type choice struct {
	text, meaning string
}

// maxChoices is how many lines a list takes.
const maxChoices = 8

// complete finds what could stand at the cursor: commands at the beginning, and
// files behind an @. files are those of the folder, nil while they are not known.
func (c *composer) complete(files []string) (found completion, wantsFiles bool) {
	head := c.text[:c.cursor]
	if strings.HasPrefix(c.text, "/") && !strings.ContainsAny(head, " \n") {
		found = completion{word: head}
		for _, k := range commands {
			if strings.HasPrefix("/"+k.name, head) {
				found.choices = append(found.choices, choice{"/" + k.name, k.meaning})
			}
		}
		return found, false
	}
	from := strings.LastIndexAny(head, " \n\t") + 1
	word := head[from:]
	if !strings.HasPrefix(word, "@") {
		return completion{}, false
	}
	found = completion{from: from, word: word}
	for _, f := range matchFiles(files, word[1:]) {
		found.choices = append(found.choices, choice{text: f})
	}
	return found, true
}

// maxMatches bounds what a list of files holds.
const maxMatches = 50

// matchFiles finds the paths that hold the letters of a word in their order. The
// best are those whose name begins with it, then those that hold it as it is.
func matchFiles(files []string, word string) []string {
	word = strings.ToLower(word)
	type ranked struct {
		path string
		rank int
	}
	var found []ranked
	for _, f := range files {
		lower := strings.ToLower(f)
		name := lower[strings.LastIndexByte(lower, '/')+1:]
		switch {
		case word == "", strings.HasPrefix(lower, word):
			found = append(found, ranked{f, 0})
		case strings.HasPrefix(name, word):
			found = append(found, ranked{f, 1})
		case strings.Contains(lower, word):
			found = append(found, ranked{f, 2})
		case subsequence(lower, word):
			found = append(found, ranked{f, 3})
		}
	}
	slices.SortStableFunc(found, func(a, b ranked) int {
		if a.rank != b.rank {
			return a.rank - b.rank
		}
		return len(a.path) - len(b.path)
	})
	var list []string
	for _, r := range found[:min(len(found), maxMatches)] {
		list = append(list, r.path)
	}
	return list
}

// subsequence reports whether s holds the letters of word in their order.
func subsequence(s, word string) bool {
	for _, r := range word {
		i := strings.IndexRune(s, r)
		if i < 0 {
			return false
		}
		s = s[i+len(string(r)):]
	}
	return true
}

// view shows the list in at most height lines.
func (c *completion) view(width, height int) []string {
	var lines []string
	first := min(max(0, c.at-height/2), max(0, len(c.choices)-height))
	for i := first; i < min(len(c.choices), first+height); i++ {
		ch := c.choices[i]
		s := style(0)
		mark := "  "
		if i == c.at {
			s, mark = bold|cyan, "▸ "
		}
		runs := []run{{mark, s}, {ch.text, s}}
		if ch.meaning != "" {
			pad := max(2, 12-len(ch.text))
			runs = append(runs, run{spaces[:pad] + ch.meaning, faint})
		}
		lines = append(lines, oneLine(width, runs...))
	}
	return lines
}

// imageFile gives the path of an image that a pasted or dropped text names: one
// path alone, as terminals write them.
func imageFile(pasted, dir string) (path string, ok bool) {
	text := strings.TrimSpace(pasted)
	if text == "" || strings.Contains(text, "\n") || len(text) > maxPath {
		return "", false
	}
	quoted := text[0] == '\'' || text[0] == '"'
	if quoted {
		if text, ok = unquoted(text); !ok {
			return "", false
		}
	}
	if rest, isURL := strings.CutPrefix(text, "file://"); isURL {
		rest, err := url.PathUnescape(strings.TrimPrefix(rest, "localhost"))
		if err != nil {
			return "", false
		}
		text = rest
	} else if !quoted && filepath.Separator == '/' {
		text = unescaped(text)
	}
	if !isImageName(text) {
		return "", false
	}
	if !filepath.IsAbs(text) {
		text = filepath.Join(dir, text)
	}
	return text, true
}

// unquoted is one word that a terminal has quoted for a shell: 'it'\”s.png' is
// it's.png. ok is false for several words and for what is not closed.
func unquoted(word string) (text string, ok bool) {
	if filepath.Separator != '/' { // where a backslash is none
		end := len(word) - 1
		return strings.Trim(word, word[:1]), end > 0 && word[end] == word[0]
	}
	var b strings.Builder
	quote := byte(0)
	for i := 0; i < len(word); i++ {
		switch c := word[i]; {
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote:
			quote = 0
		case quote == 0 && c == ' ':
			return "", false
		case c == '\\' && i+1 < len(word) && (quote == 0 || quote == '"' && strings.IndexByte(`"\$`+"`", word[i+1]) >= 0):
			i++
			b.WriteByte(word[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), quote == 0
}

// unescaped is a word of the shell without its backslashes.
func unescaped(word string) string {
	var b strings.Builder
	for i := 0; i < len(word); i++ {
		if word[i] == '\\' && i+1 < len(word) {
			i++
		}
		b.WriteByte(word[i])
	}
	return b.String()
}

// maxPath bounds what is taken for a path, in bytes.
const maxPath = 4 << 10

func isImageName(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp":
		return true
	}
	return false
}
