package session

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestList(t *testing.T) {
	store := NewStore(fastDir(t))
	first, state := create(t, store, 2)
	l, err := store.Create("/elsewhere", nil) // later than the clock of the others
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	long, _ := create(t, store, 1)
	for _, junk := range []string{"notes.txt", "x.jsonl", ".new-123"} {
		path, _ := store.find(first)
		os.WriteFile(filepath.Join(filepath.Dir(path), junk), []byte("x"), 0o600)
	}
	os.WriteFile(filepath.Join(store.root, "file"), nil, 0o600)

	open, s, err := store.Open(long)
	if err != nil {
		t.Fatal(err)
	}
	// A running turn, too long for the first look.
	appendAll(t, open, s, &TurnStart{}, user("q"), &AssistantMessage{Text: strings.Repeat("x", 80<<10)})
	open.Close()

	infos, err := store.List(nil)
	if err != nil || len(infos) != 3 {
		t.Fatalf("%d sessions, %v", len(infos), err)
	}
	byID := make(map[string]Info)
	for _, info := range infos {
		byID[info.ID] = info
	}
	if !slices.IsSortedFunc(infos, func(a, b Info) int { return b.Updated.Compare(a.Updated) }) {
		t.Errorf("order %+v", infos)
	}
	got := byID[first]
	if got.Title != "question 1" || got.Turns != 2 || got.Target.Model != "qwen" || got.CWD != "/home/ann/site" || got.Size == 0 || got.Created.IsZero() || got.Problem != nil {
		t.Errorf("a session: %+v", got)
	}
	if !got.Updated.Equal(state.Updated) {
		t.Errorf("changed %v, want %v: the time of the last record", got.Updated, state.Updated)
	}
	if got := byID[long]; got.Turns != 2 || got.Title != "question 1" || got.Target.Model != "qwen" || got.Problem != nil {
		t.Errorf("a session with a long running turn: %+v", got)
	}
	if got := byID[l.ID()]; got.Turns != 0 || got.Title != "" || got.CWD != "/elsewhere" || got.Problem != nil {
		t.Errorf("an empty session: %+v", got)
	}
	if infos, err := store.List(&ListOptions{CWD: "/elsewhere"}); err != nil || len(infos) != 1 || infos[0].ID != l.ID() {
		t.Errorf("of one folder: %+v, %v", infos, err)
	}
}

// The sessions of a folder are the same for every path that leads to it.
func TestListThroughLinks(t *testing.T) {
	store := NewStore(fastDir(t))
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip(err) // not permitted here
	}
	ids := make(map[string]string)
	for _, cwd := range []string{dir, link} {
		l, err := store.Create(cwd, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		ids[l.ID()] = cwd
	}
	// From when the link was a folder.
	old, err := store.Create(filepath.Join(filepath.Dir(link), "moved"), nil)
	if err != nil {
		t.Fatal(err)
	}
	old.Close()
	ids[old.ID()] = old.CWD()
	if err := os.Symlink(dir, old.CWD()); err != nil {
		t.Fatal(err)
	}
	for cwd, want := range map[string]int{dir: 2, link: 2, old.CWD(): 3} {
		infos, err := store.List(&ListOptions{CWD: cwd})
		if err != nil || len(infos) != want {
			t.Errorf("%s has %+v, %v", cwd, infos, err)
		}
		for _, info := range infos {
			if info.CWD != ids[info.ID] {
				t.Errorf("%+v was created in %s", info, ids[info.ID])
			}
		}
	}
}

// Of huge or broken logs a list says what it does not know.
func TestListOfOddLogs(t *testing.T) {
	store := NewStore(fastDir(t))
	id, _ := create(t, store, 1)
	path, _ := store.find(id)
	whole, _ := os.ReadFile(path)
	for name, content := range map[string][]byte{
		"one line of 3 MB at the end": append(slices.Clone(whole), bytes.Repeat([]byte("x"), 3<<20)...),
		"no header":                   whole[10:],
		"empty":                       nil,
	} {
		os.WriteFile(path, content, 0o600)
		infos, err := store.List(nil)
		if err != nil || len(infos) != 1 || infos[0].Problem == nil || infos[0].ID != id {
			t.Errorf("%s: %+v, %v", name, infos, err)
		}
	}
	os.WriteFile(path, append(slices.Clone(whole), "{torn"...), 0o600)
	if infos, _ := store.List(nil); infos[0].Problem != nil || infos[0].Turns != 1 {
		t.Errorf("a torn end: %+v", infos)
	}
}

func TestResolve(t *testing.T) {
	store := NewStore(fastDir(t))
	if _, err := store.Resolve("0"); !errors.Is(err, ErrNotFound) {
		t.Errorf("in an empty store: %v", err)
	}
	at := func(ms int64) *CreateOptions {
		return &CreateOptions{Now: func() time.Time { return time.UnixMilli(ms) }}
	}
	var ids []string
	for i, cwd := range []string{"/a", "/b"} {
		l, err := store.Create(cwd, at(int64(i)<<40))
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		ids = append(ids, l.ID())
	}
	for _, prefix := range []string{ids[0], strings.ToUpper(ids[0]), ids[0][:12]} {
		if id, err := store.Resolve(prefix); err != nil || id != ids[0] {
			t.Errorf("%s gives %s, %v", prefix, id, err)
		}
	}
	_, err := store.Resolve("0")
	if several, ok := errors.AsType[*AmbiguousError](err); !ok || several.Count != 2 {
		t.Errorf("what both begin with: %v", err)
	}
	for _, bad := range []string{"", "zz", "../" + ids[0], ids[0] + "0", "*", "ilo"} {
		if _, err := store.Resolve(bad); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
