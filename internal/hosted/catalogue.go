package hosted

import (
	"net/http"
	"strings"
	"sync"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"

	"github.com/drover-dev/drover/internal/llm"
)

// Entry is one provider of the installed catalogue.
type Entry struct {
	// ID is its route, Name what people call it.
	ID, Name string
	// KeyEnv is the environment variable that its key is usually in.
	KeyEnv string
	// Address is the root of its OpenAI-compatible endpoint, empty if it has
	// none that serves everybody.
	Address string
	// Unsupported says why the provider cannot be used at all, or, with NeedsURL,
	// not without an address of the user's own. Empty if it can.
	Unsupported string
	NeedsURL    bool

	kind   catwalk.Type
	header http.Header
	models []catwalk.Model
}

// entries reads the catalogue. That takes some milliseconds, so it is done for
// those who ask.
var entries = sync.OnceValue(func() []*Entry {
	var list []*Entry
	for _, p := range embedded.GetAll() {
		if p.ID != "" { // the library's sign of a document that it could not read
			list = append(list, newEntry(&p))
		}
	}
	return list
})

// Entries lists the catalogue in its own order. The caller must not change it.
func Entries() []*Entry { return entries() }

// Find gives the entry of a provider.
func Find(id string) (e *Entry, ok bool) {
	for _, e := range entries() {
		if e.ID == id {
			return e, true
		}
	}
	return nil, false
}

// addresses are documented OpenAI-compatible endpoints of providers whose entry
// has a placeholder, or the address of another protocol.
var addresses = map[string]string{
	"openai":        "https://api.openai.com/v1",
	"anthropic":     "https://api.anthropic.com/v1",
	"gemini":        "https://generativelanguage.googleapis.com/v1beta/openai",
	"kimi-coding":   "https://api.kimi.com/coding/v1",
	"minimax":       "https://api.minimax.io/v1",
	"minimax-china": "https://api.minimaxi.com/v1",
}

func newEntry(p *catwalk.Provider) *Entry {
	e := &Entry{
		ID: string(p.ID), Name: p.Name, KeyEnv: strings.TrimPrefix(p.APIKey, "$"),
		Address: addresses[string(p.ID)],
		kind:    p.Type, header: ownHeader(p.DefaultHeaders), models: p.Models,
	}
	switch p.Type {
	case catwalk.TypeOpenAI, catwalk.TypeOpenAICompat, catwalk.TypeOpenRouter, catwalk.TypeVercel:
		if e.Address == "" && strings.HasPrefix(p.APIEndpoint, "https://") {
			e.Address = p.APIEndpoint
		}
		if e.Address == "" {
			e.NeedsURL, e.Unsupported = true, "the catalogue has no address for it: set a url"
		}
		if p.APIKey == "" {
			e.Unsupported = "it takes a sign-in in the browser and no API key"
		}
	case catwalk.TypeAzure:
		e.NeedsURL = true
		e.Unsupported = "its address belongs to your resource: set the url https://RESOURCE.openai.azure.com/openai/v1"
	case catwalk.TypeBedrock:
		e.Unsupported = "its requests are signed with AWS credentials, and there is no OpenAI-compatible endpoint for these models"
	case catwalk.TypeVertexAI:
		e.Unsupported = "its endpoint belongs to a Google Cloud project and takes short-lived tokens instead of a key"
	default: // Anthropic's or Google's protocol, or one that is not known
		if e.Address == "" {
			e.Unsupported = "no OpenAI-compatible endpoint of it is known"
		}
	}
	if e.Unsupported != "" && !e.NeedsURL {
		e.Address = ""
	}
	return e
}

// ownHeader gives the headers by which a provider counts the programs that use
// it. The catalogue names the program that it was made for there; drover goes
// under its own name or under none.
func ownHeader(headers map[string]string) http.Header {
	own := make(http.Header)
	for name := range headers {
		switch strings.ToLower(name) {
		case "http-referer":
			own.Set(name, "https://github.com/drover-dev/drover")
		case "x-title":
			own.Set(name, "drover")
		}
	}
	return own
}

// Models projects the models of the entry, in its order.
func (e *Entry) Models() []llm.ModelInfo {
	list := make([]llm.ModelInfo, len(e.models))
	for i := range e.models {
		list[i] = e.project(&e.models[i])
	}
	return list
}

// Model projects one model, by its exact id.
func (e *Entry) Model(id string) (m llm.ModelInfo, ok bool) {
	for i := range e.models {
		if e.models[i].ID == id {
			return e.project(&e.models[i]), true
		}
	}
	return llm.ModelInfo{}, false
}
