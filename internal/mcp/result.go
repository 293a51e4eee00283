package mcp

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

const (
	maxText   = 256 << 10 // bytes of a result's text; more goes to a file
	maxImages = 16        // of a result
)

// content collects what a result holds.
type content struct {
	tool   string
	texts  []string
	images []*llm.Image
}

// convert makes a result for the model of what a server answered: data, bounded.
func (s *server) convert(t *remoteTool, r *sdk.CallToolResult) tool.Result {
	c := &content{tool: t.def.Name}
	for _, item := range r.Content {
		c.add(item)
	}
	c.structured(r.StructuredContent)
	if r.NeedsInput() {
		c.texts = append(c.texts, "[The server asked the user a question, which this program cannot hand on.]")
	}
	res := tool.Result{Status: tool.StatusOK, Images: c.images}
	if r.IsError || r.NeedsInput() {
		res.Status = tool.StatusError
	}
	res.Text = s.spills.Bound(strings.Join(c.texts, "\n"), maxText, "mcp-"+s.label)
	return res
}

func (c *content) say(format string, args ...any) {
	c.texts = append(c.texts, fmt.Sprintf(format, args...))
}

func (c *content) add(item sdk.Content) {
	switch v := item.(type) {
	case *sdk.TextContent:
		c.texts = append(c.texts, v.Text)
	case *sdk.ImageContent:
		c.image("image", v.MIMEType, v.Data)
	case *sdk.AudioContent:
		c.say("[audio left out: %.100s, %d bytes]", v.MIMEType, len(v.Data))
	case *sdk.ResourceLink:
		c.link(v)
	case *sdk.EmbeddedResource:
		c.resource(v.Resource)
	default:
		c.say("[content of a kind that is not known: %T]", item)
	}
}

// image adds a picture; the text says where it stood.
func (c *content) image(what, media string, data []byte) {
	if len(c.images) == maxImages {
		c.say("[%s left out: more than %d]", what, maxImages)
		return
	}
	name := fmt.Sprintf("%s-%d", c.tool, len(c.images)+1)
	img, err := llm.NewImage(name, data)
	if err != nil {
		c.say("[%s left out: %.100s, %d bytes, is no picture that can be shown]", what, media, len(data))
		return
	}
	c.images = append(c.images, img)
	c.say("[%s %s: %s, %dx%d]", what, name, img.MediaType, img.Width, img.Height)
}

func (c *content) link(l *sdk.ResourceLink) {
	text := "[resource " + l.URI
	for _, part := range []string{l.Name, l.Title, l.MIMEType, l.Description} {
		if part != "" {
			text += "; " + part
		}
	}
	c.texts = append(c.texts, text+"]")
}

func (c *content) resource(r *sdk.ResourceContents) {
	switch {
	case r == nil:
		c.say("[empty resource]")
	case r.Blob == nil:
		c.texts = append(c.texts, "[resource "+r.URI+"]\n"+r.Text)
	case strings.HasPrefix(r.MIMEType, "image/"):
		c.image("resource "+r.URI, r.MIMEType, r.Blob)
	default:
		c.say("[resource %s left out: %.100s, %d bytes]", r.URI, r.MIMEType, len(r.Blob))
	}
}

// structured adds the structured result, unless a text says the same: servers
// repeat it for clients that do not know of it.
func (c *content) structured(v any) {
	if v == nil {
		return
	}
	if object, ok := v.(map[string]any); ok && len(object) == 1 {
		for _, only := range object {
			if only == strings.Join(c.texts, "\n") && only != "" { // {"content": the text}
				return
			}
		}
	}
	for _, text := range c.texts {
		var same any
		if json.Unmarshal([]byte(text), &same) == nil && reflect.DeepEqual(same, v) {
			return
		}
	}
	if data, err := encode(v); err == nil {
		c.texts = append(c.texts, string(data))
	}
}
