package acp

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
)

// readPrompt makes the parts of a user message of a prompt's blocks. Every block
// leaves a trace: what cannot be shown to a model is named.
//
// Links to resources stand in the text where they stood among the blocks; the
// text of an embedded resource follows behind everything else.
func readPrompt(o object) ([]llm.Part, error) {
	blocks, ok := o.array("prompt")
	if !ok {
		return nil, badParams("prompt must be an array of content blocks")
	}
	var p promptText
	for i, raw := range blocks {
		if err := p.add(readObject(raw)); err != nil {
			return nil, badParams("prompt block %d: %v", i+1, err)
		}
	}
	parts := p.parts()
	if len(parts) == 0 {
		return nil, badParams("the prompt is empty")
	}
	return parts, nil
}

// promptText collects the blocks of a prompt.
type promptText struct {
	text     strings.Builder
	contexts strings.Builder
	images   []llm.Part
}

func (p *promptText) add(b object) error {
	switch kind := b.textOr("type"); kind {
	case "text":
		p.text.WriteString(b.textOr("text"))
	case "resource_link":
		uri, name := b.textOr("uri"), b.textOr("name")
		if uri == "" && name == "" {
			return fmt.Errorf("a resource_link needs a uri")
		}
		p.link(name, uri)
	case "resource":
		return p.resource(b.object("resource"))
	case "image":
		if b.textOr("data") == "" && b.textOr("uri") != "" {
			p.link("image", b.textOr("uri"))
			return nil
		}
		return p.image(b.textOr("data"), b.textOr("uri"))
	case "audio":
		p.note("audio of the type %.100s, which is not supported", b.textOr("mimeType"))
	case "":
		return fmt.Errorf("it has no type")
	default:
		p.note("a block of the unknown type %.100q", kind)
	}
	return nil
}

// note leaves a trace of a block that is not shown.
func (p *promptText) note(format string, args ...any) {
	fmt.Fprintf(&p.text, "[not shown: "+format+"]", args...)
}

// link names a resource. A file is named by its path, which is what the tools
// take.
func (p *promptText) link(name, uri string) {
	place := filePath(uri)
	if name == "" {
		name = filepath.Base(place)
	}
	fmt.Fprintf(&p.text, "[@%s](%s)", name, place)
}

// filePath is the path of a file URI, with its fragment; anything else stays as
// it is.
func filePath(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Path == "" {
		return uri
	}
	path := u.Path
	// file:///C:/x has a slash before the drive.
	if len(path) > 2 && path[0] == '/' && path[2] == ':' {
		path = path[1:]
	}
	if u.Fragment != "" {
		path += "#" + u.Fragment
	}
	return path
}

// resource embeds a resource: its text, its image, or its name.
func (p *promptText) resource(r object) error {
	uri := r.textOr("uri")
	if text, ok := r.text("text"); ok {
		p.link("", uri)
		fmt.Fprintf(&p.contexts, "\n\n<context ref=%q>\n%s\n</context>", filePath(uri), text)
		return nil
	}
	blob, ok := r.text("blob")
	if !ok {
		return fmt.Errorf("a resource needs text or blob")
	}
	if strings.HasPrefix(r.textOr("mimeType"), "image/") {
		return p.image(blob, uri)
	}
	p.link("", uri)
	p.note("%d bytes of binary data (%.100s)", base64.StdEncoding.DecodedLen(len(blob)), r.textOr("mimeType"))
	return nil
}

// image takes an image. One that cannot be sent is an error: dropping it would
// answer a question that nobody asked.
func (p *promptText) image(data, uri string) error {
	if size := base64.RawStdEncoding.DecodedLen(len(data)); size > llm.MaxImageBytes+maxTitle {
		return fmt.Errorf("the image has about %d bytes, more than %d", size, llm.MaxImageBytes)
	}
	raw, err := decodeBase64(data)
	if err != nil {
		return fmt.Errorf("the image is not base64: %w", err)
	}
	name := ""
	if uri != "" {
		name = filepath.Base(filePath(uri))
	}
	img, err := llm.NewImage(name, raw)
	if err != nil {
		return err
	}
	p.images = append(p.images, img)
	return nil
}

// decodeBase64 reads base64 with or without padding, and the part behind the
// comma of a data URL.
func decodeBase64(data string) ([]byte, error) {
	if _, rest, ok := strings.Cut(data, ";base64,"); ok && strings.HasPrefix(data, "data:") {
		data = rest
	}
	return base64.RawStdEncoding.DecodeString(strings.TrimRight(data, "=\r\n "))
}

func (p *promptText) parts() []llm.Part {
	text := p.text.String() + p.contexts.String()
	parts := p.images
	if strings.TrimSpace(text) != "" {
		parts = append([]llm.Part{llm.Text(text)}, parts...)
	}
	return parts
}
