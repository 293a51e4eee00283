package main

import "slices"

// normEpsilon is far below the mean square of what is normalised.
const normEpsilon = 1e-6

// fileTypeHalf says that most of the numbers in a model have 16 bits.
const fileTypeHalf = 1

// language makes the GGUF model of the Llama architecture.
func language(p *plan, w *weights, template string) *model {
	m := &model{}
	m.set("general.architecture", "llama")
	m.set("general.type", "model")
	m.set("general.name", p.script.Name)
	m.set("general.file_type", uint32(fileTypeHalf))
	m.set("general.quantization_version", uint32(2))
	m.set("llama.context_length", uint32(p.script.Context))
	m.set("llama.embedding_length", uint32(w.width))
	m.set("llama.block_count", uint32(1))
	m.set("llama.feed_forward_length", uint32(feedForward))
	m.set("llama.attention.head_count", uint32(1))
	m.set("llama.attention.head_count_kv", uint32(1))
	m.set("llama.attention.key_length", uint32(headSize))
	m.set("llama.attention.value_length", uint32(headSize))
	m.set("llama.attention.layer_norm_rms_epsilon", float32(normEpsilon))
	m.set("llama.rope.dimension_count", uint32(headSize))
	m.set("llama.rope.freq_base", float32(ropeBase))
	m.set("llama.rope.scaling.type", "linear")
	m.set("llama.rope.scaling.factor", float32(p.script.Context)/ropeReach)
	m.set("llama.vocab_size", uint32(len(p.vocab.tokens)))
	m.set("tokenizer.ggml.model", "gpt2")
	m.set("tokenizer.ggml.pre", p.vocab.pre)
	m.set("tokenizer.ggml.tokens", p.vocab.tokens)
	m.set("tokenizer.ggml.token_type", p.vocab.types)
	m.set("tokenizer.ggml.merges", p.vocab.merges)
	if p.script.BOS != "" {
		m.set("tokenizer.ggml.bos_token_id", uint32(p.vocab.ids[p.script.BOS]))
	}
	m.set("tokenizer.ggml.eos_token_id", uint32(p.eos))
	m.set("tokenizer.ggml.add_bos_token", false)
	if template != "" {
		m.set("tokenizer.chat_template", template)
	}

	tokens, width := len(p.vocab.tokens), w.width
	ones := slices.Repeat([]float32{1}, width)
	nothing := make([]float32, width*feedForward)
	m.add("token_embd.weight", float16s, w.embedding, width, tokens)
	m.add("output_norm.weight", float32s, ones, width)
	m.add("output.weight", float16s, w.output, width, tokens)
	m.add("blk.0.attn_norm.weight", float32s, ones, width)
	m.add("blk.0.attn_q.weight", float32s, w.query, width, headSize)
	m.add("blk.0.attn_k.weight", float32s, w.key, width, headSize)
	m.add("blk.0.attn_v.weight", float32s, w.value, width, headSize)
	m.add("blk.0.attn_output.weight", float32s, w.merge, headSize, width)
	m.add("blk.0.ffn_norm.weight", float32s, ones, width)
	m.add("blk.0.ffn_gate.weight", float32s, nothing, width, feedForward)
	m.add("blk.0.ffn_up.weight", float32s, nothing, width, feedForward)
	m.add("blk.0.ffn_down.weight", float32s, nothing, feedForward, width)
	return m
}
