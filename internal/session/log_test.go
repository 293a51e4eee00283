package session

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
)

// A full disk takes a part of a record, for a while. Nothing is lost, nothing is
// fused, and everybody can see that it is not saved.
func TestFullDisk(t *testing.T) {
	l, d := onDisk(t)
	s := l.NewState()
	appendAll(t, l, s, user("before"))
	good := len(d.data)

	d.writeErr, d.partial = errFull, 10
	for i := range 5 {
		rec := user(fmt.Sprintf("lost %d", i))
		err := l.Append(rec)
		unsaved, ok := errors.AsType[*UnsavedError](err)
		if !ok || !errors.Is(err, errFull) || l.Unsaved() != err {
			t.Fatalf("append gives %v, unsaved %v", err, l.Unsaved())
		}
		if want := "session " + l.ID() + " is not saved: no space left on device"; unsaved.Error() != want {
			t.Errorf("message %q", unsaved)
		}
		s.Apply(rec)
		if len(d.data) != good {
			t.Fatalf("the file has %d bytes, %d are good", len(d.data), good)
		}
	}
	reloaded, err := l.Fold()
	if err != nil {
		t.Fatal(err)
	}
	sameState(t, reloaded, s) // what is in memory counts

	d.writeErr = nil
	appendAll(t, l, s, user("after"))
	if l.Unsaved() != nil {
		t.Errorf("still unsaved: %v", l.Unsaved())
	}
	onFile, err := Fold(bytes.NewReader(d.data))
	if err != nil {
		t.Fatal(err)
	}
	sameState(t, onFile, s)
	if len(onFile.Messages) != 7 {
		t.Errorf("%d messages on file", len(onFile.Messages))
	}
}

// When cutting back fails too, the next attempt writes over the rest.
func TestFullDiskThatCannotBeCut(t *testing.T) {
	l, d := onDisk(t)
	d.writeErr, d.truncateErr, d.partial = errFull, errFull, 25
	if err := l.Append(user(strings.Repeat("x", 1000))); err == nil {
		t.Fatal("no error")
	}
	if s, err := Fold(bytes.NewReader(d.data)); err != nil || s.NextSeq != 0 {
		t.Fatalf("a crash now leaves %+v, %v", s, err)
	}
	d.writeErr = nil
	if err := l.Append(user("y")); err != nil {
		t.Fatal(err)
	}
	if s, err := Fold(bytes.NewReader(d.data)); err != nil || len(s.Messages) != 2 || len(s.Warnings) > 0 {
		t.Fatalf("%+v, %v", s, err)
	}
}

// What a failed sync leaves in the file is written over where it cannot be cut
// off, and is not there twice.
func TestFailedSyncThatCannotBeCut(t *testing.T) {
	l, d := onDisk(t)
	d.syncErr, d.truncateErr = errFull, errFull
	for range 2 {
		if err := l.Append(user("x")); err == nil {
			t.Fatal("no error")
		}
	}
	d.syncErr = nil
	if err := l.Append(user("y")); err != nil {
		t.Fatal(err)
	}
	if s, err := Fold(bytes.NewReader(d.data)); err != nil || len(s.Messages) != 3 || len(s.Warnings) > 0 {
		t.Fatalf("%+v, %v", s, err)
	}
}

// After a failed sync nobody knows what is on disk: all since the last good one
// is written again.
func TestFailedSync(t *testing.T) {
	l, d := onDisk(t)
	s := l.NewState()
	appendAll(t, l, s, user("a"))
	good := len(d.data)
	appendAll(t, l, s, &Retry{Attempt: 1}) // rides along
	if len(d.data) == good {
		t.Error("a record that rides along is not in the file")
	}
	d.syncErr = errors.New("input/output error")
	rec := user("b")
	if err := l.Append(rec); err == nil {
		t.Fatal("no error")
	}
	s.Apply(rec)
	if len(d.data) != good {
		t.Errorf("the file keeps %d bytes, %d are known to be good", len(d.data), good)
	}
	reloaded, err := l.Fold()
	if err != nil {
		t.Fatal(err)
	}
	sameState(t, reloaded, s)
	d.syncErr = nil
	appendAll(t, l, s, &Retry{Attempt: 2}) // brings the gating record with it
	if l.Unsaved() != nil || l.synced != int64(len(d.data)) {
		t.Errorf("unsaved %v, %d of %d bytes synced", l.Unsaved(), l.synced, len(d.data))
	}
	if got := kinds(t, d.data); !reflect.DeepEqual(got, []string{"user/message", "retry", "user/message", "retry"}) {
		t.Errorf("records %v", got)
	}
}

// Only what gates an action waits for the disk.
func TestWhatIsSynced(t *testing.T) {
	want := map[string]bool{
		"user/message": true, "request/header": true, "tool/call": true, "tool/result": true, "turn/end": true,
	}
	for _, rec := range append(turn(1), &Retry{}, &PermissionDecision{Decision: "reject_once"}) {
		l, d := onDisk(t)
		d.syncErr = errFull
		if got := l.Append(rec) != nil; got != want[rec.Kind()] {
			t.Errorf("%s waits for the disk: %v", rec.Kind(), got)
		}
	}
	l, d := onDisk(t)
	d.syncErr = errFull
	if l.Append(&PermissionDecision{CallID: "a", Allowed: true}) == nil {
		t.Error("a decision that starts a call does not wait for the disk")
	}
	l, d = onDisk(t)
	d.syncErr = errFull
	if l.Append(&AssistantMessage{Text: strings.Repeat("x", maxUnsynced)}) == nil {
		t.Error("more than the bound rides along")
	}
}

func TestRealFullDevice(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	l := Memory("/w")
	l.file = full
	err = l.Append(user("a"))
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("append gives %v", err)
	}
	err = l.Close()
	if _, ok := errors.AsType[*UnsavedError](err); !ok {
		t.Errorf("close gives %v: it must not hide the loss", err)
	}
}

// An image that cannot be stored keeps the message that shows it back too, so
// that the log never refers to what is not there.
func TestImagesWaitTogether(t *testing.T) {
	l, d := onDisk(t)
	images := &failingImages{err: errFull}
	l.images = images
	s := l.NewState()
	before := len(d.data)
	img := picture(t, 5)
	for range 2 {
		rec := &UserMessage{Parts: []llm.Part{img, llm.Text("see")}}
		if err := l.Append(rec); !errors.Is(err, errFull) {
			t.Fatalf("append gives %v", err)
		}
		s.Apply(rec)
	}
	if len(d.data) != before {
		t.Error("the message is on file without its image")
	}
	images.err = nil
	appendAll(t, l, s, user("after"))
	reloaded, err := l.Fold()
	if err != nil {
		t.Fatal(err)
	}
	sameState(t, reloaded, s)
	if got := kinds(t, d.data); !reflect.DeepEqual(got, []string{"attachment", "user/message", "user/message", "user/message"}) {
		t.Errorf("records %v", got)
	}
}

type failingImages struct {
	imageMap
	err error
}

func (f *failingImages) put(sha string, data []byte) error {
	if f.err != nil {
		return f.err
	}
	return f.imageMap.put(sha, data)
}

func TestAppendCompletesRecords(t *testing.T) {
	l := Memory("/w")
	s := l.NewState()
	appendAll(t, l, s, turn(1)...)
	last := turn(2)
	appendAll(t, l, s, last...)
	end := last[len(last)-2].(*TurnEnd)
	if end.Turn != 2 || end.Title != "question 1" || end.Target.Model != "qwen" {
		t.Errorf("end %+v", end)
	}
	if got := last[0].(*TurnStart); got.Turn != 2 || got.Seq != 12 || got.Time.IsZero() || got.Time.Nanosecond()%1e6 != 0 {
		t.Errorf("start %+v", got)
	}
}

func TestConcurrentAppends(t *testing.T) {
	l := Memory("/w")
	pictures := []*llm.Image{picture(t, 1), picture(t, 2), picture(t, 3)}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				rec := user(fmt.Sprint(i, j))
				if j%10 == 0 {
					rec.Parts = append(rec.Parts, pictures[(i+j)%len(pictures)])
				}
				if err := l.Append(rec); err != nil {
					t.Error(err)
				}
				for range l.Records() {
					if j%10 != 0 {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	s, err := l.Fold()
	if err != nil || len(s.Messages) != 400 || len(s.Warnings) > 0 {
		t.Errorf("%v, %d messages, %v", err, len(s.Messages), s.Warnings)
	}
}

func TestMemoryLog(t *testing.T) {
	l := Memory("/w")
	s := l.NewState()
	if !l.InMemory() || l.ID() == "" || s.ID != l.ID() || s.CWD != "/w" || l.CWD() != "/w" {
		t.Errorf("log %+v, state %+v", l, s)
	}
	img := picture(t, 4)
	appendAll(t, l, s, &UserMessage{Parts: []llm.Part{&llm.Image{MediaType: "image/png", Data: img.Data}}})
	if got := s.Messages[0].Images()[0].SHA256; got != img.SHA256 {
		t.Errorf("an image without a digest is logged with %q", got)
	}
	appendAll(t, l, s, slices.Concat(turn(1), turn(2))...)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l.Append(user("x")) == nil || l.Close() != nil {
		t.Error("a closed log takes records, or cannot be closed again")
	}
	reloaded, err := l.Fold()
	if err != nil || len(reloaded.Messages) != len(s.Messages) {
		t.Errorf("a closed log folds to %+v, %v", reloaded, err)
	}
	none, err := NewStore("").Create("/w", nil)
	if err != nil || !none.InMemory() {
		t.Errorf("a store without a folder gives %v, %v", none, err)
	}
}
