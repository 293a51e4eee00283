package config

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const docPage = "../../docs/configuration.md"

// acceptedKeys lists every key of the file in its dotted form. The names that a
// person chooses are NAME and ID, as the page writes them.
func acceptedKeys(t reflect.Type, prefix string) []string {
	chosen := map[string]string{"engines.": "NAME.", "engines.NAME.models.": "ID.", "hosted.settings.": "NAME.", "mcp.servers.": "NAME."}
	var keys []string
	for _, f := range reflect.VisibleFields(t) {
		key := prefix + f.Tag.Get("toml")
		switch f.Type.Kind() {
		case reflect.Struct:
			keys = append(keys, acceptedKeys(f.Type, key+".")...)
		case reflect.Map:
			if f.Type.Elem().Kind() == reflect.String { // the person chooses the keys
				keys = append(keys, key)
				break
			}
			keys = append(keys, acceptedKeys(f.Type.Elem(), key+"."+chosen[key+"."])...)
		default:
			keys = append(keys, key)
		}
	}
	return keys
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// section is the text below a heading up to the next one of its level.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", docPage, heading)
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

var tomlBlock = regexp.MustCompile("(?ms)^```toml\n(.*?)^```$")

// TestPageNamesEveryKey compares the table of the page with the keys that the
// code accepts, in both directions.
func TestPageNamesEveryKey(t *testing.T) {
	accepted := acceptedKeys(reflect.TypeFor[file](), "")
	if len(accepted) < 10 {
		t.Fatalf("found only %v", accepted)
	}
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ")
	table, _, _ := strings.Cut(section(t, readPage(t, docPage), "All keys"), "\n### ")
	var named []string
	for _, m := range row.FindAllStringSubmatch(table, -1) {
		named = append(named, m[1])
	}
	for _, key := range accepted {
		if !slices.Contains(named, key) {
			t.Errorf("%s does not name the key %s", docPage, key)
		}
	}
	for _, key := range named {
		if !slices.Contains(accepted, key) {
			t.Errorf("%s names %s, which is no key", docPage, key)
		}
	}
}

// TestPageExampleShowsEveryKey parses the example file and looks for every key
// in it.
func TestPageExampleShowsEveryKey(t *testing.T) {
	m := tomlBlock.FindStringSubmatch(section(t, readPage(t, docPage), "Example"))
	if m == nil {
		t.Fatal("the page has no example")
	}
	data := []byte(m[1])
	if _, err := Parse("example.toml", data); err != nil {
		t.Fatal(err)
	}
	shown := make(map[string]bool)
	for _, k := range keyPositions(data) {
		path := slices.Clone(k.path)
		if len(path) > 1 && path[0] == "engines" {
			path[1] = "NAME"
		}
		if len(path) > 2 && (path[0] == "hosted" || path[0] == "mcp") {
			path[2] = "NAME"
		}
		if len(path) > 3 && path[2] == "models" {
			path[3] = "ID"
		}
		shown[strings.Join(path, ".")] = true
	}
	for _, key := range acceptedKeys(reflect.TypeFor[file](), "") {
		if !shown[key] {
			t.Errorf("the example does not show %s", key)
		}
	}
}

// TestPageFragmentsParse parses every piece of a configuration file that the
// pages show.
func TestPageFragmentsParse(t *testing.T) {
	for _, path := range []string{docPage, "../../docs/engines.md", "../../docs/providers.md", "../../docs/mcp.md"} {
		blocks := tomlBlock.FindAllStringSubmatch(readPage(t, path), -1)
		if len(blocks) == 0 {
			t.Errorf("%s shows no configuration", path)
		}
		for _, m := range blocks {
			if _, err := Parse("fragment.toml", []byte(m[1])); err != nil {
				t.Errorf("%s: %v in\n%s", path, err, m[1])
			}
		}
	}
}
