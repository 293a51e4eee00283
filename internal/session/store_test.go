package session

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofrs/flock"

	"github.com/drover-dev/drover/internal/llm"
)

func TestCreateAndOpen(t *testing.T) {
	root := filepath.Join(fastDir(t), "deep", "sessions")
	store := NewStore(root)
	now := clock()
	l, err := store.Create("/home/ann/my site", &CreateOptions{Now: now, Rand: zeros{}, Program: "1.2"})
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(root, folderName("/home/ann/my site"), l.ID()+".jsonl")
	if l.path != want || !strings.HasSuffix(filepath.Dir(want), "-my_site") {
		t.Errorf("the log is %s, want %s", l.path, want)
	}
	s := l.NewState()
	appendAll(t, l, s, turn(1)...)
	appendAll(t, l, s, &UserMessage{Parts: []llm.Part{picture(t, 3), llm.Text("see")}}, &TurnEnd{Reason: EndCompleted})
	checkModes(t, root)
	if _, _, err := store.Open(l.ID()); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("in use by pid %d", os.Getpid())) {
		t.Errorf("a second writer: %v", err)
	}
	read, err := store.Read(l.ID())
	if err != nil {
		t.Fatal(err)
	}
	sameState(t, read, s)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(lockPath(l.path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the lock's file stays: %v", err)
	}

	again, s2, err := store.Open(strings.ToUpper(l.ID()))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	sameState(t, s2, s)
	appendAll(t, again, s2, turn(2)...)
	appendAll(t, again, s2, &UserMessage{Parts: []llm.Part{picture(t, 3)}})
	reloaded, err := again.Fold()
	if err != nil {
		t.Fatal(err)
	}
	sameState(t, reloaded, s2)
	count := 0
	for rec, err := range store.Records(l.ID()) {
		if err != nil {
			t.Fatal(err)
		}
		if rec.Kind() == "attachment" {
			count++
		}
	}
	if count != 1 {
		t.Errorf("an image that was shown twice has %d attachments", count)
	}
}

func checkModes(t *testing.T, root string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		return
	}
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(fileMode)
		if d.IsDir() {
			want = folderMode
		} else {
			files++
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if strings.Contains(path, ".new-") {
			t.Errorf("a temporary file stays: %s", path)
		}
		return nil
	})
	if err != nil || files != 3 { // log, lock, image
		t.Errorf("%d files, %v", files, err)
	}
}

func TestIDs(t *testing.T) {
	at := time.UnixMilli(1469922850259)
	id, err := newID(at, zeros{})
	if err != nil || id != "01arz3nde"+"k"+"0000000000000000" {
		// The time part of the example in the ULID specification is 01ARZ3NDEK.
		t.Errorf("id %q, %v", id, err)
	}
	later, _ := newID(at.Add(time.Millisecond), bytes.NewReader(make([]byte, 10)))
	if later <= id {
		t.Errorf("%s is not after %s", later, id)
	}
	if _, err := newID(at, strings.NewReader("short")); err == nil {
		t.Error("an id without randomness")
	}
	for _, bad := range []string{"", "../../../../../etc/passwd", id + "0", "01arz3ndek000000000000000i", "01arz3ndek/00000000000000.."} {
		if _, err := cleanID(bad); !errors.Is(err, ErrNotFound) {
			t.Errorf("id %q: %v", bad, err)
		}
	}
}

func TestFolderNames(t *testing.T) {
	for cwd, want := range map[string]string{
		"/home/ann/site":                "-site",
		"/":                             "-root",
		"/a/b c:d*e":                    "-b_c_d_e",
		"/x/größe.":                     "-größe",
		"/x/" + strings.Repeat("ü", 50): "-" + strings.Repeat("ü", 32),
		"/x/...":                        "-root",
	} {
		name := folderName(cwd)
		if name[12:] != want {
			t.Errorf("%s gives %s, want %s", cwd, name[12:], want)
		}
	}
	if folderName("/a/x") == folderName("/b/x") {
		t.Error("two folders of one name are one")
	}
}

func TestTakenIDs(t *testing.T) {
	store := NewStore(fastDir(t))
	fixed := &CreateOptions{Now: func() time.Time { return time.UnixMilli(1) }, Rand: zeros{}}
	l, err := store.Create("/w", fixed)
	if err != nil {
		t.Fatal(err)
	}
	before := text(t, l)
	if _, err := store.Create("/w", fixed); err == nil {
		t.Error("an id in use is taken again")
	}
	l.Close()
	if _, err := store.Create("/w", fixed); err == nil {
		t.Error("an existing session is replaced")
	}
	if !bytes.Equal(before, text(t, l)) {
		t.Error("the existing log was changed")
	}
}

// A name that is a symbolic link leads to the same lock.
func TestLockThroughAliases(t *testing.T) {
	dir := fastDir(t)
	store := NewStore(filepath.Join(dir, "sessions"))
	l, err := store.Create("/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	other := filepath.Join(dir, "other")
	if err := os.MkdirAll(filepath.Join(other, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(l.path, filepath.Join(other, "folder", l.ID()+logSuffix)); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink(store.root, filepath.Join(dir, "alias")); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{store.root, other, filepath.Join(dir, "alias")} {
		_, _, err := NewStore(root).Open(l.ID())
		if _, ok := errors.AsType[*InUseError](err); !ok {
			t.Errorf("through %s: %v", root, err)
		}
		if _, err := NewStore(root).Read(l.ID()); err != nil {
			t.Errorf("reading through %s: %v", root, err)
		}
	}
	if err := store.Remove(l.ID()); err == nil {
		t.Error("a session in use is removed")
	}
	if _, err := store.Repair(l.ID()); err == nil {
		t.Error("a session in use is repaired")
	}
}

// A lock file that a dead process left hinders nobody.
func TestStaleLock(t *testing.T) {
	store := NewStore(fastDir(t))
	id, _ := create(t, store, 1)
	path, err := store.find(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(lockPath(path), []byte("\x00999999999\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, _, err := store.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, _, err = store.Open(id)
	if inUse, ok := errors.AsType[*InUseError](err); !ok || inUse.PID != os.Getpid() {
		t.Errorf("a second writer: %v", err)
	}
}

// A lock whose owner is gone is waited for: a command that it had begun to start
// may hold it for a moment. It is not broken.
func TestLockThatOutlivesItsOwner(t *testing.T) {
	store := NewStore(fastDir(t))
	id, _ := create(t, store, 1)
	path, _ := store.find(id)
	if gone(os.Getpid()) || gone(0) || !gone(999999999) {
		t.Error("processes are told wrong")
	}
	hold := func() *flock.Flock {
		held := flock.New(lockPath(path), flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
		if ok, err := held.TryLock(); !ok {
			t.Fatal(err)
		}
		if err := os.WriteFile(lockPath(path), []byte("\x00999999999\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return held
	}
	synctest.Test(t, func(t *testing.T) {
		held := hold()
		time.AfterFunc(50*time.Millisecond, func() { held.Close() })
		l, _, err := store.Open(id)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		defer hold().Close()
		_, _, err = store.Open(id)
		if inUse, ok := errors.AsType[*InUseError](err); !ok || inUse.PID != 999999999 {
			t.Errorf("a lock that is held on: %v", err)
		}
	})
}

// Cut at any byte, a session opens, is repaired once, and goes on.
func TestOpenTornAtEveryByte(t *testing.T) {
	store := NewStore(fastDir(t))
	l, err := store.Create("/w", &CreateOptions{Now: clock()})
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, l, l.NewState(), &TurnStart{}, user("q"), calls("a"), &ToolCall{ID: "a", Started: true}, result("a", "1"))
	l.Close()
	data, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	headerEnd := bytes.IndexByte(data, '\n')
	for n := headerEnd; n <= len(data); n++ {
		if err := os.WriteFile(l.path, data[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		again, s, err := store.Open(l.ID())
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		torn := data[n-1] != '\n' && n < len(data) && data[n] != '\n'
		if (len(s.Warnings) == 1) != torn || len(s.Warnings) > 1 {
			t.Fatalf("cut at %d: warnings %v", n, s.Warnings)
		}
		if s.OpenTurn || s.OpenCalls() != nil {
			t.Fatalf("cut at %d: still open", n)
		}
		appendAll(t, again, s, user("go on"))
		again.Close()
		validHistory(t, s)
		reloaded, err := store.Read(l.ID())
		if err != nil || len(reloaded.Warnings) > 0 {
			t.Fatalf("cut at %d: a second look gives %v %v", n, err, reloaded.Warnings)
		}
		s.Warnings = nil
		sameState(t, reloaded, s)
	}
}

func TestOpenClosesAnInterruptedTurn(t *testing.T) {
	store := NewStore(fastDir(t))
	l, err := store.Create("/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, l, l.NewState(), &TurnStart{}, user("q"), testHeader("qwen"), calls("a", "b"), &ToolCall{ID: "a", Started: true}, &ToolCall{ID: "b"})
	l.Close()
	for range 2 { // the second time there is nothing to close
		again, s, err := store.Open(l.ID())
		if err != nil {
			t.Fatal(err)
		}
		again.Close()
		data, _ := os.ReadFile(l.path)
		want := []string{"turn/start", "user/message", "request/header", "assistant/message", "tool/call", "tool/call", "tool/result", "tool/result", "turn/end"}
		if got := kinds(t, data); !reflect.DeepEqual(got, want) {
			t.Errorf("records %v", got)
		}
		if s.End == nil || s.End.Reason != EndInterrupted || s.End.Turn != 1 || s.End.Target.Model != "qwen" || len(s.Messages) != 4 || len(s.Warnings) > 0 {
			t.Errorf("state %+v", s)
		}
	}
}

// A log of a newer version is left alone by everything.
func TestNewerVersion(t *testing.T) {
	store := NewStore(fastDir(t))
	id, _ := create(t, store, 1)
	path, _ := store.find(id)
	data, _ := os.ReadFile(path)
	data = bytes.Replace(data, []byte(`"version":1`), []byte(`"version":99`), 1)
	data = append(data, "a torn end of the future"...)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, openErr := store.Open(id)
	_, readErr := store.Read(id)
	_, repairErr := store.Repair(id)
	checks, _ := store.Verify()
	infos, _ := store.List(nil)
	for name, err := range map[string]error{
		"open": openErr, "read": readErr, "repair": repairErr, "verify": checks[0].Err, "list": infos[0].Problem,
	} {
		if newer, ok := errors.AsType[*VersionError](err); !ok || newer.Version != 99 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(after, data) {
		t.Error("the log was changed")
	}
}

func TestRemove(t *testing.T) {
	store := NewStore(fastDir(t))
	l, err := store.Create("/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, l, l.NewState(), &UserMessage{Parts: []llm.Part{picture(t, 7)}})
	l.Close()
	if _, err := store.Repair(l.ID()); err != nil { // leaves an old file
		t.Fatal(err)
	}
	other, _ := create(t, store, 1)
	if err := store.Remove(l.ID()); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(strings.TrimSuffix(l.path, logSuffix) + "*")
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := store.Remove(l.ID()); !errors.Is(err, ErrNotFound) {
		t.Errorf("removing again: %v", err)
	}
	if _, err := store.Read(other); err != nil {
		t.Errorf("another session: %v", err)
	}
}

// A folder that cannot be written refuses a new session; the caller goes on in
// memory. An open session goes on by itself.
func TestNoWriting(t *testing.T) {
	dir := fastDir(t)
	blocked := filepath.Join(dir, "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewStore(filepath.Join(blocked, "sessions")).Create("/w", nil); err == nil {
		t.Error("a session below a file")
	}
	if infos, err := NewStore(filepath.Join(dir, "nothing")).List(nil); err != nil || infos != nil {
		t.Errorf("no folder lists as %v, %v", infos, err)
	}
	if _, err := NewStore(filepath.Join(dir, "nothing")).Read("01arz3ndek0000000000000000"); !errors.Is(err, ErrNotFound) {
		t.Errorf("no folder: %v", err)
	}
	if os.Getuid() == 0 {
		t.Skip("root writes into every folder")
	}
	store := NewStore(filepath.Join(dir, "sessions"))
	id, _ := create(t, store, 1)
	path, _ := store.find(id)
	os.Chmod(filepath.Dir(path), 0o500)
	defer os.Chmod(filepath.Dir(path), 0o700)
	if _, err := store.Create("/home/ann/site", nil); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("create: %v", err)
	}
	if _, _, err := store.Open(id); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("open: %v", err)
	}
	if _, err := store.Read(id); err != nil {
		t.Errorf("read: %v", err)
	}
}

// The selection to restore is the last one that was used, and choosing another
// one keeps the session.
func TestSelectionIsTheLastHeader(t *testing.T) {
	store := NewStore(fastDir(t))
	id, _ := create(t, store, 1)
	l, s, err := store.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Header.Snapshot.Target; got != (llm.Target{Provider: "local", Model: "qwen"}) {
		t.Errorf("restored %v", got)
	}
	appendAll(t, l, s, &TurnStart{}, user("q"), testHeader("other"), &TurnEnd{Reason: EndError})
	l.Close()
	s, err = store.Read(id)
	if err != nil || s.Header.Snapshot.Target.Model != "other" || s.ID != id {
		t.Errorf("%+v, %v", s.Header, err)
	}
	infos, err := store.List(nil)
	if err != nil || infos[0].Target.Model != "other" {
		t.Errorf("%+v, %v", infos, err)
	}
}
