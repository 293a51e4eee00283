package acp_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/drover-dev/drover/internal/acp/acptest"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
	"github.com/drover-dev/drover/internal/tool"
)

var scriptFlag = flag.String("script", "", "run only the conversation of this name")

// TestConversations plays the conversations of testdata/*.txtar.
//
// An archive has the file providers, a JSON list of scripted providers, and the
// file conversation, which [acptest.Play] plays; "-- gone ROUTE" unregisters a
// provider. Every other file of the archive is put into the folder of the
// sessions.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		if *scriptFlag != "" && *scriptFlag != name {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			playScript(t, file)
		})
	}
}

// providerScript is a provider as an archive has it.
type providerScript struct {
	Route, Name, Fails string
	Models             []string
	Window             int
	Answers            []struct {
		Text, Think, Hang, Fails string
		Calls                    []llm.ToolCall
	}
}

func (p *providerScript) provider() *llmtest.Provider {
	provider := &llmtest.Provider{Route: p.Route, Name: p.Name, List: models(p.Models...)}
	if p.Fails != "" {
		provider.ListErr = llm.Errorf(llm.Code(p.Fails), "%s is down", p.Route)
	}
	if p.Window > 0 {
		provider.Facts.Window = llm.Window{Tokens: p.Window, Source: llm.Effective}
	}
	for _, a := range p.Answers {
		var answer llmtest.Answer
		switch {
		case a.Fails != "":
			answer = llmtest.Fail(llm.Errorf(llm.Code(a.Fails), "scripted failure"))
		case a.Hang != "":
			answer = llmtest.Hang(a.Hang)
		case len(a.Calls) > 0:
			answer = llmtest.Call(a.Calls...)
			if a.Text != "" {
				answer.Events = append([]llm.Event{llm.TextDelta(a.Text)}, answer.Events...)
			}
		default:
			answer = llmtest.Say(a.Text)
		}
		if a.Think != "" {
			answer.Events = append([]llm.Event{llm.ReasoningDelta(a.Think)}, answer.Events...)
		}
		provider.Script = append(provider.Script, answer)
	}
	return provider
}

func playScript(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	gone := make(map[string]func())
	var conversation string
	for _, part := range archive.Files {
		switch part.Name {
		case "providers":
			var scripts []providerScript
			if err := json.Unmarshal(part.Data, &scripts); err != nil {
				t.Fatalf("%s: providers: %v", file, err)
			}
			for _, s := range scripts {
				gone[s.Route] = f.register(s.provider())
			}
		case "options":
			var o struct{ Target, Mode string }
			if err := json.Unmarshal(part.Data, &o); err != nil {
				t.Fatalf("%s: options: %v", file, err)
			}
			f.opts.Target, _ = llm.ParseTarget(o.Target)
			f.opts.Mode, _ = tool.ParseMode(o.Mode)
		case "conversation":
			conversation = string(part.Data)
		default:
			if err := os.WriteFile(filepath.Join(f.dir, part.Name), part.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	acptest.Play(t, file, conversation, &acptest.Scene{Dir: f.dir, Connect: f.connect, Do: func(name, what string) error {
		if name != "gone" || gone[what] == nil {
			return fmt.Errorf("nothing is called %s %s", name, what)
		}
		gone[what]()
		return nil
	}})
}
