package acptest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Scene is where a conversation is played: see [Play].
type Scene struct {
	// Dir is the working directory of sessions, $DIR in the conversation.
	Dir string
	// Connect starts an agent and returns an editor for it, not initialized.
	Connect func() *Editor
	// Do does what a line "-- NAME WHAT" says, besides restart and keep. Nil
	// knows none.
	Do func(name, what string) error
}

// Play plays a conversation between an editor and an agent. It has lines of
//
//	>  METHOD PARAMS    the editor sends a request, or a notification
//	>+ METHOD PARAMS    the same, in one write with what follows
//	|  TEXT             the editor writes a line of any text, a Go string if it
//	                    is quoted
//	=  METHOD RESULT    the oldest unmatched answer to METHOD holds RESULT
//	!  METHOD ERROR     the same for an error {"code", "message", "data"}
//	~  KIND UPDATE      the next update of KIND holds UPDATE; others are skipped
//	@  ID MESSAGE       the answer with this id, of a line written by |, holds
//	                    MESSAGE
//	?  METHOD PARAMS    the agent asks; what follows answers it:
//	<  RESULT           the editor answers the last question
//	-- restart          the agent ends and another one starts
//	-- keep NAME        the newest session is $NAME from now on
//
// "Holds" means that all members and elements named are there; a string that
// begins with ~ is a regular expression, null stands for anything in an array
// and for nothing as a member. $DIR and $S stand for the folder and the newest
// session. Lines that begin with # are comments.
func Play(t testing.TB, name, conversation string, scene *Scene) {
	t.Helper()
	p := &player{scene: scene, names: make(map[string]string)}
	p.start()
	for n, line := range strings.Split(conversation, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		for kept, id := range p.names {
			line = strings.ReplaceAll(line, "$"+kept, id)
		}
		line = strings.ReplaceAll(line, "$DIR", scene.Dir)
		line = strings.ReplaceAll(line, "$S", p.session)
		if err := p.play(line); err != nil {
			t.Fatalf("%s: conversation line %d: %s\n%v\nmessages:\n%s", name, n+1, line, err, p.e.Transcript())
		}
	}
}

// player plays one conversation.
type player struct {
	scene    *Scene
	e        *Editor
	names    map[string]string
	session  string
	held     string // to be written with the next message
	split    string // the beginning of a line that | has not ended
	started  []*Request
	seen     int // messages before this place have been matched by ~ or ?
	question json.RawMessage
}

func (p *player) start() {
	p.e = p.scene.Connect()
	p.e.Permission = func(json.RawMessage) string { return "" } // the script answers
	p.e.Scripted = true
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
	if body = strings.TrimSpace(body); body != "" && verb != "--" && verb != "|" {
		if err := json.Unmarshal([]byte(body), &want); err != nil {
			return fmt.Errorf("not JSON: %w", err)
		}
	}
	switch verb {
	case ">":
		p.send(name, want, body, false)
	case ">+":
		p.send(name, want, body, true)
	case "|":
		return p.raw(rest)
	case "=", "!":
		return p.answer(verb, name, want)
	case "@":
		return p.next(name, want, func(m *Message) (string, json.RawMessage) {
			if m.Method != "" {
				return "", nil
			}
			return string(m.ID), json.RawMessage(m.Raw)
		})
	case "~":
		return p.next(name, want, func(m *Message) (string, json.RawMessage) {
			if m.update == nil {
				return "", nil
			}
			return m.update.Kind, m.update.Body
		})
	case "?":
		return p.next(name, want, func(m *Message) (string, json.RawMessage) {
			if m.ID != nil && m.Method == name {
				p.question = m.ID
			}
			return m.Method, m.Params
		})
	case "<":
		p.e.Write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", p.question, body))
	case "--":
		return p.do(name, body)
	default:
		return fmt.Errorf("no such verb")
	}
	return nil
}

func (p *player) do(name, what string) error {
	switch {
	case name == "restart":
		p.e.Close()
		p.start()
	case name == "keep":
		p.names[what] = p.session
	case p.scene.Do != nil:
		return p.scene.Do(name, what)
	default:
		return fmt.Errorf("nothing is called %s", name)
	}
	return nil
}

// raw writes a line as it is.
func (p *player) raw(text string) error {
	if strings.HasPrefix(text, `"`) {
		unquoted, err := strconv.Unquote(text)
		if err != nil {
			return err
		}
		text = unquoted
	} else {
		text += "\n"
	}
	for line := range strings.Lines(p.split + text) {
		if p.split = line; strings.HasSuffix(line, "\n") {
			p.split = ""
			p.e.expect(line)
		}
	}
	p.e.Write(text)
	return nil
}

func (p *player) send(method string, params any, body string, hold bool) {
	line := Note(method, json.RawMessage(body))
	if method != "session/cancel" && !strings.HasPrefix(method, "$/") {
		if method == "initialize" {
			var client struct{ ClientCapabilities json.RawMessage }
			if json.Unmarshal([]byte(body), &client) == nil && client.ClientCapabilities != nil {
				p.e.Advertise(client.ClientCapabilities)
			}
		}
		r := p.e.Prepare(method, params)
		p.started, line = append(p.started, r), r.Line
	}
	p.held += line
	if !hold {
		p.e.Write(p.held)
		p.held = ""
	}
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
func (p *player) next(name string, want any, read func(*Message) (string, json.RawMessage)) error {
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
