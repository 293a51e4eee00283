package probe

import (
	"encoding/json"

	"github.com/drover-dev/drover/internal/llm"
)

// lmStudio reads LM Studio's own list of models: {"models": [{"key", "type",
// "max_context_length", "loaded_instances": [{"id", "config"}], "capabilities"}]}.
func (c *claims) lmStudio(model string, doc Document) {
	for _, raw := range parse(doc.Body).list("models") {
		r := &reader{claims: c, endpoint: doc.Endpoint, prefix: "models[].", object: parse(raw)}
		byKey := r.object.is("key", model)
		instances, matched := r.object.instances(model, byKey)
		if !matched {
			continue
		}
		for _, instance := range instances {
			in := &reader{claims: c, endpoint: doc.Endpoint, prefix: "models[].loaded_instances[].", object: instance}
			in.tokens(&c.effective, "config.context_length")
		}
		r.tokens(&c.declared, "max_context_length")
		r.boolean(&c.vision, "capabilities.vision")
		r.trained()
		r.reasons()
		return
	}
}

// instances gives the loaded instances that a request for the name may reach:
// all of them for the model's key, one for the id of an instance.
func (o object) instances(model string, byKey bool) (instances []object, matched bool) {
	for _, raw := range o.list("loaded_instances") {
		instance := parse(raw)
		if byKey || instance.is("id", model) {
			instances = append(instances, instance)
		}
	}
	return instances, byKey || len(instances) > 0
}

// trained reads the mark of models that were trained to use tools. The others
// get tools by a prompt, so false is a hint about quality and no refusal.
func (r *reader) trained() {
	const field = "capabilities.trained_for_tool_use"
	raw := r.object.at(field)
	if value, ok := boolean(raw); ok {
		support := llm.Unknown
		if value {
			support = llm.Supported
		}
		r.tools = append(r.tools, claim{support, r.evidence(field, raw)})
	}
}

// reasons reads whether the model can reason. The options that stand there
// belong to LM Studio's own chat API, so they prove no request parameter.
func (r *reader) reasons() {
	const field = "capabilities.reasoning"
	raw := r.object.at(field)
	if parse(raw) != nil {
		r.reasoning = append(r.reasoning, claim{llm.Supported, r.evidence(field, raw)})
		return
	}
	r.boolean(&r.reasoning, field)
}

// IsLMStudio reports whether an answer to GET /api/v1/models is LM Studio's: a
// list "models" whose members have a "key".
func IsLMStudio(body []byte) bool {
	models := parse(body).list("models")
	for _, raw := range models {
		if _, ok := word(json.RawMessage(parse(raw)["key"])); !ok {
			return false
		}
	}
	return len(models) > 0
}
