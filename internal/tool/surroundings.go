package tool

import (
	"errors"
	"fmt"
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
	// Problems say which instruction files were left out, and why.
	Problems []string
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

// LookAround reads the surroundings of a working directory. more names further
// instruction files, which a person configured. A project's own files count only
// if they lie in the work tree, whatever links they are: a repository must not
// put files of the person into a request.
func LookAround(dir string, now time.Time, more []string) *Surroundings {
	s := &Surroundings{Dir: dir, Date: now.Format(time.DateOnly)}
	if dir == "" {
		return s
	}
	top := gitRoot(dir)
	if top != "" {
		s.Branch = gitBranch(top)
	} else {
		top = dir
	}
	var files []string
	for d := dir; ; d = filepath.Dir(d) {
		files = append(files, filepath.Join(d, instructionFile))
		if d == top || d == filepath.Dir(d) {
			break
		}
	}
	slices.Reverse(files)
	for _, file := range files {
		s.addProjectFile(file, top)
	}
	for _, file := range more {
		s.add(file, file)
	}
	return s
}

func (s *Surroundings) addProjectFile(file, top string) {
	if _, err := os.Lstat(file); err != nil {
		return
	}
	real, err := resolve(file)
	if err == nil {
		top, err = resolve(top)
	}
	if err != nil {
		s.problem(file, plainError(err).Error())
		return
	}
	if _, inside := below(top, real); !inside {
		s.problem(file, "it leads out of the work tree")
		return
	}
	s.add(file, real)
}

// add reads an instruction file and shows it under a name.
func (s *Surroundings) add(name, file string) {
	text, err := readSmall(file, maxInstructions)
	if err != nil {
		s.problem(name, err.Error())
		return
	}
	if strings.TrimSpace(text) != "" {
		s.Instructions = append(s.Instructions, Instruction{Path: name, Text: text})
	}
}

func (s *Surroundings) problem(file, why string) {
	s.Problems = append(s.Problems, fmt.Sprintf("The instructions in %s are not used: %s.", file, why))
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
		text, _ := readSmall(dir, maxGitFile)
		rest, ok := strings.CutPrefix(strings.TrimSpace(text), "gitdir: ")
		if !ok {
			return ""
		}
		if dir = rest; !filepath.IsAbs(dir) {
			dir = filepath.Join(root, dir)
		}
	}
	head, _ := readSmall(filepath.Join(dir, "HEAD"), maxGitFile)
	head, _, _ = strings.Cut(strings.TrimSpace(head), "\n")
	branch, ok := strings.CutPrefix(head, "ref: refs/heads/")
	if !ok {
		return ""
	}
	return branch
}

// maxGitFile bounds the two files of git that are read, in bytes. Each holds a
// line.
const maxGitFile = 4096

// readSmall reads a regular file of at most limit bytes.
func readSmall(path string, limit int64) (string, error) {
	st, err := os.Stat(path) // before opening, which waits for a named pipe
	if err != nil {
		return "", plainError(err)
	}
	if !st.Mode().IsRegular() {
		return "", errors.New("it is no file")
	}
	if st.Size() > limit {
		return "", fmt.Errorf("it has %d bytes, more than %d", st.Size(), limit)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", plainError(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return "", plainError(err)
	}
	return strings.ToValidUTF8(string(data), "\uFFFD"), nil
}
