package acp

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/jsonrpc2"
	"github.com/drover-dev/drover/internal/llm"
)

// pixel is a PNG file of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"

func TestReadPrompt(t *testing.T) {
	tests := []struct {
		name, blocks string
		want         string // parts in one line; "error: ..." otherwise
	}{
		{"text", `[{"type":"text","text":"a"},{"type":"text","text":" b"}]`, `"a b"`},
		{"a link stands where it stood", `[{"type":"text","text":"see "},{"type":"resource_link","name":"x.go","uri":"file:///w/x.go"},{"type":"text","text":" now"}]`,
			`"see [@x.go](/w/x.go) now"`},
		{"a link with lines", `[{"type":"resource_link","name":"x.go","uri":"file:///w/x%20y.go#L1:9"}]`, `"[@x.go](/w/x y.go#L1:9)"`},
		{"another scheme stays", `[{"type":"resource_link","name":"doc","uri":"https://example.org/a?b"}]`, `"[@doc](https://example.org/a?b)"`},
		{"resource text alone", `[{"type":"resource","resource":{"uri":"file:///a.go","mimeType":"text/plain","text":"package a"}}]`,
			`"[@a.go](/a.go)\n\n<context ref=\"/a.go\">\npackage a\n</context>"`},
		{"contexts follow", `[{"type":"resource","resource":{"uri":"file:///a","text":"A"}},{"type":"text","text":"?"}]`,
			`"[@a](/a)?\n\n<context ref=\"/a\">\nA\n</context>"`},
		{"image alone", `[{"type":"image","mimeType":"image/png","data":"` + pixel + `"}]`, `image/png 1x1`},
		{"only a signature", `[{"type":"text","text":"look"},{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}]`, `"look" image/png 0x0`},
		{"data URL", `[{"type":"image","data":"data:image/png;base64,` + pixel + `"}]`, `image/png 1x1`},
		{"image by link", `[{"type":"image","mimeType":"image/png","data":"","uri":"file:///p.png"}]`, `"[@image](/p.png)"`},
		{"image as blob", `[{"type":"resource","resource":{"uri":"file:///p.png","mimeType":"image/png","blob":"` + pixel + `"}}]`, `image/png 1x1`},
		{"blob", `[{"type":"resource","resource":{"uri":"file:///p.bin","blob":"AAAA"}}]`, `"[@p.bin](/p.bin)[not shown: 3 bytes of binary data ()]"`},
		{"audio leaves a trace", `[{"type":"audio","mimeType":"audio/wav","data":"AA"}]`, `"[not shown: audio of the type audio/wav, which is not supported]"`},
		{"unknown leaves a trace", `[{"type":"hologram"}]`, `"[not shown: a block of the unknown type \"hologram\"]"`},
		{"bad annotations cost nothing", `[{"type":"text","text":"a","annotations":7}]`, `"a"`},
		{"empty", `[]`, "error: the prompt is empty"},
		{"blank", `[{"type":"text","text":" \n"}]`, "error: the prompt is empty"},
		{"no array", `"hello"`, "error: prompt must be an array of content blocks"},
		{"no type", `[{"text":"a"}]`, "error: prompt block 1: it has no type"},
		{"no image", `[{"type":"image","mimeType":"image/png","data":"aGVsbG8="}]`, "error: prompt block 1: image : not a PNG, JPEG, GIF or WebP file"},
		{"no base64", `[{"type":"text","text":"a"},{"type":"image","data":"***"}]`, "error: prompt block 2: the image is not base64"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			parts, err := readPrompt(readObject(json.RawMessage(`{"prompt":` + tt.blocks + `}`)))
			var words []string
			for _, p := range parts {
				switch p := p.(type) {
				case llm.Text:
					words = append(words, fmt.Sprintf("%q", string(p)))
				case *llm.Image:
					words = append(words, fmt.Sprintf("%s %dx%d", p.MediaType, p.Width, p.Height))
				}
			}
			got := strings.Join(words, " ")
			if rpc, ok := errors.AsType[*jsonrpc2.Error](err); ok {
				if got = "error: " + rpc.Message; rpc.Code != jsonrpc2.CodeInvalidParams {
					t.Errorf("code %d", rpc.Code)
				}
			}
			if got != tt.want && !(strings.HasPrefix(tt.want, "error") && strings.HasPrefix(got, tt.want)) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestReadPromptRefusesAnImageThatIsTooLarge(t *testing.T) {
	data := base64.StdEncoding.EncodeToString(append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, llm.MaxImageBytes)...))
	_, err := readPrompt(readObject(json.RawMessage(`{"prompt":[{"type":"image","data":"` + data + `"}]}`)))
	if err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("error %v", err)
	}
}

func TestSlashCommand(t *testing.T) {
	tests := []struct{ text, command, argument string }{
		{"/model", "model", ""},
		{" /model a/b ", "model", "a/b"},
		{"/effort graze", "effort", "graze"},
		{"/usr/bin/env is a path", "", ""},
		{"/models", "", ""},
		{"/model\nand more", "", ""},
		{"model", "", ""},
	}
	for _, tt := range tests {
		command, argument, ok := slashCommand([]llm.Part{llm.Text(tt.text)})
		if command != tt.command || argument != tt.argument || ok != (tt.command != "") {
			t.Errorf("%q: %q %q %v", tt.text, command, argument, ok)
		}
	}
}

func TestClipKeepsToItsLimit(t *testing.T) {
	for _, s := range []string{"", "short", strings.Repeat("a", 1000), strings.Repeat("\x00", 1000), strings.Repeat("日\"", 400), "a" + strings.Repeat("\xff", 900)} {
		for _, limit := range []int{100, 500, 999, 1000, 1001} {
			encoded, err := json.Marshal(clip(s, limit))
			if err != nil {
				t.Fatal(err)
			}
			if n := len(encoded) - 2; n > limit {
				t.Errorf("clip of %d bytes to %d: %d", len(s), limit, n)
			}
		}
	}
	if s := strings.Repeat("a", 1000); clip(s, 1000) != s || clip(s, 999) == s {
		t.Error("the limit is not inclusive")
	}
}

func TestReadServers(t *testing.T) {
	servers, notices := readServers(readObject(json.RawMessage(`{"mcpServers":[
		{"name":"files","command":"/bin/mcp","args":["-a",7],"env":[{"name":"K","value":"v"},{"value":"x"}]},
		{"type":"http","name":"web","url":"https://example.org","headers":[{"name":"A","value":"b"}]},
		{"type":"sse","name":"old","url":"http://h"}, {"type":"http","name":"lost"},
		{"type":"carrier-pigeon","name":"odd"},
		{"command":"x"}, 5, null]}`)))
	if len(servers) != 3 || servers[0].Command != "/bin/mcp" || fmt.Sprint(servers[0].Args, servers[0].Env) != "[-a] [K=v]" {
		t.Errorf("servers %+v", servers)
	}
	if web, old := servers[1], servers[2]; web.URL != "https://example.org" || web.SSE || web.Headers["A"] != "b" || !old.SSE {
		t.Errorf("servers %+v", servers)
	}
	if len(notices) != 5 || !strings.Contains(notices[0], "lost is left out: it has no url") {
		t.Errorf("notices %q", notices)
	}
	if _, notices := readServers(object{}); notices != nil {
		t.Errorf("notices for no servers: %q", notices)
	}
}

func TestDescribeCall(t *testing.T) {
	tests := []struct {
		name, arguments string
		title, kind     string
		location        string
	}{
		{"read", `{"path":"a/b.go"}`, "a/b.go", "read", "/w/a/b.go:0"},
		{"read", `{"path":"a/b.go","offset":20}`, "a/b.go from line 20", "read", "/w/a/b.go:20"},
		{"read", `{"path":"/etc/hosts"}`, "/etc/hosts", "read", "/etc/hosts:0"},
		{"edit", `{"path":"/w/x","old":"a","new":"b"}`, "x", "edit", "/w/x:0"},
		{"write", `{"path":"../out"}`, "/out", "edit", "/out:0"},
		{"shell", `{"command":"go test\n ./..."}`, "go test ./...", "execute", ""},
		{"grep", `{"pattern":"x|y"}`, "x|y", "search", ""},
		{"read", `{not json`, "read", "read", ""},
		// What models get wrong and the tools are given mended.
		{"shell", "{\"command\":\"make\nrm -r old\"}", "make rm -r old", "execute", ""},
		{"shell", `"{\"command\":\"rm -r old\"}"`, "rm -r old", "execute", ""},
		{"write", "{\"path\":\"x\",\"content\":\"a\nb\"}", "x", "edit", "/w/x:0"},
		{"files__list", `{}`, "files__list", "other", ""},
	}
	for _, tt := range tests {
		c := describeCall(llm.ToolCall{ID: "1", Name: tt.name, Arguments: tt.arguments}, "/w")
		where := ""
		for _, l := range c.locations {
			where += fmt.Sprintf("%s:%d", l.Path, l.Line)
		}
		if c.title != tt.title || string(c.kind) != tt.kind || where != tt.location {
			t.Errorf("%s %s: %q %q %q", tt.name, tt.arguments, c.title, c.kind, where)
		}
	}
}

// FuzzReadPrompt looks for input that panics.
func FuzzReadPrompt(f *testing.F) {
	f.Add(`{"prompt":[{"type":"resource","resource":{"uri":"file:///C:/x","text":"a"}},{"type":"image","data":"iVBORw0KGgo="}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		o := parseObject(text)
		_, _ = readPrompt(o)
		_, _ = readSetup(o)
		_ = readClient(o)
		describeCall(llm.ToolCall{Name: "read", Arguments: text}, "/w").announce()
		planOf(text)
	})
}
