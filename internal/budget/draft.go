package budget

import (
	"slices"

	"github.com/drover-dev/drover/internal/history"
	"github.com/drover-dev/drover/internal/llm"
)

// draft is a conversation with the changes that were decided so far: where it
// begins, and edits of single turns. The caller's messages stay as they are.
type draft struct {
	*pricer
	messages  []llm.Message
	costs     []turnCost
	exchanges []history.Exchange

	first int     // the first kept exchange
	focus int     // the exchange that stages work on, the newest as a rule
	edits []*edit // by turn, nil as long as there are none; edits are never changed
	total int     // what the kept turns cost
	limit int     // what they may cost
	step  int     // by how much a cut moves at least, 1 for exactly
}

// edit is what becomes of one turn. [draft.set] derives the second half.
type edit struct {
	turn    int
	leftOut bool // with its tool group
	cut     bool // to the first head and the last tail bytes
	fixed   bool // a cut of fixed size
	head    int
	tail    int
	images  []int  // numbers of the omitted images, from 1
	rounds  string // the line for tool groups left out of the exchange

	body     string // the turn's own text, as cut
	bodyCost int
	text     string // with its markers
	cost     int    // of the turn
}

// over is how many tokens too many the draft has.
func (d *draft) over() int { return d.total - d.limit }

func (d *draft) newest() *history.Exchange { return &d.exchanges[len(d.exchanges)-1] }

func (d *draft) target() *history.Exchange { return &d.exchanges[d.focus] }

// firstTurn is the first kept turn.
func (d *draft) firstTurn() int { return d.exchanges[d.first].Start }

// edited is the turn's edit, nil if it has none.
func (d *draft) edited(turn int) *edit {
	if d.edits == nil {
		return nil
	}
	return d.edits[turn]
}

// at returns a copy of the turn's edit, an empty one if it has none.
func (d *draft) at(turn int) edit {
	if e := d.edited(turn); e != nil {
		return *e
	}
	return edit{turn: turn}
}

// costOf is what the turn costs as edited.
func (d *draft) costOf(turn int) int {
	if e := d.edited(turn); e != nil {
		return e.cost
	}
	return d.costs[turn].total
}

// complete derives an edit's texts and prices from the decisions in it.
func (d *draft) complete(e *edit) {
	if e.leftOut {
		e.cost = 0
		return
	}
	m, c := &d.messages[e.turn], &d.costs[e.turn]
	switch {
	case !e.cut:
		e.body, e.bodyCost = m.Text(), c.text
	case e.body == "":
		e.body = d.excerptOf(m.Role, m.Text(), c.text, e.head, e.tail)
		e.bodyCost = d.textOf(m.Role, e.body)
	}
	textCost := e.bodyCost
	if e.text = d.withMarkers(e, e.body); e.text != e.body {
		textCost = d.textOf(m.Role, e.text)
	}
	e.cost = c.total - c.text + textCost
	if len(e.images) > 0 {
		images := m.Images()
		for _, n := range e.images {
			e.cost -= d.image(images[n-1])
		}
	}
}

// set files an edit that is complete and keeps the total.
func (d *draft) set(e edit) {
	if d.edits == nil {
		d.edits = make([]*edit, len(d.messages))
	}
	d.total += e.cost - d.costOf(e.turn)
	d.edits[e.turn] = &e
}

// change completes an edit and files it.
func (d *draft) change(e edit) {
	d.complete(&e)
	d.set(e)
}

// unset takes back the edits of turns.
func (d *draft) unset(start, end int) {
	for turn := start; turn < end; turn++ {
		if d.edited(turn) != nil {
			d.total += d.costs[turn].total - d.costOf(turn)
			d.edits[turn] = nil
		}
	}
}

// leave takes whole turns out.
func (d *draft) leave(start, end int) {
	for turn := start; turn < end; turn++ {
		d.set(edit{turn: turn, leftOut: true})
	}
}

func (d *draft) isLeftOut(turn int) bool {
	e := d.edited(turn)
	return e != nil && e.leftOut
}

// leftOutOf lists the tool groups of an exchange that are left out, in order.
func (d *draft) leftOutOf(exchange int) []history.Group {
	var groups []history.Group
	for _, g := range d.exchanges[exchange].Groups {
		if d.isLeftOut(g.Start) {
			groups = append(groups, g)
		}
	}
	return groups
}

// leftOut lists the tool groups of all kept exchanges that are left out.
func (d *draft) leftOut() []history.Group {
	var groups []history.Group
	for n := d.first; d.edits != nil && n < len(d.exchanges); n++ {
		groups = append(groups, d.leftOutOf(n)...)
	}
	return groups
}

// groupCost is what a group costs unchanged, with the turn of its images.
func (d *draft) groupCost(g history.Group) int {
	tokens := 0
	for turn := g.Start; turn < g.ImagesEnd; turn++ {
		tokens += d.costs[turn].total
	}
	return tokens
}

func (d *draft) clone() *draft {
	c := *d
	c.edits = slices.Clone(d.edits)
	return &c
}
