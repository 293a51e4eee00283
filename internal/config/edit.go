package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/drover-dev/drover/internal/llm"
)

// Document is the text of a configuration file that is changed in place: what a
// change is not about keeps its comments, order and form. Changes are in memory
// until [Document.Save].
type Document struct {
	path   string
	saved  []byte // as it was read; nil if there was no file
	text   []byte
	config *Config
}

// ErrNoHome says that there is no folder for drover's own files.
var ErrNoHome = errors.New("there is no home folder to keep it in: set HOME, or DROVER_CONFIG to a file")

// Open reads a configuration file to change it. One that is not there is empty,
// also when $DROVER_CONFIG names it. A file with mistakes is refused with an
// [*Error].
func Open(path string) (*Document, error) {
	if path == "" {
		return nil, ErrNoHome
	}
	data, err := readBounded(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &Error{Path: path, Problems: []Problem{{Message: plainPathError(err)}}}
	}
	c, err := Parse(path, data)
	if err != nil {
		return nil, err
	}
	return &Document{path: path, saved: data, text: data, config: c}, nil
}

// Config is what the text means now.
func (d *Document) Config() *Config { return d.config }

// Text is the text as it is now.
func (d *Document) Text() []byte { return bytes.Clone(d.text) }

// Save writes the text, readable by this user alone. It refuses when somebody
// else has changed the file since it was read.
func (d *Document) Save() error {
	if bytes.Equal(d.saved, d.text) && d.saved != nil {
		return nil
	}
	now, err := readBounded(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && d.saved == nil:
	case err != nil:
		return fmt.Errorf("%s cannot be changed: %s", d.path, plainPathError(err))
	case !bytes.Equal(now, d.saved) || d.saved == nil:
		return fmt.Errorf("%s was changed by somebody else meanwhile: nothing was written, do it again", d.path)
	}
	if err := replaceFile(d.path, d.text); err != nil {
		return fmt.Errorf("%s cannot be written: %w", d.path, err)
	}
	d.saved = d.text
	return nil
}

// SetModel sets the model that drover starts with.
func (d *Document) SetModel(t llm.Target) error {
	value, err := Quote(t.String())
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	want := *d.config
	want.Model = t
	expressions := scan(d.text)
	for _, e := range expressions {
		if !e.header && slices.Equal(e.path, []string{"model"}) {
			return d.change(splice(d.text, e.value, e.end, value), &want)
		}
	}
	line := "model = " + value + d.newline()
	at, gap := modelPlace(d.text, expressions)
	if at > 0 && d.text[at-1] != '\n' {
		line = d.newline() + line
	}
	if gap {
		line += d.newline()
	}
	return d.change(splice(d.text, at, at, line), &want)
}

// modelPlace is where a new top-level key goes: below the other ones, else below
// the line that shows it as a comment, else above the first table. gap says that
// an empty line has to follow.
func modelPlace(text []byte, expressions []expression) (at int, gap bool) {
	first := len(text) // of the first table
	for _, e := range expressions {
		if e.header {
			first = e.start
			break
		}
		at = e.lineEnd
	}
	if at > 0 {
		return at, false
	}
	for start := 0; start < first; {
		end := lineEnd(text, start)
		if key, _, ok := strings.Cut(strings.TrimLeft(string(text[start:end]), "# \t"), "="); ok && strings.TrimSpace(key) == "model" {
			return end, false
		}
		start = end
	}
	if first == len(text) {
		return first, false
	}
	return commentAbove(text, first, 0), true
}

// AddEngine adds a table for an engine behind those there are. Of the engine its
// name, preset, URL, key, context and insecure are written.
func (d *Document) AddEngine(e *Engine) error {
	if _, ok := d.config.Engine(e.Name); ok {
		return fmt.Errorf("there is an engine %q already", e.Name)
	}
	if e.Name == "" || strings.Contains(e.Name, "/") || strings.ContainsFunc(e.Name, isControl) {
		return fmt.Errorf("%q cannot be an engine's name, which is the part before the first slash of PROVIDER/MODEL: no slash, not empty", e.Name)
	}
	if e.Key != "" {
		if err := checkReference(e.Key); err != nil {
			return fmt.Errorf("key: %w", err)
		}
	}
	table, err := engineTable(e, d.newline())
	if err != nil {
		return err
	}
	at := len(d.text)
	expressions := scan(d.text)
	for i, x := range expressions {
		switch {
		case !x.header && len(x.path) == 1 && x.path[0] == "engines":
			return d.byHand("engines is written as an inline table", table)
		case x.header && x.path[0] == "engines":
			at = sectionEnd(d.text, expressions, i)
		}
	}
	before, after, nl := d.text[:at], d.text[at:], d.newline()
	if len(before) > 0 {
		if !bytes.HasSuffix(before, []byte("\n")) {
			table = nl + table
		}
		if !bytes.HasSuffix(before, []byte("\n"+nl)) {
			table = nl + table
		}
	}
	if len(after) > 0 && !bytes.HasPrefix(after, []byte(nl)) {
		table += nl
	}
	want := *d.config
	want.Engines = append(slices.Clone(want.Engines), Engine{
		Name: e.Name, Preset: e.Preset, URL: e.URL, Key: e.Key, Context: e.Context, Insecure: e.Insecure,
	})
	return d.change(splice(d.text, at, at, table), &want)
}

func engineTable(e *Engine, nl string) (string, error) {
	name, err := QuoteKey(e.Name)
	if err != nil {
		return "", fmt.Errorf("the engine's name: %w", err)
	}
	lines := []string{"[engines." + name + "]"}
	for _, f := range []struct{ key, value string }{{"preset", e.Preset}, {"url", e.URL}, {"key", e.Key}} {
		if f.value == "" {
			continue
		}
		v, err := Quote(f.value)
		if err != nil {
			return "", fmt.Errorf("%s: %w", f.key, err)
		}
		lines = append(lines, f.key+" = "+v)
	}
	if e.Context != 0 {
		lines = append(lines, fmt.Sprintf("context = %d", e.Context))
	}
	if e.Insecure {
		lines = append(lines, "insecure = true")
	}
	return strings.Join(lines, nl) + nl, nil
}

// RemoveEngine takes an engine out: its tables with the comments that stand
// directly above and inside them, and nothing else.
func (d *Document) RemoveEngine(name string) error {
	if _, ok := d.config.Engine(name); !ok {
		return fmt.Errorf("there is no engine %q", name)
	}
	prefix := []string{"engines", name}
	expressions := scan(d.text)
	text := d.text
	// From the end, so that the positions before stay true.
	for i := len(expressions) - 1; i >= 0; i-- {
		switch e := expressions[i]; {
		case !hasPrefix(e.path, prefix):
		case e.header:
			start, end := sectionOf(d.text, expressions, i)
			text = cut(text, start, end)
		case e.table < 0 || !hasPrefix(expressions[e.table].path, prefix):
			text = splice(text, e.start, e.lineEnd, "")
		}
	}
	if bytes.Equal(text, d.text) {
		return d.byHand("the engine is written inside an inline table", "")
	}
	want := *d.config
	want.Engines = slices.DeleteFunc(slices.Clone(want.Engines), func(e Engine) bool { return e.Name == name })
	return d.change(text, &want)
}

// change takes a new text when it means just what it should.
func (d *Document) change(text []byte, want *Config) error {
	got, err := Parse(d.path, text)
	if e, ok := errors.AsType[*Error](err); ok {
		return fmt.Errorf("nothing was written, because %s would have a mistake then: %s", d.path, e.Problems[0].Message)
	}
	if !same(got, want) {
		return d.byHand("the change would change something else, too", "")
	}
	d.text, d.config = text, got
	return nil
}

// byHand is the error of a file whose form is beyond this package.
func (d *Document) byHand(why, lines string) error {
	msg := fmt.Sprintf("%s has a form that drover cannot change (%s): nothing was written, change it by hand", d.path, why)
	if lines != "" {
		msg += ":\n" + strings.TrimRight(lines, "\r\n")
	}
	return errors.New(msg)
}

// same compares two configurations but for the order of the engines and for
// positions.
func same(a, b *Config) bool {
	ordered := func(c *Config) Config {
		o := *c
		o.Path = ""
		o.Engines = append([]Engine{}, c.Engines...)
		slices.SortFunc(o.Engines, func(x, y Engine) int { return strings.Compare(x.Name, y.Name) })
		o.Hosted = slices.Clone(c.Hosted)
		for i := range o.Hosted { // they may stand elsewhere
			o.Hosted[i].Line, o.Hosted[i].Column = 0, 0
		}
		return o
	}
	return reflect.DeepEqual(ordered(a), ordered(b))
}

func hasPrefix(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}

// newline is how the text ends its lines.
func (d *Document) newline() string {
	if i := bytes.IndexByte(d.text, '\n'); i > 0 && d.text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// Quote writes a string as TOML does. Bytes that are no UTF-8 are refused.
func Quote(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", errors.New("not UTF-8")
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case isControl(r):
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String(), nil
}

// QuoteKey writes one part of a key, in quotes where it needs them.
func QuoteKey(s string) (string, error) {
	bare := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !bare(r) }) {
		return s, nil
	}
	return Quote(s)
}
