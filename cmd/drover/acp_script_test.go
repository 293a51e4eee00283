package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/drover-dev/drover/internal/acp/acptest"
	"github.com/drover-dev/drover/internal/engine/enginetest"
)

// TestACP plays the conversations of testdata/acp/*.txtar over the binary.
//
// An archive has the file engines, a JSON list of fake engines in the order of
// the configuration, and the file conversation, which [acptest.Play] plays; there
//
//	-- stop ENGINE             an engine ends
//	-- lists ENGINE ID...      its catalogue is another one from now on
//	-- chats ENGINE MODEL...   the models of the chats that it got since the last
//	                           look, and that their system text names the same
//
// It may have a file config, which comes before the engines of the configuration.
// Every other file is put into the folder of the sessions. $MCP is an MCP server.
func TestACP(t *testing.T) {
	files, err := filepath.Glob("testdata/acp/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			playACP(t, file)
		})
	}
}

// acpEngine is a fake engine as an archive has it.
type acpEngine struct {
	Name, Preset string
	Models       []string
	Window       int
	Vision       bool
	Answers      []struct {
		Text, Think, Stall, Reject string
		Calls                      []enginetest.Call
	}
}

func (e *acpEngine) start(t *testing.T) *enginetest.Server {
	t.Helper()
	opts := &enginetest.Options{Preset: cmp.Or(e.Preset, enginetest.LlamaCpp), NoModels: len(e.Models) == 0}
	for _, id := range e.Models {
		opts.Models = append(opts.Models, enginetest.Model{ID: id, Window: cmp.Or(e.Window, 32768), Tools: true, Vision: e.Vision})
	}
	s := enginetest.New(t, opts)
	for _, a := range e.Answers {
		answer := enginetest.Answer{Text: a.Text, Reasoning: a.Think, Calls: a.Calls, Chunk: 8}
		switch {
		case a.Stall != "": // half of it comes
			answer.Text, answer.Chunk, answer.Fault = a.Stall, 1, &enginetest.Fault{Stall: true}
		case a.Reject != "":
			answer = enginetest.Answer{Status: http.StatusUnauthorized, Body: fmt.Sprintf(`{"error":{"message":%q}}`, a.Reject)}
		}
		s.Script(answer)
	}
	return s
}

func playACP(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := rigFor(t, "", "")
	var settings, tables, conversation string
	engines := make(map[string]*enginetest.Server)
	for _, part := range archive.Files {
		switch part.Name {
		case "engines":
			var list []acpEngine
			if err := json.Unmarshal(part.Data, &list); err != nil {
				t.Fatalf("%s: engines: %v", file, err)
			}
			for i := range list {
				e := &list[i]
				engines[e.Name] = e.start(t)
				tables += fmt.Sprintf("\n[engines.%s]\npreset = %q\nurl = %q\n", e.Name, cmp.Or(e.Preset, enginetest.LlamaCpp), engines[e.Name].URL)
			}
		case "config":
			settings = string(part.Data)
		case "conversation":
			conversation = strings.ReplaceAll(string(part.Data), "$MCP", mcpServer(t))
		default:
			if err := os.WriteFile(filepath.Join(r.dir, part.Name), part.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.configure(settings + tables)
	acptest.Play(t, file, conversation, &acptest.Scene{
		Dir:     r.dir,
		Connect: func() *acptest.Editor { return r.editor() },
		Do: func(name, what string) error {
			engine, rest, _ := strings.Cut(what, " ")
			s := engines[engine]
			if s == nil {
				return fmt.Errorf("no engine %q", engine)
			}
			switch name {
			case "stop":
				s.Close()
			case "lists":
				s.Heal()
				s.Fault("GET /v1/models", enginetest.Body(modelList(strings.Fields(rest))))
			case "chats":
				return checkChats(engine, s, strings.Fields(rest))
			default:
				return fmt.Errorf("nothing is called %s", name)
			}
			return nil
		},
	})
}

// mcpServer is the program of [serveMCP].
func mcpServer(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("mcpserver")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func modelList(ids []string) string {
	var data []map[string]string
	for _, id := range ids {
		data = append(data, map[string]string{"id": id, "object": "model"})
	}
	body, _ := json.Marshal(map[string]any{"object": "list", "data": data})
	return string(body)
}

// checkChats checks the newest chats that an engine got: as many as there are
// models named, each for its model, and with a system text that says the same.
func checkChats(route string, s *enginetest.Server, models []string) error {
	chats := s.Chats()
	if len(chats) < len(models) {
		return fmt.Errorf("%s got %d chats", route, len(chats))
	}
	for i, c := range chats[len(chats)-len(models):] {
		system := ""
		if m := messagesOf(&c); len(m) > 0 {
			system = string(m[0].Content)
		}
		if c.Model != models[i] || !strings.Contains(system, "the model "+models[i]+" of "+route+".") {
			return fmt.Errorf("%s got a chat for %s with the system text %s", route, c.Model, system)
		}
	}
	return nil
}

// configure gives the binary a configuration.
func (r *rig) configure(settings string) {
	r.t.Helper()
	file := filepath.Join(r.home, "drover.toml")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.env = append(r.env, "DROVER_CONFIG="+file)
}

// editor starts drover acp and returns an editor for it. When the test ends it
// must leave, without a word on stderr. TestClientVanishes measures how soon.
func (r *rig) editor(args ...string) *acptest.Editor {
	r.t.Helper()
	return r.attach(r.command(append([]string{"acp"}, args...)...))
}

// attach is editor for a command that was not started yet.
func (r *rig) attach(cmd *exec.Cmd) *acptest.Editor {
	r.t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	e := acptest.Attach(r.t, out, in)
	r.t.Cleanup(func() {
		e.Close()
		if err := cmd.Wait(); err != nil || complaints.Len() > 0 {
			r.t.Errorf("drover acp: %v\n%s", err, complaints.String())
		}
	})
	return e
}
