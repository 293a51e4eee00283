package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestAlphabet(t *testing.T) {
	for text, want := range map[string]string{
		"plain!": "plain!", " a\n\n": "ĠaĊĊ", "é": "Ã©", "\x00\xad": "ĀŃ",
	} {
		if got := spell(text); got != want {
			t.Errorf("spell(%q) = %q, want %q", text, got, want)
		}
	}
	seen := map[rune]bool{}
	for _, r := range alphabet {
		seen[r] = true
	}
	if len(seen) != 256 {
		t.Errorf("%d characters for 256 bytes", len(seen))
	}
}

func TestTrain(t *testing.T) {
	var got []string
	for _, p := range train("low low low lower lowest", 4) {
		got = append(got, p.String())
	}
	// "low" is first learned without the space, which its first occurrence lacks.
	want := []string{"l o", "lo w", "Ġ low", "Ġlow e"}
	if !slices.Equal(got, want) {
		t.Errorf("merges %q, want %q", got, want)
	}
	if merges := train("ab c", 10); len(merges) != 2 {
		t.Errorf("merges %v, want one for each of two words", merges)
	}
	if merges := train("", 10); len(merges) != 0 {
		t.Errorf("merges %v of nothing", merges)
	}
}

func TestTrainIsDeterministic(t *testing.T) {
	corpus, err := os.ReadFile("data/corpus.txt")
	if err != nil {
		t.Fatal(err)
	}
	first := train(string(corpus), 1500)
	if len(first) < 1000 {
		t.Errorf("only %d merges", len(first))
	}
	for range 3 {
		if !slices.Equal(train(string(corpus), 1500), first) {
			t.Fatal("the same text gave other merges")
		}
	}
}

func vocabularyModel(v *vocabulary) *model {
	m := &model{}
	m.set("tokenizer.ggml.model", "gpt2")
	m.set("tokenizer.ggml.pre", v.pre)
	m.set("tokenizer.ggml.tokens", v.tokens)
	m.set("tokenizer.ggml.token_type", v.types)
	m.set("tokenizer.ggml.merges", v.merges)
	return m
}

func TestReadVocabulary(t *testing.T) {
	v := trainVocabulary("some text, some more text", 20)
	got, err := readVocabulary(bytes.NewReader(encode(t, vocabularyModel(v))))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.tokens, v.tokens) || !slices.Equal(got.merges, v.merges) || got.pre != v.pre {
		t.Error("another vocabulary came back")
	}
	// Adding keeps the ids of all tokens, and does not add what is there.
	n := len(got.tokens)
	got.special("[[mark]]", tokenUser)
	got.special("text", tokenControl)
	if len(got.tokens) != n+1 && len(got.tokens) != n+2 {
		t.Errorf("%d tokens, were %d", len(got.tokens), n)
	}
	if !slices.Equal(got.tokens[:n], v.tokens) || got.ids["[[mark]]"] < n {
		t.Error("tokens have moved")
	}
	if id := got.piece("[[mark]]"); id != got.ids["[[mark]]"] {
		t.Errorf("piece of a marker is %d", id)
	}
}

func TestReadVocabularyErrors(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *model)
		want   string
	}{
		"other tokenizer": {func(m *model) { m.meta[0].value = "llama" }, "not byte-level"},
		"no tokens":       {func(m *model) { m.meta[2].key = "x" }, "tokens is missing"},
		"types":           {func(m *model) { m.meta[3].value = []int32{1} }, "1 types"},
		"twice": {func(m *model) {
			m.meta[2].value = []string{"a", "a"}
			m.meta[3].value = []int32{1, 1}
		}, `"a" twice`},
		"bytes": {func(m *model) {
			m.meta[2].value = []string{"a"}
			m.meta[3].value = []int32{1}
		}, "not every byte"},
	} {
		m := vocabularyModel(trainVocabulary("text", 5))
		c.change(m)
		if _, err := readVocabulary(bytes.NewReader(encode(t, m))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := readVocabularyFile("data/corpus.txt"); err == nil || !strings.Contains(err.Error(), "magic") {
		t.Errorf("a text file: %v", err)
	}
}
