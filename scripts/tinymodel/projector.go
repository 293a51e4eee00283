package main

import (
	"fmt"
	"slices"
)

// The projector is a vision encoder of the LLaVA kind, as small as engines
// accept: pictures of 2 by 2 patches, two layers of 32 channels.
const (
	imageSize      = 28
	patchSize      = 14
	imagePatches   = (imageSize / patchSize) * (imageSize / patchSize)
	imageColours   = 3
	visionWidth    = 32
	visionHidden   = 64
	visionLayers   = 2
	projectorClass = "mlp"
)

// projector makes the model that turns each patch of a picture, whatever it
// shows, into the one embedding that asks for the reply for images: everything
// is zero but the last bias.
func projector(name string, w *weights) (*model, error) {
	if w.image == nil {
		return nil, fmt.Errorf("projector: the script has no reply for images")
	}
	m := &model{}
	m.set("general.architecture", "clip")
	m.set("general.type", "mmproj")
	m.set("general.name", name+" projector")
	m.set("general.file_type", uint32(float32s))
	m.set("clip.has_vision_encoder", true)
	m.set("clip.projector_type", projectorClass)
	m.set("clip.use_gelu", true)
	m.set("clip.vision.image_size", uint32(imageSize))
	m.set("clip.vision.patch_size", uint32(patchSize))
	m.set("clip.vision.embedding_length", uint32(visionWidth))
	m.set("clip.vision.feed_forward_length", uint32(visionHidden))
	m.set("clip.vision.block_count", uint32(visionLayers))
	m.set("clip.vision.projection_dim", uint32(w.width))
	m.set("clip.vision.attention.head_count", uint32(1))
	m.set("clip.vision.attention.layer_norm_epsilon", float32(normEpsilon))
	m.set("clip.vision.image_mean", []float32{0.5, 0.5, 0.5})
	m.set("clip.vision.image_std", []float32{0.5, 0.5, 0.5})

	constant := func(value float32, name string, dims ...int) {
		n := 1
		for _, d := range dims {
			n *= d
		}
		m.add(name, float32s, slices.Repeat([]float32{value}, n), dims...)
	}
	constant(0, "v.patch_embd.weight", patchSize, patchSize, imageColours, visionWidth)
	constant(0, "v.position_embd.weight", visionWidth, imagePatches)
	for layer := range visionLayers {
		prefix := fmt.Sprintf("v.blk.%d.", layer)
		for _, part := range []string{"attn_q", "attn_k", "attn_v", "attn_out"} {
			constant(0, prefix+part+".weight", visionWidth, visionWidth)
			constant(0, prefix+part+".bias", visionWidth)
		}
		for _, part := range []string{"ln1", "ln2"} {
			constant(1, prefix+part+".weight", visionWidth)
			constant(0, prefix+part+".bias", visionWidth)
		}
		constant(0, prefix+"ffn_up.weight", visionWidth, visionHidden)
		constant(0, prefix+"ffn_up.bias", visionHidden)
		constant(0, prefix+"ffn_down.weight", visionHidden, visionWidth)
		constant(0, prefix+"ffn_down.bias", visionWidth)
	}
	constant(0, "mm.0.weight", visionWidth, w.width)
	constant(0, "mm.0.bias", w.width)
	constant(0, "mm.2.weight", w.width, w.width)
	m.add("mm.2.bias", float32s, w.image, w.width)
	return m, nil
}
