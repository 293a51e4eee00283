package budget

import "testing"

// A tool result is priced as its JSON form, without making that.
func FuzzTightResult(f *testing.F) {
	for _, s := range []string{
		"", "\n", "\t\tname", "\not", "\nNot", "\n\nested_value", "a\nb\n", "(\"x\")\n\t\\", "x ", "x \n", "x  \n", "  ", "1\n1",
		"\notification\nheconfigurations", "no\now\new\none", "\"\"\"\"\"\"", "\\\\\\\\\\", "======\n------", "é\né", "a\x7fb", "a\rb", "\x00", "\xff\n",
		"say\nothing else", "the\nthe\nthe\ttitle", mixedText, prose(300),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := tightResult(s), tightText(jsonString(s)); got != want {
			t.Errorf("tightResult(%q) = %d, want %d", s, got, want)
		}
	})
}
