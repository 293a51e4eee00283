package probe

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/drover-dev/drover/internal/llm"
)

// ollamaEfforts are the values of reasoning_effort that Ollama documents for
// its OpenAI API. Older versions refuse some of them for some models with a 400,
// which the agent remembers for the model.
var ollamaEfforts = []string{"none", "low", "medium", "high", "max"}

// ollama reads the answers to /api/show and /api/ps.
func (c *claims) ollama(model string, docs []Document) {
	var show, running Document
	for _, d := range docs {
		switch d.Endpoint {
		case endpointShow:
			show = d
		case endpointRunning:
			running = d
		}
	}
	r := &reader{claims: c, endpoint: endpointShow, object: parse(show.Body)}
	r.ollamaCapabilities()
	trained := r.trainedWindow()
	configured := r.numCtx()
	c.ollamaWindow(model, r.object, parse(running.Body), trained, configured)
}

// ollamaCapabilities reads the list of capabilities, which Ollama documents as
// complete: what is not in it, the model does not have. A list with something
// else than strings in it is not believed to be complete.
func (r *reader) ollamaCapabilities() {
	const field = "capabilities"
	names, exact := r.object.words(field)
	all := r.evidence(field, r.object.at(field))
	decide := func(to *[]claim, name string) (has bool) {
		has = slices.Contains(names, name)
		switch {
		case has:
			*to = append(*to, claim{llm.Supported, r.evidence(field+"[]", quoted(name))})
		case exact:
			*to = append(*to, claim{llm.Unsupported, all})
		}
		return has
	}
	decide(&r.vision, "vision")
	decide(&r.tools, "tools")
	if decide(&r.reasoning, "thinking") {
		e := r.evidence(field+"[]", quoted("thinking"))
		r.advertised = append(r.advertised, e)
		r.values = append(r.values, effortValues{ollamaEfforts, e})
	}
	if exact && len(names) > 0 && !slices.Contains(names, "completion") {
		r.note("Ollama does not list this model as one that completes text")
	}
}

// trainedWindow reads the window that the model was trained for. The member is
// named after the architecture; engines that pose as Ollama write other names or
// -1.
func (r *reader) trainedWindow() *size {
	info := parse(r.object["model_info"])
	architecture, _ := word(info["general.architecture"])
	var least *size
	for name, raw := range info {
		n, ok := tokens(raw)
		if !ok || !strings.HasSuffix(name, ".context_length") || strings.ContainsFunc(name, unprintable) {
			continue
		}
		s := &size{n, r.evidence("model_info."+name, raw)}
		if name == architecture+".context_length" {
			return s
		}
		if least == nil || n < least.tokens {
			least = s
		}
	}
	return least
}

// unprintable reports whether a character could break a line of evidence apart.
func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// numCtx reads num_ctx from the parameters of a Modelfile: lines of a name,
// blanks and a value.
func (r *reader) numCtx() *size {
	parameters, _ := word(r.object["parameters"])
	for line := range strings.Lines(parameters) {
		fields := strings.Fields(line)
		if len(fields) != 2 || fields[0] != "num_ctx" {
			continue
		}
		if n, ok := digits(fields[1]); ok {
			return &size{n, r.evidence("parameters.num_ctx", json.RawMessage(fields[1]))}
		}
	}
	return nil
}

// ollamaWindow settles what counts: what runs, else what the Modelfile asks for,
// else what the model was trained for.
func (c *claims) ollamaWindow(model string, show, running object, trained, configured *size) {
	if trained != nil {
		c.declared = append(c.declared, *trained)
	}
	runner, exact := findRunner(model, show, running)
	r := &reader{claims: c, endpoint: endpointRunning, prefix: "models[].", object: runner}
	found := len(c.effective)
	r.tokens(&c.effective, "context_length")
	if loaded := len(c.effective) > found; loaded && exact {
		return
	} else if loaded {
		// The weights were loaded under another name. A request for this one
		// makes Ollama load them again when this one asks for another size.
		name, _ := word(runner["name"])
		c.note("window of the only loaded model, " + named(name) + ", which may share its weights")
		for _, s := range []*size{configured, trained} {
			if s != nil {
				c.effective = append(c.effective, *s)
			}
		}
		return
	}
	if configured != nil {
		c.settled = append(c.settled, *configured)
	}
}

// findRunner finds the loaded model that serves a name. Ollama names a runner
// after whoever loaded the weights first, so when the name is not there it may
// be the digest, or the only runner, unless its details are those of another
// model; exact tells these apart.
func findRunner(model string, show, running object) (runner object, exact bool) {
	var runners []object
	for _, raw := range running.list("models") {
		if o := parse(raw); o != nil {
			runners = append(runners, o)
		}
	}
	matches := []func(object) bool{
		func(o object) bool { return o.is("name", model) || o.is("model", model) },
		func(o object) bool {
			name, _ := word(o["name"])
			id, _ := word(o["model"])
			return SameTag(name, model) || SameTag(id, model)
		},
		func(o object) bool {
			digest, ok := word(show["digest"])
			return ok && digest != "" && o.is("digest", digest)
		},
	}
	for _, match := range matches {
		if i := slices.IndexFunc(runners, match); i >= 0 {
			return runners[i], true
		}
	}
	if len(runners) == 1 && show != nil && sameDetails(show, runners[0]) {
		return runners[0], false
	}
	return nil, false
}

// SameTag compares two names of Ollama models, where no tag means ":latest".
func SameTag(a, b string) bool {
	return a != "" && b != "" && strings.TrimSuffix(a, ":latest") == strings.TrimSuffix(b, ":latest")
}

// sameDetails reports whether nothing in the descriptions of two models tells
// them apart.
func sameDetails(a, b object) bool {
	for _, field := range []string{"format", "family", "parameter_size", "quantization_level"} {
		x, okX := word(a.at("details." + field))
		y, okY := word(b.at("details." + field))
		if okX && okY && x != y {
			return false
		}
	}
	return true
}
