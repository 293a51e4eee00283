package probe

import (
	"fmt"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/openai"
)

// AssumedWindow is what is planned with, in tokens, when an engine tells only
// what a model could do and loads it smaller by default: 4,096 is the lowest
// default of Ollama (under 23 GiB of video memory) and of LM Studio.
const AssumedWindow = 4096

// Input is what was learned about one model.
type Input struct {
	Adapter Adapter
	// Model is the id that requests carry.
	Model string
	// Catalogue is the engine's list of models, nil if it could not be read.
	Catalogue *openai.Catalogue
	// Documents are the answers to [Adapter.Calls], in any order. A call that
	// was not answered with status 200 has none.
	Documents []Document
}

// Result is what is proven about one model.
type Result struct {
	Capabilities llm.Capabilities
	Window       llm.Window
	// Notes are remarks for people.
	Notes []string
}

// Resolve weighs everything that was said about a model. It cannot fail: what is
// not proven is unknown.
func Resolve(in Input) Result {
	c := &claims{}
	entry := findEntry(in.Adapter, in.Model, in.Catalogue)
	assume := in.Adapter == Ollama || in.Adapter == LMStudio
	if entry != nil {
		r := &reader{claims: c, endpoint: endpointCatalogue, prefix: "data[].", object: parse(entry.Raw)}
		r.generic()
		if in.Adapter == LlamaCpp && routed(*entry) {
			assume = true
			if len(c.effective) == 0 {
				r.routerArguments()
			}
		}
		if in.Adapter == OMLX {
			c.tools = withoutFunctionCalling(c.tools)
		}
		if entry.ID != in.Model && in.Adapter == Generic {
			c.note(fmt.Sprintf("described by %s, the only model that the engine lists", named(entry.ID)))
		}
	}
	c.documents(in)
	if in.Adapter == Generic && entry != nil {
		c.parentWindow(entry, in.Catalogue)
	}
	return Result{Capabilities: c.capabilities(), Window: c.window(assume), Notes: c.notes}
}

// parentWindow reads the window of an adapter (LoRA) that has none of its own.
// vLLM lists it with the model below it as its parent, whose window it has.
func (c *claims) parentWindow(entry *openai.Entry, catalogue *openai.Catalogue) {
	parent, ok := word(parse(entry.Raw)["parent"])
	if !ok || parent == entry.ID || len(c.effective)+len(c.declared) > 0 {
		return
	}
	for _, e := range catalogue.Entries {
		if e.ID == parent {
			r := &reader{claims: c, endpoint: endpointCatalogue, prefix: "data[" + named(parent) + "].", object: parse(e.Raw)}
			r.windows()
		}
	}
}

// documents reads the answers that the adapter asked for.
func (c *claims) documents(in Input) {
	if in.Adapter == Ollama {
		c.ollama(in.Model, in.Documents)
		return
	}
	for _, doc := range in.Documents {
		switch {
		case in.Adapter == Generic && doc.Endpoint == endpointModel:
			r := &reader{claims: c, endpoint: doc.Endpoint, object: parse(doc.Body)}
			r.generic()
		case in.Adapter == LMStudio && doc.Endpoint == endpointLMStudio:
			c.lmStudio(in.Model, doc)
		case in.Adapter == LlamaCpp && doc.Endpoint == endpointProps:
			c.llamaCpp(doc)
		case in.Adapter == OMLX && doc.Endpoint == endpointStatus:
			c.oMLX(in.Model, doc)
		case in.Adapter == VMLX && doc.Endpoint == endpointCapabilities:
			c.vMLX(doc)
		}
	}
}

func (c *claims) capabilities() llm.Capabilities {
	for _, subject := range []struct {
		name   string
		claims []claim
	}{{"tools", c.tools}, {"vision", c.vision}, {"reasoning", c.reasoning}} {
		if contradicts(subject.claims) {
			c.note("the engine contradicts itself about " + subject.name + ", so it counts as unknown")
		}
	}
	return llm.Capabilities{
		Tools:           fact(c.tools),
		Vision:          fact(c.vision),
		Reasoning:       fact(c.reasoning),
		ReasoningEffort: c.effort(),
	}
}

// window decides the size to plan with. assume says that a declared size is no
// promise: the engine loads models with less by default.
func (c *claims) window(assume bool) llm.Window {
	effective, evidence := smallest(c.effective)
	settled, settledBy := smallest(c.settled)
	declared, declaredBy := smallest(c.declared)
	w := llm.Window{Declared: declared}
	w.Evidence = withEvidence(withEvidence(evidence, settledBy...), declaredBy...)
	switch {
	case effective > 0:
		w.Tokens, w.Source = effective, llm.Effective
	case settled > 0:
		w.Tokens, w.Source = settled, llm.Declared
		if declared > 0 {
			w.Tokens = min(settled, declared)
		}
		w.Declared = max(declared, w.Tokens)
	case declared > 0 && assume:
		w.Tokens, w.Source = min(declared, AssumedWindow), llm.Assumed
		c.note(fmt.Sprintf("not loaded: the model could have %d tokens, %d are assumed until the engine says what it uses", declared, w.Tokens))
	case declared > 0:
		w.Tokens, w.Source = declared, llm.Declared
	}
	var outputBy []llm.Evidence
	w.OutputLimit, outputBy = smallest(c.output)
	w.Evidence = append(w.Evidence, outputBy...)
	return w
}
