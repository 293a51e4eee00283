package budget

import (
	"slices"

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
	for turn := prev.Shape.FirstTurn; turn < d.newest().Start; turn++ {
		if e := shaped.edited(turn); e != nil {
			d.set(*e)
			c.shortened = turn >= d.exchanges[len(d.exchanges)-2].Start
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
	s.unset(s.exchanges[last].Start, s.exchanges[last].End)
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
		// What a request with images or replayed reasoning counted says nothing:
		// the next one may hold them differently, at another effort, say.
		if continues && !prev.Opaque && out.Shape.Emitted == prev.Shape.Emitted && uint64(h) == prev.Shape.Digest {
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
