package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/drover-dev/drover/internal/llm"
)

// file is the form of the configuration file.
type file struct {
	Model        string                `toml:"model"`
	Effort       string                `toml:"effort"`
	Mode         string                `toml:"mode"`
	Budget       fileBudget            `toml:"budget"`
	Engines      map[string]fileEngine `toml:"engines"`
	Instructions fileInstructions      `toml:"instructions"`
	Images       fileImages            `toml:"images"`
	Session      fileSession           `toml:"session"`
	Tools        fileTools             `toml:"tools"`
	Sandbox      fileSandbox           `toml:"sandbox"`
	DeepSeek     fileDeepSeek          `toml:"deepseek"`
	Hosted       fileHosted            `toml:"hosted"`
	MCP          fileMCP               `toml:"mcp"`
	ACP          fileACP               `toml:"acp"`
}

type fileBudget struct {
	Policy int `toml:"policy"`
}

type fileInstructions struct {
	Files []string `toml:"files"`
}

type fileImages struct {
	Scale *bool `toml:"scale"`
}

type fileSession struct {
	Titles string `toml:"titles"`
}

type fileTools struct {
	Off []string `toml:"off"`
}

type fileSandbox struct {
	Off   bool     `toml:"off"`
	Write []string `toml:"write"`
}

type fileACP struct {
	Terminal bool `toml:"terminal"`
}

type fileEngine struct {
	Preset   string               `toml:"preset"`
	URL      string               `toml:"url"`
	Key      string               `toml:"key"`
	Context  int                  `toml:"context"`
	Profile  string               `toml:"profile"`
	Insecure bool                 `toml:"insecure"`
	Sampling string               `toml:"sampling"`
	Models   map[string]fileModel `toml:"models"`
}

type fileModel struct {
	Profile string `toml:"profile"`
}

// modes are the values of mode. Package tool owns their meaning.
var modes = []string{"ask", "edit", "read-only", "full"}

// Parse reads and checks a configuration. path is for messages and for the
// folder that relative paths are taken from.
func Parse(path string, data []byte) (*Config, error) {
	var f file
	dec := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return nil, decodeErrorIn(data, path, err)
	}
	p := &parser{keys: keyPositions(data), err: &Error{Path: path}}
	c := p.config(&f, filepath.Dir(path))
	if len(p.err.Problems) > 0 {
		p.err.sort()
		return nil, p.err
	}
	c.Path = path
	return c, nil
}

// parser turns the decoded file into a Config and collects every problem.
type parser struct {
	keys []keyPosition
	err  *Error
}

func (p *parser) problem(key []string, format string, args ...any) {
	pr := Problem{Message: strings.Join(key, ".") + ": " + fmt.Sprintf(format, args...)}
	for _, k := range p.keys {
		switch {
		case slices.Equal(k.path, key):
			pr.Line, pr.Column = k.line, k.column
		case pr.Line == 0 && len(k.path) > len(key) && slices.Equal(k.path[:len(key)], key):
			pr.Line, pr.Column = k.line, k.column // a table that only its keys name
		}
	}
	p.err.Problems = append(p.err.Problems, pr)
}

func (p *parser) config(f *file, dir string) *Config {
	c := &Config{ToolsOff: f.Tools.Off, Mode: f.Mode, Policy: f.Budget.Policy}
	var err error
	if f.Model != "" {
		if c.Model, err = llm.ParseTarget(f.Model); err != nil {
			p.problem([]string{"model"}, "%v", err)
		}
	}
	if c.Effort, err = llm.ParseEffort(f.Effort); err != nil {
		p.problem([]string{"effort"}, "%v", err)
	}
	if f.Mode != "" && !slices.Contains(modes, f.Mode) {
		p.problem([]string{"mode"}, "unknown mode %q (one of %s)", f.Mode, strings.Join(modes, ", "))
	}
	if f.Budget.Policy < 0 || f.Budget.Policy > 2 {
		p.problem([]string{"budget", "policy"}, "%d is not a policy (1 or 2)", f.Budget.Policy)
	}
	c.ImagesAsTheyAre = f.Images.Scale != nil && !*f.Images.Scale
	switch f.Session.Titles {
	case "", "words":
	case "model":
		c.ModelTitles = true
	default:
		p.problem([]string{"session", "titles"}, "unknown value %q (words or model)", f.Session.Titles)
	}
	for _, file := range f.Instructions.Files {
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		c.Instructions = append(c.Instructions, file)
	}
	for _, name := range p.order(f.Engines) {
		c.Engines = append(c.Engines, p.engine(name, f.Engines[name]))
	}
	c.SandboxOff, c.SandboxWrite = f.Sandbox.Off, p.sandboxWrite(f.Sandbox.Write)
	c.DeepSeek, c.Hosted = p.deepSeek(f), p.hosted(f)
	c.MCP = p.mcp(f)
	c.EditorTerminal = f.ACP.Terminal
	return c
}

func (p *parser) engine(name string, f fileEngine) Engine {
	at := func(key string) []string { return []string{"engines", name, key} }
	e := Engine{
		Name: name, Preset: f.Preset, URL: f.URL, Key: f.Key,
		Context: f.Context, Insecure: f.Insecure,
	}
	if name == "" || strings.Contains(name, "/") || strings.ContainsFunc(name, isControl) {
		p.problem([]string{"engines", name}, "an engine's name is the part before the first slash of PROVIDER/MODEL: no slash, not empty")
	}
	if f.Preset == "" {
		p.problem([]string{"engines", name}, "preset is missing (for example preset = \"ollama\", or \"custom\" with a url)")
	}
	var err error
	if e.Profile, err = llm.ParseProfile(f.Profile); err != nil {
		p.problem(at("profile"), "%v", err)
	}
	if f.Context < 0 {
		p.problem(at("context"), "%d is not a number of tokens", f.Context)
	}
	if f.Key != "" {
		if err := checkReference(f.Key); err != nil {
			p.problem(at("key"), "%v", err)
		}
	}
	switch f.Sampling {
	case "", "effort":
	case "engine":
		e.EngineSampling = true
	default:
		p.problem(at("sampling"), "unknown value %q (effort or engine)", f.Sampling)
	}
	for _, id := range slices.Sorted(maps.Keys(f.Models)) {
		profile, err := llm.ParseProfile(f.Models[id].Profile)
		if err != nil {
			p.problem([]string{"engines", name, "models", id, "profile"}, "%v", err)
		}
		e.Models = append(e.Models, Model{ID: id, Profile: profile})
	}
	return e
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// order returns the engines' names as the file has them.
func (p *parser) order(engines map[string]fileEngine) []string {
	var names []string
	for _, k := range p.keys {
		if len(k.path) >= 2 && k.path[0] == "engines" && !slices.Contains(names, k.path[1]) {
			names = append(names, k.path[1])
		}
	}
	for _, n := range slices.Sorted(maps.Keys(engines)) { // inline tables
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return slices.DeleteFunc(names, func(n string) bool { _, ok := engines[n]; return !ok })
}

type keyPosition struct {
	path         []string
	line, column int
	array        bool                // [[path]], one entry of a list
	entries      []unstable.Position // of a list that is a value
}

// keyPositions finds where the tables and keys of a valid document stand.
func keyPositions(data []byte) []keyPosition {
	var found []keyPosition
	var table []string
	var p unstable.Parser
	p.Reset(data)
	for p.NextExpression() {
		n := p.Expression()
		var path []string
		at := Problem{}
		for it := n.Key(); it.Next(); {
			k := it.Node()
			if at.Line == 0 {
				start := p.Shape(k.Raw).Start
				at.Line, at.Column = start.Line, start.Column
			}
			path = append(path, string(k.Data))
		}
		switch n.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = path
		case unstable.KeyValue:
			path = append(slices.Clone(table), path...)
		default:
			continue
		}
		found = append(found, keyPosition{
			path: path, line: at.Line, column: at.Column,
			array: n.Kind == unstable.ArrayTable, entries: entriesOf(&p, n),
		})
	}
	return found
}

func decodeError(path string, err error) error { return decodeErrorIn(nil, path, err) }

func decodeErrorIn(data []byte, path string, err error) error {
	e := &Error{Path: path}
	add := func(d *toml.DecodeError, message string) {
		line, column := d.Position()
		e.Problems = append(e.Problems, Problem{Line: line, Column: column, Message: message})
	}
	if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		for i := range strict.Errors {
			d := &strict.Errors[i]
			add(d, unknownKey(wholeKey(data, d)))
		}
		return e
	}
	if d, ok := errors.AsType[*toml.DecodeError](err); ok {
		add(d, plainDecodeError(d))
		return e
	}
	e.Problems = []Problem{{Message: err.Error()}}
	return e
}

// wrongType matches go-toml's words for a value of the wrong type.
var wrongType = regexp.MustCompile(`cannot (?:decode|store) (?:TOML )?(\w+) .*?(\S+)$`)

// typeName is what people call the type of a key, which is named as in Go.
func typeName(name string) string {
	switch name = strings.TrimLeft(name, "*"); {
	case name == "[]string":
		return "a list of texts in quotes"
	case strings.HasPrefix(name, "[]"):
		return "a list of tables"
	case name == "string":
		return "a text in quotes"
	case name == "bool":
		return "true or false"
	case name == "int":
		return "a whole number"
	}
	return "a table"
}

// plainDecodeError words an error of the TOML decoder without names of Go.
func plainDecodeError(d *toml.DecodeError) string {
	text := strings.TrimPrefix(d.Error(), "toml: ")
	key := strings.Join(d.Key(), ".")
	if m := wrongType.FindStringSubmatch(text); m != nil {
		value := strings.ToLower(m[1])
		switch value {
		case "local", "datetime":
			value = "date or time"
		case "inline":
			value = "table"
		}
		return fmt.Sprintf("%s: want %s, not the %s that stands there", key, typeName(m[2]), value)
	}
	if strings.Contains(text, "U+000A at start of value") {
		return "there is no value behind ="
	}
	return text
}

// unknownKey names the key and the known key of the same table that is nearest.
func unknownKey(key []string) string {
	msg := fmt.Sprintf("unknown key %s", strings.Join(key, "."))
	known := knownKeys(reflect.TypeFor[file](), key)
	best, bestDistance := "", 4 // further away is no typing mistake
	for _, k := range known {
		if d := editDistance(key[len(key)-1], k); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	switch {
	case best != "":
		msg += fmt.Sprintf("; did you mean %s?", best)
	case len(known) > 0:
		msg += fmt.Sprintf(" (known here: %s)", strings.Join(known, ", "))
	}
	return msg
}

// knownKeys lists the keys of the table that holds the last element of key.
func knownKeys(t reflect.Type, key []string) []string {
	for _, k := range key[:len(key)-1] {
		switch t.Kind() {
		case reflect.Map:
			t = t.Elem()
		case reflect.Struct:
			i := slices.IndexFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.Tag.Get("toml") == k })
			if i < 0 {
				return nil
			}
			if t = t.Field(i).Type; t.Kind() == reflect.Slice {
				t = t.Elem()
			}
		default:
			return nil
		}
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var keys []string
	for _, f := range reflect.VisibleFields(t) {
		keys = append(keys, f.Tag.Get("toml"))
	}
	slices.Sort(keys)
	return keys
}

// editDistance is the Levenshtein distance in bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
