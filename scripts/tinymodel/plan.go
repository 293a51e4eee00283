package main

import (
	"fmt"
	"slices"
)

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
	emptyLine  = "\n\n"
)

// anyToken is the state of a model whose last token is none of the script: it
// is about to answer.
const anyToken = -1

// A plan is a script in tokens: after which one comes which, by reply. There
// may be a second choice.
type plan struct {
	script *script
	vocab  *vocabulary
	eos    int
	// states lists the keys of next, in the order in which they were found.
	states []int
	next   map[int]map[string][]int
	// asks lists the replies that something asks for: all but the default one.
	asks []string
	// markers has the reply that a marker token asks for.
	markers map[int]string
}

// newPlan adds what the script needs to the vocabulary and works out the transitions.
//
// A prompt ends in a newline, where the answer begins; or in an empty line when
// thoughts are over or not wanted, where the reply itself begins. So the token
// for an empty line is a state, and no piece of a script may be one of the two.
func newPlan(s *script, v *vocabulary) (*plan, error) {
	p := &plan{script: s, vocab: v, next: map[int]map[string][]int{}, markers: map[int]string{}}
	for _, t := range s.Control {
		v.special(t, tokenControl)
	}
	for _, t := range s.Tags {
		v.special(t, tokenUser)
	}
	p.eos = v.ids[s.EOS]
	blank, ok := v.ids[spell(emptyLine)]
	if !ok {
		return nil, fmt.Errorf("plan: the vocabulary has no token for an empty line")
	}
	for _, name := range s.names() {
		r := s.Replies[name]
		if name != defaultReply {
			p.asks = append(p.asks, name)
		}
		if r.Marker == "" {
			continue
		}
		v.special(r.Marker, tokenUser)
		id := v.ids[r.Marker]
		if other, ok := p.markers[id]; ok {
			return nil, fmt.Errorf("plan: %q asks for %q and %q", r.Marker, other, name)
		}
		p.markers[id] = name
	}
	for _, name := range s.names() {
		if err := p.addReply(name, blank); err != nil {
			return nil, fmt.Errorf("plan: reply %q: %w", name, err)
		}
	}
	return p, nil
}

// addReply adds the transitions of one reply, and of the thoughts before it.
func (p *plan) addReply(name string, blank int) error {
	r := p.script.Replies[name]
	reply, err := p.pieces(r.Say)
	if err != nil {
		return err
	}
	end := p.eos
	if r.Again != nil {
		end = reply[*r.Again]
	}
	path := append([]int{blank}, reply...)
	if thoughts := p.script.Thoughts; len(thoughts) == 0 {
		if err := p.connect(anyToken, name, reply[0], 1); err != nil {
			return err
		}
	} else {
		steps := slices.Concat([]string{thinkOpen}, thoughts, []string{thinkClose})
		thought, err := p.pieces(steps)
		if err != nil {
			return err
		}
		path = slices.Concat([]int{anyToken}, thought, path)
	}
	if err := p.connectPath(path, end, name, 1); err != nil || len(r.Otherwise) == 0 {
		return err
	}
	second, err := p.pieces(r.Otherwise)
	if err != nil {
		return err
	}
	return p.connectPath(append([]int{blank}, second...), end, name, 2)
}

func (p *plan) connectPath(path []int, end int, reply string, choices int) error {
	for i, from := range path {
		to := end
		if i+1 < len(path) {
			to = path[i+1]
		}
		if err := p.connect(from, reply, to, choices); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) pieces(texts []string) ([]int, error) {
	ids := make([]int, len(texts))
	for i, t := range texts {
		if t == emptyLine || t == "\n" {
			return nil, fmt.Errorf("the piece %q is how prompts end", t)
		}
		ids[i] = p.vocab.piece(t)
	}
	return ids, nil
}

// connect says that in a reply one token follows another. There is no memory
// but the last token, so no token may have more successors in a reply than choices.
func (p *plan) connect(from int, reply string, to, choices int) error {
	if p.next[from] == nil {
		p.next[from] = map[string][]int{}
		p.states = append(p.states, from)
	}
	known := p.next[from][reply]
	if slices.Contains(known, to) {
		return nil
	}
	if len(known) >= choices {
		return fmt.Errorf("%q is followed by %q and by %q", p.text(from), p.text(known[0]), p.text(to))
	}
	p.next[from][reply] = append(known, to)
	return nil
}

func (p *plan) text(id int) string {
	if id == anyToken {
		return "any token"
	}
	return p.vocab.tokens[id]
}
