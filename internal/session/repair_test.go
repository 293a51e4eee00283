package session

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-dev/drover/internal/llm"
)

func TestRepair(t *testing.T) {
	store := NewStore(fastDir(t))
	l, err := store.Create("/w", &CreateOptions{Now: clock()})
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, l, l.NewState(), turn(1)...)
	appendAll(t, l, l.NewState(), &Unknown{Type: "future/thing", Data: []byte(`{"keep":1.50}`)}, &UserMessage{Parts: []llm.Part{picture(t, 3)}})
	appendAll(t, l, l.NewState(), turn(2)...)
	l.Close()

	if done, err := store.Repair(l.ID()); err != nil || done.Added != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	data, _ := os.ReadFile(l.path)
	lines := slices.Collect(bytes.Lines(data))
	lines[7] = []byte("\x00\x00\x00\n")                         // the result of the first call
	lines[6] = slices.Concat(lines[6][:50], lines[6])           // fused
	lines = append(lines, lines[len(lines)-1], []byte("{torn")) // a number twice, a torn end
	damaged := bytes.Join(lines, nil)
	if err := os.WriteFile(l.path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := store.Read(l.ID())
	if err != nil || before.Intact() {
		t.Fatalf("%v, %v", before, err)
	}

	done, err := store.Repair(l.ID())
	if err != nil {
		t.Fatal(err)
	}
	if old, _ := os.ReadFile(done.Old); !bytes.Equal(old, damaged) || !strings.Contains(done.Old, ".old-") {
		t.Errorf("the old file is not kept as %s", done.Old)
	}
	if done.Kept != len(lines)-3 || done.Added != 1 || done.Left != 0 || done.Damaged != 2 {
		t.Errorf("done %+v of %d lines", done, len(lines))
	}
	after, err := store.Read(l.ID())
	if err != nil || len(after.Warnings) > 0 || !after.Intact() {
		t.Fatalf("%v, %v", after, err)
	}
	if !reflect.DeepEqual(after.Messages, before.Messages) || after.Title != before.Title || after.CWD != "/w" || after.Usage != before.Usage {
		t.Errorf("repaired:\n%q\nbefore:\n%q", short(after.Messages), short(before.Messages))
	}
	repaired, _ := os.ReadFile(l.path)
	if !bytes.Contains(repaired, []byte(`{"keep":1.50}`)) {
		t.Error("a record of a later version is lost")
	}
	if again, err := store.Repair(l.ID()); err != nil || again.Old != "" {
		t.Errorf("repairing again: %+v, %v", again, err)
	}
}

// Whatever lines go missing or come twice, what can be read is a valid history,
// and a repaired log folds to the same messages without a warning.
func TestRepairOfAnyDamage(t *testing.T) {
	store := NewStore(fastDir(t))
	id, _ := create(t, store, 3)
	path, err := store.find(id)
	if err != nil {
		t.Fatal(err)
	}
	whole, _ := os.ReadFile(path)
	lines := slices.Collect(bytes.Lines(whole))
	rapid.Check(t, func(t *rapid.T) {
		var out []byte
		for i, line := range lines {
			switch rapid.IntRange(0, 7).Draw(t, "fate") {
			case 0: // lost
			case 1: // torn, without its end
				out = append(out, line[:rapid.IntRange(1, len(line)-1).Draw(t, "cut")]...)
			case 2:
				out = append(out, line...)
				out = append(out, lines[rapid.IntRange(0, i).Draw(t, "again")]...)
			default:
				out = append(out, line...)
			}
		}
		if err := os.WriteFile(path, out, 0o600); err != nil {
			t.Fatal(err)
		}
		before, err := store.Read(id)
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range before.Interruption() {
			before.Apply(rec)
		}
		validHistory(t, before)
		done, err := store.Repair(id)
		if err != nil {
			t.Fatal(err)
		}
		if done.Old != "" {
			os.Remove(done.Old)
		}
		after, err := store.Read(id)
		if err != nil {
			t.Fatal(err)
		}
		if len(after.Warnings) > 0 || after.OpenTurn || !reflect.DeepEqual(after.Messages, before.Messages) {
			t.Fatalf("repaired (%v):\n%q\nbefore (%v):\n%q", after.Warnings, short(after.Messages), before.Warnings, short(before.Messages))
		}
	})
}

// A lost image is damage like any other: it is told until the log is repaired,
// and changes nothing about the other images.
func TestRepairOfLostImages(t *testing.T) {
	store := NewStore(fastDir(t))
	l, err := store.Create("/w", &CreateOptions{Now: clock()})
	if err != nil {
		t.Fatal(err)
	}
	lost, kept := picture(t, 3), picture(t, 4)
	appendAll(t, l, l.NewState(), &TurnStart{}, &UserMessage{Parts: []llm.Part{lost, llm.Text("which?"), kept}}, &TurnEnd{Reason: EndCompleted})
	l.Close()
	if err := os.Remove(filepath.Join(string(imagesOf(l.path)), lost.SHA256)); err != nil {
		t.Fatal(err)
	}
	before, err := store.Read(l.ID())
	if err != nil || len(before.Warnings) == 0 {
		t.Fatal(err, before.Warnings)
	}
	done, err := store.Repair(l.ID())
	if err != nil || done.Old == "" || done.Images != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	after, err := store.Read(l.ID())
	if err != nil || len(after.Warnings) > 0 || !reflect.DeepEqual(after.Messages, before.Messages) {
		t.Errorf("%v, %v: %q, want %q", err, after.Warnings, short(after.Messages), short(before.Messages))
	}
	if images := after.Messages[0].Images(); len(images) != 1 || images[0].SHA256 != kept.SHA256 {
		t.Errorf("images %v", images)
	}
	if again, err := store.Repair(l.ID()); err != nil || again.Old != "" {
		t.Errorf("repairing again: %+v, %v", again, err)
	}
}

// Each repair keeps what it replaces.
func TestRepairTwice(t *testing.T) {
	store := NewStore(fastDir(t))
	id, _ := create(t, store, 1)
	path, err := store.find(id)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		whole, _ := os.ReadFile(path)
		damaged := append(whole, strings.Repeat("x", n+1)...)
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		done, err := store.Repair(id)
		if err != nil {
			t.Fatal(err)
		}
		if old, _ := os.ReadFile(done.Old); !bytes.Equal(old, damaged) {
			t.Errorf("repair %d keeps another file as %s", n+1, done.Old)
		}
	}
	if old, _ := filepath.Glob(path + ".old-*"); len(old) != 3 {
		t.Errorf("kept %v", old)
	}
}

func TestVerify(t *testing.T) {
	store := NewStore(fastDir(t))
	good, _ := create(t, store, 1)
	bad, _ := create(t, store, 1)
	path, _ := store.find(bad)
	data, _ := os.ReadFile(path)
	os.WriteFile(path, bytes.Replace(data, []byte("answer 1"), []byte("answer\x00"), 1), 0o600)
	checks, err := store.Verify()
	if err != nil || len(checks) != 2 {
		t.Fatalf("%v, %v", checks, err)
	}
	for _, c := range checks {
		if c.OK() != (c.ID == good) || c.OpenTurn {
			t.Errorf("%+v", c)
		}
	}
	if _, err := store.Verify("01arz3ndek0000000000000000"); err == nil {
		t.Error("a session that is not there verifies")
	}
}
