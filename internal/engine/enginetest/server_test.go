package enginetest

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func get(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	res, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func chat(t *testing.T, client *http.Client, url, body string) (int, string) {
	t.Helper()
	res, err := client.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(body))
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

// The server runs inside a bubble, with virtual time, and leaves nothing behind.
func TestInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(t, &Options{InMemory: true, Port: 1234})
		transport := &http.Transport{DialContext: Dialer(s)}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport}
		s.Fault("GET /v1/models", Fault{Times: 1, Dribble: time.Hour})
		begin := time.Now()
		status, body := get(t, client, s.URL+"/v1/models")
		if status != 200 || time.Since(begin) != time.Duration(len(body))*time.Hour {
			t.Errorf("%d %s after %v", status, body, time.Since(begin))
		}
		if again, _ := get(t, client, s.URL+"/v1/models?x=1"); again != 200 {
			t.Errorf("a fault for one time stays: %d", again)
		}
		if got, want := s.Asked(), []string{"GET /v1/models", "GET /v1/models?x=1"}; !slices.Equal(got, want) {
			t.Errorf("asked %q", got)
		}
		if _, err := client.Get("http://127.0.0.1:9/"); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("another port: %v", err)
		}
	})
}

func TestScript(t *testing.T) {
	s := New(t, &Options{Answer: func(c *Chat) Answer { return Answer{Text: "to " + c.Model} }})
	s.Script(Answer{Text: "äbc", Chunk: 1, Finish: "length"}, Answer{Status: 418, Body: "{}"})
	const body = `{"model":"m","stream":true,"max_tokens":9,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"12345"}]}`
	_, text := chat(t, http.DefaultClient, s.URL, body)
	for _, want := range []string{`"content":"ä"`, `"content":"b"`, `"finish_reason":"length"`, `"prompt_tokens":6`, "data: [DONE]\n\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in %s", want, text)
		}
	}
	if status, _ := chat(t, http.DefaultClient, s.URL, body); status != 418 {
		t.Errorf("status %d", status)
	}
	if _, text := chat(t, http.DefaultClient, s.URL, body); !strings.Contains(text, `"to m"`) {
		t.Errorf("after the script: %s", text)
	}
	chats := s.Chats()
	if len(chats) != 3 || chats[0].Model != "m" || chats[0].MaxTokens != 9 || chats[0].PromptTokens != 6 {
		t.Errorf("%+v", chats)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestCountTokens(t *testing.T) {
	for body, want := range map[string]int{
		`{"messages":[]}`: 0,
		`{"messages":[{"content":"abcd"},{"content":"abcde"}]}`:                                                 4 + 1 + 4 + 2,
		`{"messages":[{"content":null,"tool_calls":[{"a":1}]}]}`:                                                4 + 2,
		`{"messages":[{"content":[{"type":"image_url"},{"type":"text","text":"abc"}]}],"tools":[{"abcdef":1}]}`: 4 + 256 + 1 + 3,
		`no JSON`: 0,
	} {
		if got := CountTokens([]byte(body)); got != want {
			t.Errorf("%s: %d, want %d", body, got, want)
		}
	}
}

// A llama.cpp router loads a model for a careless question, as the real one does.
func TestRouterLoads(t *testing.T) {
	s := New(t, &Options{Preset: LlamaCpp, Router: true, Models: []Model{{ID: "m", Window: 512, Unloaded: true}}})
	if status, _ := get(t, http.DefaultClient, s.URL+"/props?model=m&autoload=false"); status != 400 || len(s.Loads()) != 0 {
		t.Errorf("%d, loaded %v", status, s.Loads())
	}
	if status, _ := get(t, http.DefaultClient, s.URL+"/props?model=m"); status != 200 || !slices.Equal(s.Loads(), []string{"m"}) {
		t.Errorf("%d, loaded %v", status, s.Loads())
	}
	http.DefaultClient.CloseIdleConnections()
}
