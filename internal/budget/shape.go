package budget

import (
	"slices"
	"sort"
)

// Shape is what of the caller's messages a request held, as indexes into them.
type Shape struct {
	// FirstTurn is the first kept turn.
	FirstTurn int `json:"first_turn"`
	// Turns is how many turns the caller's list had.
	Turns int `json:"turns"`
	// Excerpts are the texts that were shortened, by turn.
	Excerpts []Excerpt `json:"excerpts,omitempty"`
	// OmittedImages are the images that a marker stands for, by turn.
	OmittedImages []ImageRef `json:"omitted_images,omitempty"`
	// LeftOut are the tool groups that were left out, in order.
	LeftOut []Range `json:"left_out,omitempty"`
	// Emitted is how many messages the request held, and Digest a checksum of
	// what they put into it.
	Emitted int    `json:"emitted"`
	Digest  uint64 `json:"digest,string"`
}

// Excerpt says how much of a turn's text was kept, in bytes.
type Excerpt struct {
	Turn int `json:"turn"`
	Head int `json:"head"`
	Tail int `json:"tail"`
	// Fixed marks an excerpt whose size depends on the text alone.
	Fixed bool `json:"fixed,omitempty"`
}

// ImageRef names an image: the turn's index and the image's number in it, from 1.
type ImageRef struct {
	Turn  int `json:"turn"`
	Image int `json:"image"`
}

// Range is an index range over the caller's messages, End exclusive.
type Range struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// shape describes the draft.
func (d *draft) shape() Shape {
	s := Shape{FirstTurn: d.firstTurn(), Turns: len(d.messages)}
	for turn := s.FirstTurn; d.edits != nil && turn < s.Turns; turn++ {
		e := d.edits[turn]
		if e == nil {
			continue
		}
		if e.cut {
			s.Excerpts = append(s.Excerpts, Excerpt{Turn: turn, Head: e.head, Tail: e.tail, Fixed: e.fixed})
		}
		for _, n := range e.images {
			s.OmittedImages = append(s.OmittedImages, ImageRef{Turn: turn, Image: n})
		}
	}
	for _, g := range d.leftOut() {
		s.LeftOut = append(s.LeftOut, Range{Start: g.Start, End: g.ImagesEnd})
	}
	return s
}

// apply edits the draft as a shape says, and gives the first exchange that the
// shape keeps. ok is false for a shape that cannot be one of these messages.
func (d *draft) apply(s *Shape) (first int, ok bool) {
	if s.Turns > len(d.messages) || s.FirstTurn >= s.Turns {
		return 0, false
	}
	first = d.exchangeAt(s.FirstTurn)
	if d.exchanges[first].Start != s.FirstTurn {
		return 0, false
	}
	within := func(turn int) bool { return turn >= s.FirstTurn && turn < s.Turns }
	for i, r := range s.LeftOut {
		x := d.exchangeAt(r.Start)
		if !within(r.Start) || !d.hasGroup(x, r) {
			return 0, false
		}
		d.leave(r.Start, r.End)
		if i+1 == len(s.LeftOut) || s.LeftOut[i+1].Start >= d.exchanges[x].End {
			d.setRounds(x)
		}
	}
	for _, x := range s.Excerpts {
		if !within(x.Turn) {
			return 0, false
		}
		size := len(d.messages[x.Turn].Text())
		if x.Head < 0 || x.Head > size || x.Tail < 0 || x.Tail >= size-x.Head {
			return 0, false
		}
		e := d.at(x.Turn)
		e.cut, e.body, e.fixed, e.head, e.tail = true, "", x.Fixed, x.Head, x.Tail
		if x.Fixed {
			if f := d.fixedExcerpt(x.Turn); f.head == x.Head && f.tail == x.Tail {
				e = f // its price is known
			}
		}
		d.change(e)
	}
	for _, ref := range s.OmittedImages {
		if !within(ref.Turn) || ref.Image < 1 || ref.Image > len(d.messages[ref.Turn].Images()) {
			return 0, false
		}
		e := d.at(ref.Turn)
		e.images = append(slices.Clip(e.images), ref.Image)
		d.change(e)
	}
	return first, true
}

// exchangeAt is the exchange that holds the turn, or the first one after it.
func (d *draft) exchangeAt(turn int) int {
	return sort.Search(len(d.exchanges)-1, func(n int) bool { return d.exchanges[n].End > turn })
}

func (d *draft) hasGroup(exchange int, r Range) bool {
	groups := d.exchanges[exchange].Groups
	i := sort.Search(len(groups), func(i int) bool { return groups[i].Start >= r.Start })
	return i < len(groups) && groups[i].Start == r.Start && groups[i].ImagesEnd == r.End
}
