package budget

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/history"
	"github.com/drover-dev/drover/internal/llm"
)

// stage shortens the target exchange of a draft in one way, as far as it must.
// Stages run in the policy's order while the draft does not fit.
type stage func(*draft)

// shortenResults shortens the bodies of tool results, oldest first.
func shortenResults(d *draft) {
	for turn := d.target().Start; turn < d.target().End && d.over() > 0; turn++ {
		if d.messages[turn].Role == llm.Tool {
			d.shorten(turn)
		}
	}
}

// shortenAssistant shortens the assistant's texts, oldest first.
func shortenAssistant(d *draft) {
	for turn := d.target().Start; turn < d.target().End && d.over() > 0; turn++ {
		if d.messages[turn].Role == llm.Assistant {
			d.shorten(turn)
		}
	}
}

// shortenUser shortens the user's texts, newest first: the first one is the task.
func shortenUser(d *draft) {
	for turn := d.target().End - 1; turn >= d.target().Start && d.over() > 0; turn-- {
		if d.messages[turn].Role == llm.User {
			d.shorten(turn)
		}
	}
}

// shorten makes the largest excerpt of the turn's text with which the draft
// fits, or the smallest when none does. A text whose excerpt would not be cheaper
// stays, and so does an excerpt that there is.
func (d *draft) shorten(turn int) {
	e := d.at(turn)
	text := d.messages[turn].Text()
	if e.leftOut || e.cut || text == "" {
		return
	}
	role, cost := d.messages[turn].Role, d.costs[turn].text
	price := func(head, tail int) int {
		return d.textOf(role, d.withMarkers(&e, d.excerptOf(role, text, cost, head, tail)))
	}
	whole := d.textOf(role, d.withMarkers(&e, text))
	allowed := whole - d.over()
	if least := price(0, 0); least >= whole {
		return
	} else if least <= allowed {
		e.head, e.tail, _ = largestExcerpt(text, allowed, price)
	}
	e.cut, e.body = true, ""
	d.change(e)
}

// omitImages puts markers in the place of the user's images, oldest first.
func omitImages(d *draft) {
	for turn := d.target().Start; turn < d.target().End; turn++ {
		count := len(d.messages[turn].Images())
		for n := 1; n <= count && d.over() > 0; n++ {
			e := d.at(turn)
			if e.leftOut {
				break
			}
			e.images = append(slices.Clip(e.images), n)
			if d.complete(&e); e.cost < d.costOf(turn) {
				d.set(e)
			}
		}
	}
}

// recentGroups are the tool groups at the end of an exchange that policy 2 keeps
// whole as long as it can.
const recentGroups = 2

// oldGroups are the target exchange's tool groups but the recent ones.
func (d *draft) oldGroups() []history.Group {
	groups := d.target().Groups
	return groups[:max(0, len(groups)-recentGroups)]
}

// excerptOldResults makes excerpts of fixed size of the results in old groups,
// oldest first. Their bytes depend on the result alone.
func excerptOldResults(d *draft) {
	goal, start := d.goal(), d.total
	for _, g := range d.oldGroups() {
		for turn := g.Start + 1; turn < g.End; turn++ {
			if start-d.total >= goal {
				return
			}
			d.excerptFixed(turn)
		}
	}
}

func (d *draft) excerptFixed(turn int) {
	if d.edited(turn) != nil || len(d.messages[turn].Text()) < fixedLeast {
		return
	}
	if e := d.fixedExcerpt(turn); e.cost < d.costs[turn].total {
		d.set(e)
	}
}

// fixedExcerpt is the turn's excerpt of fixed size. It depends on the turn alone
// and is remembered with what the turn costs.
func (d *draft) fixedExcerpt(turn int) edit {
	c := &d.costs[turn]
	if c.fixed == nil {
		e := edit{turn: turn, cut: true, fixed: true}
		e.head, e.tail = fixedCut(d.messages[turn].Text())
		d.complete(&e)
		c.fixed = &e
	}
	return *c.fixed
}

// leaveOutOldGroups leaves out old groups, oldest first. One line at the end of
// the exchange's first user text stands for them; its own price counts.
func leaveOutOldGroups(d *draft) {
	goal, start := d.goal(), d.total
	groups := d.oldGroups()
	for len(groups) > 0 && start-d.total < goal {
		for len(groups) > 0 && start-d.total < goal {
			d.leave(groups[0].Start, groups[0].ImagesEnd)
			groups = groups[1:]
		}
		d.setRounds(d.focus)
	}
}

// setRounds writes the line that stands for the groups left out of an exchange.
func (d *draft) setRounds(exchange int) {
	e := d.at(d.exchanges[exchange].Start)
	e.rounds = d.roundsLine(d.leftOutOf(exchange))
	d.change(e)
}

// roundsLine tells how many groups are left out, of which tools, the most used
// first, and what they cost.
func (d *draft) roundsLine(groups []history.Group) string {
	type count struct {
		name string
		n    int
	}
	var counts []count
	places := make(map[string]int)
	tokens := 0
	for _, g := range groups {
		tokens += d.groupCost(g)
		for i := range d.messages[g.Start].Calls {
			name := shortName(d.messages[g.Start].Calls[i].Name)
			at, known := places[name]
			if !known {
				at = len(counts)
				places[name] = at
				counts = append(counts, count{name: name})
			}
			counts[at].n++
		}
	}
	slices.SortFunc(counts, func(a, b count) int {
		return cmp.Or(b.n-a.n, strings.Compare(a.name, b.name))
	})
	names := make([]string, len(counts))
	for i, c := range counts {
		names[i] = fmt.Sprintf("%s %d", c.name, c.n)
	}
	return fmt.Sprintf("[drover: %d earlier tool rounds left out (%s), about %d tokens]",
		len(groups), strings.Join(names, ", "), tokens)
}
