package tui

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
)

func FuzzComposer(f *testing.F) {
	f.Add("hello\nworld", []byte{0, 1, 2, 3, 4, 5}, uint8(10))
	f.Add("漢字👨‍👩‍👧e\u0301\x1b[2J", []byte{3, 3, 9, 12, 13, 9}, uint8(3))
	keys := []string{
		"left", "right", "home", "end", "backspace", "delete", "alt+left", "alt+right", "ctrl+w", "ctrl+k", "ctrl+u", "alt+enter",
	}
	f.Fuzz(func(t *testing.T, text string, presses []byte, w uint8) {
		if len(text) > 1<<10 || len(presses) > 200 {
			return
		}
		width := 12 + int(w)%100
		c := composer{history: []string{"earlier\nprompt", "another"}, recall: 2}
		c.insert(text)
		for _, p := range presses {
			switch n := int(p) % (len(keys) + 3); {
			case n < len(keys):
				c.key(keys[n], "")
			case n == len(keys):
				c.vertical(false, width-2)
			case n == len(keys)+1:
				c.vertical(true, width-2)
			default:
				c.key("", text[:min(len(text), 3)])
			}
			if !utf8.ValidString(c.text) || c.cursor < 0 || c.cursor > len(c.text) || !utf8.ValidString(c.text[:c.cursor]) {
				t.Fatalf("%q, cursor %d", c.text, c.cursor)
			}
			lines, row, column := c.view(width, maxComposer, "hint")
			checkLines(t, lines, width)
			if len(lines) > maxComposer || row < 0 || row >= len(lines) || column < 2 || column > width {
				t.Fatalf("%d lines, cursor %d, %d of %q", len(lines), row, column, c.text)
			}
		}
	})
}

func TestComposerKeys(t *testing.T) {
	var c composer
	for _, step := range []struct{ key, text, want string }{
		{"", "one two", "one two|"}, {"ctrl+w", "", "one |"}, {"", "2", "one 2|"}, {"home", "", "|one 2"}, {"alt+right", "", "one| 2"},
		{"alt+enter", "", "one\n| 2"}, {"ctrl+k", "", "one\n|"}, {"backspace", "", "one|"}, {"ctrl+u", "", "|"}, {"", "e\u0301x", "e\u0301x|"},
		{"left", "", "e\u0301|x"}, {"backspace", "", "|x"}, {"delete", "", "|"},
	} {
		c.key(step.key, step.text)
		if got := c.text[:c.cursor] + "|" + c.text[c.cursor:]; got != step.want {
			t.Fatalf("after %s%s: %q, want %q", step.key, step.text, got, step.want)
		}
	}
}

func TestHistory(t *testing.T) {
	var c composer
	c.remember("first")
	c.remember("second\nline")
	c.insert("draft")
	for _, step := range []struct {
		down bool
		want string
	}{{false, "second\nline"}, {false, "second\nline"}, {false, "first"}, {false, "first"}, {true, "second\nline"}, {true, "draft"}, {true, "draft"}} {
		if c.vertical(step.down, 80); c.text != step.want {
			t.Fatalf("%q, want %q", c.text, step.want)
		}
	}
}

func TestCompletion(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"src/main.go": "", "src/herd.go": "", "README.md": "", "secret.log": "", ".gitignore": "*.log\n"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := scripted(32768, llmtest.Say("seen"))
	drive(t, newOptions(t, dir, p), func(d *driver) {
		d.wait(100 * time.Millisecond)
		d.write("look at @")
		d.wait(100 * time.Millisecond)
		d.shows("src/main.go", "src/herd.go", "README.md")
		d.hides("secret.log")
		d.write("hrd")
		d.shows("▸ src/herd.go")
		d.press("tab")
		d.shows("❯ look at src/herd.go")
		d.press("enter")
		d.wait(100 * time.Millisecond)
		if text := p.Requests()[0].Messages[0].Text(); text != "look at src/herd.go" {
			t.Errorf("sent %q", text)
		}
		d.write("/mo")
		d.shows("▸ /model", "/mode")
		d.press("down", "enter", "enter")
		d.shows("Mode", "read-only")
	})
}

func TestMatchFiles(t *testing.T) {
	files := []string{"a/b/config.go", "cmd/main.go", "config.go", "docs/c.md"}
	for word, want := range map[string]string{
		"": "config.go", "config": "config.go", "CMD": "cmd/main.go", "main": "cmd/main.go", "bcg": "a/b/config.go", "zzz": "",
	} {
		got := matchFiles(files, word)
		if want == "" && len(got) > 0 || want != "" && (len(got) == 0 || word != "" && got[0] != want) || word == "" && len(got) != len(files) {
			t.Errorf("%q gives %v", word, got)
		}
	}
}

// TestPasteTooLong: what a prompt has no room for is not left out in silence.
func TestPasteTooLong(t *testing.T) {
	drive(t, newOptions(t, t.TempDir(), scripted(32768)), func(d *driver) {
		d.wait(100 * time.Millisecond)
		c := &d.s.composer
		if lost := c.insert(strings.Repeat("é", maxPrompt/2-1)); lost != 0 {
			t.Errorf("%d bytes are lost of what fits", lost)
		}
		d.exec(d.s.paste("aéé")) // and is not drawn, which takes a while
		if len(c.text) != maxPrompt-1 || !strings.HasSuffix(c.text, "éa") {
			t.Errorf("the composer has %d bytes, the last are %q", len(c.text), c.text[len(c.text)-4:])
		}
		c.clear()
		d.shows("A prompt holds 1 MiB: 4 bytes of the text are left out.")
	})
}

// onePixel is a GIF.
const onePixel = "GIF89a\x01\x00\x01\x00\x00\x00\x00!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x01D\x00;"

// TestImagePaths: a path means the same in each way in which terminals quote one.
func TestImagePaths(t *testing.T) {
	if filepath.Separator != '/' {
		return // no shell's quoting
	}
	for pasted, want := range map[string]string{
		`'/a/it'\''s it.png'`:     "/a/it's it.png",
		`"/a/it's it.png"`:        "/a/it's it.png",
		`/a/it\'s\ it.png`:        "/a/it's it.png",
		`/a/it's it.png`:          "/a/it's it.png",
		`'/a/back\slash.png'`:     `/a/back\slash.png`,
		`"/a/b\c.png"`:            `/a/b\c.png`,
		`"/a/\"quoted\".png"`:     `/a/"quoted".png`,
		`'/a/one.png' '/a/b.png'`: "",
		`'/a/one.png`:             "",
		`'/a/one.txt'`:            "",
	} {
		if path, ok := imageFile(pasted, "/d"); path != want || ok != (want != "") {
			t.Errorf("%s gives %q, %t", pasted, path, ok)
		}
	}
}

// TestImages: the path of an image that is pasted or dropped becomes an
// attachment, and one of something else stays text.
func TestImages(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mý cat (1).gif")
	if err := os.WriteFile(file, []byte(onePixel), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "no.png"), []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := scripted(32768, llmtest.Say("a cat"))
	drive(t, newOptions(t, dir, p), func(d *driver) {
		d.wait(100 * time.Millisecond)
		escaped := strings.NewReplacer(" ", `\ `, "(", `\(`, ")", `\)`).Replace(file)
		for _, pasted := range []string{file, escaped, "'" + file + "'\n", (&url.URL{Scheme: "file", Path: file}).String(), "file://localhost" + file} {
			d.send(tea.PasteMsg{Content: pasted})
			d.wait(50 * time.Millisecond)
			d.shows("[image mý cat (1).gif] 1 × 1")
			d.press("backspace")
			d.hides("[image")
		}
		d.send(tea.PasteMsg{Content: filepath.Join(dir, "gone.png")})
		d.wait(50 * time.Millisecond)
		d.shows("gone.png")
		d.press("ctrl+u")
		d.send(tea.PasteMsg{Content: "no.png"})
		d.wait(50 * time.Millisecond)
		d.shows("not a PNG, JPEG, GIF or WebP file")
		d.send(tea.PasteMsg{Content: file})
		d.wait(50 * time.Millisecond)
		d.write("/model lab/brook-7b")
		d.press("enter")
		d.wait(50 * time.Millisecond)
		d.shows("[image mý cat (1).gif] 1 × 1")
		d.write("what is it?")
		d.press("enter")
		d.wait(200 * time.Millisecond)
		d.shows("❯ [image mý cat (1).gif] what is it?", "a cat")
		parts := p.Requests()[0].Messages[0].Parts
		if !slices.ContainsFunc(parts, func(p llm.Part) bool { _, ok := p.(*llm.Image); return ok }) {
			t.Errorf("sent %v", parts)
		}
	})
}
