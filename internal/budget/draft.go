package budget

import (
	"fmt"
	"slices"
	"strings"

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

	first int    // the first kept exchange
	focus int    // the exchange that stages work on, the newest as a rule
	edits []edit // by turn
	total int    // what the kept turns cost
	limit int    // what they may cost
	step  int    // by how much a cut moves at least, 1 for exactly
}

// edit is what becomes of one turn.
type edit struct {
	turn    int
	leftOut bool // with its tool group
	cut     bool // to the first head and the last tail bytes
	fixed   bool
	head    int
	tail    int
	images  []int  // numbers of the omitted images, from 1
	rounds  string // the line for tool groups left out of the exchange
	cost    int    // of the turn as edited
}

// over is how many tokens too many the draft has.
func (d *draft) over() int { return d.total - d.limit }

func (d *draft) newest() *history.Exchange { return &d.exchanges[len(d.exchanges)-1] }

func (d *draft) target() *history.Exchange { return &d.exchanges[d.focus] }

// run lets stages work on an exchange, in order, while the draft does not fit.
func (d *draft) run(stages []stage, exchange int) {
	d.focus = exchange
	for _, shorten := range stages {
		if d.over() <= 0 {
			return
		}
		shorten(d)
	}
}

// firstTurn is the first kept turn.
func (d *draft) firstTurn() int { return d.exchanges[d.first].Start }

// find returns where the turn's edit is, or belongs.
func (d *draft) find(turn int) (int, bool) {
	return slices.BinarySearchFunc(d.edits, turn, func(e edit, turn int) int { return e.turn - turn })
}

// at returns a copy of the turn's edit, a new one if it has none.
func (d *draft) at(turn int) edit {
	if i, ok := d.find(turn); ok {
		return d.edits[i]
	}
	return edit{turn: turn, cost: d.costs[turn].total}
}

// set files an edit and keeps the total.
func (d *draft) set(e edit) {
	i, ok := d.find(e.turn)
	if ok {
		d.total += e.cost - d.edits[i].cost
		d.edits[i] = e
		return
	}
	d.total += e.cost - d.costs[e.turn].total
	d.edits = slices.Insert(d.edits, i, e)
}

// leave takes whole turns out.
func (d *draft) leave(start, end int) {
	for turn := start; turn < end; turn++ {
		d.set(edit{turn: turn, leftOut: true})
	}
}

// body is the turn's own text as edited.
func (d *draft) body(e *edit) string {
	m := &d.messages[e.turn]
	text := m.Text()
	if e.cut {
		return d.excerptOf(m.Role, text, d.costs[e.turn].text, e.head, e.tail)
	}
	return text
}

// text is the turn's text as edited, markers included. A marker for an image or
// for tool groups is a line at the end and never shortened.
func (d *draft) text(e *edit) string { return d.withMarkers(e, d.body(e)) }

func (d *draft) withMarkers(e *edit, text string) string {
	if len(e.images) == 0 && e.rounds == "" {
		return text
	}
	var b strings.Builder
	b.WriteString(text)
	line := func(s string) {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(s)
	}
	images := d.messages[e.turn].Images()
	for _, n := range e.images {
		line(imageMarker(n, images[n-1], d.image(images[n-1])))
	}
	if e.rounds != "" {
		line(e.rounds)
	}
	return b.String()
}

// imageNameBytes bounds a file name in a marker.
const imageNameBytes = 64

func imageMarker(number int, img *llm.Image, tokens int) string {
	name := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, img.Name)
	name = name[:boundaryAtMost(name, imageNameBytes)]
	if name != "" {
		name = ": " + name
	}
	if img.Width > 0 && img.Height > 0 {
		name += fmt.Sprintf(", %dx%d", img.Width, img.Height)
	}
	return fmt.Sprintf("[image %d left out%s, about %d tokens]", number, name, tokens)
}

// price gives the cost of the turn with the edit.
func (d *draft) price(e *edit) int {
	m, c := &d.messages[e.turn], d.costs[e.turn]
	cost := c.total - c.text + d.textOf(m.Role, d.text(e))
	if len(e.images) > 0 {
		images := m.Images()
		for _, n := range e.images {
			cost -= d.image(images[n-1])
		}
	}
	return cost
}

// message is the turn as it is sent.
func (d *draft) message(e *edit) llm.Message {
	m := d.messages[e.turn]
	text := d.text(e)
	parts := make([]llm.Part, 0, len(m.Parts)+1)
	for i, img := range m.Images() {
		if !slices.Contains(e.images, i+1) {
			parts = append(parts, img)
		}
	}
	if text != "" {
		parts = append(parts, llm.Text(text))
	}
	m.Parts = parts
	return m
}

// emit gives the messages of the draft. Without edits they are a part of the
// caller's slice.
func (d *draft) emit() []llm.Message {
	first := d.firstTurn()
	if len(d.edits) == 0 {
		return d.messages[first:len(d.messages):len(d.messages)]
	}
	out := make([]llm.Message, 0, len(d.messages)-first)
	d.each(len(d.messages), func(m *llm.Message, _ uint64) { out = append(out, *m) })
	return out
}

// each visits the messages that the kept turns before end give, and the checksum
// of what each puts into a request.
func (d *draft) each(end int, visit func(m *llm.Message, digest uint64)) {
	edits := d.edits
	for turn := d.firstTurn(); turn < end; turn++ {
		if len(edits) == 0 || edits[0].turn != turn {
			visit(&d.messages[turn], d.costs[turn].digest)
			continue
		}
		if !edits[0].leftOut {
			m := d.message(&edits[0])
			visit(&m, d.digestOf(&m, m.Text()))
		}
		edits = edits[1:]
	}
}

// dropTo makes an exchange the first one kept.
func (d *draft) dropTo(first int) {
	for ; d.first < first; d.first++ {
		e := &d.exchanges[d.first]
		for turn := e.Start; turn < e.End; turn++ {
			d.total -= d.at(turn).cost
		}
	}
	i, _ := d.find(d.firstTurn())
	d.edits = slices.Delete(d.edits, 0, i)
}

// restore takes back the edits of an exchange.
func (d *draft) restore(exchange int) {
	x := &d.exchanges[exchange]
	i, _ := d.find(x.Start)
	j, _ := d.find(x.End)
	for _, e := range d.edits[i:j] {
		d.total += d.costs[e.turn].total - e.cost
	}
	d.edits = slices.Delete(d.edits, i, j)
}

// leftOut lists the tool groups that are left out, in order.
func (d *draft) leftOut() []history.Group {
	var groups []history.Group
	for n := d.first; n < len(d.exchanges) && len(d.edits) > 0; n++ {
		groups = append(groups, d.leftOutOf(&d.exchanges[n])...)
	}
	return groups
}

func (d *draft) leftOutOf(x *history.Exchange) []history.Group {
	var groups []history.Group
	for _, g := range x.Groups {
		if e := d.at(g.Start); e.leftOut {
			groups = append(groups, g)
		}
	}
	return groups
}
