package mcp

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestLabels(t *testing.T) {
	got := labels([]string{"files", "my files", "my.files", "a__b_", "___", "", "Größe", strings.Repeat("long", 20)})
	want := []string{"files", "my_files", "my_files-2", "a_b", "mcp", "mcp-2", "Gr_e", "longlonglonglon-" + hash(strings.Repeat("long", 20))}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestNames(t *testing.T) {
	n := newNamer("srv")
	valid := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	long := strings.Repeat("x", 70)
	given := make(map[string]string)
	for _, name := range []string{"a.b", "a/b", "a_b", "b", long + "1", long + "2", "é", strings.Repeat("y", 59), "_z"} {
		got := n.name(name)
		for other, taken := range given {
			if taken == got {
				t.Errorf("%q and %q are both %s", name, other, got)
			}
		}
		given[name] = got
		if !valid.MatchString(got) || !strings.HasPrefix(got, "srv__") {
			t.Errorf("%q is %q", name, got)
		}
	}
	if given["a.b"] != "srv__a_b" || given["b"] != "srv__b" {
		t.Errorf("%q", given)
	}
	for name, first := range given { // whatever comes later
		if n.name(name) != first {
			t.Errorf("%s has changed", name)
		}
	}
	if newNamer("srv").name(long+"1") != given[long+"1"] {
		t.Error("another hub gives another name")
	}
}
