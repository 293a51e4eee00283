package tool_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

// TestLoggedDiff: what a call and its result tell of a change is what was changed.
func TestLoggedDiff(t *testing.T) {
	const old = "one\ntwo\n"
	for _, tt := range []struct {
		name, arguments string
		file            string // as it was, "" for none
		want            string // "whole", "part" or "none"
	}{
		{"write", `{"path":"f","content":"Created f, 1 line."}`, "", "whole"},
		{"write", `{"path":"f","content":""}`, "", "whole"},
		{"write", "{\"path\":\"f\",\"content\":\"a\nb\"}", "", "whole"},
		{"write", `{"path":"f","content":"three\n"}`, old, "none"},
		{"write", `{"path":"f"}`, "", "none"},
		{"edit", `{"path":"f","old":"","new":"three\n"}`, "", "whole"},
		{"edit", `{"path":"f","old":"two","new":"2"}`, old, "part"},
		{"edit", `{"path":"f","old":"o","new":"0","all":true}`, old, "part"},
		{"edit", `{"path":"f","old":"two","new":"2"}`, "one\r\ntwo\r\n", "part"},
		{"read", `{"path":"f"}`, old, "none"},
	} {
		w := &tool.Workspace{Dir: t.TempDir()}
		if tt.file != "" {
			put(t, filepath.Join(w.Dir, "f"), []byte(tt.file))
		}
		arguments, err := llm.RepairArguments(tt.arguments)
		if err != nil {
			t.Fatal(err)
		}
		impl, _ := tool.NewSet(tool.Builtin(w)...).Lookup(tt.name)
		var result tool.Result
		if action, err := tool.Prepare(t.Context(), impl, arguments); err == nil {
			result = tool.Run(t.Context(), action, nil)
		}
		got := tool.LoggedDiff(tt.name, tt.arguments, result.Text)
		switch {
		case got == nil:
			if tt.want != "none" {
				t.Errorf("%s %s: nothing is told", tt.name, tt.arguments)
			}
		case got.Created:
			got.Path = result.Diff.Path
			if tt.want != "whole" || *got != *result.Diff {
				t.Errorf("%s %s: %+v, changed was %+v", tt.name, tt.arguments, got, result.Diff)
			}
		default:
			n := strings.Count(result.Diff.Old, got.Old)
			if tt.want != "part" || n == 0 || strings.ReplaceAll(result.Diff.Old, got.Old, got.New) != result.Diff.New {
				t.Errorf("%s %s: %+v, changed was %+v", tt.name, tt.arguments, got, result.Diff)
			}
		}
	}
}
