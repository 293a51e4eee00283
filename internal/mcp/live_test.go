//go:build engines

package mcp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/engine/livetest"
	"github.com/drover-dev/drover/internal/mcp"
	"github.com/drover-dev/drover/internal/tool"
)

// published is a server that "scripts/engines mcp" has installed.
func published(t *testing.T, name string, args ...string) tool.ServerSpec {
	t.Helper()
	script := filepath.Join(livetest.Dir(), "mcp-servers", "node_modules", "@modelcontextprotocol", "server-"+name, "dist", "index.js")
	if _, err := os.Stat(script); err != nil {
		t.Fatalf("%v: run scripts/engines mcp", err)
	}
	return tool.ServerSpec{Name: name, Command: "node", Args: append([]string{script}, args...)}
}

func TestPublishedServers(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "note.txt"), []byte("a note\nof two lines\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := connect(t, &mcp.Options{SpillDir: t.TempDir()}, published(t, "everything", "stdio"), published(t, "filesystem", dir))
	if n := h.Notices(); len(n) != 0 {
		t.Fatalf("%q", n)
	}
	t.Logf("%d tools: %q", len(h.Tools()), names(h))

	if r := call(t, h, "everything__echo", `{"message":"Grüße <&>"}`); r.Status != tool.StatusOK || !strings.Contains(r.Text, "Grüße <&>") {
		t.Errorf("%+v", r)
	}
	if r := call(t, h, "everything__get-tiny-image", `{}`); len(r.Images) != 1 || r.Images[0].Width == 0 {
		t.Errorf("%s, %d images", r.Text, len(r.Images))
	}
	if r := call(t, h, "everything__get-structured-content", `{"location":"New York"}`); r.Status != tool.StatusOK || strings.Count(r.Text, "temperature") != 1 {
		t.Errorf("%+v", r)
	}
	if r := call(t, h, "everything__echo", `{}`); r.Status != tool.StatusError {
		t.Errorf("an argument is missing: %+v", r)
	}

	file := filepath.ToSlash(filepath.Join(dir, "note.txt"))
	a := prepare(t, h, "filesystem__read_text_file", `{"path":"`+file+`"}`)
	if !a.ReadOnly {
		t.Error("reading is not marked as such")
	}
	if r := tool.Run(t.Context(), a, nil); r.Status != tool.StatusOK || r.Text != "a note\nof two lines\n" {
		t.Errorf("%+v", r)
	}
	if r := call(t, h, "filesystem__read_text_file", `{"path":"/etc/passwd"}`); r.Status != tool.StatusError || !strings.Contains(r.Text, "denied") {
		t.Errorf("%+v", r)
	}
	if a := prepare(t, h, "filesystem__write_file", `{"path":"`+file+`","content":"new"}`); a.ReadOnly {
		t.Error("writing is marked as reading")
	} else if r := tool.Run(t.Context(), a, nil); r.Status != tool.StatusOK {
		t.Errorf("%+v", r)
	}
	if data, _ := os.ReadFile(filepath.Join(dir, "note.txt")); string(data) != "new" {
		t.Errorf("%q", data)
	}
}
