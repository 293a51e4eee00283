package budget

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
)

func TestTurnPrices(t *testing.T) {
	const arguments = `{"a":"<1>"}`
	call := llm.ToolCall{ID: "c1", Name: "read", Arguments: arguments}
	thinking := llm.AssistantText("hello", call)
	thinking.Reasoning = &llm.Reasoning{Text: "hello", Details: []byte(`[1]`)}
	thinking.Origin = llm.Target{Provider: "lab", Model: "acme-1"}
	thinking.Calls[0].Extra = []byte(`{}`)
	failed := llm.ToolText("c1", "no\n")
	failed.IsError = true
	picture := llm.UserText("hello")
	picture.Parts = append(picture.Parts, &llm.Image{Width: 64, Height: 64})

	v2 := tightText
	v2arguments := v2(`"{\"a\":\"\u003c1\u003e\"}"`)
	for _, c := range []struct {
		name     string
		m        llm.Message
		profile  llm.Profile
		one, two int
	}{
		{"user", llm.UserText("hello"), llm.Generic, 10 + 3, 10 + v2("hello")},
		{"empty", llm.UserText(""), llm.Generic, 10, 10},
		{"image", picture, llm.Generic, 10 + 3 + 3392, 10 + v2("hello") + 3392},
		{"result", failed, llm.Generic, 10 + 24 + 3 + 5, 10 + 24 + v2("c1") + v2(`"no\n"`)},
		{"call", llm.AssistantText("", call), llm.Generic,
			10 + 40 + 3 + 5 + len(arguments) + 4 + 1, 10 + 40 + v2("c1") + v2("read") + v2arguments},
		{"reasoning is not replayed", thinking, llm.Generic,
			10 + 3 + 40 + 3 + 5 + 16 + 3, 10 + v2("hello") + 40 + v2("c1") + v2("read") + v2arguments + v2(`"{}"`)},
		{"reasoning is replayed", thinking, llm.Replay,
			10 + 3 + 40 + 3 + 5 + 16 + 3 + 2 + 3 + 4,
			10 + v2("hello") + 40 + v2("c1") + v2("read") + v2arguments + v2(`"{}"`) + 2 + v2("hello") + v2(`"[1]"`)},
	} {
		s := llm.Snapshot{Target: thinking.Origin, Profile: c.profile}
		for p, want := range map[*Policy]int{Policy1(): c.one, Policy2(): c.two} {
			price := newPricer(p, &s)
			if got := price.turn(&c.m).total; got != want {
				t.Errorf("%s, policy %d: %d, want %d", c.name, p.Version, got, want)
			}
		}
	}
	elsewhere := newPricer(Policy1(), &llm.Snapshot{Target: llm.Target{Provider: "other", Model: "m"}, Profile: llm.Replay})
	if got := elsewhere.turn(&thinking).total; got != 10+3+40+3+5+16 {
		t.Errorf("reasoning and opaque members, which only their own model is sent, are priced for another one: %d", got)
	}
}

func TestHeadPrices(t *testing.T) {
	tools := []llm.ToolDef{llm.NewToolDef("read", "Read.", []byte(`{ "type" : "object" }`)), llm.NewToolDef("x", "", nil)}
	one, two := newPricer(Policy1(), &llm.Snapshot{}), newPricer(Policy2(), &llm.Snapshot{})
	want := Breakdown{Request: 96, System: 18, Memory: 6, ToolSchemas: 12 + 5 + 6 + 22 + 12 + 2 + 1 + 18}
	if got := one.head("You are drover.", "hello, you", tools); got != want {
		t.Errorf("policy 1: %+v, want %+v", got, want)
	}
	system := tightText("You are drover.\n\nhello, you") + 10
	want = Breakdown{Request: 96, System: 10 + tightText("You are drover."), ToolSchemas: 256 + tightText(tools[0].Wire) + tightText(tools[1].Wire)}
	want.Memory = system - want.System
	if got := two.head("You are drover.", "hello, you", tools); got != want {
		t.Errorf("policy 2: %+v, want %+v", got, want)
	}
	if got := two.head("", "", nil); got != (Breakdown{Request: 96}) {
		t.Errorf("nothing costs %+v", got)
	}
	if got := two.head("", "note", nil); got.Memory != tightText("note") || got.System != 10 {
		t.Errorf("memory alone costs %+v", got)
	}
}

// An engine that refused images is sent a line in place of each.
func TestRefusedImagesCostALine(t *testing.T) {
	s := llm.Snapshot{Target: llm.Target{Provider: "lab", Model: "acme-1"}, Refusals: llm.Refusals{llm.RefusedImages}}
	price := newPricer(Policy2(), &s)
	if got := price.image(&llm.Image{Width: 4000, Height: 3000}); got > 100 || got <= 0 {
		t.Errorf("a refused image costs %d", got)
	}
	good, damaged := &llm.Image{Width: 4000, Height: 3000, SHA256: "a"}, &llm.Image{Width: 4000, Height: 3000, SHA256: "b"}
	whole := newPricer(Policy2(), &llm.Snapshot{})
	s.Refusals = llm.Refusals{llm.RefusedImage(damaged)}
	price = newPricer(Policy2(), &s)
	if got := price.image(damaged); got > 100 || got <= 0 {
		t.Errorf("a damaged image costs %d", got)
	}
	if got := price.image(good); got != whole.image(good) {
		t.Errorf("beside a damaged one an image costs %d", got)
	}
	if price.key == whole.key {
		t.Error("prices from before the refusal are used")
	}
}

// A change of a policy's numbers is a new policy: old logs must stay repeatable.
// When this fails on purpose, add a policy instead of changing the hash.
func TestPoliciesArePinned(t *testing.T) {
	pinned := map[int]string{
		1: "512f2622060d432bc5279dba7ee92cf095ad2888d4446890d1b102331c3c3aac",
		2: "c292529b9b43489bf2f0dba353fef48980b3b61669edd07c627d683723ad7879",
	}
	for n := 1; ; n++ {
		p, ok := PolicyByVersion(n)
		if !ok {
			break
		}
		if got := fingerprint(p); got != pinned[n] {
			t.Errorf("policy %d changed: %q", n, got)
		}
	}
}

// fingerprint hashes a policy's constants and tables, and what its functions
// make of texts that touch every one of them.
func fingerprint(p *Policy) string {
	h := sha256.New()
	fmt.Fprintln(h, p.Version, p.reserves, p.structure, p.selection.QuantumDivisor, p.selection.CarryShape,
		len(p.selection.Stages), len(p.selection.Shortened))
	if p.Version == 2 {
		fmt.Fprintln(h, runeRanges, coreWords, pairClasses, hanOne, hanTwo, kanaOne, lowerWord, capitalisedWord, upperWord,
			fixedHead, fixedTail, fixedLeast, recentGroups, implausibleShare)
	}
	tool := llm.NewToolDef("read", "Read a file.", []byte(`{"type":"object","a":1}`))
	fmt.Fprintln(h, p.fields.tool(&tool), EstimateImage(&llm.Image{Width: 3000, Height: 2000}), EstimateImage(&llm.Image{}))
	for _, text := range pinnedTexts() {
		fmt.Fprintln(h, p.fields.text(text), p.fields.name(text), p.fields.result(text), p.fields.arguments(text))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// pinnedTexts hold every class of character and every length of word and run.
func pinnedTexts() []string {
	texts := []string{"", mixedText, prose(500), "\xff\xfe", "日本語のテキスト、한국어 ─█▀ 😀\u200b"}
	for n := range 40 {
		for _, c := range []string{"a", "Xy", "Z", "7", "_", ".", "=", " ", "\n", "\t", "\r", "\x01", "é", "好", "─", "😀"} {
			texts = append(texts, strings.Repeat(c, n), "the "+strings.Repeat(c, n)+"the x1", "a1"+strings.Repeat(c, n))
		}
	}
	return texts
}
