package openai

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/drover-dev/drover/internal/llm"
)

// DecodeRequest reads the body of a Chat Completions request, such as
// [EncodeRequest] makes and other clients send. System and developer messages
// before any other are joined, an empty line between them, into System; a later
// one stays a message with the role system, for package history to refuse.
// Names of unknown members are passed over, except that those of tool calls are
// kept in Extra. Messages get no Origin, and of the snapshot only the model's
// name is known: the caller completes it.
//
// An error is an INVALID_REQUEST and names line, column (in characters, both
// from 1) and the path of the member.
func DecodeRequest(body []byte) (*llm.Request, error) {
	d := &requestDecoder{body: body}
	doc, bad := parseDocument(body)
	if bad != nil {
		return nil, d.errorf(bad.offset, "", "no JSON: %s", bad.reason)
	}
	req, err := d.request(doc)
	if err != nil {
		return nil, err
	}
	return req, nil
}

type requestDecoder struct{ body []byte }

// errorf makes an error of a place in the body.
func (d *requestDecoder) errorf(at int, path, format string, args ...any) *llm.Error {
	if path != "" {
		path += ": "
	}
	return llm.Errorf(llm.CodeInvalidRequest, "%s: %s%s", d.place(at), path, fmt.Sprintf(format, args...))
}

func (d *requestDecoder) place(at int) string {
	before := d.body[:min(at, len(d.body))]
	line := 1 + bytes.Count(before, []byte{'\n'})
	column := 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return fmt.Sprintf("line %d, column %d", line, column)
}

// want gives the error of a member of the wrong type; of an absent one the
// place is that of the object it should be in.
func (d *requestDecoder) want(v, in value, path, what string) *llm.Error {
	if len(v.raw) == 0 {
		return d.errorf(in.at, path, "missing; want %s", what)
	}
	return d.errorf(v.at, path, "want %s", what)
}

func (d *requestDecoder) request(doc value) (*llm.Request, *llm.Error) {
	if !doc.isObject() {
		return nil, d.errorf(doc.at, "", "want an object with model and messages")
	}
	req := &llm.Request{}
	if model := doc.get("model"); model.isString() {
		req.Snapshot.Target.Model = model.str()
	} else if !model.isNull() {
		return nil, d.want(model, doc, "model", "a string")
	}
	for _, name := range [...]string{"max_tokens", "max_completion_tokens"} {
		m := doc.get(name)
		if m.isNull() {
			continue
		}
		n, ok := m.count()
		if !ok || n < 1 {
			return nil, d.want(m, doc, name, "a positive number")
		}
		req.MaxTokens = n
	}
	if err := d.tools(doc, req); err != nil {
		return nil, err
	}
	messages := doc.get("messages")
	if !messages.isArray() {
		return nil, d.want(messages, doc, "messages", "an array")
	}
	var system []string
	i := 0
	for m := range messages.elements() {
		msg, err := d.message(m, fmt.Sprintf("messages[%d]", i))
		if err != nil {
			return nil, err
		}
		if msg.Role == llm.System && len(req.Messages) == 0 {
			system = append(system, msg.Text())
		} else {
			req.Messages = append(req.Messages, msg)
		}
		i++
	}
	req.System = strings.Join(slices.DeleteFunc(system, func(s string) bool { return s == "" }), "\n\n")
	return req, nil
}

func (d *requestDecoder) tools(doc value, req *llm.Request) *llm.Error {
	tools := doc.get("tools")
	if tools.isNull() {
		return nil
	}
	if !tools.isArray() {
		return d.want(tools, doc, "tools", "an array")
	}
	i := 0
	for t := range tools.elements() {
		path := fmt.Sprintf("tools[%d]", i)
		f := t.get("function")
		if !f.isObject() {
			return d.want(f, t, path+".function", "an object")
		}
		name := f.get("name")
		if name.str() == "" {
			return d.want(name, f, path+".function.name", "a name")
		}
		description, parameters := f.get("description"), f.get("parameters")
		if !description.isString() && !description.isNull() {
			return d.want(description, f, path+".function.description", "a string")
		}
		if !parameters.isObject() && !parameters.isNull() {
			return d.want(parameters, f, path+".function.parameters", "an object")
		}
		req.Tools = append(req.Tools, llm.NewToolDef(name.str(), description.str(), parameters.raw))
		i++
	}
	return nil
}

func (d *requestDecoder) message(v value, path string) (llm.Message, *llm.Error) {
	var msg llm.Message
	if !v.isObject() {
		return msg, d.errorf(v.at, path, "want an object")
	}
	role := v.get("role")
	switch role.str() {
	case "system", "developer":
		msg.Role = llm.System
	case "user", "assistant", "tool":
		msg.Role = llm.Role(role.str())
	default:
		if role.isString() {
			return msg, d.errorf(role.at, path+".role", "unknown role %q", role.str())
		}
		return msg, d.want(role, v, path+".role", "a role")
	}
	parts, err := d.content(v, msg.Role, path)
	if err != nil {
		return msg, err
	}
	msg.Parts = parts
	switch msg.Role {
	case llm.Assistant:
		msg.Reasoning = requestReasoning(v)
		msg.Calls, err = d.calls(v, path)
	case llm.Tool:
		id := v.get("tool_call_id")
		if !id.isString() {
			return msg, d.want(id, v, path+".tool_call_id", "a string")
		}
		msg.CallID = id.str()
	}
	return msg, err
}

// content reads the content of a message: a string, null, or an array of parts.
func (d *requestDecoder) content(msg value, role llm.Role, path string) ([]llm.Part, *llm.Error) {
	v := msg.get("content")
	path += ".content"
	switch {
	case v.isString():
		if text := v.str(); text != "" {
			return []llm.Part{llm.Text(text)}, nil
		}
		return nil, nil
	case v.isNull() && role == llm.Assistant:
		return nil, nil
	case !v.isArray():
		return nil, d.want(v, msg, path, "a string or an array of parts")
	}
	var parts []llm.Part
	i := 0
	for e := range v.elements() {
		place := fmt.Sprintf("%s[%d]", path, i)
		i++
		typ := e.get("type")
		switch typ.str() {
		case "text":
			text := e.get("text")
			if !text.isString() {
				return nil, d.want(text, e, place+".text", "a string")
			}
			parts = append(parts, llm.Text(text.str()))
		case "image_url":
			img, err := d.image(e, place)
			if err != nil {
				return nil, err
			}
			parts = append(parts, img)
		default:
			if typ.isString() {
				return nil, d.errorf(typ.at, place+".type", "unknown type %q", typ.str())
			}
			return nil, d.want(typ, e, place+".type", "text or image_url")
		}
	}
	return parts, nil
}

// image reads a part with a data URL. Nothing is fetched, so that any other URL
// is an error.
func (d *requestDecoder) image(part value, path string) (*llm.Image, *llm.Error) {
	url, in := part.get("image_url"), part
	path += ".image_url"
	if url.isObject() {
		url, in = url.get("url"), url
		path += ".url"
	}
	if !url.isString() {
		return nil, d.want(url, in, path, "a data URL")
	}
	head, data, ok := strings.Cut(url.str(), ",")
	if !ok || !strings.HasPrefix(head, "data:") || !strings.HasSuffix(head, ";base64") {
		return nil, d.errorf(url.at, path, "want a data URL in base64; images are not fetched")
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return nil, d.errorf(url.at, path, "%v", err)
	}
	img, err := llm.NewImage("", raw)
	if err != nil {
		return nil, d.errorf(url.at, path, "%v", err)
	}
	return img, nil
}

// requestReasoning reads what a client sends back of an earlier answer.
func requestReasoning(v value) *llm.Reasoning {
	var r llm.Reasoning
	for _, field := range [...]string{fieldReasoningContent, fieldReasoning, fieldThinking} {
		if text := v.get(field); text.isString() && text.str() != "" {
			r.Text, r.Field = text.str(), field
			break
		}
	}
	if details := v.get(fieldDetails); details.isArray() {
		r.Details = bytes.Clone(details.raw)
		r.Field = firstOf(r.Field, fieldDetails)
	}
	if r.Field == "" {
		return nil
	}
	return &r
}

func (d *requestDecoder) calls(msg value, path string) ([]llm.ToolCall, *llm.Error) {
	v := msg.get("tool_calls")
	if v.isNull() {
		return nil, nil
	}
	if !v.isArray() {
		return nil, d.want(v, msg, path+".tool_calls", "an array")
	}
	var calls []llm.ToolCall
	for e := range v.elements() {
		place := fmt.Sprintf("%s.tool_calls[%d]", path, len(calls))
		id, f := e.get("id"), e.get("function")
		if !id.isString() {
			return nil, d.want(id, e, place+".id", "a string")
		}
		if !f.isObject() {
			return nil, d.want(f, e, place+".function", "an object")
		}
		name, args := f.get("name"), f.get("arguments")
		if !name.isString() {
			return nil, d.want(name, f, place+".function.name", "a string")
		}
		call := llm.ToolCall{ID: id.str(), Name: name.str(), Arguments: args.str()}
		switch {
		case args.isObject():
			call.Arguments = string(args.raw)
		case !args.isString() && !args.isNull():
			return nil, d.want(args, f, place+".function.arguments", "a string")
		}
		var extra openCall
		extra.keepExtra(e)
		call.Extra = extra.extraJSON()
		calls = append(calls, call)
	}
	return calls, nil
}
