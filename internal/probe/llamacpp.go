package probe

import (
	"encoding/json"
	"slices"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/openai"
)

// llamaCppEfforts are the values of reasoning_effort that a llama.cpp template
// which takes the parameter knows; "none" is handled by the server itself.
var llamaCppEfforts = []string{"none", "low", "medium", "high"}

// llamaCpp reads the answer to /props. n_ctx is the window of one slot: what one
// request can have.
func (c *claims) llamaCpp(doc Document) {
	r := &reader{claims: c, endpoint: doc.Endpoint, object: parse(doc.Body)}
	r.tokens(&c.effective, "default_generation_settings.n_ctx")
	r.boolean(&c.vision, "modalities.vision")
	r.templateTools()

	const effort = "chat_template_caps.supports_reasoning_effort"
	if value, ok := boolean(r.object.at(effort)); ok && value {
		e := r.evidence(effort, r.object.at(effort))
		// A template that takes an effort reasons. One that takes none may
		// reason all the same, so false proves nothing.
		c.reasoning = append(c.reasoning, claim{llm.Supported, e})
		c.advertised = append(c.advertised, e)
		c.values = append(c.values, effortValues{llamaCppEfforts, e})
	}
}

// templateTools reads what the chat template does with tools. It has to render
// the offered tools and the calls of earlier turns: one without the other is no
// tool use.
func (r *reader) templateTools() {
	support := llm.Supported
	var said []llm.Evidence
	for _, field := range []string{"chat_template_caps.supports_tools", "chat_template_caps.supports_tool_calls"} {
		raw := r.object.at(field)
		value, ok := boolean(raw)
		switch {
		case !ok && support == llm.Supported:
			support = llm.Unknown
		case ok && !value:
			support = llm.Unsupported
		}
		if ok {
			said = append(said, r.evidence(field, raw))
		}
	}
	for _, e := range said {
		r.tools = append(r.tools, claim{support, e})
	}
}

// routes reports whether the list is that of a llama.cpp router: a server that
// loads models on demand and says of each whether it is loaded.
func routes(catalogue *openai.Catalogue) bool {
	return catalogue != nil && slices.ContainsFunc(catalogue.Entries, routed)
}

// routed reports whether an entry says whether its model is loaded.
func routed(e openai.Entry) bool {
	_, ok := word(parse(e.Raw).at("status.value"))
	return ok
}

// routerLoaded reports whether a router's entry is that of a loaded model.
func routerLoaded(e *openai.Entry) bool {
	return e != nil && parse(e.Raw).is("status.value", "loaded")
}

// routerArguments reads the window that a router will start a model with from
// the command line it shows: --ctx-size, divided among --parallel slots. Without the
// option the model's own window is used, which is not told before it is loaded.
func (r *reader) routerArguments() {
	args, exact := r.object.words("status.args")
	if !exact {
		return
	}
	total, okTotal := argument(args, "--ctx-size", "-c")
	if !okTotal {
		return
	}
	slots, okSlots := argument(args, "--parallel", "-np")
	if !okSlots {
		slots = 1
	}
	if n := total / slots; n > 0 {
		r.declared = append(r.declared, size{n, r.evidence("status.args", argsShown(args))})
	}
}

// argument gives the positive number behind the last of an option's names.
func argument(args []string, names ...string) (n int, ok bool) {
	for i, a := range args {
		if i+1 < len(args) && slices.Contains(names, a) {
			if v, isNumber := digits(args[i+1]); isNumber {
				n, ok = v, true
			}
		}
	}
	return n, ok
}

// argsShown keeps only the options that were read: the rest of a command line
// holds paths of the machine and perhaps a key.
func argsShown(args []string) json.RawMessage {
	var kept []string
	for i, a := range args {
		if i+1 < len(args) && slices.Contains([]string{"--ctx-size", "-c", "--parallel", "-np"}, a) {
			kept = append(kept, a, args[i+1])
		}
	}
	raw, _ := json.Marshal(kept) // strings cannot fail
	return raw
}
