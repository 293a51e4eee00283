package session

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
)

// A log that is removed while it is written is there again, whole, with its
// images and its lock, when the next gating record was acknowledged.
func TestRemovedLogIsWrittenAgain(t *testing.T) {
	for name, remove := range map[string]func(l *Log) error{
		"the root":   func(l *Log) error { return os.RemoveAll(filepath.Dir(filepath.Dir(l.path))) },
		"the folder": func(l *Log) error { return os.RemoveAll(filepath.Dir(l.path)) },
		"the log":    func(l *Log) error { return os.Remove(l.path) },
	} {
		t.Run(name, func(t *testing.T) {
			store := NewStore(filepath.Join(fastDir(t), "sessions"))
			l, err := store.Create("/w", nil)
			if err != nil {
				t.Fatal(err)
			}
			s := l.NewState()
			appendAll(t, l, s, &TurnStart{}, &UserMessage{Parts: []llm.Part{picture(t, 3), llm.Text("q")}})
			if err := remove(l); err != nil {
				t.Skip(err) // no open file can be removed here
			}
			appendAll(t, l, s, &AssistantMessage{Text: "rides along"}, user("again"))
			if _, _, err := store.Open(l.ID()); !errors.As(err, new(*InUseError)) {
				t.Errorf("a second writer: %v", err)
			}
			appendAll(t, l, s, &TurnEnd{Reason: EndCompleted})
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			reloaded, err := store.Read(l.ID())
			if err != nil {
				t.Fatal(err)
			}
			sameState(t, reloaded, s)
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(l.path), "*.lock")); left != nil {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// The images of earlier turns are there again too, however the log was opened.
func TestRemovedLogKeepsEarlierImages(t *testing.T) {
	for name, open := range map[string]func(*Store, string) (*Log, *State, error){
		"whole": (*Store).Open,
		"by its end": func(store *Store, id string) (*Log, *State, error) {
			l, err := store.OpenForAppend(id)
			if err != nil {
				return nil, nil, err
			}
			s, err := l.Fold()
			return l, s, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := NewStore(filepath.Join(fastDir(t), "sessions"))
			l, err := store.Create("/w", nil)
			if err != nil {
				t.Fatal(err)
			}
			appendAll(t, l, l.NewState(), &TurnStart{}, &UserMessage{Parts: []llm.Part{picture(t, 3), llm.Text("q")}}, &TurnEnd{Reason: EndCompleted})
			l.Close()
			l, s, err := open(store, l.ID())
			if err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(store.root); err != nil {
				t.Skip(err) // no open file can be removed here
			}
			appendAll(t, l, s, user("again"))
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			reloaded, err := store.Read(l.ID())
			if err != nil {
				t.Fatal(err)
			}
			sameState(t, reloaded, s)
		})
	}
}

// Where the log cannot be written again, that is said, and nothing is dropped.
func TestRemovedLogThatCannotBeWrittenAgain(t *testing.T) {
	store := NewStore(filepath.Join(fastDir(t), "sessions"))
	l, err := store.Create("/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := l.NewState()
	appendAll(t, l, s, user("a"))
	if err := os.RemoveAll(store.root); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(store.root, nil, 0o600); err != nil { // in the way
		t.Fatal(err)
	}
	rec := user("b")
	if err := l.Append(rec); l.Unsaved() == nil || !strings.Contains(err.Error(), "the log was removed") {
		t.Fatalf("append gives %v", err)
	}
	s.Apply(rec)
	if err := os.Remove(store.root); err != nil {
		t.Fatal(err)
	}
	appendAll(t, l, s, user("c"))
	if l.Unsaved() != nil {
		t.Errorf("still %v", l.Unsaved())
	}
	l.Close()
	reloaded, err := store.Read(l.ID())
	if err != nil {
		t.Fatal(err)
	}
	sameState(t, reloaded, s)
}

// A file that took the log's place is somebody else's.
func TestReplacedLogIsLeftAlone(t *testing.T) {
	store := NewStore(fastDir(t))
	l, err := store.Create("/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(store.root, "other")
	if err := os.WriteFile(other, []byte("not ours"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other, l.path); err != nil {
		t.Skip(err)
	}
	if err := l.Append(user("a")); !errors.Is(err, errReplaced) {
		t.Errorf("append gives %v", err)
	}
	if err := l.Close(); !errors.Is(err, errReplaced) {
		t.Errorf("close gives %v: it must not hide the loss", err)
	}
	if data, _ := os.ReadFile(l.path); string(data) != "not ours" {
		t.Errorf("the other file holds %q", data)
	}
}

// Opened by its end alone, a log goes on as it does when it was read whole.
func TestOpenForAppend(t *testing.T) {
	store := NewStore(fastDir(t))
	id, _ := create(t, store, 3)
	path, _ := store.find(id)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if before, _, _ = bytes.Cut(before, []byte(`{"seq":35,`)); len(before) == 0 { // the title behind the last end
		t.Fatal("no such record")
	}
	// goOn opens the log with a content, and gives the state then and the log
	// after one more turn.
	goOn := func(t *testing.T, content []byte, open func() (*Log, *State, error)) (State, []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		store.now = clock()
		l, s, err := open()
		if err != nil {
			t.Fatal(err)
		}
		opened := *s
		l.now = clock()
		appendAll(t, l, s, turn(4)...)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		after, _ := os.ReadFile(path)
		return opened, after
	}
	for name, content := range map[string][]byte{
		"ended":        before,
		"not ended":    append(bytes.Clone(before), `{"seq":35,"time":"2026-11-30T12:00:00.000Z","type":"turn/start","data":{"turn":4}}`+"\n"...),
		"torn":         append(bytes.Clone(before), `{"seq":35,"ti`...),
		"no line feed": bytes.TrimSuffix(before, []byte("\n")),
		"header alone": before[:bytes.IndexByte(before, '\n')+1],
		"no header":    before[bytes.IndexByte(before, '\n')+1:],
	} {
		t.Run(name, func(t *testing.T) {
			want, wantLog := goOn(t, content, func() (*Log, *State, error) { return store.Open(id) })
			got, gotLog := goOn(t, content, func() (*Log, *State, error) {
				l, err := store.OpenForAppend(id)
				if err != nil {
					return nil, nil, err
				}
				s, err := l.Fold()
				return l, s, err
			})
			// What is wrong is told by both, also what opening has put right.
			sameState(t, &got, &want)
			if !slices.Equal(got.Warnings, want.Warnings) || (name == "torn") != warned(&got, "incomplete") {
				t.Errorf("warnings %v, want %v", got.Warnings, want.Warnings)
			}
			if !bytes.Equal(gotLog, wantLog) {
				t.Errorf("got\n%s\nwant\n%s", gotLog, wantLog)
			}
		})
	}
}

// What was appended since is in what is folded then, whatever opening has read.
func TestOpenForAppendFoldsTheLogAsItIs(t *testing.T) {
	store := NewStore(fastDir(t))
	id, _ := create(t, store, 1)
	path, _ := store.find(id)
	data, _ := os.ReadFile(path)
	_, headless, _ := bytes.Cut(data, []byte("\n"))
	if err := os.WriteFile(path, append(headless, "{torn"...), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := store.OpenForAppend(id)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Append(user("more")); err != nil {
		t.Fatal(err)
	}
	s, err := l.Fold()
	if err != nil || s.ID != id || s.NextSeq != l.seq || s.Messages[len(s.Messages)-1].Text() != "more" {
		t.Errorf("%v, %+v", err, s)
	}
}

func TestOpenForAppendRefuses(t *testing.T) {
	store := NewStore(fastDir(t))
	id, _ := create(t, store, 1)
	l, err := store.OpenForAppend(id)
	if err != nil {
		t.Fatal(err)
	}
	if l.ID() != id || l.CWD() != "/home/ann/site" {
		t.Errorf("session %s of %s", l.ID(), l.CWD())
	}
	if _, err := store.OpenForAppend(id); !errors.As(err, new(*InUseError)) {
		t.Errorf("a second writer: %v", err)
	}
	l.Close()
	path, _ := store.find(id)
	data, _ := os.ReadFile(path)
	data = bytes.Replace(data, []byte(`"version":1`), []byte(`"version":2`), 1)
	ended := data[:bytes.LastIndexByte(data[:len(data)-1], '\n')+1] // with the end of a turn
	for _, data := range [][]byte{data, ended} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = store.OpenForAppend(id)
		if newer, ok := errors.AsType[*VersionError](err); !ok || !reflect.DeepEqual(newer, &VersionError{ID: id, Version: 2}) {
			t.Errorf("a newer version: %v", err)
		}
	}
	if _, err := store.OpenForAppend("01arz3ndek0000000000000000"); !errors.Is(err, ErrNotFound) {
		t.Errorf("no such session: %v", err)
	}
}
