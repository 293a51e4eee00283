package acp_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
// file conversation with lines of
//
//	>  METHOD PARAMS    the editor sends a request, or a notification
//	=  METHOD RESULT    the oldest unmatched answer to METHOD holds RESULT
//	!  METHOD ERROR     the same for an error {"code", "message", "data"}
//	~  KIND UPDATE      the next update of KIND holds UPDATE; others are skipped
//	?  METHOD PARAMS    the agent asks; what follows answers it:
//	<  RESULT           the editor answers the last question
//	-- restart          the agent's process ends and another one starts
//	-- gone ROUTE       a provider is unregistered
//
// "Holds" means that all members and elements named are there; a string that
// begins with ~ is a regular expression. $DIR and $S stand for the folder and
// the newest session. Every other file of the archive is put into the folder.
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

// player plays one conversation.
type player struct {
	t        *testing.T
	f        *fixture
	e        *acptest.Editor
	gone     map[string]func()
	session  string
	started  []*acptest.Request
	seen     int // messages before this place have been matched by ~ or ?
	question json.RawMessage
}

func playScript(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := &player{t: t, f: newFixture(t), gone: make(map[string]func())}
	var conversation string
	for _, f := range archive.Files {
		switch f.Name {
		case "providers":
			var scripts []providerScript
			if err := json.Unmarshal(f.Data, &scripts); err != nil {
				t.Fatalf("%s: providers: %v", file, err)
			}
			for _, s := range scripts {
				p.gone[s.Route] = p.f.register(s.provider())
			}
		case "options":
			var o struct{ Target, Mode string }
			if err := json.Unmarshal(f.Data, &o); err != nil {
				t.Fatalf("%s: options: %v", file, err)
			}
			p.f.opts.Target, _ = llm.ParseTarget(o.Target)
			p.f.opts.Mode, _ = tool.ParseMode(o.Mode)
		case "conversation":
			conversation = string(f.Data)
		default:
			if err := os.WriteFile(filepath.Join(p.f.dir, f.Name), f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.start()
	for n, line := range strings.Split(conversation, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		line = strings.ReplaceAll(line, "$DIR", p.f.dir)
		line = strings.ReplaceAll(line, "$S", p.session)
		if err := p.play(line); err != nil {
			t.Fatalf("%s: conversation line %d: %s\n%v\nmessages:\n%s", file, n+1, line, err, p.e.Transcript())
		}
	}
}

func (p *player) start() {
	p.e = p.f.connect()
	p.e.Permission = func(json.RawMessage) string { return "" } // the script answers
	p.seen, p.started = 0, nil
}

func (p *player) play(line string) error {
	verb, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	name, body, _ := strings.Cut(rest, " ")
	var want any
	if verb == "<" {
		body = rest
	}
	if body = strings.TrimSpace(body); body != "" && verb != "--" {
		if err := json.Unmarshal([]byte(body), &want); err != nil {
			return fmt.Errorf("not JSON: %w", err)
		}
	}
	switch verb {
	case ">":
		p.send(name, want, body)
	case "=", "!":
		return p.answer(verb, name, want)
	case "~":
		return p.next(name, want, func(m *acptest.Message) (string, json.RawMessage) {
			var params struct{ Update json.RawMessage }
			var kind struct{ SessionUpdate string }
			_ = json.Unmarshal(m.Params, &params)
			_ = json.Unmarshal(params.Update, &kind)
			return kind.SessionUpdate, params.Update
		})
	case "?":
		return p.next(name, want, func(m *acptest.Message) (string, json.RawMessage) {
			if m.ID != nil && m.Method == name {
				p.question = m.ID
			}
			return m.Method, m.Params
		})
	case "<":
		p.e.Write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", p.question, body))
	case "--":
		switch name {
		case "restart":
			p.e.Close()
			p.start()
		case "gone":
			p.gone[body]()
		}
	default:
		return fmt.Errorf("no such verb")
	}
	return nil
}

func (p *player) send(method string, params any, body string) {
	if method == "session/cancel" || strings.HasPrefix(method, "$/") {
		p.e.Notify(method, json.RawMessage(body))
		return
	}
	if method == "initialize" {
		var client struct{ ClientCapabilities json.RawMessage }
		if json.Unmarshal([]byte(body), &client) == nil && client.ClientCapabilities != nil {
			p.e.Advertise(client.ClientCapabilities)
		}
	}
	p.started = append(p.started, p.e.Start(method, params))
}

func (p *player) answer(verb, method string, want any) error {
	for i, r := range p.started {
		if r.Method != method {
			continue
		}
		p.started = append(p.started[:i:i], p.started[i+1:]...)
		m, place := r.Answer()
		p.seen = max(p.seen, place)
		if (m.Error != nil) != (verb == "!") {
			return fmt.Errorf("got %s", m.Raw)
		}
		var got any
		if m.Error != nil {
			var raw struct{ Error any }
			_ = json.Unmarshal([]byte(m.Raw), &raw)
			got = raw.Error
		} else {
			_ = json.Unmarshal(m.Result, &got)
			if id, ok := got.(map[string]any)["sessionId"].(string); ok && method == "session/new" {
				p.session = id
			}
		}
		return holds("answer", got, want)
	}
	return fmt.Errorf("no request %s is open", method)
}

// next waits for the next message of a name that holds what is wanted.
func (p *player) next(name string, want any, read func(*acptest.Message) (string, json.RawMessage)) error {
	var problem error
	at := p.seen
	p.e.Await(name, func() bool {
		messages := p.e.Messages()
		for ; at < len(messages); at++ {
			kind, body := read(&messages[at])
			if kind != name {
				continue
			}
			var got any
			_ = json.Unmarshal(body, &got)
			if problem = holds(name, got, want); problem == nil {
				at++
			}
			return true
		}
		return false
	})
	p.seen = at
	return problem
}

// holds reports where got lacks something of want.
func holds(path string, got, want any) error {
	switch want := want.(type) {
	case nil:
		return nil
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: %v is no object", path, got)
		}
		for k, v := range want {
			value, there := object[k]
			if v == nil && there && value != nil || v != nil && !there {
				return fmt.Errorf("%s.%s: got %v, want %v", path, k, value, v)
			}
			if err := holds(path+"."+k, value, v); err != nil {
				return err
			}
		}
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return fmt.Errorf("%s: got %v, want %d elements", path, got, len(want))
		}
		for i := range want {
			if err := holds(fmt.Sprintf("%s[%d]", path, i), list[i], want[i]); err != nil {
				return err
			}
		}
	case string:
		text, _ := got.(string)
		if pattern, ok := strings.CutPrefix(want, "~"); ok {
			if !regexp.MustCompile(pattern).MatchString(text) {
				return fmt.Errorf("%s: %q does not match %s", path, text, pattern)
			}
			return nil
		}
		if text != want {
			return fmt.Errorf("%s: got %v, want %q", path, got, want)
		}
	default:
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
	return nil
}
