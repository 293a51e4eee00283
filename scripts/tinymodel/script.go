package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// defaultReply is what the model says while no marker is in its context.
const defaultReply = "default"

// A script says which model to make and what it answers.
type script struct {
	// Base names another script, beside this one, whose values this one keeps or replaces.
	Base string `json:"base"`
	Name string `json:"name"`
	// Context is the trained window, in tokens.
	Context int `json:"context"`
	// Template and Corpus name files beside the script: the Jinja chat template
	// and the text from which Merges merges of the vocabulary are learned.
	Template string `json:"template"`
	Corpus   string `json:"corpus"`
	Merges   int    `json:"merges"`
	BOS      string `json:"bos"`
	EOS      string `json:"eos"`
	// Control tokens are those of the template: a user who types them means text.
	Control []string `json:"control"`
	// Tags are tokens wherever they are written, and so are the markers.
	Tags []string `json:"tags"`
	// Thoughts come before every reply, between <think> and </think>.
	Thoughts []string         `json:"thoughts"`
	Replies  map[string]reply `json:"replies"`
}

// A reply is one scripted answer. Each string of Say becomes one token.
type reply struct {
	// Marker is the token that asks for this reply: the last one in the context wins.
	Marker string `json:"marker"`
	// Image tells that pictures ask for this reply.
	Image bool     `json:"image"`
	Say   []string `json:"say"`
	// Otherwise has other words for the same, which are said from the first
	// difference on when the engine does not allow Say: llama-server makes the
	// arguments of a call keep to the order of the tool's schema.
	Otherwise []string `json:"otherwise"`
	// Again, when given, is the piece that follows the last one: the reply never ends.
	Again *int `json:"again"`
}

// names returns the names of the replies in a fixed order.
func (s *script) names() []string { return slices.Sorted(maps.Keys(s.Replies)) }

// loadScript reads a script and, before it, those it is based on.
func loadScript(path string) (*script, error) {
	s := &script{}
	if err := s.load(path, nil); err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("script %s: %w", path, err)
	}
	return s, nil
}

func (s *script) load(path string, below []string) error {
	if slices.Contains(below, path) {
		return fmt.Errorf("script %s is based on itself", path)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var head struct {
		Base string `json:"base"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return fmt.Errorf("script %s: %w", path, err)
	}
	if head.Base != "" {
		if err := s.load(filepath.Join(filepath.Dir(path), head.Base), append(below, path)); err != nil {
			return err
		}
	}
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	if err := strict.Decode(s); err != nil {
		return fmt.Errorf("script %s: %w", path, err)
	}
	return nil
}

func (s *script) check() error {
	if s.Context < 16 || s.Context > 1<<20 {
		return fmt.Errorf("context of %d tokens", s.Context)
	}
	if s.EOS == "" || !slices.Contains(s.Control, s.EOS) {
		return fmt.Errorf("eos %q is no control token", s.EOS)
	}
	if s.BOS != "" && !slices.Contains(s.Control, s.BOS) {
		return fmt.Errorf("bos %q is no control token", s.BOS)
	}
	if _, ok := s.Replies[defaultReply]; !ok {
		return fmt.Errorf("no reply %q", defaultReply)
	}
	for _, name := range s.names() {
		r := s.Replies[name]
		if len(r.Say) == 0 || slices.Contains(slices.Concat(r.Say, r.Otherwise), "") {
			return fmt.Errorf("reply %q says nothing", name)
		}
		if r.Again != nil && (*r.Again < 0 || *r.Again >= len(r.Say)) {
			return fmt.Errorf("reply %q goes on with piece %d of %d", name, *r.Again, len(r.Say))
		}
		if asked := r.Marker != "" || r.Image; asked == (name == defaultReply) {
			return fmt.Errorf("reply %q: every reply but %q has a marker or is for images", name, defaultReply)
		}
	}
	if len(s.Thoughts) > 0 && (!slices.Contains(s.Tags, thinkOpen) || !slices.Contains(s.Tags, thinkClose)) {
		return errors.New("thoughts need the tags " + thinkOpen + " and " + thinkClose)
	}
	return nil
}
