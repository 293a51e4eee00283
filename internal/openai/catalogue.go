package openai

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drover-dev/drover/internal/llm"
)

// Catalogue is an engine's list of models, in its order.
type Catalogue struct {
	Entries []Entry
	// Omitted counts the models beyond [MaxCatalogueEntries].
	Omitted int
}

// Entry is one model of a [Catalogue].
type Entry struct {
	ID      string // opaque, never empty
	Name    string // for people; the id if the engine gives no other
	OwnedBy string // empty if the engine does not say
	// NotChat says that the entry's own type calls it something else than a
	// chat model. It is listed all the same.
	NotChat bool
	// Raw is the entry as it came: evidence for package probe.
	Raw json.RawMessage
}

// DecodeModels reads the answer to GET /v1/models: an object with an array data
// (or, without it, models), an array alone, or null for an empty list. Entries
// without a usable id, not blank, of at most [MaxModelIDBytes] and free of control
// and format characters, are left out; of two with one id the first stays. A body
// of another shape is a MALFORMED_RESPONSE.
func DecodeModels(body []byte) (*Catalogue, error) {
	doc, bad := parseDocument(bytes.TrimPrefix(body, byteOrderMark))
	if bad != nil {
		return nil, llm.Errorf(llm.CodeMalformedResponse, "list of models: no JSON (%s at byte %d)", bad.reason, bad.offset)
	}
	list, ok := modelList(doc)
	if !ok {
		return nil, llm.Errorf(llm.CodeMalformedResponse, "list of models: neither data nor models is an array")
	}
	c := &Catalogue{}
	seen := make(map[string]bool)
	for e := range list.elements() {
		entry, ok := modelEntry(e)
		if !ok || seen[entry.ID] {
			continue
		}
		seen[entry.ID] = true
		if len(c.Entries) == MaxCatalogueEntries {
			c.Omitted++
			continue
		}
		entry.Raw = bytes.Clone(e.raw)
		c.Entries = append(c.Entries, entry)
	}
	return c, nil
}

// modelList finds the array. An absent list is told from an empty one.
func modelList(doc value) (list value, ok bool) {
	switch doc.kind() {
	case '[', 'n':
		return doc, true
	case '{':
		data, models := doc.get("data"), doc.get("models")
		switch {
		case data.isArray():
			return data, true
		case models.isArray():
			return models, true
		case data.kind() == 'n' || len(data.raw) == 0 && models.kind() == 'n':
			return value{}, true
		}
	}
	return value{}, false
}

// modelEntry reads one entry: an object, or an id alone. The lists named models
// call the id by several names.
func modelEntry(v value) (e Entry, ok bool) {
	if v.isString() {
		e.ID = v.str()
	}
	var name string
	for key, m := range v.members() {
		switch string(key) {
		case "name", "display_name":
			if name == "" || string(key) == "name" {
				name = m.str()
			}
		case "owned_by":
			e.OwnedBy = m.str()
		case "type", "model_type", "task", "mode":
			e.NotChat = e.NotChat || notChat(m.str())
		}
	}
	for _, key := range [...]string{"id", "model", "key", "name"} {
		if e.ID == "" {
			e.ID = v.get(key).str()
		}
	}
	if !usableID(e.ID) {
		return Entry{}, false
	}
	if e.Name = name; strings.TrimSpace(name) == "" {
		e.Name = e.ID
	}
	return e, true
}

// notChat reports whether the value of a type member says that a model is
// something else than a chat model.
func notChat(typ string) bool {
	switch strings.ToLower(typ) {
	case "embedding", "embeddings", "embed", "text-embedding", "feature-extraction",
		"rerank", "reranker", "reranking", "cross-encoder", "classifier", "moderation",
		"image", "image_generation", "image-generation", "text-to-image", "diffusion", "video", "text-to-video",
		"audio", "tts", "text-to-speech", "speech", "audio_speech",
		"stt", "asr", "transcription", "audio_transcription", "speech-to-text", "automatic-speech-recognition":
		return true
	}
	return false
}

func usableID(id string) bool {
	if strings.TrimSpace(id) == "" || len(id) > MaxModelIDBytes || !utf8.ValidString(id) || strings.ContainsRune(id, utf8.RuneError) {
		return false
	}
	return !strings.ContainsFunc(id, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf) })
}
