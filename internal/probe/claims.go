package probe

import (
	"encoding/json"
	"slices"

	"github.com/drover-dev/drover/internal/llm"
)

// claim is one statement about a capability. Its support may be Unknown: a hint
// that is worth showing and proves nothing.
type claim struct {
	support  llm.Support
	evidence llm.Evidence
}

// size is one statement about a number of tokens.
type size struct {
	tokens   int
	evidence llm.Evidence
}

// effortValues is one list of values of reasoning_effort.
type effortValues struct {
	values   []string
	evidence llm.Evidence
}

// claims collects what the documents of one model say, in reading order.
type claims struct {
	tools, vision, reasoning []claim
	advertised               []llm.Evidence // of the parameter reasoning_effort
	values                   []effortValues
	effective, declared      []size // windows
	settled                  []size // declared windows that the engine will use as they are
	output                   []size // output limits
	notes                    []string
}

func (c *claims) note(text string) {
	if !slices.Contains(c.notes, text) {
		c.notes = append(c.notes, text)
	}
}

// reader adds the claims of one JSON object to a collection.
type reader struct {
	*claims
	endpoint string
	prefix   string // where the object stands in its document, "data[]." say
	object   object
}

func (r *reader) evidence(field string, value json.RawMessage) llm.Evidence {
	return llm.Evidence{Endpoint: r.endpoint, Field: short(r.prefix + field), Value: shown(value)}
}

// boolean claims by a JSON boolean at a dotted path.
func (r *reader) boolean(to *[]claim, path string) {
	raw := r.object.at(path)
	if value, ok := boolean(raw); ok {
		support := llm.Unsupported
		if value {
			support = llm.Supported
		}
		*to = append(*to, claim{support, r.evidence(path, raw)})
	}
}

// member claims by one of several strings in the array at a dotted path. Their
// absence is no claim.
func (r *reader) member(to *[]claim, path string, wants ...string) {
	for _, want := range wants {
		if r.object.holds(path, want) {
			*to = append(*to, claim{llm.Supported, r.evidence(path+"[]", quoted(want))})
		}
	}
}

// tokens claims by the size at a dotted path.
func (r *reader) tokens(to *[]size, path string) {
	raw := r.object.at(path)
	if n, ok := tokens(raw); ok {
		*to = append(*to, size{n, r.evidence(path, raw)})
	}
}

// effortList claims by the list of effort values at a dotted path.
func (r *reader) effortList(path string) {
	if values, exact := r.object.words(path); exact {
		r.values = append(r.values, effortValues{values, r.evidence(path, r.object.at(path))})
	}
}

// withEvidence adds evidence that is not there yet: one field may speak twice.
func withEvidence(evidence []llm.Evidence, more ...llm.Evidence) []llm.Evidence {
	for _, e := range more {
		if !slices.Contains(evidence, e) {
			evidence = append(evidence, e)
		}
	}
	return evidence
}

func quoted(s string) json.RawMessage {
	raw, _ := json.Marshal(s) // a string cannot fail
	return raw
}

// fact weighs the claims about one capability.
func fact(claims []claim) llm.Fact {
	var f llm.Fact
	var yes, no bool
	for _, c := range claims {
		f.Evidence = append(f.Evidence, c.evidence)
		yes = yes || c.support == llm.Supported
		no = no || c.support == llm.Unsupported
	}
	switch {
	case yes && !no:
		f.Support = llm.Supported
	case no && !yes:
		f.Support = llm.Unsupported
	}
	return f
}

// contradicts reports whether the claims speak for and against.
func contradicts(claims []claim) bool {
	has := func(s llm.Support) bool {
		return slices.ContainsFunc(claims, func(c claim) bool { return c.support == s })
	}
	return has(llm.Supported) && has(llm.Unsupported)
}

// defaultEfforts are the values of reasoning_effort where an engine advertises
// the parameter and lists none: those of the API's first version.
var defaultEfforts = []string{"low", "medium", "high"}

// effort says what is proven about reasoning_effort. Values that are not in the
// order of [llm.EffortRank] cannot be chosen and are left out.
func (c *claims) effort() llm.EffortField {
	f := llm.EffortField{Advertised: len(c.advertised) > 0, Evidence: slices.Clone(c.advertised)}
	for _, list := range c.values {
		f.Evidence = withEvidence(f.Evidence, list.evidence)
	}
	if !f.Advertised {
		return f
	}
	values := slices.Clone(defaultEfforts)
	for i, list := range c.values {
		if i == 0 {
			values = slices.Clone(list.values)
		}
		values = slices.DeleteFunc(values, func(v string) bool { return !slices.Contains(list.values, v) })
	}
	values = slices.DeleteFunc(values, func(v string) bool {
		_, known := llm.EffortRank(v)
		return !known
	})
	slices.SortFunc(values, func(a, b string) int {
		ra, _ := llm.EffortRank(a)
		rb, _ := llm.EffortRank(b)
		return ra - rb
	})
	f.Values = slices.Compact(values)
	return f
}

// smallest gives the least of the sizes, 0 for none, and everything said, each
// once.
func smallest(sizes []size) (tokens int, evidence []llm.Evidence) {
	for _, s := range sizes {
		evidence = withEvidence(evidence, s.evidence)
		if tokens == 0 || s.tokens < tokens {
			tokens = s.tokens
		}
	}
	return tokens, evidence
}
