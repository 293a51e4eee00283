package session

import (
	"encoding/json"
	"fmt"

	"github.com/drover-dev/drover/internal/llm"
)

// UserMessage is what a person said, or the images that a tool returned.
type UserMessage struct {
	Stamp
	// Parts are texts and images. The log holds a reference to each image: an
	// image that was read and not looked up yet has no Data. See [ReaderOptions].
	Parts []llm.Part
	// Continuation marks a message that belongs to the running exchange.
	Continuation bool
}

type userWire struct {
	Parts        []partWire `json:"parts"`
	Continuation bool       `json:"continuation,omitempty"`
}

// partWire has exactly one member.
type partWire struct {
	Text  *string    `json:"text,omitempty"`
	Image *imageWire `json:"image,omitempty"`
}

type imageWire struct {
	SHA256    string `json:"sha256"`
	Name      string `json:"name,omitempty"`
	MediaType string `json:"mediaType,omitempty"`
	Width     int    `json:"width,omitempty"`
	Height    int    `json:"height,omitempty"`
	// Original is the digest of the image that this one was made from.
	Original string `json:"original,omitempty"`
}

// MarshalJSON writes the texts, and references in the places of images.
func (r *UserMessage) MarshalJSON() ([]byte, error) {
	w := userWire{Parts: make([]partWire, 0, len(r.Parts)), Continuation: r.Continuation}
	for i, p := range r.Parts {
		switch p := p.(type) {
		case llm.Text:
			text := string(p)
			w.Parts = append(w.Parts, partWire{Text: &text})
		case *llm.Image:
			img := &imageWire{SHA256: p.SHA256, Name: p.Name, MediaType: p.MediaType, Width: p.Width, Height: p.Height}
			if p.Original != nil {
				img.Original = p.Original.SHA256
			}
			w.Parts = append(w.Parts, partWire{Image: img})
		default:
			return nil, fmt.Errorf("user message: part %d is a %T", i, p)
		}
	}
	return appendJSON(nil, &w)
}

// UnmarshalJSON reads what MarshalJSON wrote. A part of a kind that this version
// does not know becomes a text that says so.
func (r *UserMessage) UnmarshalJSON(data []byte) error {
	var w userWire
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	r.Continuation = w.Continuation
	r.Parts = make([]llm.Part, 0, len(w.Parts))
	for _, p := range w.Parts {
		switch {
		case p.Text != nil:
			r.Parts = append(r.Parts, llm.Text(*p.Text))
		case p.Image != nil:
			img := &llm.Image{
				SHA256: p.Image.SHA256, Name: p.Image.Name, MediaType: p.Image.MediaType,
				Width: p.Image.Width, Height: p.Image.Height,
			}
			if p.Image.Original != "" {
				img.Original = &llm.Image{SHA256: p.Image.Original}
			}
			r.Parts = append(r.Parts, img)
		default:
			r.Parts = append(r.Parts, llm.Text("[a part of a kind that this version does not know]"))
		}
	}
	return nil
}

// missingImage stands in a history for an image whose bytes are gone.
func missingImage(img *llm.Image) llm.Text {
	name := img.Name
	if name == "" {
		name = img.MediaType
	}
	return llm.Text(fmt.Sprintf("[image %s is missing: its file could not be read]", name))
}

// forgetLost puts into a message, for good, what stands in a history for images
// whose bytes are gone, and counts them.
func (r *UserMessage) forgetLost() (lost int) {
	if r == nil {
		return 0
	}
	for i, p := range r.Parts {
		if isLost(p) {
			r.Parts[i] = missingImage(p.(*llm.Image))
			lost++
		}
	}
	return lost
}
