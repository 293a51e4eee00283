package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
)

// maxSide is the longest side in pixels of an image that is sent as it is, where
// [Options.ScaleImages] asks for it: 52 patches of 28 pixels, the largest patch of
// the models that are known. More costs tokens and shows such a model nothing.
const maxSide = 1456

// scaled makes the large images of a message smaller, and others readable, and says
// what it did.
func (a *Agent) scaled(parts []llm.Part) (_ []llm.Part, notes []string) {
	if !a.opts.ScaleImages {
		return parts, nil
	}
	parts = slices.Clone(parts)
	for i, p := range parts {
		img, ok := p.(*llm.Image)
		if !ok {
			continue
		}
		small, err := img.Scaled(maxSide)
		switch {
		case err != nil:
			notes = append(notes, sentence(err.Error())+" It is sent as it is.")
		case small != img:
			parts[i] = small
			name := "An image"
			if img.Name != "" {
				name = "The image " + img.Name
			}
			how := fmt.Sprintf("of %dx%d pixels is sent as %dx%d", img.Width, img.Height, small.Width, small.Height)
			if small.Width == img.Width && small.Height == img.Height {
				how = "is sent as a " + format(small) + ", which all engines read"
			}
			notes = append(notes, name+" "+how+"; the session keeps the original.")
		}
	}
	return parts, notes
}

// refuseDamaged looks for damaged images in a request that failed, and has them left
// out from now on. The engine has the first word: it may read what we cannot, and
// what it has answered to once is not to blame. Ollama's runner ends at such an
// image with status 500, llama.cpp answers 400; other failures of a server are most
// often those of a proxy or of too many requests, and have their retries first.
func (t *turn) refuseDamaged(snap *llm.Snapshot, plan *budget.Plan, e *llm.Error, r *retries) (found bool) {
	switch {
	case e.Code == llm.CodeServer && e.Status > 500 && r.failures < maxRetries, e.Loading:
		return false
	case e.Code != llm.CodeInvalidRequest && e.Code != llm.CodeServer:
		return false
	}
	refused := snap.Refusals
	for i := range plan.Request.Messages {
		for _, img := range plan.Request.Messages[i].Images() {
			if refused.Image(img) || t.seenImages[seenImage{snap.Target, img.SHA256}] {
				continue
			}
			bad := img.Check()
			if bad == nil {
				continue
			}
			found = true
			refused = refused.With(llm.RefusedImage(img))
			t.selector.Refuse(snap.Target, llm.RefusedImage(img))
			t.emit(Notice{Kind: NoticeInfo, Text: fmt.Sprintf("%s refuses the request, and an image in it cannot be read (%v). It is left out from now on; the session keeps it.", snap.Target, bad)})
		}
	}
	return found
}

// seenImage is an image in a request that a model has answered.
type seenImage struct {
	target llm.Target
	sha256 string
}

// sawImages takes note of the images of a request that was answered.
func (t *turn) sawImages(req *llm.Request) {
	for i := range req.Messages {
		for _, img := range req.Messages[i].Images() {
			if req.Snapshot.Refusals.Image(img) {
				continue // not sent
			}
			if t.seenImages == nil {
				t.seenImages = make(map[seenImage]bool)
			}
			t.seenImages[seenImage{req.Snapshot.Target, img.SHA256}] = true
		}
	}
}

// format names the format of an image.
func format(img *llm.Image) string {
	return strings.ToUpper(strings.TrimPrefix(img.MediaType, "image/"))
}

// scaled is [Agent.scaled], and tells the person.
func (t *turn) scaled(parts []llm.Part) []llm.Part {
	parts, notes := t.Agent.scaled(parts)
	for _, note := range notes {
		t.emit(Notice{Kind: NoticeInfo, Text: note})
	}
	return parts
}
