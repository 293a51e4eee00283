package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestOldOutputIsRemoved: with a new file of output the old ones of other sessions
// go, and nothing else does, wherever a link leads.
func TestOldOutputIsRemoved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege")
	}
	base := resolvedTempDir(t)
	id := func(i int) string { return fmt.Sprintf("01m8psdzg31y4e8a9w2m5r7t%02d", i) }
	old := time.Now().Add(-spillAge - time.Hour)
	put := func(name string, at time.Time) {
		path := filepath.Join(base, name)
		writeFile(t, path, "x")
		for _, p := range []string{path, filepath.Dir(path)} {
			if err := os.Chtimes(p, at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("output/"+id(1)+"/shell-12.txt", old)
	put("output/"+id(2)+"/shell-12.txt", old)
	put("output/"+id(2)+"/mcp-7.txt", time.Now())
	put("output/"+id(3)+"/notes.txt", old)
	put("output/"+id(4)+"/shell-3.txt", old) // of this session
	put("output/project/shell-12.txt", old)
	put("else/shell-12.txt", old)
	put("else/"+id(6)+"/shell-12.txt", old)
	symlink(t, filepath.Join(base, "else"), filepath.Join(base, "output", id(5)))
	symlink(t, filepath.Join(base, "else", id(6)), filepath.Join(base, "output", id(6)))
	w := &Workspace{Dir: base, SpillDir: filepath.Join(base, "output", id(4))}
	if text := w.Bound(strings.Repeat("y", 100), 10, "shell"); !strings.Contains(text, "all of it is in "+w.SpillDir) {
		t.Fatal(text)
	}
	var gone, left []string
	for _, name := range []string{"output/" + id(1), "output/" + id(2) + "/shell-12.txt", "output/" + id(2) + "/mcp-7.txt", "output/" + id(3) + "/notes.txt",
		"output/" + id(4) + "/shell-3.txt", "output/project/shell-12.txt", "else/shell-12.txt", "else/" + id(6) + "/shell-12.txt"} {
		if exists(filepath.Join(base, name)) {
			left = append(left, name)
		} else {
			gone = append(gone, name)
		}
	}
	if want := []string{"output/" + id(2) + "/shell-12.txt"}; !slices.Equal(gone, want) && !slices.Equal(gone, append([]string{"output/" + id(1)}, want...)) {
		t.Errorf("gone %q, left %q", gone, left)
	}
	if exists(filepath.Join(base, "output", id(1), "shell-12.txt")) {
		t.Error("old output is still there")
	}
	// A folder goes when it has been empty for long.
	if err := os.Chtimes(filepath.Join(base, "output", id(1)), old, old); err == nil {
		w.Bound(strings.Repeat("y", 100), 10, "shell")
		if exists(filepath.Join(base, "output", id(1))) {
			t.Error("an empty folder stays")
		}
	}
	// Where the folder is not a session's, nothing beside it is touched.
	w.SpillDir = filepath.Join(base, "output", "project")
	put("output/"+id(7)+"/shell-12.txt", old)
	w.Bound(strings.Repeat("y", 100), 10, "shell")
	if !exists(filepath.Join(base, "output", id(7), "shell-12.txt")) {
		t.Error("output beside a folder of another kind is gone")
	}
}
