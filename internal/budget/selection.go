package budget

// step is by how much a cut moves at least when available tokens are there for
// the exchanges.
func (s *selection) step(available int) int {
	step := 1
	if s.QuantumDivisor == 0 {
		return step
	}
	for step*2 <= available/s.QuantumDivisor {
		step *= 2
	}
	return step
}

// goal is how many tokens have to go at once: what is too much, rounded up to
// whole steps, so that the next turns change nothing.
func (d *draft) goal() int { return ceilDiv(d.over(), d.step) * d.step }

// cutOlder drops whole exchanges, oldest first, until what is too much is gone,
// rounded up to whole steps. The newest stays, and nothing before the exchange
// least is kept. Sums run from the start of the conversation, so that a cut
// stays where it is until a step is full.
func (d *draft) cutOlder(least int) {
	first := 0
	if d.over() > 0 {
		goal, gone := d.goal(), 0
		for first < len(d.exchanges)-1 && gone < goal {
			gone += d.exchangeCost(first)
			first++
		}
	}
	d.dropTo(max(first, least))
}

// dropTo makes an exchange the first one kept.
func (d *draft) dropTo(first int) {
	for ; d.first < first; d.first++ {
		d.total -= d.exchangeCost(d.first)
	}
}

// exchangeCost is what an exchange costs as edited.
func (d *draft) exchangeCost(n int) int {
	cost := 0
	for turn := d.exchanges[n].Start; turn < d.exchanges[n].End; turn++ {
		cost += d.costOf(turn)
	}
	return cost
}

func (d *draft) newestCost() int { return d.exchangeCost(len(d.exchanges) - 1) }

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
