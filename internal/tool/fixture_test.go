package tool_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/drover-dev/drover/internal/tool"
)

var update = flag.Bool("update", false, "write the answers of testdata/*.txtar anew")

// TestFixtures runs the conversations of testdata. Files under tree/ are the
// work tree. Each section "call TOOL" holds the arguments of a call and is
// followed by a section "want" with what the model gets: "ok" or "error" and the
// text, or "refused" and the reason when nothing was prepared. Sections after/
// hold files as they are in the end. Lines of the comment prepare what txtar
// cannot hold: crlf FILE, bom FILE, hex FILE BYTES, link NAME TARGET, mkdir DIR,
// root DIR, outside FILE.
func TestFixtures(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links and POSIX commands")
	}
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 6 {
		t.Fatalf("fixtures: %v %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			runFixture(t, ar)
			if *update {
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func runFixture(t *testing.T, ar *txtar.Archive) {
	base := t.TempDir()
	if real, err := filepath.EvalSymlinks(base); err == nil {
		base = real
	}
	w := &tool.Workspace{Dir: filepath.Join(base, "work"), SpillDir: filepath.Join(base, "spill"),
		Environ: []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}}
	for i := range ar.Files {
		if name, ok := strings.CutPrefix(ar.Files[i].Name, "tree/"); ok {
			put(t, filepath.Join(w.Dir, name), ar.Files[i].Data)
		}
	}
	prepareTree(t, base, w, string(ar.Comment))
	set := tool.NewSet(tool.Builtin(w)...)
	for i := range ar.Files {
		f := &ar.Files[i]
		if name, ok := strings.CutPrefix(f.Name, "call "); ok {
			impl, found := set.Lookup(name)
			if !found || i+1 == len(ar.Files) || ar.Files[i+1].Name != "want" {
				t.Fatalf("section %q: no such tool, or no section want behind it", f.Name)
			}
			got := strings.ReplaceAll(answer(t, impl, string(f.Data)), base, "$BASE")
			check(t, &ar.Files[i+1], fmt.Sprintf("%s%s", f.Name, f.Data), got+"\n")
		}
		if name, ok := strings.CutPrefix(f.Name, "after/"); ok {
			data, err := os.ReadFile(filepath.Join(w.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			check(t, f, name, strings.ReplaceAll(strings.ReplaceAll(string(data), "\r", "<CR>"), "\ufeff", "<BOM>"))
		}
	}
	// Nothing of the tools' own is left behind.
	_ = filepath.WalkDir(base, func(path string, d fs.DirEntry, _ error) error {
		if strings.HasPrefix(d.Name(), ".drover-") {
			t.Errorf("left behind: %s", path)
		}
		return nil
	})
}

func check(t *testing.T, f *txtar.File, what, got string) {
	t.Helper()
	if *update {
		f.Data = []byte(got)
	} else if got != string(f.Data) {
		t.Errorf("%s\ngot:\n%s\nwant:\n%s", what, got, f.Data)
	}
}

// answer is what a model would get of a call that is allowed.
func answer(t *testing.T, impl tool.Tool, arguments string) string {
	action, err := tool.Prepare(t.Context(), impl, arguments)
	if err != nil {
		return "refused\n" + err.Error()
	}
	r := tool.Run(t.Context(), action, nil)
	return string(r.Status) + "\n" + r.Text
}

func put(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func prepareTree(t *testing.T, base string, w *tool.Workspace, comment string) {
	t.Helper()
	if err := os.MkdirAll(w.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(comment) {
		f := slices.Concat(strings.Fields(line), make([]string, 3))
		path := filepath.Join(w.Dir, f[1])
		data, err := os.ReadFile(path)
		switch f[0] {
		case "crlf":
			put(t, path, bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")))
		case "bom":
			put(t, path, append([]byte("\ufeff"), data...))
		case "hex":
			data, err = hex.DecodeString(f[2])
			put(t, path, data)
		case "link":
			err = os.Symlink(f[2], path)
		case "mkdir":
			err = os.MkdirAll(path, 0o755)
		case "root":
			w.Roots, err = append(w.Roots, filepath.Join(base, f[1])), os.MkdirAll(filepath.Join(base, f[1]), 0o755)
		case "outside":
			put(t, filepath.Join(base, f[1]), []byte("outside\n"))
			err = nil
		default:
			err = nil
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
}
