package session

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// largeLog writes a log of about the given number of records and bytes, the way
// a long session of reading files looks: mostly results of source code.
func largeLog(b *testing.B, path string, records, size int) {
	b.Helper()
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	h := header{Type: headerType, Version: 1, ID: "x", CWD: "/w"}
	w.Write(h.line())
	steps := records / 5 // plan, answer, call, result, notice
	source := strings.Repeat("\tif err := f(\"x\\n\", a[i]); err != nil { // ünïcode\n\t\treturn <-ch\n\t}\n", 1+size/steps/64)[:size/steps-1300]
	write := func(seq int, rec Record) {
		*rec.stamp() = Stamp{Seq: seq, Time: time.Unix(int64(seq), 0)}
		data, err := settle(rec)
		if err != nil {
			b.Fatal(err)
		}
		line, err := appendLine(nil, rec.stamp(), rec.Kind(), data)
		if err != nil {
			b.Fatal(err)
		}
		w.Write(line)
	}
	write(0, user("read everything"))
	for i := range steps {
		id := fmt.Sprint("call_", i)
		write(5*i+1, &RequestPlan{MaxTokens: 4096, Policy: 2})
		write(5*i+2, calls(id))
		write(5*i+3, &ToolCall{ID: id, Name: "read", Arguments: `{"path":"a.go"}`, Started: true})
		write(5*i+4, result(id, source))
		write(5*i+5, &PlanNotice{Text: "left out", Exchanges: i})
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkFold(b *testing.B) {
	for _, size := range []struct{ records, mb int }{{100_000, 100}, {2_000, 2}} {
		b.Run(fmt.Sprintf("%dMB", size.mb), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "log")
			largeLog(b, path, size.records, size.mb<<20)
			info, _ := os.Stat(path)
			b.SetBytes(info.Size())
			for b.Loop() {
				f, err := os.Open(path)
				if err != nil {
					b.Fatal(err)
				}
				s, err := Fold(f)
				f.Close()
				if err != nil || len(s.Warnings) > 0 || s.NextSeq < size.records {
					b.Fatal(err, s.Warnings, s.NextSeq)
				}
			}
		})
	}
}

// BenchmarkOpen opens a session for writing and closes it, on the disk of
// temporary files.
func BenchmarkOpen(b *testing.B) {
	for _, size := range []struct{ records, mb int }{{200, 1}, {2_000, 4}, {100_000, 100}} {
		b.Run(fmt.Sprintf("%dMB", size.mb), func(b *testing.B) {
			store := NewStore(b.TempDir())
			id, _ := create(b, store, 0)
			path, _ := store.find(id)
			largeLog(b, path, size.records, size.mb<<20)
			for b.Loop() {
				l, _, err := store.Open(id)
				if err != nil {
					b.Fatal(err)
				}
				l.Close()
			}
		})
	}
}

// BenchmarkOpenForAppend is BenchmarkOpen for who does not need the state.
func BenchmarkOpenForAppend(b *testing.B) {
	store := NewStore(b.TempDir())
	id, _ := create(b, store, 0)
	path, _ := store.find(id)
	largeLog(b, path, 100_000, 100<<20)
	l, _, err := store.Open(id)
	if err != nil {
		b.Fatal(err)
	}
	l.Append(&TurnStart{})
	l.Append(&TurnEnd{Reason: EndCompleted})
	l.Close()
	for b.Loop() {
		l, err := store.OpenForAppend(id)
		if err != nil || l.seq < 100_000 {
			b.Fatal(err)
		}
		l.Close()
	}
}

// BenchmarkAppend appends a result of 4 KB: in memory, and synced to the disk of
// temporary files.
func BenchmarkAppend(b *testing.B) {
	text := strings.Repeat("\tif err != nil {\n", 256)
	b.Run("memory", func(b *testing.B) {
		l := Memory("/w")
		for b.Loop() {
			if err := l.Append(result("a", text)); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, synced := range []bool{false, true} {
		b.Run(fmt.Sprintf("disk synced=%v", synced), func(b *testing.B) {
			l, err := NewStore(b.TempDir()).Create("/w", nil)
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			for b.Loop() {
				var rec Record = result("a", text)
				if !synced {
					rec = &AssistantMessage{Text: text}
				}
				if err := l.Append(rec); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCreate(b *testing.B) {
	store := NewStore(b.TempDir())
	for b.Loop() {
		l, err := store.Create("/w", nil)
		if err != nil {
			b.Fatal(err)
		}
		l.Close()
	}
}

// BenchmarkList lists 1,000 sessions of 20 KB in 50 folders.
func BenchmarkList(b *testing.B) {
	store := NewStore(fastDir(b))
	id, _ := create(b, store, 8)
	path, _ := store.find(id)
	data, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	os.Remove(path)
	dir := b.TempDir()
	store = NewStore(dir)
	for i := range 1000 {
		h, err := newHeader(fmt.Sprintf("/w/%d", i%50), (&CreateOptions{}).orDefaultPtr())
		if err != nil {
			b.Fatal(err)
		}
		folder := filepath.Join(dir, folderName(h.CWD))
		os.MkdirAll(folder, folderMode)
		_, rest, _ := bytes.Cut(data, []byte("\n"))
		if err := os.WriteFile(filepath.Join(folder, h.ID+logSuffix), append(h.line(), rest...), fileMode); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		infos, err := store.List(nil)
		if err != nil || len(infos) != 1000 || infos[500].Turns != 8 {
			b.Fatal(err, len(infos))
		}
	}
}

func (o *CreateOptions) orDefaultPtr() *CreateOptions {
	opts := o.orDefault()
	return &opts
}
