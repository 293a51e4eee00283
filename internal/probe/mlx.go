package probe

import (
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
)

// oMLX reads the answer to /v1/models/status. A model of another type than vlm
// may still take images, so only that type is a claim.
func (c *claims) oMLX(model string, doc Document) {
	for _, raw := range parse(doc.Body).list("models") {
		r := &reader{claims: c, endpoint: doc.Endpoint, prefix: "models[].", object: parse(raw)}
		if !r.object.is("id", model) {
			continue
		}
		r.tokens(&c.effective, "max_context_window")
		r.tokens(&c.output, "max_tokens")
		if r.object.is("model_type", "vlm") {
			c.vision = append(c.vision, claim{llm.Supported, r.evidence("model_type", quoted("vlm"))})
		}
		return
	}
}

// withoutFunctionCalling drops oMLX's capabilities.function_calling, which is
// true for every model.
func withoutFunctionCalling(tools []claim) []claim {
	return slices.DeleteFunc(tools, func(c claim) bool {
		return strings.HasSuffix(c.evidence.Field, "capabilities.function_calling")
	})
}

// vMLX reads the answer to /v1/models/{id}/capabilities.
func (c *claims) vMLX(doc Document) {
	r := &reader{claims: c, endpoint: doc.Endpoint, object: parse(doc.Body)}
	r.member(&c.vision, "modalities", "vision")
	r.boolean(&c.tools, "supports_tools")
	r.boolean(&c.reasoning, "supports_thinking")
	const efforts = "reasoning_efforts"
	if values, exact := r.object.words(efforts); exact && len(values) > 0 {
		e := r.evidence(efforts, r.object.at(efforts))
		c.advertised = append(c.advertised, e)
		c.values = append(c.values, effortValues{values, e})
	}
}
