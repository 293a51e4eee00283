package budget

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
)

// emit gives the messages of the draft. Without edits they are a part of the
// caller's slice.
func (d *draft) emit() []llm.Message {
	first := d.firstTurn()
	if d.edits == nil {
		return d.messages[first:len(d.messages):len(d.messages)]
	}
	out := make([]llm.Message, 0, len(d.messages)-first)
	d.each(len(d.messages), func(m *llm.Message, _ uint64) { out = append(out, *m) })
	return out
}

// each visits the messages that the kept turns before end give, and the checksum
// of what each puts into a request.
func (d *draft) each(end int, visit func(m *llm.Message, digest uint64)) {
	for turn := d.firstTurn(); turn < end; turn++ {
		switch e := d.edited(turn); {
		case e == nil:
			visit(&d.messages[turn], d.costs[turn].digest)
		case !e.leftOut:
			m := d.message(e)
			visit(&m, d.digestOf(&m, e.text))
		}
	}
}

// message is the turn as it is sent.
func (d *draft) message(e *edit) llm.Message {
	m := d.messages[e.turn]
	parts := make([]llm.Part, 0, len(m.Parts)+1)
	for i, img := range m.Images() {
		if !slices.Contains(e.images, i+1) {
			parts = append(parts, img)
		}
	}
	if e.text != "" {
		parts = append(parts, llm.Text(e.text))
	}
	m.Parts = parts
	return m
}

// withMarkers adds the edit's markers to a text. A marker for an image or for
// tool groups is a line at the end and never shortened.
func (d *draft) withMarkers(e *edit, text string) string {
	if len(e.images) == 0 && e.rounds == "" {
		return text
	}
	var b strings.Builder
	b.WriteString(text)
	line := func(s string) {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(s)
	}
	images := d.messages[e.turn].Images()
	for _, n := range e.images {
		line(imageMarker(n, images[n-1], d.image(images[n-1])))
	}
	if e.rounds != "" {
		line(e.rounds)
	}
	return b.String()
}

// nameBytes bounds the name of a file or tool in a marker.
const nameBytes = 64

// shortName is a name as a marker shows it: a marker is one line, whatever a
// model or a file is called.
func shortName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, name)
	return name[:boundaryAtMost(name, nameBytes)]
}

func imageMarker(number int, img *llm.Image, tokens int) string {
	name := shortName(img.Name)
	if name != "" {
		name = ": " + name
	}
	if img.Width > 0 && img.Height > 0 {
		name += fmt.Sprintf(", %dx%d", img.Width, img.Height)
	}
	return fmt.Sprintf("[image %d left out%s, about %d tokens]", number, name, tokens)
}
