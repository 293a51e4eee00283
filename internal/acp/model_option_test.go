package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
)

func provider(id, name string) llm.ProviderInfo { return llm.ProviderInfo{ID: id, Name: name} }

func listing(p llm.ProviderInfo, ids ...string) catalog.Listing {
	l := catalog.Listing{Provider: p}
	for _, id := range ids {
		l.Models = append(l.Models, llm.ModelInfo{Provider: p.ID, ID: id, Name: strings.ToUpper(id)})
	}
	return l
}

// sketch writes an option in one line: groups as name{...}, values by model id.
func sketch(t *testing.T, o configOption) string {
	t.Helper()
	values := func(list []selectValue) string {
		var ids []string
		for _, v := range list {
			var pair []string
			if err := json.Unmarshal([]byte(v.Value), &pair); err != nil || len(pair) != 2 {
				t.Fatalf("value %q: %v", v.Value, err)
			}
			mark := ""
			if v.Value == o.Current {
				mark = "*"
			}
			ids = append(ids, mark+pair[0]+":"+pair[1])
		}
		return strings.Join(ids, " ")
	}
	switch list := o.Options.(type) {
	case []selectValue:
		return values(list)
	case []selectGroup:
		var groups []string
		for _, g := range list {
			groups = append(groups, g.Group+"{"+values(g.Options)+"}")
		}
		return strings.Join(groups, " ")
	}
	t.Fatalf("options are a %T", o.Options)
	return ""
}

func TestModelOption(t *testing.T) {
	a, b, c := provider("a", "Alpha"), provider("b", "Beta"), provider("c", "Gamma")
	target := func(p, m string) llm.Target { return llm.Target{Provider: p, Model: m} }
	failed := catalog.Listing{Provider: b, Err: errors.New("down")}
	tests := []struct {
		name   string
		choice modelChoice
		want   string // "" is no option
	}{
		{"two providers are grouped in the order of registration", modelChoice{
			current: target("b", "y"), providers: []llm.ProviderInfo{b, a},
			listings: []catalog.Listing{listing(a, "x"), listing(b, "y", "z")},
		}, "b{*b:y b:z} a{a:x}"},
		{"one provider is flattened", modelChoice{
			current: target("a", "x"), providers: []llm.ProviderInfo{a}, listings: []catalog.Listing{listing(a, "x", "y")},
		}, "*a:x a:y"},
		{"an empty group does not count", modelChoice{
			current: target("a", "x"), providers: []llm.ProviderInfo{a, b},
			listings: []catalog.Listing{listing(a, "x", "y"), listing(b)},
		}, "*a:x a:y"},
		{"a failed group does not count", modelChoice{
			current: target("a", "x"), providers: []llm.ProviderInfo{a, b},
			listings: []catalog.Listing{listing(a, "x", "y"), failed},
		}, "*a:x a:y"},
		{"groups are counted after the current target is inserted", modelChoice{
			current: target("b", "own"), providers: []llm.ProviderInfo{a, b},
			listings: []catalog.Listing{listing(a, "x"), failed},
		}, "a{a:x} b{*b:own}"},
		{"the current target is added where its provider omits it", modelChoice{
			current: target("a", "own"), providers: []llm.ProviderInfo{a}, listings: []catalog.Listing{listing(a, "x")},
		}, "*a:own a:x"},
		{"with no list at all the current target stands alone", modelChoice{
			current: target("a", "own"), providers: []llm.ProviderInfo{a},
		}, "*a:own"},
		{"custom targets of the session stay", modelChoice{
			current: target("a", "x"), past: []llm.Target{target("a", "own1"), target("a", "x"), target("b", "own2"), target("a", "own1")},
			providers: []llm.ProviderInfo{a, b}, listings: []catalog.Listing{listing(a, "x"), listing(b, "y")},
		}, "a{a:own1 *a:x} b{b:own2 b:y}"},
		{"the same model at two providers", modelChoice{
			current: target("b", "x"), providers: []llm.ProviderInfo{a, b},
			listings: []catalog.Listing{listing(a, "x"), listing(b, "x")},
		}, "a{a:x} b{*b:x}"},
		{"flat for clients that take no groups", modelChoice{
			current: target("b", "y"), flat: true, providers: []llm.ProviderInfo{a, b},
			listings: []catalog.Listing{listing(a, "x"), listing(b, "y")},
		}, "a:x *b:y"},
		{"coding models come first in their group", modelChoice{
			current: target("a", "chat"), providers: []llm.ProviderInfo{a},
			listings: []catalog.Listing{listing(a, "chat", "qwen3-coder")},
		}, "a:qwen3-coder *a:chat"},
		{"a target of an unregistered provider is not advertised", modelChoice{
			current: target("c", "x"), providers: []llm.ProviderInfo{a}, listings: []catalog.Listing{listing(a, "x"), listing(c, "x")},
		}, ""},
		{"nor are past targets of one", modelChoice{
			current: target("a", "x"), past: []llm.Target{target("c", "own")}, providers: []llm.ProviderInfo{a},
			listings: []catalog.Listing{listing(a, "x")},
		}, "*a:x"},
		{"an incomplete target is not advertised", modelChoice{
			current: target("a", ""), providers: []llm.ProviderInfo{a}, listings: []catalog.Listing{listing(a, "x")},
		}, ""},
		{"no target", modelChoice{providers: []llm.ProviderInfo{a}, listings: []catalog.Listing{listing(a, "x")}}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, ok := tt.choice.option()
			got := ""
			if ok {
				got = sketch(t, o)
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestModelOptionNamesProviderWhenFlat(t *testing.T) {
	a, b := provider("a", "Alpha"), provider("b", "Beta")
	m := modelChoice{
		current: llm.Target{Provider: "a", Model: "x"}, flat: true,
		providers: []llm.ProviderInfo{a, b}, listings: []catalog.Listing{listing(a, "x"), listing(b, "y")},
	}
	o, _ := m.option()
	values := o.Options.([]selectValue)
	if values[0].Name != "X (Alpha)" || values[1].Name != "Y (Beta)" {
		t.Errorf("names %q, %q", values[0].Name, values[1].Name)
	}
}

func TestModelOptionShowsAHundredBesideTheCurrent(t *testing.T) {
	a := provider("a", "Alpha")
	ids := make([]string, 150)
	for i := range ids {
		ids[i] = fmt.Sprintf("m%03d", i)
	}
	m := modelChoice{providers: []llm.ProviderInfo{a}, listings: []catalog.Listing{listing(a, ids...)}}
	for _, tt := range []struct {
		current string
		shown   int
	}{{"m000", 101}, {"m100", 101}, {"m149", 101}, {"own", 101}} {
		m.current = llm.Target{Provider: "a", Model: tt.current}
		o, _ := m.option()
		values := o.Options.([]selectValue)
		if len(values) != tt.shown {
			t.Errorf("current %s: %d shown, want %d", tt.current, len(values), tt.shown)
		}
		if !slices.ContainsFunc(values, func(v selectValue) bool { return v.Value == o.Current }) {
			t.Errorf("current %s is not shown", tt.current)
		}
	}
	if _, ok := m.find(modelValue(llm.Target{Provider: "a", Model: "m149"})); !ok {
		t.Error("a listed model that is not shown cannot be set")
	}
}

func TestModelValueRoundTrips(t *testing.T) {
	for _, id := range []string{"qwen3:30b", `a"b`, `back\slash`, "org/model:tag", "spaces in it", "日本語", "<&>", "tab\there"} {
		target := llm.Target{Provider: "p/x", Model: id}
		value := modelValue(target)
		var pair [2]string
		if err := json.Unmarshal([]byte(value), &pair); err != nil || pair != [2]string{"p/x", id} {
			t.Errorf("%q: %v, %q", value, err, pair)
		}
		p := provider("p/x", "P")
		m := modelChoice{providers: []llm.ProviderInfo{p}, listings: []catalog.Listing{listing(p, id)}}
		if got, ok := m.find(value); !ok || got != target {
			t.Errorf("find(%q) = %v, %v", value, got, ok)
		}
		if _, ok := m.find(strings.Replace(value, ",", ", ", 1)); ok {
			t.Errorf("a value with white space is taken for %q", value)
		}
	}
}

func TestDescribeModel(t *testing.T) {
	fact := func(s llm.Support) llm.Fact { return llm.Fact{Support: s} }
	tests := []struct {
		info llm.ModelInfo
		want string
	}{
		{llm.ModelInfo{ID: "m", Name: "m"}, ""},
		{llm.ModelInfo{ID: "m", Name: "Model"}, "m"},
		{llm.ModelInfo{ID: "m", Name: "m", Window: llm.Window{Tokens: 32768, Source: llm.Effective}, Capabilities: llm.Capabilities{
			Tools: fact(llm.Supported), Vision: fact(llm.Unsupported), Reasoning: fact(llm.Supported)}},
			"window 32,768 (effective) · tools · no vision · reasoning"},
		{llm.ModelInfo{ID: "m", Name: "m", Window: llm.Window{Tokens: 8192}}, ""}, // a fallback is no fact
		{llm.ModelInfo{ID: "m", Name: "m", Description: "two\nlines", NotChat: true}, "two lines · not a chat model"},
	}
	for _, tt := range tests {
		if got := describeModel(&tt.info); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestQuirks(t *testing.T) {
	tests := []struct {
		initialize string
		want       quirks
	}{
		{`{"protocolVersion":1}`, quirks{flatModels: true}},
		{`{"clientInfo":null}`, quirks{flatModels: true}},
		{`{"clientInfo":{"name":"zed","version":"1.19.2"}}`, quirks{}},
		{`{"clientInfo":{"name":"JetBrains IntelliJ IDEA","version":"2026.1.3"}}`, quirks{modesOnly: true}},
		{`{"clientInfo":{"name":"JetBrains IntelliJ IDEA","version":"2026.2"}}`, quirks{}},
		{`{"clientInfo":{"name":"bb","version":"0.43.4"}}`, quirks{flatModels: true}},
	}
	for _, tt := range tests {
		c := readClient(readObject(json.RawMessage(tt.initialize)))
		if c.quirks != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.initialize, c.quirks, tt.want)
		}
	}
	for _, q := range knownQuirks {
		if q.reason == "" {
			t.Error("a quirk without a reason")
		}
	}
}
