package tool

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.go": "", "sub/b.go": "", "sub/c.log": "", ".gitignore": "*.log\n/build/\n", "build/d.go": "", ".git/config": "",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := Files(context.Background(), dir, 10), []string{".gitignore", "a.go", "sub/b.go"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := Files(context.Background(), dir, 2); len(got) != 2 {
		t.Errorf("got %v, want two", got)
	}
	if got := Files(context.Background(), filepath.Join(dir, "none"), 10); len(got) != 0 {
		t.Errorf("got %v of a folder that is not there", got)
	}
}
