package config

import (
	"errors"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A value of the wrong type, wherever it stands, is told in the words of the file and
// never in those of Go.
func TestWrongTypes(t *testing.T) {
	ours := regexp.MustCompile(`config\.|\bstruct\b|Go |map\[|\[\]|\*|int\d`)
	keys := make(map[string]bool)
	for _, key := range acceptedKeys(reflect.TypeFor[file](), "") {
		for parts := strings.Split(key, "."); len(parts) > 0; parts = parts[:len(parts)-1] {
			keys[strings.Join(parts, ".")] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		for _, value := range []string{`5`, `1.5`, `"text"`, `true`, `[5]`, `["text"]`, `[[]]`, `{}`, `[{}]`, `2026-01-02`, `10:00:00`} {
			text := key + " = " + value
			_, err := Parse("c.toml", []byte(text))
			e, ok := errors.AsType[*Error](err)
			if err != nil && !ok {
				t.Errorf("%s: %v", text, err)
				continue
			}
			if err == nil {
				continue
			}
			for _, p := range e.Problems {
				if ours.MatchString(p.Message) || p.Line != 1 || !strings.Contains(p.Message, strings.Split(key, ".")[0]) {
					t.Errorf("%s: %d:%d: %s", text, p.Line, p.Column, p.Message)
				}
			}
		}
	}
}
