package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tree writes files below a new folder; a name that ends in a slash is a folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func texts(s *Surroundings) string {
	var all []string
	for _, in := range s.Instructions {
		all = append(all, strings.TrimSpace(in.Text))
	}
	return strings.Join(all, "|")
}

func TestLookAround(t *testing.T) {
	top := tree(t, map[string]string{
		".git/HEAD": "ref: refs/heads/main\nand more\n",
		"AGENTS.md": "top", "a/AGENTS.md": "a", "a/b/AGENTS.md": "b", "a/b/c/file": "", "other/AGENTS.md": "other",
	})
	more := filepath.Join(tree(t, map[string]string{"HOUSE.md": "house"}), "HOUSE.md")
	s := LookAround(filepath.Join(top, "a", "b", "c"), time.Date(2026, 5, 4, 23, 59, 0, 0, time.UTC), []string{more, "/no/such/file"})
	if got := texts(s); got != "top|a|b|house" {
		t.Errorf("instructions %s", got)
	}
	if s.Branch != "main" || s.Date != "2026-05-04" {
		t.Errorf("branch %q, date %q", s.Branch, s.Date)
	}
	if len(s.Problems) != 1 || !strings.Contains(s.Problems[0], "/no/such/file") {
		t.Errorf("problems %q", s.Problems)
	}
	if s := LookAround(filepath.Join(top, "other"), time.Now(), nil); texts(s) != "top|other" {
		t.Errorf("instructions %s", texts(s))
	}
	if s := LookAround("", time.Now(), nil); len(s.Instructions) != 0 || s.Date == "" {
		t.Errorf("without a folder: %+v", s)
	}
}

func TestLinkedWorkTreesHaveABranch(t *testing.T) {
	top := tree(t, map[string]string{"real/HEAD": "ref: refs/heads/side\n", "tree/.git": "gitdir: ../real\n"})
	if s := LookAround(filepath.Join(top, "tree"), time.Now(), nil); s.Branch != "side" {
		t.Errorf("branch %q", s.Branch)
	}
	detached := tree(t, map[string]string{".git/HEAD": "0123456789abcdef\n"})
	if s := LookAround(detached, time.Now(), nil); s.Branch != "" {
		t.Errorf("branch %q", s.Branch)
	}
}

// TestInstructionsStayInTheWorkTree: a repository can hold links, and must not
// put files of the person into a request.
func TestInstructionsStayInTheWorkTree(t *testing.T) {
	outside := tree(t, map[string]string{"id_ed25519": "SECRET"})
	top := tree(t, map[string]string{".git/HEAD": "ref: refs/heads/main\n", "docs/RULES.md": "rules", "a/f": "", "b/f": ""})
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(top, name)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	link(filepath.Join(outside, "id_ed25519"), "AGENTS.md")
	link(filepath.Join("..", "docs", "RULES.md"), "a/AGENTS.md")
	link(filepath.Join("..", "docs"), "b/AGENTS.md")
	s := LookAround(filepath.Join(top, "a"), time.Now(), nil)
	if texts(s) != "rules" {
		t.Errorf("instructions %s", texts(s))
	}
	if len(s.Problems) != 1 || !strings.Contains(s.Problems[0], "leads out of the work tree") {
		t.Errorf("problems %q", s.Problems)
	}
	if s := LookAround(filepath.Join(top, "b"), time.Now(), nil); len(s.Problems) != 2 || !strings.Contains(s.Problems[1], "no file") {
		t.Errorf("a folder as instructions: %q", s.Problems)
	}
}

func TestLargeInstructionsAreToldAbout(t *testing.T) {
	for n, ok := range map[int]bool{maxInstructions: true, maxInstructions + 1: false} {
		dir := tree(t, map[string]string{"AGENTS.md": strings.Repeat("x", n)})
		s := LookAround(dir, time.Now(), nil)
		if (len(s.Instructions) == 1) != ok || (len(s.Problems) == 0) != ok {
			t.Errorf("%d bytes: %d instructions, problems %q", n, len(s.Instructions), s.Problems)
		}
	}
}
