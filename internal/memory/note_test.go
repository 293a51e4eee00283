package memory

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, content        string
		title, summary, text string
		problem              string
	}{
		{name: "whole", content: "---\ntitle: Build\nsummary: make build\n---\n\nRun `make`.\n", title: "Build", summary: "make build", text: "Run `make`."},
		{name: "title alone", content: "---\ntitle: Build\n---", title: "Build"},
		{name: "windows", content: "\ufeff---\r\ntitle: Build\r\n---\r\na\r\nb\r\n", title: "Build", text: "a\nb"},
		{name: "quoted", content: "---\ntitle: \"a: \\\"b\\\"\"\nsummary: 'it''s'\n---\n", title: `a: "b"`, summary: "it's"},
		{name: "colon", content: "---\ntitle: a: b\n---\n", title: "a: b"},
		{name: "other keys", content: "---\n# comment\ntags:\n  - title: x\ntitle: Build\ndate: 2026\n---\n", title: "Build"},
		{name: "a rule in the text", content: "---\ntitle: T\n---\na\n---\nb", title: "T", text: "a\n---\nb"},
		{name: "empty", content: "", problem: "does not begin with front matter"},
		{name: "no front matter", content: "# Build\n", problem: "does not begin with front matter"},
		{name: "no end", content: "---\ntitle: x\n", problem: "has no end"},
		{name: "no title", content: "---\nsummary: x\n---\n", problem: "title must not be empty"},
		{name: "twice", content: "---\ntitle: x\ntitle: y\n---\n", problem: "title is given twice"},
		{name: "open quote", content: "---\ntitle: \"x\n---\n", problem: "no complete quoted text"},
		{name: "open single quote", content: "---\ntitle: '\n---\n", problem: "no complete quoted text"},
		{name: "block", content: "---\nsummary: |\n  x\ntitle: y\n---\n", problem: "must stand in one line"},
		{name: "long title", content: "---\ntitle: " + strings.Repeat("ä", MaxTitle+1) + "\n---\n", problem: "more than 100"},
		{name: "long summary", content: "---\ntitle: x\nsummary: " + strings.Repeat("ä", MaxSummary+1) + "\n---\n", problem: "more than 300"},
		{name: "long text", content: "---\ntitle: x\n---\n" + strings.Repeat("a", MaxText+1), problem: "more than 16384"},
		{name: "binary", content: "---\ntitle: x\n---\na\x00b", problem: "control characters"},
		{name: "escapes", content: "---\ntitle: x\n---\n\x1b[2J", problem: "control characters"},
		{name: "no UTF-8", content: "---\ntitle: x\n---\n\xff", problem: "no UTF-8"},
		{name: "direction", content: "---\ntitle: x\u202ey\n---\n", problem: "cannot be seen"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, err := parse(tt.content)
			if tt.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tt.problem) {
					t.Errorf("error %v, want %s", err, tt.problem)
				}
				return
			}
			if err != nil || n.Title != tt.title || n.Summary != tt.summary || n.Text != tt.text {
				t.Errorf("%+v %v", n, err)
			}
		})
	}
}

func anyNote() *rapid.Generator[Note] {
	return rapid.Custom(func(t *rapid.T) Note {
		return Note{
			Title:   rapid.StringMatching(`.{0,40}|[a-z:"'# \\-]{1,20}`).Draw(t, "title"),
			Summary: rapid.StringMatching(`.{0,80}|[a-z:"'# |>-]{0,20}`).Draw(t, "summary"),
			Text:    rapid.SampledFrom([]string{"", "---", "a\n\n---\nb", "\ttab\n- x"}).Draw(t, "text") + rapid.String().Draw(t, "more"),
		}
	})
}

// Whatever is kept reads the same again.
func TestFormatAndParseAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := anyNote().Draw(t, "note")
		if n.clean() != nil {
			t.Skip()
		}
		again, err := parse(n.format())
		if err != nil || again != n {
			t.Fatalf("%q\ngave %+v %v\nwant %+v", n.format(), again, err, n)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("---\ntitle: x\nsummary: 'y'\n---\nz\n")
	f.Add("---\ntitle: \"\n---")
	f.Fuzz(func(t *testing.T, content string) {
		n, err := parse(content)
		if err != nil {
			return
		}
		if again, err := parse(n.format()); err != nil || again != n {
			t.Errorf("%+v became %+v %v", n, again, err)
		}
	})
}

func TestSlug(t *testing.T) {
	for title, want := range map[string]string{
		"Build with make": "build-with-make",
		"../../etc/x.md":  "etc-x-md",
		"C++ & Go!":       "c-go",
		"CON":             "con-9c20e4f7",
		"lpt1":            "lpt1-",
		"Größe":           "gr-e-",
		"日本語":             "",
		"...":             "",
	} {
		got := slug(title)
		if strings.HasSuffix(want, "-") || want == "" {
			got = got[:len(got)-8] // the checksum
		}
		if title != "CON" && got != want || title == "CON" && !strings.HasPrefix(got, "con-") {
			t.Errorf("%q: %q, want %q", title, got, want)
		}
	}
	if slug("Größe") == slug("Grüße") {
		t.Error("two titles, one name")
	}
	safe := regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,75}$`)
	rapid.Check(t, func(t *rapid.T) {
		if name := slug(rapid.String().Draw(t, "title")); !safe.MatchString(name) || reserved(name) {
			t.Fatalf("name %q", name)
		}
	})
}
