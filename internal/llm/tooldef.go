package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// emptySchema stands for parameters that are no JSON object.
const emptySchema = `{"type":"object"}`

// ToolDef describes a tool to a model. Build it with [NewToolDef].
type ToolDef struct {
	Name        string
	Description string
	// Parameters is the canonical JSON schema of the arguments: keys sorted at
	// every depth, number lexemes kept, no white space. It is what is sent.
	Parameters string
	// ParameterBytes is the larger of the lengths of the schema as given and in
	// canonical form: what policy 1 charges.
	ParameterBytes int
	// Wire is the compact JSON object of the tool in a Chat Completions request.
	Wire string
}

// NewToolDef canonicalises the schema of a tool's arguments. A schema that is
// no JSON object becomes {"type":"object"}.
func NewToolDef(name, description string, schema []byte) ToolDef {
	canonical := canonicalObject(schema)
	return ToolDef{
		Name:           name,
		Description:    description,
		Parameters:     canonical,
		ParameterBytes: max(len(schema), len(canonical)),
		Wire:           wireTool(name, description, canonical),
	}
}

// WireWith is the wire object of the tool with another schema: an engine may
// have refused a keyword of the original.
func (d *ToolDef) WireWith(parameters string) string {
	return wireTool(d.Name, d.Description, parameters)
}

func wireTool(name, description, parameters string) string {
	var b bytes.Buffer
	b.WriteString(`{"type":"function","function":{"name":`)
	AppendJSONString(&b, name)
	b.WriteString(`,"description":`)
	AppendJSONString(&b, description)
	b.WriteString(`,"parameters":`)
	b.WriteString(parameters)
	b.WriteString(`}}`)
	return b.String()
}

// SortTools returns the tools by name, then description, then parameters: the
// order in which they are planned and sent.
func SortTools(tools []ToolDef) []ToolDef {
	sorted := slices.Clone(tools)
	slices.SortStableFunc(sorted, func(a, b ToolDef) int {
		return cmp.Or(
			strings.Compare(a.Name, b.Name),
			strings.Compare(a.Description, b.Description),
			strings.Compare(a.Parameters, b.Parameters))
	})
	return sorted
}

func canonicalObject(schema []byte) string {
	v, err := decodeExact(schema)
	if err != nil {
		return emptySchema
	}
	obj, ok := v.(map[string]any)
	if !ok {
		return emptySchema
	}
	var b bytes.Buffer
	appendCanonical(&b, obj)
	return b.String()
}

// decodeExact decodes one JSON value and nothing behind it, with numbers as
// their lexemes.
func decodeExact(data []byte) (any, error) {
	if !json.Valid(data) { // a decoder alone would accept trailing bytes
		return nil, errNotJSON
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

var errNotJSON = Errorf(CodeInvalidRequest, "not a JSON value")

// CanonicalJSON gives the canonical form of a JSON value: keys sorted at every
// depth, number lexemes kept, arrays in order, no white space, slashes and HTML
// characters unescaped.
func CanonicalJSON(data []byte) (string, error) {
	v, err := decodeExact(data)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	appendCanonical(&b, v)
	return b.String(), nil
}

func appendCanonical(b *bytes.Buffer, v any) {
	switch v := v.(type) {
	case map[string]any:
		b.WriteByte('{')
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteByte(',')
			}
			AppendJSONString(b, k)
			b.WriteByte(':')
			appendCanonical(b, v[k])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			appendCanonical(b, e)
		}
		b.WriteByte(']')
	case string:
		AppendJSONString(b, v)
	case json.Number:
		b.WriteString(v.String())
	case bool:
		if v {
			b.WriteString("true")
		} else {
			b.WriteString("false")
		}
	default:
		b.WriteString("null")
	}
}
