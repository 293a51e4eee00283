package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A name on Unix is bytes. One that is no UTF-8, or holds control characters, cannot
// be written in JSON, or falls apart into lines. It is shown with such bytes as \xNN,
// and its backslashes as \x5c, and a path in that form is understood by all tools.

// shownPath gives a path with slashes, each name as a model is shown it.
func shownPath(path string) string {
	names := strings.Split(path, "/")
	for i, name := range names {
		names[i] = shownName(name)
	}
	return strings.Join(names, "/")
}

func shownName(name string) string {
	if utf8.ValidString(name) && !strings.ContainsFunc(name, isControl) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && n == 1 || isControl(r) || r == '\\' {
			for _, c := range []byte(name[i : i+n]) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		} else {
			b.WriteString(name[i : i+n])
		}
		i += n
	}
	return b.String()
}

func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }

// meantPath gives the path that a model means: of each name what it wrote, unless
// there is nothing so called and there is what it stands for as a shown name.
func (w *Workspace) meantPath(path string) string {
	if filepath.Separator != '/' || !strings.Contains(path, `\x`) {
		return path
	}
	at := w.Dir
	if filepath.IsAbs(path) {
		at = "/"
	}
	names := strings.Split(path, "/")
	for i, name := range names {
		plain := bytesOf(name)
		if plain != name && !strings.Contains(plain, "/") && !isThere(at+"/"+name) && isThere(at+"/"+plain) {
			names[i] = plain
		}
		at += "/" + names[i]
	}
	return strings.Join(names, "/")
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// bytesOf undoes shownName.
func bytesOf(path string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(path, `\x`)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		path = rest
		if n, err := strconv.ParseUint(rest[:min(2, len(rest))], 16, 8); err == nil && len(rest) >= 2 {
			b.WriteByte(byte(n))
			path = rest[2:]
		} else {
			b.WriteString(`\x`)
		}
	}
}
