package budget

import (
	"slices"
	"sort"

	"github.com/drover-dev/drover/internal/llm"
)

// carried is what the last request means for this one.
type carried struct {
	fits   bool    // its shape, with the turns added since, fits
	first  int     // no exchange before this one may be kept
	anchor *Anchor // what the fit was judged by, nil for the plain sum
	// shortened says that the exchange before the newest was last sent shortened.
	shortened bool
}

// carry tries the last request's shape on the draft, if the policy does that.
// When it fits with the turns added since, the draft takes it over. Otherwise
// the draft keeps of it what concerns older exchanges, which stay as they were
// last sent.
func (pl *planner) carry(d *draft) carried {
	prev := pl.in.Previous
	if !pl.price.selection.CarryShape || !pl.continues(prev) || prev.Policy != pl.price.Version ||
		prev.Window != pl.reserves.Window {
		return carried{}
	}
	shaped := d.clone()
	first, ok := shaped.apply(&prev.Shape)
	if !ok {
		return carried{}
	}
	shaped.dropTo(first)
	if sum, n := shaped.digest(prev.Shape.Turns); sum != prev.Shape.Digest || n != prev.Shape.Emitted {
		return carried{}
	}
	c := carried{first: first}
	over := shaped.over()
	if prev.trusted() {
		c.anchor = &Anchor{PromptTokens: prev.PromptTokens, AddedTurns: len(d.messages) - prev.Shape.Turns}
		for _, cost := range d.costs[prev.Shape.Turns:] {
			c.anchor.AddedTokens += cost.total
		}
		over = c.anchor.PromptTokens + c.anchor.AddedTokens - pl.reserves.Input
	}
	if over <= 0 {
		c.fits = true
		*d = *shaped
		return c
	}
	if c.anchor != nil {
		// Where the engine counts more than the estimate, the plain sums that
		// follow would promise too much.
		d.limit -= max(0, prev.PromptTokens-prev.Estimate)
		c.anchor = nil
	}
	newest := d.newest().Start
	for _, e := range shaped.edits {
		if e.turn < newest {
			d.set(e)
			c.shortened = e.turn >= d.exchanges[len(d.exchanges)-2].Start
		}
	}
	return c
}

// keepShortened shortens the exchange before the newest further, if it was last
// sent shortened and would have to go now. It was a turn too long for the window;
// without this the next prompt would see nothing of it. It reports whether the
// draft fits that way.
func (pl *planner) keepShortened(d *draft, c carried) bool {
	last := len(d.exchanges) - 2
	if !c.shortened || d.newestCost() >= d.limit {
		return false
	}
	s := d.clone()
	if s.cutOlder(c.first); s.first <= last {
		return false // it may stay as it was last sent
	}
	s = d.clone()
	s.restore(last)
	s.dropTo(last)
	if s.run(pl.price.selection.Shortened, last); s.over() > 0 {
		return false
	}
	*d = *s
	return true
}

// continues reports whether the last request went to the same model with the
// same system turn and tools.
func (pl *planner) continues(prev *Previous) bool {
	return prev != nil && prev.Target == pl.in.Snapshot.Target && prev.Head == pl.head
}

// exact is the engine's own count, 0 if it gave none.
func (p *Previous) exact() int {
	if p.Estimated {
		return 0
	}
	return p.PromptTokens
}

// implausibleShare is the share of the estimate under which a count says that
// the engine left out a part of the request: a quarter.
const implausibleShare = 4

// trusted reports whether the engine's count can be built on. It cannot when the
// engine may have cut the request, or counts things that the next request may
// hold differently.
func (p *Previous) trusted() bool {
	count := p.exact()
	return count > 0 && !p.Opaque &&
		count < p.Window-p.Output &&
		count >= ceilDiv(p.Estimate, implausibleShare) &&
		count >= p.Earlier // or it shrank although the request only grew
}

func (d *draft) clone() *draft {
	c := *d
	c.edits = slices.Clone(d.edits)
	return &c
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
	for _, x := range s.Excerpts {
		if !within(x.Turn) || x.Head < 0 || x.Tail < 0 || x.Head+x.Tail >= len(d.messages[x.Turn].Text()) {
			return 0, false
		}
		e := d.at(x.Turn)
		e.cut, e.fixed, e.head, e.tail = true, x.Fixed, x.Head, x.Tail
		e.cost = d.price(&e)
		d.set(e)
	}
	for _, ref := range s.OmittedImages {
		if !within(ref.Turn) || ref.Image < 1 || ref.Image > len(d.messages[ref.Turn].Images()) {
			return 0, false
		}
		e := d.at(ref.Turn)
		e.images = append(slices.Clip(e.images), ref.Image)
		e.cost = d.price(&e)
		d.set(e)
	}
	return first, d.applyLeftOut(s.LeftOut, within)
}

func (d *draft) applyLeftOut(ranges []Range, within func(int) bool) bool {
	for i, r := range ranges {
		if !within(r.Start) {
			return false
		}
		x := d.exchangeAt(r.Start)
		if !d.hasGroup(x, r) {
			return false
		}
		d.leave(r.Start, r.End)
		if i+1 == len(ranges) || ranges[i+1].Start >= d.exchanges[x].End {
			d.setRounds(&d.exchanges[x], d.leftOutOf(&d.exchanges[x]))
		}
	}
	return true
}

// exchangeAt is the exchange that holds the turn, or the first one after it.
func (d *draft) exchangeAt(turn int) int {
	return sort.Search(len(d.exchanges), func(n int) bool { return d.exchanges[n].End > turn })
}

func (d *draft) hasGroup(exchange int, r Range) bool {
	for _, g := range d.exchanges[exchange].Groups {
		if g.Start == r.Start {
			return g.ImagesEnd == r.End
		}
	}
	return false
}

// digest is a checksum of what the kept turns before end put into a request, and
// how many messages they are.
func (d *draft) digest(end int) (sum uint64, messages int) {
	h := digestSeed
	d.each(end, func(_ *llm.Message, digest uint64) {
		h = h.mix(digest)
		messages++
	})
	return uint64(h), messages
}

// link fills in what the next plan needs to know of this one, and what the
// engine counted for a request that this one begins with.
func (pl *planner) link(out *Plan, d *draft) {
	prev := pl.in.Previous
	continues := pl.continues(prev)
	h, opaque := digestSeed, false
	d.each(len(d.messages), func(m *llm.Message, digest uint64) {
		h = h.mix(digest)
		out.Shape.Emitted++
		if continues && out.Shape.Emitted == prev.Shape.Emitted && uint64(h) == prev.Shape.Digest {
			out.counted = prev.exact()
		}
		opaque = opaque || d.replays(m) || hasImages(m)
	})
	out.Shape.Digest = uint64(h)
	out.pending = Previous{
		Policy:   pl.price.Version,
		Target:   pl.in.Snapshot.Target,
		Window:   pl.reserves.Window,
		Head:     pl.head,
		Output:   pl.reserves.Output,
		Shape:    out.Shape,
		Estimate: pl.report.BreakdownAfter.Total(),
		Opaque:   opaque,
		Earlier:  out.counted,
	}
}

func hasImages(m *llm.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p llm.Part) bool {
		_, ok := p.(*llm.Image)
		return ok
	})
}

// shape describes the draft.
func (d *draft) shape() Shape {
	s := Shape{FirstTurn: d.firstTurn(), Turns: len(d.messages)}
	for i := range d.edits {
		e := &d.edits[i]
		if e.cut {
			s.Excerpts = append(s.Excerpts, Excerpt{Turn: e.turn, Head: e.head, Tail: e.tail, Fixed: e.fixed})
		}
		for _, n := range e.images {
			s.OmittedImages = append(s.OmittedImages, ImageRef{Turn: e.turn, Image: n})
		}
	}
	for _, g := range d.leftOut() {
		s.LeftOut = append(s.LeftOut, Range{Start: g.Start, End: g.ImagesEnd})
	}
	return s
}
