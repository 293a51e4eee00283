package tui

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/rivo/uniseg"
)

var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

// plainText takes out the sequences for styles, the only ones there may be.
func plainText(s string) string { return sgr.ReplaceAllString(s, "") }

// letters are what of a text must reach the screen wherever it stands.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

func checkLines(t *testing.T, lines []string, width int) {
	t.Helper()
	for _, l := range lines {
		text := plainText(l)
		if n := uniseg.StringWidth(text); n > width {
			t.Errorf("%d columns, wider than %d: %q", n, width, l)
		}
		if i := strings.IndexFunc(text, hidden); i >= 0 {
			t.Errorf("control character at %d of %q", i, l)
		}
	}
}

const markdownSample = `# Heading *one*

Some **bold** and *italic* text with ` + "`code`" + `, a [link](https://example.org) and <https://go.dev>.
A second line &amp; an escape \*here\*.

- first
- second with
  more
  1. inner one
  2. inner two

> quoted
> text

` + "```go\nfunc main() {\n\tprintln(\"hi\")\n}\n```" + `

| name | tokens |
|:-----|------:|
| one  | 1,234 |
| a` + "`x\\|y`" + ` | 5 |

---
![alt](pic.png)
`

func TestMarkdown(t *testing.T) {
	got := plainText(strings.Join(renderMarkdown(markdownSample, 60), "\n"))
	want := `Heading one

Some bold and italic text with code, a link
(https://example.org) and https://go.dev.
A second line & an escape *here*.

• first
• second with
  more
  1. inner one
  2. inner two

▌ quoted
▌ text

go
  func main() {
      println("hi")
  }

name │ tokens
─────┼───────
one  │  1,234
ax|y │      5

────────────────────────────────────────

[image: alt (pic.png)]`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestStreamIsTheSameInPieces: what is on the screen at the end does not depend
// on how the text came.
func TestStreamIsTheSameInPieces(t *testing.T) {
	for _, width := range []int{20, 80} {
		var whole stream
		whole.append(markdownSample)
		want := strings.Join(whole.render(width), "\n")
		for _, size := range []int{1, 3, 7} {
			var s stream
			for rest := markdownSample; rest != ""; {
				n := min(size, len(rest))
				s.append(rest[:n])
				rest = rest[n:]
				checkLines(t, s.render(width), width)
			}
			if got := strings.Join(s.render(width), "\n"); got != want {
				t.Errorf("width %d, pieces of %d:\n%s\nwant:\n%s", width, size, got, want)
			}
		}
	}
}

// TestNothingIsCut: a source that is wider than the terminal is shown to its
// last letter, wherever it stands.
func TestNothingIsCut(t *testing.T) {
	const words = "some words that are wider than the terminal is"
	for _, source := range []string{
		words, "# " + words, "- " + words, "> " + words, "1. - > " + words,
		"~~~" + words, "```" + words, "```go " + words + "\ncode\n```", "> ~~~ " + words,
		"```\n" + words, "    " + words, "<div>" + words, "<!--" + words,
		"| a | b |\n|---|---|\n| " + words + " | c |", "`" + words + "`", "[" + words + "](target)",
		"[text](<" + words + ">)", "![" + words + "](x)", "<https://example.org/" + strings.ReplaceAll(words, " ", "/") + ">",
		strings.ReplaceAll(words, " ", ""), "[" + words + "]: target",
	} {
		for _, width := range []int{10, 13, 20} {
			kept(t, source, renderMarkdown(source, width))
			var s stream
			s.append(source + "\n\nend")
			kept(t, source, s.render(width))
		}
	}
}

// TestStreamKeepsWhatIsFinished: a long answer is not rendered again with every
// word.
func TestStreamKeepsWhatIsFinished(t *testing.T) {
	var s stream
	for range 200 {
		s.append(markdownSample)
	}
	s.render(80)
	if left := s.text.Len() - s.tail; left > len(markdownSample) {
		t.Errorf("%d bytes would be rendered again", left)
	}
	var code stream
	code.append("```\n" + strings.Repeat("line of code\n", 5000) + "last")
	if n := len(code.render(80)); n != 5001 {
		t.Errorf("%d lines", n)
	}
	if left := code.text.Len() - code.tail; left > 10 {
		t.Errorf("%d bytes of a block of code would be rendered again", left)
	}
}

func TestATableThatIsTooWide(t *testing.T) {
	table := "| a | b |\n|---|---|\n| " + strings.Repeat("word ", 30) + " | x |\n"
	lines := renderMarkdown(table, 40)
	checkLines(t, lines, 40)
	if len(lines) < 5 || strings.Count(strings.Join(lines, "\n"), "word") != 30 {
		t.Errorf("got:\n%s", strings.Join(lines, "\n"))
	}
	wide := strings.Repeat("| column ", 12) + "|\n" + strings.Repeat("|---", 12) + "|\n" + strings.Repeat("| cell ", 12) + "|\n"
	lines = renderMarkdown(wide, 40)
	checkLines(t, lines, 40)
	if len(lines) != 24 {
		t.Errorf("got:\n%s", strings.Join(lines, "\n"))
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add(markdownSample, uint8(40), uint8(5))
	f.Add("> > > - 1. **x\x1b[31m\u202e", uint8(10), uint8(1))
	f.Add("|a|b|\n|-|:-:|\n|\\||`|`|c|\n", uint8(3), uint8(2))
	f.Add("~~~\n\tx\n~~~\n&#x1b;[2J 👨‍👩‍👧 🇩🇪 漢字\ufe0f", uint8(12), uint8(9))
	f.Fuzz(func(t *testing.T, source string, w, piece uint8) {
		if len(source) > 4<<10 {
			return
		}
		source = strings.ToValidUTF8(source, "\uFFFD")
		width := 10 + int(w)%120
		lines := renderMarkdown(source, width)
		checkLines(t, lines, width)
		var s stream
		for rest := source; rest != ""; {
			n := min(1+int(piece), len(rest))
			s.append(rest[:n])
			rest = rest[n:]
			checkLines(t, s.render(width), width)
		}
		kept(t, source, lines)
		kept(t, source, s.render(width))
	})
}

// kept checks that every letter of a source is shown. Numbers of lists are
// counted anew, and entities mean other letters.
func kept(t *testing.T, source string, lines []string) {
	t.Helper()
	if strings.ContainsAny(source, "&\\") {
		return
	}
	shown := make(map[rune]int)
	for _, r := range letters(plainText(strings.Join(lines, "\n"))) {
		shown[r]++
	}
	for _, r := range letters(source) {
		if unicode.IsDigit(r) {
			continue
		}
		if shown[r]--; shown[r] < 0 {
			t.Fatalf("%q is lost from %q:\n%q", r, source, lines)
		}
	}
}
