package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/drover-dev/drover/internal/llm"
)

// DeepSeek is the [deepseek] table.
type DeepSeek struct {
	Key string // a reference, see [Credential]; empty if not set
	URL string
	// Models replace what DeepSeek advertises: nil if not set, and an empty list
	// advertises nothing.
	Models []DeepSeekModel
}

// DeepSeekModel is one entry of deepseek.models.
type DeepSeekModel struct {
	ID          string
	Name        string // the id if not set
	Description string
}

// HostedProvider is one entry of hosted.providers with its settings.
type HostedProvider struct {
	ID      string
	Key     string // a reference, see [Credential]; empty if not set
	URL     string
	Profile llm.Profile
	// Line and Column are where the entry stands, 0 if unknown.
	Line, Column int
}

type fileDeepSeek struct {
	Key    string              `toml:"key"`
	URL    string              `toml:"url"`
	Models []fileDeepSeekModel `toml:"models"`
}

type fileDeepSeekModel struct {
	ID          string  `toml:"id"`
	Name        *string `toml:"name"`
	Description string  `toml:"description"`
}

type fileHosted struct {
	Providers []string                `toml:"providers"`
	Settings  map[string]fileSettings `toml:"settings"`
}

type fileSettings struct {
	Key     string `toml:"key"`
	URL     string `toml:"url"`
	Profile string `toml:"profile"`
}

// nativeDeepSeek is the route of drover's own DeepSeek.
const nativeDeepSeek = "deepseek"

// has reports whether the file has a table or key of this name at its top.
func (p *parser) has(name string) bool {
	return slices.ContainsFunc(p.keys, func(k keyPosition) bool { return k.path[0] == name })
}

func (p *parser) key(at []string, ref string) {
	if ref == "" {
		return
	}
	if err := checkReference(ref); err != nil {
		p.problem(at, "%v", err)
	}
}

// deepSeek checks the [deepseek] table. It is nil when the file has none.
func (p *parser) deepSeek(f *file) *DeepSeek {
	if !p.has(nativeDeepSeek) {
		return nil
	}
	if _, ok := f.Engines[nativeDeepSeek]; ok {
		p.problem([]string{"engines", nativeDeepSeek}, "the table [deepseek] is there, too: both would have the name deepseek")
	}
	d := &DeepSeek{Key: f.DeepSeek.Key, URL: f.DeepSeek.URL}
	p.key([]string{nativeDeepSeek, "key"}, d.Key)
	if f.DeepSeek.Models == nil {
		return d
	}
	d.Models = []DeepSeekModel{}
	at := []string{nativeDeepSeek, "models"}
	seen := make(map[string]int)
	for i, m := range f.DeepSeek.Models {
		first, twice := seen[m.ID]
		switch {
		case strings.TrimSpace(m.ID) == "":
			p.entryProblem(at, i, "id is empty")
		case twice:
			p.entryProblem(at, i, "id %q is that of entry %d already", m.ID, first+1)
		case m.Name != nil && strings.TrimSpace(*m.Name) == "":
			p.entryProblem(at, i, "the name of %q is blank; leave it out to show the id", m.ID)
		default:
			seen[m.ID] = i
		}
		entry := DeepSeekModel{ID: m.ID, Name: m.ID, Description: m.Description}
		if m.Name != nil {
			entry.Name = *m.Name
		}
		d.Models = append(d.Models, entry)
	}
	return d
}

// hosted checks the [hosted] table. Whether the catalogue has a provider is not
// this package's to know.
func (p *parser) hosted(f *file) []HostedProvider {
	at := []string{"hosted", "providers"}
	var list []HostedProvider
	for i, id := range f.Hosted.Providers {
		_, engine := f.Engines[id]
		switch {
		case strings.TrimSpace(id) == "":
			p.entryProblem(at, i, "is empty")
		case id == nativeDeepSeek:
			p.entryProblem(at, i, "deepseek is drover's own provider and stays that: take it out here, its settings are in [deepseek]")
		case slices.Contains(f.Hosted.Providers[:i], id):
			p.entryProblem(at, i, "%q is listed twice", id)
		case engine:
			p.entryProblem(at, i, "%q is the name of an engine of this file, too", id)
		}
		s := f.Hosted.Settings[id]
		h := HostedProvider{ID: id, Key: s.Key, URL: s.URL}
		h.Line, h.Column = p.entry(at, i)
		settings := []string{"hosted", "settings", id}
		p.key(append(settings, "key"), s.Key)
		var err error
		if h.Profile, err = llm.ParseProfile(s.Profile); err != nil {
			p.problem(append(settings, "profile"), "%v", err)
		}
		list = append(list, h)
	}
	for _, id := range slices.Sorted(maps.Keys(f.Hosted.Settings)) {
		if !slices.Contains(f.Hosted.Providers, id) {
			p.problem([]string{"hosted", "settings", id}, "hosted.providers does not list %q", id)
		}
	}
	return list
}

// entryProblem reports a mistake in an entry of a list. Entries are counted from
// 1 for people.
func (p *parser) entryProblem(key []string, i int, format string, args ...any) {
	n := len(p.err.Problems)
	p.problem(key, "entry %d: "+format, append([]any{i + 1}, args...)...)
	if line, column := p.entry(key, i); line > 0 {
		p.err.Problems[n].Line, p.err.Problems[n].Column = line, column
	}
}

// entry finds where an entry of a list stands, 0 if it is not found.
func (p *parser) entry(key []string, i int) (line, column int) {
	for _, k := range p.keys {
		if !slices.Equal(k.path, key) {
			continue
		}
		if !k.array { // the whole list
			if i < len(k.entries) {
				return k.entries[i].Line, k.entries[i].Column
			}
			continue
		}
		if i == 0 { // [[key]] is an entry of its own
			return k.line, k.column
		}
		i--
	}
	return 0, 0
}

// entriesOf finds where the entries of a list stand, nil for any other value.
func entriesOf(p *unstable.Parser, n *unstable.Node) []unstable.Position {
	if n.Kind != unstable.KeyValue || n.Value().Kind != unstable.Array {
		return nil
	}
	var list []unstable.Position
	for it := n.Value().Children(); it.Next(); {
		list = append(list, p.Shape(it.Node().Raw).Start)
	}
	return list
}

// wholeKey is the path of an unknown key. The library leaves out the name of the
// list when the key stands in one of its inline tables.
func wholeKey(data []byte, d *toml.DecodeError) []string {
	key := d.Key()
	line, column := d.Position()
	var around keyPosition
	for _, k := range keyPositions(data) {
		if k.line < line || k.line == line && k.column <= column {
			around = k
		}
	}
	if n := len(key) - 1; len(around.entries) > 0 && len(around.path) == n+1 && slices.Equal(around.path[:n], key[:n]) {
		return append(slices.Clone(around.path), key[n])
	}
	return key
}
