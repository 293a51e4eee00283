package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestInitShowsEveryKey parses the file as it is written and with every setting
// in force.
func TestInitShowsEveryKey(t *testing.T) {
	c, err := Parse("config.toml", []byte(initText))
	if err != nil || !reflect.DeepEqual(c, &Config{Path: "config.toml"}) {
		t.Errorf("as written: %+v, %v", c, err)
	}
	all := []byte(regexp.MustCompile(`(?m)^#(\S)`).ReplaceAllString(initText, "$1"))
	if _, err := Parse("config.toml", all); err != nil {
		t.Fatal(err)
	}
	for _, want := range patterns(reflect.TypeFor[file](), nil) {
		if !slices.ContainsFunc(keyPositions(all), func(k keyPosition) bool { return fits(k.path, want) }) {
			t.Errorf("the text of drover config init does not show %s", strings.Join(want, "."))
		}
	}
}

// patterns lists every key of the file, with a star for what a person chooses.
func patterns(t reflect.Type, prefix []string) [][]string {
	switch t.Kind() {
	case reflect.Map:
		return patterns(t.Elem(), append(slices.Clone(prefix), "*"))
	case reflect.Struct:
		var all [][]string
		for _, f := range reflect.VisibleFields(t) {
			all = append(all, patterns(f.Type, append(slices.Clone(prefix), f.Tag.Get("toml")))...)
		}
		return all
	}
	return [][]string{prefix}
}

func fits(path, pattern []string) bool {
	return slices.EqualFunc(path, pattern, func(a, b string) bool { return b == "*" || a == b })
}

func TestInit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "config.toml")
	if err := Init(path); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil || runtime.GOOS != "windows" && st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Init(path); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	if data, _ := os.ReadFile(path); string(data) != "mine" {
		t.Errorf("%s", data)
	}
	if err := Init(""); !errors.Is(err, ErrNoHome) {
		t.Errorf("%v", err)
	}
}
