package openai

import (
	"bytes"

	"github.com/drover-dev/drover/internal/llm"
)

// stripKeywords removes the string keywords pattern and format, as asked, from
// the nested schemas of a tool's parameters: all but the schema itself and its
// direct properties, where engines take them. A property that happens to be
// called pattern stays, and so does everything that is data and no schema.
func stripKeywords(schema string, pattern, format bool) (stripped string, changed bool) {
	if !pattern && !format {
		return schema, false
	}
	v, bad := parseDocument([]byte(schema))
	if bad != nil {
		return schema, false
	}
	s := stripper{pattern: pattern, format: format}
	s.schema(v, 0)
	if !s.changed {
		return schema, false
	}
	return s.String(), true
}

// stripper copies a schema without some keywords.
type stripper struct {
	bytes.Buffer
	pattern, format bool
	changed         bool
}

// directDepth is the depth of a direct property of the parameters.
const directDepth = 1

func (s *stripper) schema(v value, depth int) {
	if !v.isObject() { // true and false are schemas, too
		s.Write(v.raw)
		return
	}
	s.WriteByte('{')
	first := true
	for name, m := range v.members() {
		key := string(name)
		if depth > directDepth && m.isString() && (s.pattern && key == "pattern" || s.format && key == "format") {
			s.changed = true
			continue
		}
		if !first {
			s.WriteByte(',')
		}
		first = false
		llm.AppendJSONString(&s.Buffer, key)
		s.WriteByte(':')
		s.keyword(key, m, depth)
	}
	s.WriteByte('}')
}

// keyword copies the value of one keyword, going down where it holds schemas.
func (s *stripper) keyword(key string, v value, depth int) {
	switch key {
	case "properties":
		s.named(v, depth+1)
	case "patternProperties", "$defs", "definitions", "dependentSchemas":
		s.named(v, depth+directDepth+1)
	case "items", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties",
		"contains", "propertyNames", "not", "if", "then", "else", "anyOf", "allOf", "oneOf", "prefixItems":
		if v.isArray() {
			s.list(v, depth+directDepth+1)
		} else {
			s.schema(v, depth+directDepth+1)
		}
	default:
		s.Write(v.raw)
	}
}

func (s *stripper) named(v value, depth int) {
	if !v.isObject() {
		s.Write(v.raw)
		return
	}
	s.WriteByte('{')
	first := true
	for name, m := range v.members() {
		if !first {
			s.WriteByte(',')
		}
		first = false
		llm.AppendJSONString(&s.Buffer, string(name))
		s.WriteByte(':')
		s.schema(m, depth)
	}
	s.WriteByte('}')
}

func (s *stripper) list(v value, depth int) {
	s.WriteByte('[')
	first := true
	for e := range v.elements() {
		if !first {
			s.WriteByte(',')
		}
		first = false
		s.schema(e, depth)
	}
	s.WriteByte(']')
}
