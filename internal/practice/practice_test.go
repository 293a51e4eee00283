package practice_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/practice"
)

func post(t *testing.T, body string) (int, string) {
	t.Helper()
	s := httptest.NewServer(practice.Handler())
	defer s.Close()
	res, err := http.Post(s.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// TestWhatIsRefused holds the engine to what a real one insists on: without
// that a demo would prove nothing.
func TestWhatIsRefused(t *testing.T) {
	long := strings.Repeat("word ", practice.Window)
	tests := []struct {
		name, body string
		status     int
		want       string
	}{
		{"no JSON", `{"model":`, 400, "no JSON"},
		{"another model", `{"model":"x","messages":[]}`, 404, "not found"},
		{"a long prompt", `{"model":"practice","messages":[{"role":"user","content":"` + long + `"}]}`, 400, "exceed_context_size_error"},
		{"a short prompt and much output", `{"model":"practice","max_tokens":4096,"messages":[{"role":"user","content":"x"}]}`, 400, "exceed_context_size_error"},
		{"a result for no call", `{"model":"practice","messages":[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"1","content":"y"}]}`, 400, "a result for no call"},
		{"a call without result", `{"model":"practice","messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"1"}]},{"role":"user","content":"y"}]}`, 400, "has no result"},
		{"a call at the end", `{"model":"practice","messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"1"}]}]}`, 400, "has no result"},
	}
	for _, tt := range tests {
		if status, text := post(t, tt.body); status != tt.status || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %d %s, want %d about %s", tt.name, status, text, tt.status, tt.want)
		}
	}
}

func TestTheScript(t *testing.T) {
	user := `{"role":"user","content":"What is here?"}`
	tests := []struct {
		name, body string
		want       []string
	}{
		{"without tools", `{"model":"practice","messages":[` + user + `]}`, []string{"practice", `"finish_reason":"stop"`, "[DONE]"}},
		{"with tools", `{"model":"practice","tools":[{}],"messages":[` + user + `]}`, []string{`"reasoning_content"`, `"name":"read"`, `"finish_reason":"tool_calls"`}},
		{
			"after a tool", `{"model":"practice","tools":[{}],"messages":[` + user +
				`,{"role":"assistant","tool_calls":[{"id":"1"}]},{"role":"tool","tool_call_id":"1","content":"a\nb"}]}`,
			[]string{`" 2"`, `" script"`, `"finish_reason":"stop"`},
		},
	}
	for _, tt := range tests {
		status, text := post(t, tt.body)
		for _, want := range tt.want {
			if status != http.StatusOK || !strings.Contains(text, want) {
				t.Errorf("%s: %d, no %s in\n%s", tt.name, status, want, text)
			}
		}
		for line := range strings.Lines(text) {
			data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
			if ok && data != "[DONE]" && !json.Valid([]byte(data)) {
				t.Errorf("%s: %q is no JSON", tt.name, data)
			}
		}
	}
}

func TestStart(t *testing.T) {
	s, err := practice.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Get(s.URL() + "/v1/models/" + practice.Model)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("%v, %v", res, err)
	}
	if res != nil {
		res.Body.Close()
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
