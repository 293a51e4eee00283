//go:build engines

package engine

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/engine/livetest"
	"github.com/drover-dev/drover/internal/llm"
)

// post sends a document to an engine's own API, past drover, and wants a 200.
func post(t *testing.T, url string, document any) {
	t.Helper()
	body, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(res.Body); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v: %s", url, res.StatusCode, err, answer.Bytes())
	}
}

type object = map[string]any

// The window is what the model was loaded with, whoever loaded it and whatever
// its Modelfile and the server's setting say.
func TestLiveOllamaLoadedWithAnotherWindow(t *testing.T) {
	s := livetest.Ollama(t, "OLLAMA_CONTEXT_LENGTH=1024")
	e := live(t, s.URL, Ollama, nil)
	post(t, s.URL+"/api/create", object{"model": "wide", "from": "plain", "parameters": object{"num_ctx": 3072}, "stream": false})
	checkWindow(t, describe(t, e, "wide").Window, 3072, llm.Declared)

	load := func(model string, window int) {
		post(t, s.URL+"/api/generate", object{"model": model, "options": object{"num_ctx": window}, "stream": false})
	}
	for _, window := range []int{2048, 512, 4096} {
		load("wide", window)
		info := describe(t, e, "wide")
		checkWindow(t, info.Window, window, llm.Effective)
		if info.Window.Evidence[0].Endpoint != "GET /api/ps" {
			t.Errorf("%+v", info.Window.Evidence)
		}
	}
	load("plain", 2048)
	checkWindow(t, describe(t, e, "plain").Window, 2048, llm.Effective)
	// A chat of drover's says nothing of the window: Ollama loads the model anew
	// with its own setting, and that is seen.
	if r := collect(t, e, t.Context(), request("plain", "Hi.")); r.text != helloText {
		t.Fatalf("%+v", r)
	}
	checkWindow(t, describe(t, e, "plain").Window, 1024, llm.Effective)
}

// routerStatus is what the router says of its models.
func routerStatus(t *testing.T, url string) map[string]string {
	t.Helper()
	res, err := http.Get(url + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var list struct {
		Data []struct {
			ID     string `json:"id"`
			Status struct {
				Value string `json:"value"`
			} `json:"status"`
		} `json:"data"`
	}
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	status := make(map[string]string)
	for _, m := range list.Data {
		status[m.ID] = m.Status.Value
	}
	return status
}

// The router's own word, before and after everything that drover asks: nothing is
// loaded and nothing is unloaded by a probe.
func TestLiveLlamaCppRouterStatus(t *testing.T) {
	s := livetest.Llama(t, "", "--models-dir", livetest.Models(), "--ctx-size", "1024", "--parallel", "1", "--models-max", "1")
	askAll := func() {
		for _, preset := range []Preset{LlamaCpp, Custom, Ollama, LMStudio} {
			e := live(t, s.URL, preset, nil)
			h := e.Health(t.Context())
			if h.Err != nil || len(h.Models) < 3 {
				t.Fatalf("%+v", h)
			}
			for _, m := range h.Models {
				describe(t, e, m.ID)
			}
			describe(t, e, "unknown")
		}
	}
	before := routerStatus(t, s.URL)
	for id, status := range before {
		if status != "unloaded" {
			t.Errorf("%s is %s at the start", id, status)
		}
	}
	askAll()
	if after := routerStatus(t, s.URL); !maps.Equal(before, after) {
		t.Errorf("before %v, after %v", before, after)
	}
	e := live(t, s.URL, LlamaCpp, nil)
	if r := collect(t, e, t.Context(), request("plain", "Hi.")); r.text != helloText {
		t.Fatalf("%+v", r)
	}
	before = routerStatus(t, s.URL)
	if before["plain"] != "loaded" {
		t.Errorf("after a chat: %v", before)
	}
	askAll() // with room for one model, loading another would put this one out
	if after := routerStatus(t, s.URL); !maps.Equal(before, after) {
		t.Errorf("before %v, after %v", before, after)
	}
}

// An engine that loads its model is found, is called that, and is well once the
// model is there.
func TestLiveLlamaCppLoading(t *testing.T) {
	untilLoading(t, func(e *Engine, ended <-chan struct{}) (loading int) {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for deadline := time.Now().Add(time.Minute); ; {
			h := e.Health(t.Context())
			if h.Err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal(h.Err)
			}
			if !h.Err.Unreached {
				loading++
				checkError(t, h.Err, llm.CodeServer, "503: still loading the model")
				if !h.Err.Loading || h.Kind != "llamacpp" {
					t.Errorf("%+v", h)
				}
			}
			select {
			case <-tick.C:
			case <-ended:
				return 0
			}
		}
		checkWindow(t, describe(t, e, firstModel(t, e).ID).Window, firstModel(t, e).Window.Tokens, llm.Effective)
		return loading
	})
}
