//go:build engines

package agent_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/drover-dev/drover/internal/engine"
	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/engine/livetest"
)

// TestLiveSmallWindowTask posts every request of the small-window task to a real
// llama-server with that window, which refuses whatever is too long, on the model
// with a real vocabulary.
func TestLiveSmallWindowTask(t *testing.T) {
	for _, window := range []int{4096, 8192} {
		t.Run(strconv.Itoa(window), func(t *testing.T) {
			srv, _, _ := runTask(t, smallWindow{
				preset: engine.LlamaCpp, window: window, overflow: enginetest.Reject,
				model: enginetest.Model{ID: "brook-7b", Tools: true, Window: window},
			})
			real := livetest.Llama(t, "vocab", "-c", strconv.Itoa(window), "-np", "1")
			largest := 0
			chats := srv.Chats()
			for i, c := range chats {
				largest = max(largest, promptTokens(t, real.URL, i, c.Fields))
			}
			t.Logf("%d requests, the largest prompt %d tokens by the engine's count", len(chats), largest)
		})
	}
}

// promptTokens posts a request that generates one token and returns what the
// engine counted.
func promptTokens(t *testing.T, url string, i int, fields map[string]json.RawMessage) int {
	t.Helper()
	fields["max_tokens"], fields["stream"] = json.RawMessage("1"), json.RawMessage("false")
	delete(fields, "stream_options")
	body, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Post(url+"/v1/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Usage struct {
			Prompt int `json:"prompt_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("request %d: %s %s", i, res.Status, text)
	}
	return answer.Usage.Prompt
}
