package tool

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestReplacementIsReplace: on a text with "\n" line ends an edit is
// strings.Replace, and on the same text with "\r\n" it is the same edit.
func TestReplacementIsReplace(t *testing.T) {
	letters := rapid.StringOfN(rapid.SampledFrom([]rune("ab \n")), 1, 12, -1)
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(letters, 0, 8).Draw(rt, "text"), "")
		r := replacement{old: letters.Draw(rt, "old"), new: letters.Draw(rt, "new"), all: rapid.Bool().Draw(rt, "all")}
		n := strings.Count(text, r.old)
		got, line, count, err := r.apply(context.Background(), text)
		if n == 0 || r.old == r.new || n > 1 && !r.all {
			if err == nil {
				rt.Fatalf("%d matches, no error", n)
			}
		} else {
			want := strings.Replace(text, r.old, r.new, -1)
			wantLine := 1 + strings.Count(text[:strings.Index(text, r.old)], "\n")
			if err != nil || got != want || count != n || line != wantLine {
				rt.Fatalf("%q in line %d, %d times, %v; want %q in line %d, %d times", got, line, count, err, want, wantLine, n)
			}
		}
		dos, dosLine, dosCount, dosErr := r.apply(context.Background(), toCRLF(text))
		if (err == nil) != (dosErr == nil) || dosCount != count || dosLine != line {
			rt.Fatalf("with CRLF: %v, %d, line %d", dosErr, dosCount, dosLine)
		}
		// A text without a line end has no style to keep.
		if err == nil && strings.Contains(text, "\n") && dos != toCRLF(got) {
			rt.Fatalf("with CRLF: %q, want %q", dos, toCRLF(got))
		}
	})
}

func TestReplacementInMixedText(t *testing.T) {
	const text = "a\r\nb\nc\r\nd"
	for _, c := range []struct{ old, new, want string }{
		{"a\nb", "A\nB", "A\r\nB\nc\r\nd"},
		{"b\nc", "B\nC", "a\r\nB\nC\r\nd"},
		{"d", "d\ne", "a\r\nb\nc\r\nd\r\ne"},
		{"\nb", "\nx\nb", "a\r\nx\r\nb\nc\r\nd"},
		{"a\r\nb", "a\nb", "a\nb\nc\r\nd"}, // exact: both sides say what they mean
		{"b\r\nc", "x", "a\r\nx\r\nd"},     // not exact, but for the line end
	} {
		got, _, _, err := replacement{old: c.old, new: c.new}.apply(context.Background(), text)
		if err != nil || got != c.want {
			t.Errorf("%q -> %q: %q, %v; want %q", c.old, c.new, got, err, c.want)
		}
	}
}

func TestNoMatchSays(t *testing.T) {
	var long strings.Builder
	for i := range 100 {
		fmt.Fprintf(&long, "line number %d of a long file\n", i)
	}
	for _, c := range []struct{ name, text, old, want string }{
		{"inside", "a = b\n", "a  =  b", "inside line 1 of old"},
		{"indent", "  a\n    b\n", "  a\n  b", "line 2 of old is indented by 2 spaces, the file by 4 spaces"},
		{"mixed indent", "\t a\n", "a", ""},
		{"several lines", long.String(), "line number 41 of a short file\nline number 42 of a short file\nx", "Nearest is lines 42-44"},
		{"last line end", "a\nb", "a\nb\n", "only white space is different from lines 1-2 (at the end)"},
		{"many", strings.Repeat("x\n", 50), "x", "matches 50 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...:"},
		{"blank", "a\n", "\n\n\n", "nothing similar"},
	} {
		_, _, _, err := replacement{old: c.old, new: "new"}.apply(context.Background(), c.text)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if err != nil && len(err.Error()) > maxShownBytes+500 {
			t.Errorf("%s: the error has %d bytes", c.name, len(err.Error()))
		}
	}
}

// TestEditTwicePrepared: two edits of one answer are prepared before either runs.
func TestEditTwicePrepared(t *testing.T) {
	w := &Workspace{Dir: resolvedTempDir(t)}
	writeFile(t, w.Dir+"/a.txt", "one\ntwo\n")
	var actions []*Action
	for _, word := range []string{"one", "two"} {
		a, err := Prepare(t.Context(), Edit(w), mustJSON(t, m{"path": "a.txt", "old": word, "new": strings.ToUpper(word)}))
		if err != nil {
			t.Fatal(err)
		}
		actions = append(actions, a)
	}
	for _, a := range actions {
		if r := Run(t.Context(), a, nil); r.Status != StatusOK {
			t.Fatal(r.Text)
		}
	}
	if got := readFile(t, w.Dir+"/a.txt"); got != "ONE\nTWO\n" {
		t.Errorf("%q", got)
	}
	if r := Run(t.Context(), actions[0], nil); r.Status != StatusError || r.Diff != nil {
		t.Errorf("the text is gone, and yet: %+v", r)
	}
}

// TestDiffLines: the counts are those of the whole texts.
func TestDiffLines(t *testing.T) {
	texts := rapid.StringOfN(rapid.SampledFrom([]rune("ab\n")), 0, 20, -1)
	rapid.Check(t, func(rt *rapid.T) {
		d := &Diff{Old: texts.Draw(rt, "old"), New: texts.Draw(rt, "new")}
		added, removed := d.Lines()
		if added-removed != countLines(d.New)-countLines(d.Old) || (added+removed > 0) != (d.Old != d.New) ||
			added > countLines(d.New) || removed > countLines(d.Old) {
			rt.Fatalf("+%d -%d", added, removed)
		}
	})
}

func TestDiff(t *testing.T) {
	d := &Diff{Path: "/x/a.txt", Old: "1\n2\n3\n4\n5\n", New: "1\n2\nthree\n4\n5\n6"}
	if added, removed := d.Lines(); added != 2 || removed != 1 {
		t.Errorf("+%d -%d", added, removed)
	}
	if got := d.Unified("a.txt"); !strings.HasPrefix(got, "--- a/a.txt\n+++ b/a.txt\n@@ -1,5 +1,6 @@\n") ||
		!strings.Contains(got, "-3\n+three\n") {
		t.Errorf("%s", got)
	}
	d = &Diff{Path: "/x/a.txt", New: "1\n", Created: true}
	if got := d.Unified(""); !strings.HasPrefix(got, "--- /dev/null\n+++ b//x/a.txt\n") {
		t.Errorf("%s", got)
	}
	if got := (&Diff{Old: "a", New: "a"}).Unified("a"); got != "" {
		t.Errorf("nothing changes: %s", got)
	}
}
