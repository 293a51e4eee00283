package probe

// The members by which engines and gateways with the OpenAI API describe a
// model, in a list entry and in the answer to GET /v1/models/{id}.
var (
	// Windows in force: vLLM and SGLang, some gateways, llama.cpp.
	effectiveFields = []string{"max_model_len", "effective_max_context", "meta.n_ctx"}
	// What a model could do: OpenRouter and Lemonade, Mistral, Groq, LiteLLM and
	// others.
	declaredFields = []string{
		"context_length", "max_context_length", "context_window", "max_input_tokens",
		"max_context_tokens", "top_provider.context_length",
	}
	outputFields = []string{"max_output_tokens", "max_completion_tokens", "top_provider.max_completion_tokens"}

	modalityFields = []string{"architecture.input_modalities", "input_modalities", "modalities"}
	effortFields   = []string{
		"reasoning_effort_values", "reasoning_effort_levels", "supported_reasoning_efforts",
		"reasoning.allowed_options",
	}
)

// toolNames are the names of the tool capability, in an object or a list.
var toolNames = []string{"tools", "tool_calling", "function_calling"}

// windows reads the sizes of an entry's window.
func (r *reader) windows() {
	for _, f := range effectiveFields {
		r.tokens(&r.effective, f)
	}
	for _, f := range declaredFields {
		r.tokens(&r.declared, f)
	}
}

// generic reads an entry of the OpenAI API.
func (r *reader) generic() {
	r.windows()
	for _, f := range outputFields {
		r.tokens(&r.output, f)
	}

	for _, f := range []string{"capabilities.vision", "capabilities.multimodal", "vision", "supports_vision"} {
		r.boolean(&r.vision, f)
	}
	r.member(&r.vision, "capabilities", "vision", "multimodal")
	for _, f := range modalityFields {
		r.member(&r.vision, f, "image", "vision")
	}

	for _, name := range toolNames {
		r.boolean(&r.tools, "capabilities."+name)
	}
	r.boolean(&r.tools, "supports_tools")
	r.member(&r.tools, "capabilities", toolNames...)
	r.member(&r.tools, "supported_parameters", "tools")

	r.boolean(&r.reasoning, "capabilities.reasoning")
	r.boolean(&r.reasoning, "reasoning")
	r.member(&r.reasoning, "capabilities", "reasoning")
	// OpenRouter's name for "this model reasons". It is another parameter than
	// reasoning_effort, which alone may be sent.
	r.member(&r.reasoning, "supported_parameters", "reasoning")

	if r.object.holds("supported_parameters", "reasoning_effort") {
		r.advertised = append(r.advertised, r.evidence("supported_parameters[]", quoted("reasoning_effort")))
	}
	for _, f := range effortFields {
		r.effortList(f)
	}
}
