package acp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/drover-dev/drover/internal/acp/acptest"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
)

// Files go through the editor when it offers both directions.
func TestFilesThroughTheEditor(t *testing.T) {
	p := &llmtest.Provider{Route: "a", List: models("m"), Script: []llmtest.Answer{
		llmtest.Call(llm.ToolCall{ID: "c1", Name: "read", Arguments: `{"path":"x.txt"}`}),
		llmtest.Call(llm.ToolCall{ID: "c2", Name: "edit", Arguments: `{"path":"x.txt","old":"buffer","new":"edited"}`}),
		llmtest.Call(llm.ToolCall{ID: "c3", Name: "write", Arguments: `{"path":"new.txt","content":"new\n"}`}),
		llmtest.Say("Done."),
	}}
	f := newFixture(t, p)
	path := filepath.Join(f.dir, "x.txt")
	if err := os.WriteFile(path, []byte("on disk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := f.open(`{"fs":{"readTextFile":true,"writeTextFile":true}}`)
	var mu sync.Mutex
	buffers := map[string]string{path: "unsaved buffer\n"}
	e.Serve = func(method string, params json.RawMessage) (any, *acptest.Error) {
		mu.Lock()
		defer mu.Unlock()
		var p struct{ Path, Content string }
		if err := json.Unmarshal(params, &p); err != nil {
			t.Error(err)
		}
		if method == "fs/write_text_file" {
			buffers[p.Path] = p.Content
			return object{}, nil
		}
		text, ok := buffers[p.Path]
		if !ok {
			return nil, &acptest.Error{Code: -32603, Message: "cannot open"}
		}
		return object{"content": text}, nil
	}
	s := f.session(e).SessionID
	if reason := ask(t, e, s, "edit it"); reason != "end_turn" {
		t.Fatal(reason)
	}
	mu.Lock()
	defer mu.Unlock()
	if buffers[path] != "unsaved edited\n" || buffers[filepath.Join(f.dir, "new.txt")] != "new\n" {
		t.Errorf("buffers %q; calls %s %s %s", buffers, lastStatus(e, s, "c1"), lastStatus(e, s, "c2"), lastStatus(e, s, "c3"))
	}
	if data, _ := os.ReadFile(path); string(data) != "on disk\n" {
		t.Errorf("the disk was written: %q", data)
	}
}

// Files go through the editor only when it can both read and write.
func TestFilesOfAnEditorThatReadsAlone(t *testing.T) {
	for _, caps := range []string{`{"fs":{"readTextFile":true}}`, `{"fs":{"writeTextFile":true}}`} {
		f := newFixture(t, &llmtest.Provider{Route: "a", List: models("m"), Script: []llmtest.Answer{
			llmtest.Call(writeCall("c1")), llmtest.Call(llm.ToolCall{ID: "c2", Name: "read", Arguments: `{"path":"c1.txt"}`}), llmtest.Say("Done."),
		}})
		e := f.open(caps)
		s := f.session(e).SessionID
		if reason := ask(t, e, s, "write and read"); reason != "end_turn" || lastStatus(e, s, "c1") != "completed" || lastStatus(e, s, "c2") != "completed" {
			t.Errorf("%s: %s", caps, reason)
		}
	}
}

// A file that the editor does not know is as it is on disk. One that it gives no
// text of is not taken for an empty one.
func TestFilesThatTheEditorDoesNotGive(t *testing.T) {
	tests := []struct {
		name string
		read func() (any, *acptest.Error)
		want string // on disk, afterwards
	}{
		{"not found", func() (any, *acptest.Error) { return nil, &acptest.Error{Code: -32002, Message: "Resource not found"} }, "on the disk\n"},
		{"no content", func() (any, *acptest.Error) { return object{}, nil }, "on disk\n"},
		{"null", func() (any, *acptest.Error) { return object{"content": nil}, nil }, "on disk\n"},
		{"broken", func() (any, *acptest.Error) { return nil, &acptest.Error{Code: -32603, Message: "no"} }, "on disk\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, &llmtest.Provider{Route: "a", List: models("m"), Script: []llmtest.Answer{
				llmtest.Call(llm.ToolCall{ID: "c1", Name: "read", Arguments: `{"path":"x.txt"}`}),
				llmtest.Call(llm.ToolCall{ID: "c2", Name: "edit", Arguments: `{"path":"x.txt","old":"disk","new":"the disk"}`}),
				llmtest.Call(llm.ToolCall{ID: "c3", Name: "write", Arguments: `{"path":"x.txt","content":"on the disk\n"}`}),
				llmtest.Say("Done."),
			}})
			path := filepath.Join(f.dir, "x.txt")
			if err := os.WriteFile(path, []byte("on disk\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			e := f.open(`{"fs":{"readTextFile":true,"writeTextFile":true}}`)
			e.Serve = func(string, json.RawMessage) (any, *acptest.Error) { return tt.read() }
			s := f.session(e).SessionID
			if reason := ask(t, e, s, "edit it"); reason != "end_turn" {
				t.Fatal(reason)
			}
			status := "failed"
			if tt.want != "on disk\n" {
				status = "completed"
			}
			for _, id := range []string{"c1", "c2"} {
				if got := lastStatus(e, s, id); got != status {
					t.Errorf("%s is %s", id, got)
				}
			}
			if data, _ := os.ReadFile(path); string(data) != tt.want {
				t.Errorf("on disk is %q", data)
			}
		})
	}
}
