package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
)

// emptyResult stands for a tool result without text: engines and templates
// refuse empty tool content.
const emptyResult = "(no output)"

// unnamedTool stands for the missing name of a call that a model left nameless:
// no engine takes an empty name back.
const unnamedTool = "unknown"

func (e *encoder) messages() error {
	start := e.Len()
	if e.req.System != "" {
		e.WriteString(`{"role":"system","content":`)
		e.str(e.req.System)
		e.WriteByte('}')
	}
	for i := 0; i < len(e.req.Messages); i++ {
		m := &e.req.Messages[i]
		if e.saysNothing(m) {
			continue
		}
		if e.Len() > start {
			e.WriteByte(',')
		}
		var err error
		switch m.Role {
		case llm.User:
			run := e.userRun(e.req.Messages[i:])
			e.user(run)
			i += len(run) - 1
		case llm.Assistant:
			err = e.assistant(i, m)
		case llm.Tool:
			err = e.tool(i, m)
		default:
			err = llm.Errorf(llm.CodeInvalidRequest, "encode request: message %d: role %q", i, m.Role)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// saysNothing reports whether an assistant message would have neither content
// nor calls, which engines refuse: an answer that was cancelled at once, or
// reasoning alone that the profile does not send.
func (e *encoder) saysNothing(m *llm.Message) bool {
	if m.Role != llm.Assistant || len(m.Calls) > 0 || m.Text() != "" || len(m.Images()) > 0 {
		return false
	}
	r := e.replayed(m)
	return r.text == "" && r.details == nil
}

// userRun gives the messages that are sent as one user message: the first, and
// those right behind it where the engine wants user and assistant to take turns.
func (e *encoder) userRun(list []llm.Message) []llm.Message {
	n := 1
	if e.refused(llm.RefusedUserRuns) {
		for n < len(list) && (list[n].Role == llm.User || e.saysNothing(&list[n])) {
			n++
		}
	}
	return list[:n]
}

func (e *encoder) user(run []llm.Message) {
	e.WriteString(`{"role":"user","content":`)
	pictures := slices.ContainsFunc(run, func(m llm.Message) bool {
		images, _ := e.images(&m)
		return len(images) > 0
	})
	if pictures {
		e.WriteByte('[')
	}
	var texts []string
	for i := range run {
		m := &run[i]
		if m.Role != llm.User {
			continue // it says nothing
		}
		images, places := e.images(m)
		if !pictures {
			texts = append(texts, places+m.Text())
			continue
		}
		if i > 0 {
			e.WriteByte(',')
		}
		e.parts(images, places+m.Text())
	}
	if pictures {
		e.WriteByte(']')
	} else {
		e.str(strings.Join(texts, "\n\n"))
	}
	e.WriteByte('}')
}

// images gives the images of a message that are sent, and says of each other one,
// a line an image, that it is not. The numbers count within the message, so that
// the text does not change when older messages go.
func (e *encoder) images(m *llm.Message) (sent []*llm.Image, places string) {
	all := m.Images()
	none := e.refused(llm.RefusedImages)
	if !none && !slices.ContainsFunc(all, e.snap.Refusals.Image) {
		return all, ""
	}
	var b strings.Builder
	for i, img := range all {
		switch {
		case none:
			fmt.Fprintf(&b, "[image %d not sent: %s takes no images]\n", i+1, e.snap.Target.Model)
		case e.snap.Refusals.Image(img):
			fmt.Fprintf(&b, "[image %d not sent: it is damaged]\n", i+1)
		default:
			sent = append(sent, img)
		}
	}
	return sent, b.String()
}

// parts writes what a content array has of a message, images first: models attend
// better to a question that follows its pictures.
func (e *encoder) parts(images []*llm.Image, text string) {
	for i, img := range images {
		if i > 0 {
			e.WriteByte(',')
		}
		e.WriteString(`{"type":"image_url","image_url":{"url":"data:`)
		e.WriteString(img.MediaType)
		e.WriteString(`;base64,`)
		e.Grow(base64.StdEncoding.EncodedLen(len(img.Data)))
		e.Write(base64.StdEncoding.AppendEncode(e.AvailableBuffer(), img.Data))
		e.WriteString(`"}}`)
	}
	if text == "" && len(images) > 0 {
		return
	}
	if len(images) > 0 {
		e.WriteByte(',')
	}
	e.WriteString(`{"type":"text","text":`)
	e.str(text)
	e.WriteByte('}')
}

func (e *encoder) assistant(index int, m *llm.Message) error {
	if len(m.Images()) > 0 {
		return llm.Errorf(llm.CodeInvalidRequest, "encode request: message %d: an image in an assistant message", index)
	}
	e.WriteString(`{"role":"assistant","content":`)
	switch text := m.Text(); {
	case text != "" || len(m.Calls) == 0 || e.emptyForNull():
		e.str(text)
	default:
		e.WriteString("null")
	}
	e.reasoning(m)
	if len(m.Calls) > 0 {
		e.WriteString(`,"tool_calls":[`)
		for i := range m.Calls {
			if i > 0 {
				e.WriteByte(',')
			}
			e.call(&m.Calls[i], m.Origin == e.snap.Target)
		}
		e.WriteByte(']')
	}
	e.WriteByte('}')
	return nil
}

// emptyForNull reports whether an assistant message of calls alone has the
// content "" instead of null: by profile, and changed over once by a refusal of
// the form that was sent.
func (e *encoder) emptyForNull() bool {
	if e.refused(llm.RefusedNullContent) {
		return true
	}
	return e.snap.Profile == llm.DeepSeek && !e.refused(llm.RefusedEmptyContent)
}

func (e *encoder) tool(index int, m *llm.Message) error {
	if len(m.Images()) > 0 {
		return llm.Errorf(llm.CodeInvalidRequest, "encode request: message %d: an image in a tool message", index)
	}
	e.WriteString(`{"role":"tool","tool_call_id":`)
	e.str(m.CallID)
	e.WriteString(`,"content":`)
	text := m.Text()
	if text == "" {
		text = emptyResult
	}
	e.str(text)
	e.WriteByte('}')
	return nil
}

// call writes one tool call. Arguments that are no JSON object go out as {}:
// engines parse them again and would refuse the whole conversation. Opaque
// members go back only to the target that made them.
func (e *encoder) call(c *llm.ToolCall, own bool) {
	e.WriteString(`{"id":`)
	e.str(c.ID)
	e.WriteString(`,"type":"function","function":{"name":`)
	name := c.Name
	if name == "" {
		name = unnamedTool
	}
	e.str(name)
	e.WriteString(`,"arguments":`)
	args, bad := llm.RepairArguments(c.Arguments)
	if bad != nil {
		args = "{}"
	}
	e.str(args)
	var extra value
	if own {
		extra = canonicalExtra(c.Extra)
	}
	e.extraMembers(extra.get("function"), "name", "arguments")
	e.WriteByte('}')
	e.extraMembers(extra, "id", "type", "function", "index")
	e.WriteByte('}')
}

// canonicalExtra gives the opaque members in one form, whatever a log made of
// their bytes.
func canonicalExtra(extra json.RawMessage) value {
	if len(extra) == 0 {
		return value{}
	}
	text, err := llm.CanonicalJSON(extra)
	if err != nil {
		return value{}
	}
	v, _ := parseDocument([]byte(text))
	return v
}

// extraMembers writes the members of an object but those of the given names.
func (e *encoder) extraMembers(v value, but ...string) {
members:
	for name, m := range v.members() {
		for _, b := range but {
			if string(name) == b {
				continue members
			}
		}
		e.WriteByte(',')
		e.str(string(name))
		e.WriteByte(':')
		e.Write(m.raw)
	}
}
