package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// newStore makes a store with a project and a global folder, both empty.
func newStore(tb testing.TB) (s *Store, dir, global string) {
	tb.Helper()
	base, err := filepath.EvalSymlinks(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	dir, global = filepath.Join(base, "work"), filepath.Join(base, "config", "memory")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	return Open(global).In(dir), dir, global
}

func put(tb testing.TB, path, content string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
}

func noteFile(title, text string) string { return "---\ntitle: " + title + "\n---\n" + text + "\n" }

// shown are the titles and problems of a store in one line.
func shown(s *Store) string {
	notes, problems := s.List()
	var list []string
	for i := range notes {
		list = append(list, string(notes[i].Scope[0])+":"+notes[i].Title)
	}
	for _, p := range problems {
		list = append(list, filepath.Base(p.Path)+"!"+p.Err.Error())
	}
	return strings.Join(list, "; ")
}

func TestNothingIsThere(t *testing.T) {
	s, dir, _ := newStore(t)
	for name, s := range map[string]*Store{"empty": s, "nil": nil, "no folder": Open(""), "nil in": (*Store)(nil).In(dir)} {
		if got := shown(s); got != "" {
			t.Errorf("%s: %s", name, got)
		}
		if _, err := s.Get("x"); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Remove("x"); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, ".drover")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading made a folder: %v", err)
	}
	for _, s := range []*Store{nil, Open("")} {
		if _, err := s.Put(Note{Title: "x"}); err == nil {
			t.Error("kept nowhere")
		}
	}
}

func TestPutGetRemove(t *testing.T) {
	s, dir, global := newStore(t)
	n, err := s.Put(Note{Title: "  Build  it ", Summary: "make", Text: "\nmake build\n\n"})
	want := Note{Title: "Build it", Summary: "make", Text: "make build", Scope: Project, File: "build-it.md",
		Path: filepath.Join(dir, ".drover", "memory", "build-it.md")}
	if err != nil || n != want {
		t.Fatalf("%+v %v, want %+v", n, err, want)
	}
	if got, err := s.Get("Build it"); err != nil || got != want {
		t.Errorf("%+v %v", got, err)
	}
	everywhere, err := s.Put(Note{Title: "build it", Scope: Global, Text: "everywhere"})
	if err != nil || everywhere.Path != filepath.Join(global, "build-it.md") {
		t.Fatalf("%+v %v", everywhere, err)
	}
	for name, path := range map[string]string{
		"Build it": n.Path, "build it": everywhere.Path, "BUILD IT": n.Path, "build-it": n.Path,
		"build-it.md": n.Path, everywhere.Path: everywhere.Path,
	} {
		if got, err := s.Get(name); err != nil || got.Path != path {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
	if _, err := s.Put(Note{Title: "Build it", Text: "other"}); err != nil {
		t.Fatal(err)
	}
	if got := shown(s); got != "p:Build it; g:build it" {
		t.Errorf("list %s", got)
	}
	if second, err := s.Put(Note{Title: "build, it", Text: "x"}); err != nil || second.File != "build-it-2.md" {
		t.Errorf("%+v %v", second, err)
	}
	if n, err := s.Remove("Build it"); err != nil || n.Text != "other" {
		t.Errorf("%+v %v", n, err)
	}
	if got := shown(s); got != "p:build, it; g:build it" {
		t.Errorf("list %s", got)
	}
	for _, bad := range []Note{{}, {Title: "a\x00"}, {Title: "x", Text: strings.Repeat("x", MaxText+1)}, {Title: "x", Scope: "other"}} {
		if _, err := s.Put(bad); err == nil {
			t.Errorf("kept %.40q", bad.Title)
		}
	}
}

func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	s, dir, global := newStore(t)
	for _, scope := range []Scope{Project, Global} {
		if _, err := s.Put(Note{Title: "x", Text: "y", Scope: scope}); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]fs.FileMode{
		filepath.Join(dir, ".drover"): 0o700, filepath.Join(dir, ".drover", "memory"): 0o700,
		filepath.Join(dir, ".drover", "memory", "x.md"): 0o600, global: 0o700, filepath.Join(global, "x.md"): 0o600,
	} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v %v, want %v", path, st.Mode().Perm(), err, want)
		}
	}
}

func TestTheProjectIsTheWorkTree(t *testing.T) {
	s, dir, global := newStore(t)
	if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	deep := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(global).In(deep).Put(Note{Title: "x", Text: "y"}); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Get("x"); err != nil || n.Path != filepath.Join(dir, ".drover", "memory", "x.md") {
		t.Errorf("%+v %v", n, err)
	}
}

func TestDamageHidesNothing(t *testing.T) {
	s, dir, _ := newStore(t)
	folder := filepath.Join(dir, ".drover", "memory")
	for name, content := range map[string]string{
		"b.md": noteFile("B", "b"), "A.MD": noteFile("A", "a"), "broken.md": "# no front matter", "c.txt": "no note",
		".hidden.md": "no note", "large.md": noteFile("L", strings.Repeat("x", maxFile)), "nul.md": "---\ntitle: x\n---\n\x00",
	} {
		put(t, filepath.Join(folder, name), content)
	}
	if err := os.Mkdir(filepath.Join(folder, "d.md"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := `p:A; p:B; broken.md!it does not begin with front matter, a line "---"; d.md!it is no file; ` +
		`large.md!it has more than 32768 bytes; nul.md!text holds control characters`
	if got := shown(s); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// A new note takes no damaged file's place.
	if n, err := s.Put(Note{Title: "Broken", Text: "x"}); err != nil || n.File != "broken-2.md" {
		t.Errorf("%+v %v", n, err)
	}
}

func TestLinksOutAreRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links")
	}
	const refused = "it is a link that leads out of the folder, or to nothing"
	link := func(t *testing.T, target, name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".drover", ".drover/memory"} {
		for _, target := range []string{"outside", "nowhere"} {
			t.Run(name+" "+target, func(t *testing.T) {
				s, dir, _ := newStore(t)
				outside := filepath.Join(t.TempDir(), "outside")
				put(t, filepath.Join(outside, "secret.md"), noteFile("secret", "x"))
				put(t, filepath.Join(outside, "memory", "secret.md"), noteFile("secret", "x"))
				link(t, filepath.Join(filepath.Dir(outside), target), filepath.Join(dir, name))
				if got := shown(s); got != "memory!"+refused {
					t.Errorf("read %s", got)
				}
				if _, err := s.Put(Note{Title: "x", Text: "y"}); err == nil || !strings.Contains(err.Error(), refused) {
					t.Errorf("kept: %v", err)
				}
				if list, err := os.ReadDir(outside); err != nil || len(list) != 2 {
					t.Errorf("outside %v %v", list, err)
				}
			})
		}
	}
	t.Run("file", func(t *testing.T) {
		s, dir, _ := newStore(t)
		outside := filepath.Join(t.TempDir(), "secret.md")
		put(t, outside, noteFile("secret", "x"))
		folder := filepath.Join(dir, ".drover", "memory")
		link(t, outside, filepath.Join(folder, "x.md"))
		link(t, "nowhere", filepath.Join(folder, "y.md"))
		put(t, filepath.Join(dir, "NOTES.md"), noteFile("inside", "x"))
		link(t, "../../NOTES.md", filepath.Join(folder, "z.md"))
		if got := shown(s); got != "p:inside; x.md!"+refused+"; y.md!"+refused {
			t.Errorf("read %s", got)
		}
		if n, err := s.Put(Note{Title: "x", Text: "y"}); err != nil || n.File != "x-2.md" {
			t.Errorf("%+v %v", n, err)
		}
	})
	t.Run("no folder", func(t *testing.T) {
		s, dir, _ := newStore(t)
		put(t, filepath.Join(dir, ".drover", "memory"), "a file")
		if got := shown(s); got != "memory!it is no folder" {
			t.Errorf("read %s", got)
		}
		if _, err := s.Put(Note{Title: "x", Text: "y"}); err == nil {
			t.Error("kept in a file")
		}
	})
}

func TestCountsAreBounded(t *testing.T) {
	s, dir, global := newStore(t)
	folder := filepath.Join(dir, ".drover", "memory")
	for i := range MaxNotes + 1 {
		put(t, filepath.Join(folder, fmt.Sprintf("n%03d.md", i)), noteFile(fmt.Sprint("n", i), "x"))
	}
	notes, problems := s.List()
	if len(notes) != MaxNotes || notes[0].Title != "n0" || len(problems) != 1 || !strings.Contains(problems[0].String(), "only the first 200") {
		t.Errorf("%d notes, %v", len(notes), problems)
	}
	if _, err := s.Put(Note{Title: "more", Text: "x"}); err == nil || !strings.Contains(err.Error(), "remove one first") {
		t.Errorf("kept: %v", err)
	}
	if _, err := s.Put(Note{Title: "n7", Text: "new"}); err != nil {
		t.Errorf("one that is there: %v", err)
	}
	for i := range maxEntries + 1 {
		put(t, filepath.Join(global, fmt.Sprint(i)), "")
	}
	if got := shown(Open(global)); got != "memory!it holds more than 2000 files" {
		t.Error(got)
	}
}

func TestAChangeInBetweenIsNotOverwritten(t *testing.T) {
	s, _, _ := newStore(t)
	first, err := s.prepare(Note{Title: "x", Text: "one", Scope: Project})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(Note{Title: "x", Text: "two"}); err != nil {
		t.Fatal(err)
	}
	if err := s.apply(first); !errors.Is(err, errChanged) {
		t.Errorf("a new note: %v", err)
	}
	n, _ := s.Get("x")
	removal, err := s.prepareRemoval(n)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(Note{Title: "x", Text: "three"}); err != nil {
		t.Fatal(err)
	}
	if err := s.apply(removal); !errors.Is(err, errChanged) {
		t.Errorf("a removal: %v", err)
	}
}

func TestConcurrentUse(t *testing.T) {
	s, dir, _ := newStore(t)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if _, err := s.Put(Note{Title: fmt.Sprint("note ", i), Text: "x"}); err != nil {
				t.Error(err)
			}
			s.List()
		})
	}
	wg.Wait()
	notes, problems := s.List()
	if len(notes) != 20 || len(problems) != 0 {
		t.Errorf("%d notes, %v", len(notes), problems)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".drover", "memory", ".drover-*")); len(left) > 0 {
		t.Errorf("left behind %v", left)
	}
}

// The store does what a map from titles to texts does.
func TestStoreIsAMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, _, _ := newStore(t)
		model := make(map[string]string)
		title := rapid.SampledFrom([]string{"a", "A", "a b", "a-b", "ä", "ö", "con", "../x", `"q"`, "#"})
		for range rapid.IntRange(0, 20).Draw(rt, "steps") {
			name := title.Draw(rt, "title")
			if rapid.Bool().Draw(rt, "put") {
				text := rapid.StringMatching(`[a-z]{0,9}`).Draw(rt, "text")
				if _, err := s.Put(Note{Title: name, Text: text}); err != nil {
					rt.Fatal(err)
				}
				model[name] = text
				continue
			}
			n, err := s.Get(name)
			if _, there := model[name]; there && (err != nil || n.Title != name || n.Text != model[name]) {
				rt.Fatalf("%q: %+v %v", name, n, err)
			}
			if err == nil && n.Title == name {
				if _, err := s.Remove(name); err != nil {
					rt.Fatal(err)
				}
				delete(model, name)
			}
		}
		notes, problems := s.List()
		if len(notes) != len(model) || len(problems) > 0 {
			rt.Fatalf("%d notes, want %d; %v", len(notes), len(model), problems)
		}
		for i := range notes {
			if text, ok := model[notes[i].Title]; !ok || text != notes[i].Text {
				rt.Fatalf("note %+v, want %q", notes[i], text)
			}
		}
	})
}
