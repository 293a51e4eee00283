package tool

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Surroundings are what a system turn says of the work tree.
type Surroundings struct {
	Dir    string // absolute, empty for none
	Date   string // of the local calendar, without a clock: it must not change within a turn
	Branch string // of git, empty if unknown
	// Instructions are the project's own, from the root of the work tree down,
	// then those of the configuration. They are never shortened.
	Instructions []Instruction
}

// Instruction is one instruction file.
type Instruction struct {
	Path string
	Text string
}

// instructionFile is what projects name their instructions for agents.
const instructionFile = "AGENTS.md"

// maxInstructions bounds one instruction file: 256 KiB, more than any window
// that could hold it would leave room for.
const maxInstructions = 256 << 10

// LookAround reads the surroundings of a working directory. Files that are not
// there or cannot be read are left out; more names further instruction files.
func LookAround(dir string, now time.Time, more []string) *Surroundings {
	s := &Surroundings{Dir: dir, Date: now.Format(time.DateOnly)}
	if dir == "" {
		return s
	}
	root := gitRoot(dir)
	if root != "" {
		s.Branch = gitBranch(root)
	}
	files := []string{filepath.Join(dir, instructionFile)}
	for d := dir; root != "" && d != root; {
		d = filepath.Dir(d)
		files = append(files, filepath.Join(d, instructionFile))
	}
	slices.Reverse(files)
	for _, file := range append(files, more...) {
		if text, ok := readSmall(file, maxInstructions); ok && strings.TrimSpace(text) != "" {
			s.Instructions = append(s.Instructions, Instruction{Path: file, Text: text})
		}
	}
	return s
}

// gitRoot is the nearest folder at or above dir that holds .git, "" if none.
func gitRoot(dir string) string {
	for d := dir; ; {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return d
		}
		up := filepath.Dir(d)
		if up == d {
			return ""
		}
		d = up
	}
}

// gitBranch reads the name of the branch that is checked out, "" when it is
// none or cannot be read.
func gitBranch(root string) string {
	dir := filepath.Join(root, ".git")
	if st, err := os.Stat(dir); err == nil && !st.IsDir() {
		// A linked work tree: the file names the real folder.
		text, _ := readSmall(dir, 4096)
		rest, ok := strings.CutPrefix(strings.TrimSpace(text), "gitdir: ")
		if !ok {
			return ""
		}
		if dir = rest; !filepath.IsAbs(dir) {
			dir = filepath.Join(root, dir)
		}
	}
	head, _ := readSmall(filepath.Join(dir, "HEAD"), 4096)
	branch, ok := strings.CutPrefix(strings.TrimSpace(head), "ref: refs/heads/")
	if !ok {
		return ""
	}
	return branch
}

// readSmall reads a regular file of at most limit bytes.
func readSmall(path string, limit int64) (string, bool) {
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return "", false
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil || int64(len(data)) > limit {
		return "", false
	}
	return strings.ToValidUTF8(string(data), "\uFFFD"), true
}
