package tool

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// secretNames are what in a variable's name says that its value is a secret. A
// command does not see such a variable: its output goes to a model.
var secretNames = []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"}

// plainOutput asks programs for output that suits a model: no colours, no pager
// that waits for a key, no question at a terminal.
var plainOutput = []string{"TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0"}

// safeEnviron is the environment without secrets.
func safeEnviron(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		name = strings.ToUpper(name)
		return slices.ContainsFunc(secretNames, func(s string) bool { return strings.Contains(name, s) })
	})
}

// commandEnviron is the environment of a command in dir.
func commandEnviron(environ []string, dir string) []string {
	set := append(slices.Clone(plainOutput), "PWD="+dir)
	kept := slices.DeleteFunc(safeEnviron(environ), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.ContainsFunc(set, func(s string) bool {
			other, _, _ := strings.Cut(s, "=")
			return envNameEqual(name, other)
		})
	})
	return append(kept, set...)
}

// lookPath finds a program in the PATH of an environment, "" if it is not there.
// Relative entries of PATH do not count, nor does what lies, links resolved, in one
// of the folders without: they would mean a program of the work tree.
func lookPath(environ []string, program string, without ...string) string {
	for _, dir := range filepath.SplitList(variable(environ, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		for _, suffix := range programSuffixes {
			full := filepath.Join(dir, program+suffix)
			if info, err := os.Stat(full); err != nil || !isProgram(info) {
				continue
			}
			real, err := resolve(full)
			if err == nil && !slices.ContainsFunc(without, func(dir string) bool { _, in := below(dir, real); return in }) {
				return full
			}
		}
	}
	return ""
}
