package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// GGUF's types of tokens.
const (
	tokenNormal  int32 = 1
	tokenControl int32 = 3
	tokenUser    int32 = 4
)

// defaultPre names the way that text is split into words before merging.
const defaultPre = "qwen2"

// A vocabulary is a byte-level BPE vocabulary that can be added to.
type vocabulary struct {
	pre    string
	tokens []string
	types  []int32
	merges []string
	ids    map[string]int
}

// add appends a token unless it is there, and returns its id.
func (v *vocabulary) add(token string, kind int32) int {
	if id, ok := v.ids[token]; ok {
		return id
	}
	id := len(v.tokens)
	v.ids[token] = id
	v.tokens = append(v.tokens, token)
	v.types = append(v.types, kind)
	return id
}

// special makes text, literally, a token of the given type.
func (v *vocabulary) special(text string, kind int32) {
	v.types[v.add(text, kind)] = kind
}

// piece returns the token for a string that the model says. When no merges
// lead to it, the tokenizer never produces it: it has another split of the same
// text, so a scripted sentence that comes back in a prompt counts like any other.
func (v *vocabulary) piece(text string) int {
	if id, ok := v.ids[text]; ok && v.types[id] != tokenNormal {
		return id
	}
	return v.add(spell(text), tokenNormal)
}

// trainVocabulary learns a small vocabulary from a text.
func trainVocabulary(corpus string, merges int) *vocabulary {
	v := &vocabulary{pre: defaultPre, ids: map[string]int{}}
	for _, r := range alphabet {
		v.add(string(r), tokenNormal)
	}
	// An empty line is one token in every vocabulary; see [newPlan].
	newline := spell("\n")
	for _, p := range append([]pair{{newline, newline}}, train(corpus, merges)...) {
		v.add(p.left+p.right, tokenNormal)
		v.merges = append(v.merges, p.String())
	}
	return v
}

// readVocabulary takes over the vocabulary of another GGUF file.
func readVocabulary(in io.Reader) (*vocabulary, error) {
	m, err := readModel(in)
	if err != nil {
		return nil, err
	}
	kind, err := lookup[string](m, "tokenizer.ggml.model")
	if err == nil && kind != "gpt2" {
		err = fmt.Errorf("tokenizer %q is not byte-level BPE", kind)
	}
	v := &vocabulary{ids: map[string]int{}}
	take := func(key string, into any) {
		if err != nil {
			return
		}
		switch into := into.(type) {
		case *string:
			*into, err = lookup[string](m, key)
		case *[]string:
			*into, err = lookup[[]string](m, key)
		case *[]int32:
			*into, err = lookup[[]int32](m, key)
		}
	}
	take("tokenizer.ggml.pre", &v.pre)
	take("tokenizer.ggml.tokens", &v.tokens)
	take("tokenizer.ggml.token_type", &v.types)
	take("tokenizer.ggml.merges", &v.merges)
	if err != nil {
		return nil, fmt.Errorf("read vocabulary: %w", err)
	}
	if len(v.tokens) == 0 || len(v.types) != len(v.tokens) {
		return nil, fmt.Errorf("read vocabulary: %d tokens with %d types", len(v.tokens), len(v.types))
	}
	for id, token := range v.tokens {
		if _, ok := v.ids[token]; ok {
			return nil, fmt.Errorf("read vocabulary: token %q twice", token)
		}
		v.ids[token] = id
	}
	for _, r := range alphabet {
		if _, ok := v.ids[string(r)]; !ok {
			return nil, errors.New("read vocabulary: not every byte is a token")
		}
	}
	return v, nil
}

// readVocabularyFile is [readVocabulary] on a file.
func readVocabularyFile(path string) (*vocabulary, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	v, err := readVocabulary(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return v, nil
}
