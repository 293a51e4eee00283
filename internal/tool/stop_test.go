package tool

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// looks is a context that ends when it was looked at a number of times.
type looks struct {
	context.Context
	n   atomic.Int64
	end int64
}

func (l *looks) Err() error {
	if l.n.Add(1) > l.end {
		return context.Canceled
	}
	return nil
}

func neverEnds(t *testing.T) *looks { return &looks{Context: t.Context(), end: 1 << 60} }

// longWork is a call whose work is long, and how often at least it must look whether
// it is to stop: the bytes or lines of the work by what may be done in between.
type longWork struct {
	t     *testing.T
	name  string
	tool  Tool
	args  m
	least int64
}

func longWorks(t *testing.T) []longWork {
	w := &Workspace{Dir: resolvedTempDir(t)}
	const size = 256 << 10
	var numbered strings.Builder
	for i := 0; numbered.Len() < size; i++ {
		fmt.Fprintf(&numbered, "%d the quick brown fox jumps over the lazy dog %d\n", i, i*7919)
	}
	sentence := strings.Repeat("abcdefghij ", 8)
	for name, text := range map[string]string{
		"lines": strings.Repeat(sentence+"\n", size/len(sentence)), "line": strings.Repeat(sentence, size/len(sentence)),
		"a": strings.Repeat("a\n", size/2), "numbered": numbered.String(), "crlf": strings.Repeat("a", size) + "\r\n",
	} {
		writeFile(t, w.Dir+"/big/"+name, text)
	}
	writeFile(t, w.Dir+"/wide", numbered.String()[:size/8])
	for i := range 1500 {
		writeFile(t, fmt.Sprintf("%s/many/%d/x", w.Dir, i), "")
	}
	const minLines = 3500 // of the files below
	const slow = "(?i)(a|b|c|d)+.*(x|y|z){3,9}.*q$"
	wide := strings.Repeat("(a|b)?.{0,60}", 4) + "q$"
	return []longWork{
		{t, "grep", Grep(w), m{"pattern": slow, "path": "big/lines"}, size / (64 << 10)},
		{t, "grep in a long line", Grep(w), m{"pattern": slow, "path": "big/line"}, size / (64 << 10)},
		{t, "grep for much", Grep(w), m{"pattern": wide, "path": "wide"}, size / 8 / (8 << 10)},
		{t, "grep in a folder", Grep(w), m{"pattern": slow, "path": "big"}, 5 * size / (64 << 10)},
		{t, "grep in many folders", Grep(w), m{"pattern": "zz", "path": "many"}, 1500},
		{t, "glob", Glob(w), m{"pattern": "many/**/y"}, 1500},
		{t, "read", Read(w), m{"path": "big/numbered"}, size / (64 << 10)},
		{t, "read a folder", Read(w), m{"path": "many"}, 1500 / readBatch},
		{t, "read what is not there", Read(w), m{"path": "many/none/y"}, 1500},
		{t, "edit: equal lines", Edit(w), m{"path": "big/a", "old": strings.Repeat("a\n", 4000) + "b", "new": "x"}, minLines / similarPoll},
		{t, "edit: no line", Edit(w), m{"path": "big/numbered", "old": "the quick brown fox JUMPS over the lazy cats and birds", "new": "x"},
			minLines / similarPoll},
		{t, "edit: many matches", Edit(w), m{"path": "big/a", "old": "a", "new": "b", "all": true}, size / 2 / editPoll},
		{t, "edit: one line", Edit(w), m{"path": "big/crlf", "old": "a", "new": "b", "all": true}, size / editPoll},
	}
}

// TestEveryToolCanBeStopped: what a tool does between two looks at its context is
// bounded, and when the context has ended it does no more than a few.
func TestEveryToolCanBeStopped(t *testing.T) {
	for _, work := range longWorks(t) {
		t.Run(work.name, func(t *testing.T) {
			whole := neverEnds(t)
			do(whole, work)
			if n := whole.n.Load(); n < work.least {
				t.Fatalf("it looked %d times, not %d", n, work.least)
			}
			for _, end := range []int64{0, 1, 2, 3, whole.n.Load() / 2, whole.n.Load() - 2} {
				ctx := &looks{Context: t.Context(), end: end}
				text := do(ctx, work)
				// Searchers that run side by side each look once more, and so does
				// what puts the answer together.
				if more := ctx.n.Load() - end; more > 4*maxSearchers {
					t.Errorf("ended after %d looks, it went on for %d: %.100q", end, more, text)
				}
			}
		})
	}
}

func do(ctx context.Context, work longWork) string {
	a, err := Prepare(ctx, work.tool, mustJSON(work.t, work.args))
	if err != nil {
		return err.Error()
	}
	return Run(ctx, a, nil).Text
}

// TestNoPatternWithoutEnd: what cannot be stopped is refused before it begins.
func TestNoPatternWithoutEnd(t *testing.T) {
	w := &Workspace{Dir: resolvedTempDir(t)}
	writeFile(t, w.Dir+"/"+strings.Repeat("a", 100), "")
	many := strings.Repeat("{a,a}", 30) + "x"
	for _, c := range []struct {
		tool Tool
		args m
	}{
		{Glob(w), m{"pattern": many}}, {Grep(w), m{"pattern": "a", "glob": many}}, {Glob(w), m{"pattern": strings.Repeat("a", maxPatternBytes+1)}},
		{Glob(w), m{"pattern": "{a,{a,{a,{a,{a,{a,{a,{a,{a,{a,{a,{a,a}}}}}}}}}}}}" + many}},
		{Grep(w), m{"pattern": strings.Repeat("a", maxPatternBytes+1)}},
	} {
		if _, err := Prepare(t.Context(), c.tool, mustJSON(t, c.args)); err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("%.80v: %v", c.args, err)
		}
	}
	for _, fine := range []string{"**/*.{go,mod,sum}", "{src,test}/**/*.{js,jsx,ts,tsx,mjs,cjs,json,css}", "{cmd,internal}/*.go"} {
		if err := boundGlob(fine); err != nil {
			t.Error(err)
		}
	}
}

// TestEditCannotGrowWithoutEnd: a replacement that makes a file too large is
// refused before it is made.
func TestEditCannotGrowWithoutEnd(t *testing.T) {
	w := &Workspace{Dir: resolvedTempDir(t)}
	writeFile(t, w.Dir+"/a", strings.Repeat("a", 1<<20))
	_, err := Prepare(t.Context(), Edit(w), mustJSON(t, m{"path": "a", "old": "a", "new": strings.Repeat("b", 1<<20), "all": true}))
	if err == nil || !strings.Contains(err.Error(), "would come to have 1024.0 GB, more than 18.0 MB") {
		t.Errorf("%v", err)
	}
	if info, err := os.Stat(w.Dir + "/a"); err != nil || info.Size() != 1<<20 {
		t.Errorf("%v %v", info, err)
	}
}
