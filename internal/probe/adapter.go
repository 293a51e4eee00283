package probe

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/openai"
)

// Adapter is the way to read one kind of engine's metadata. The zero value is
// [Generic], which asks nothing that is not part of the OpenAI API.
type Adapter uint8

// The adapters.
const (
	Generic Adapter = iota
	LMStudio
	Ollama
	LlamaCpp
	OMLX
	VMLX
)

var adapterNames = [...]string{"generic", "lmstudio", "ollama", "llamacpp", "omlx", "vmlx"}

// String is the adapter's name.
func (a Adapter) String() string {
	if int(a) < len(adapterNames) {
		return adapterNames[a]
	}
	return fmt.Sprintf("invalid(%d)", a)
}

// Bounds of the answers, in bytes.
const (
	// MaxDocument bounds a metadata answer.
	MaxDocument = 256 << 10
	// MaxLargeDocument bounds the list of models and Ollama's description of a
	// model, which holds the template and the licence in full.
	MaxLargeDocument = 1 << 20
)

// Names of the questions, as they stand in evidence.
const (
	endpointCatalogue    = "GET /v1/models"
	endpointModel        = "GET /v1/models/{id}"
	endpointStatus       = "GET /v1/models/status"
	endpointCapabilities = "GET /v1/models/{id}/capabilities"
	endpointLMStudio     = "GET /api/v1/models"
	endpointShow         = "POST /api/show"
	endpointRunning      = "GET /api/ps"
	endpointProps        = "GET /props"
)

// Call is one metadata question to an engine.
type Call struct {
	// Endpoint names the question in evidence. It belongs into the [Document]
	// made of the answer.
	Endpoint string
	Method   string
	// Path is the escaped path below the engine's root, with its query. It
	// begins with a slash.
	Path string
	// Body is JSON, nil for none.
	Body []byte
	// Limit is the most bytes that the answer may have.
	Limit int64
}

// Document is the body of an answer with status 200.
type Document struct {
	Endpoint string // of the Call
	Body     []byte
}

// Calls lists what to ask about a model once the engine's list of models is
// known. The calls do not depend on each other and may be made side by side.
//
// None of them loads a model: a llama.cpp router is asked about loaded models
// only, and told so. (Without autoload=false the question itself loads the model
// and may push out another one; versions that do not know the parameter are the
// reason for not asking at all.)
func (a Adapter) Calls(model string, catalogue *openai.Catalogue) []Call {
	get := func(endpoint, path string) Call {
		return Call{Endpoint: endpoint, Method: "GET", Path: path, Limit: MaxDocument}
	}
	switch a {
	case LMStudio:
		return []Call{get(endpointLMStudio, "/api/v1/models")}
	case Ollama:
		var body bytes.Buffer
		body.WriteString(`{"model":`)
		llm.AppendJSONString(&body, model)
		body.WriteString(`}`)
		return []Call{
			{Endpoint: endpointShow, Method: "POST", Path: "/api/show", Body: body.Bytes(), Limit: MaxLargeDocument},
			get(endpointRunning, "/api/ps"),
		}
	case LlamaCpp:
		if routes(catalogue) && !routerLoaded(findEntry(a, model, catalogue)) {
			return nil
		}
		return []Call{get(endpointProps, "/props?model="+EscapeID(model)+"&autoload=false")}
	case OMLX:
		return []Call{get(endpointStatus, "/v1/models/status")}
	case VMLX:
		return []Call{get(endpointCapabilities, "/v1/models/"+EscapeID(model)+"/capabilities")}
	default:
		return []Call{get(endpointModel, "/v1/models/"+EscapeID(model))}
	}
}

// EscapeID writes a model id as one component of a path or as a query value:
// only the unreserved characters of RFC 3986 stay as they are, and the ids that
// a path would read as "here" and "one up" are escaped too.
func EscapeID(id string) string {
	switch id {
	case ".":
		return "%2E"
	case "..":
		return "%2E%2E"
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(id) {
		if c := id[i]; unreserved(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}

// findEntry finds a model in the list: by id, by an alias that the entry names,
// by Ollama's rule that no tag means ":latest". An engine that lists one model
// answers with it whatever name is asked for, so that entry stands for any name
// where the adapter is Generic or LlamaCpp; a router is no such engine.
func findEntry(a Adapter, model string, catalogue *openai.Catalogue) *openai.Entry {
	if catalogue == nil {
		return nil
	}
	entries := catalogue.Entries
	for i := range entries {
		if entries[i].ID == model {
			return &entries[i]
		}
	}
	switch a {
	case Ollama:
		for i := range entries {
			if SameTag(entries[i].ID, model) {
				return &entries[i]
			}
		}
	case LlamaCpp:
		for i := range entries {
			if parse(entries[i].Raw).holds("aliases", model) {
				return &entries[i]
			}
		}
		if routes(catalogue) {
			return nil
		}
		fallthrough
	case Generic:
		if len(entries) == 1 && catalogue.Omitted == 0 {
			return &entries[0]
		}
	}
	return nil
}
