package tool

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestArguments(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"s":"x","n":3,"b":true}`, "x 3 true"},
		{`{"s":"x","n":"3","b":"true"}`, "x 3 true"},
		{`{"s":"x","n":3.0,"b":"False"}`, "x 3 false"},
		{`{"s":"x","n":1e3}`, "x 1000 false"},
		{`{"s":"x","n":99999999999}`, "x 2147483647 false"},
		{` {"s":"","n":null,"b":null} `, " 7 false"},
		{``, `argument "s" is missing`},
		{`{"s":null}`, `argument "s" is missing`},
		{`{"s":1}`, `argument "s" must be a string, not 1`},
		{`{"s":"x","n":"three"}`, `argument "n" must be a whole number from 1, not "three"`},
		{`{"s":"x","n":0}`, `argument "n" must be a whole number from 1, not 0`},
		{`{"s":"x","n":1.5}`, `argument "n" must be a whole number from 1, not 1.5`},
		{`{"s":"x","n":"Inf"}`, `argument "n" must be a whole number from 1, not "Inf"`},
		{`{"s":"x","n":"NaN"}`, `argument "n" must be a whole number from 1, not "NaN"`},
		{`{"s":"x","b":1}`, `argument "b" must be true or false, not 1`},
		{`{"S":"x"}`, `unknown argument "S": did you mean "s"? (there are s, n, b)`},
		{`{"zebra":"x"}`, `unknown argument "zebra" (there are s, n, b)`},
		{`{"s":"x","s":"y"}`, `argument "s" is given twice`},
		{`"x"`, `the arguments must be one JSON object`},
		{`{"s":"x"`, `the arguments are no complete JSON object: they end too early`},
		{`{"s":"x",}`, `the arguments are no valid JSON`},
		{`{"s":"x"}}`, `the arguments must be one JSON object with nothing behind it`},
		{`{'s':"x"}`, `the arguments are no valid JSON`},
	} {
		a := parseArguments(c.text, "s", "n", "b")
		s, n, b := a.text("s"), a.number("n", 7, 1), a.flag("b")
		got := strings.TrimSuffix(mustJSON(t, n), "\n")
		got = s + " " + got + " " + mustJSON(t, b)
		if err := a.err(); err != nil {
			got = err.Error()
		}
		if got != c.want && !(strings.HasPrefix(c.want, "the arguments are no valid") && strings.HasPrefix(got, c.want)) {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
	}
	long := `{"s":"` + strings.Repeat("x", maxArguments-8) + `"}`
	if err := parseArguments(long, "s").err(); err != nil {
		t.Errorf("%d bytes: %v", len(long), err)
	}
	if err := parseArguments(long+" ", "s").err(); err == nil {
		t.Errorf("%d bytes are taken", len(long)+1)
	}
}

func TestNearest(t *testing.T) {
	names := []string{"path", "old", "new", "all", "content", "command", "ignore_case"}
	for name, want := range map[string]string{
		"file_path": "path", "old_string": "old", "new_str": "new", "Path": "path", "comand": "command", "contents": "content",
		"ignoreCase": "ignore_case", "paht": "path", "x": "", "zebra": "", "": "",
	} {
		if got := nearest(name, names); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// FuzzArguments: whatever a model writes, the outcome is values or an error, and
// what is taken is what a JSON decoder finds.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{"s":"x","n":"10","b":true}`, `{"s":"\ud800","n":1e999}`, `{"s":{"s":1}}`, `[`, ``, `{"n":-0}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a := parseArguments(text, "s", "n", "b")
		s, n, _ := a.text("s"), a.number("n", 1, 1), a.flag("b")
		if a.err() != nil {
			return
		}
		var members map[string]any
		if err := json.Unmarshal([]byte(text), &members); err != nil {
			t.Fatalf("%q was taken: %v", text, err)
		}
		if members["s"] != s || n < 1 {
			t.Errorf("%q: %q %d", text, s, n)
		}
	})
}
