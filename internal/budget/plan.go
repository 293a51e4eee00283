package budget

import (
	"strings"

	"github.com/drover-dev/drover/internal/llm"
)

// Input is everything that a plan depends on. Make reads it and never changes
// it; the plan shares its messages.
type Input struct {
	Snapshot llm.Snapshot
	// Model is the model that the request is for. It must be the snapshot's;
	// empty means the snapshot's.
	Model string
	// System and Memory make up the system turn, Memory last. Neither is ever
	// shortened: memory has its own cap (see [SelectNotes]).
	System string
	Memory string
	// OmittedNotes names the memory notes that did not fit their cap, for the
	// report.
	OmittedNotes []string
	// Tools are the tools on offer, in any order.
	Tools []llm.ToolDef
	// Messages is the conversation, oldest first. Leading system turns are
	// joined to System.
	Messages []llm.Message
	// RequestedOutput is the most tokens that the answer should have, 0 for the
	// ceiling of the snapshot's effort.
	RequestedOutput int
	// Previous is what the last request of this session looked like, nil if
	// there was none.
	Previous *Previous
	// Costs remembers what turns cost from one plan of a session to the next.
	// It never changes a result. Nil is allowed.
	Costs *Costs
}

// Plan is a request that fits, and what had to go for it.
type Plan struct {
	// Request is ready to encode. It shares the input's messages.
	Request llm.Request
	Report  Report
	// Shape is what the conversation looks like in the request.
	Shape Shape

	pending Previous
	counted int // the engine's count of a request that this one begins with, or 0
}

// planner is the state of one Make.
type planner struct {
	in       *Input
	price    pricer
	reserves Reserves
	system   string // the whole system turn
	tools    []llm.ToolDef
	head     string // digest of both
	report   Report
}

// Make plans a request. The error is an *[OverflowError] in every case.
func Make(p *Policy, in *Input) (*Plan, error) {
	pl := newPlanner(p, in)
	if in.Model != "" && in.Model != in.Snapshot.Target.Model {
		return nil, pl.fail(ModelMismatch, 0, nil)
	}
	costs := in.Costs
	if costs == nil {
		costs = new(Costs)
	}
	if err := costs.update(&pl.price, in.Messages); err != nil {
		return nil, pl.fail(InvalidHistory, 0, err)
	}
	d := &draft{
		pricer:    &pl.price,
		messages:  in.Messages,
		costs:     costs.turns,
		exchanges: costs.index.Exchanges(),
		limit:     pl.reserves.Input - pl.report.BreakdownBefore.Fixed(),
	}
	d.step = p.selection.step(d.limit)
	for turn := d.firstTurn(); turn < len(d.costs); turn++ {
		d.total += d.costs[turn].total
	}
	pl.before(d)
	if component := pl.capacity(); component != "" {
		return nil, pl.fail(component, d.newestCost(), nil)
	}
	carried := pl.carry(d)
	if carried.fits {
		return pl.plan(d, carried), nil
	}
	if !pl.keepShortened(d, carried) {
		d.cutOlder(carried.first)
		d.run(p.selection.Stages, len(d.exchanges)-1)
	}
	if d.over() > 0 {
		return nil, pl.fail(NewestExchange, d.total, nil)
	}
	return pl.plan(d, carried), nil
}

func newPlanner(p *Policy, in *Input) *planner {
	pl := &planner{
		in:       in,
		price:    newPricer(p, &in.Snapshot),
		reserves: ReservesFor(p, &in.Snapshot, in.RequestedOutput),
	}
	if in.Snapshot.Capabilities.Tools.Support != llm.Unsupported && len(in.Tools) > 0 {
		pl.tools = llm.SortTools(in.Tools)
	}
	system := in.System
	for i := range in.Messages {
		if in.Messages[i].Role != llm.System {
			break
		}
		system = joinSystem(system, in.Messages[i].Text())
	}
	pl.system = joinSystem(system, in.Memory)
	pl.head = headDigest(pl.system, pl.tools)
	pl.report = pl.newReport(pl.price.head(system, in.Memory, pl.tools))
	return pl
}

// capacity is what fails whatever the conversation is, "" if nothing does.
func (pl *planner) capacity() Component {
	switch {
	case pl.reserves.Input <= 0:
		return InputCapacity
	case pl.report.BreakdownBefore.Fixed() > pl.reserves.Input:
		return SystemAndToolSchemas
	}
	return ""
}

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

// exchangeCost is what an exchange costs as edited.
func (d *draft) exchangeCost(n int) int {
	x := &d.exchanges[n]
	cost := 0
	for turn := x.Start; turn < x.End; turn++ {
		cost += d.costs[turn].total
	}
	i, _ := d.find(x.Start)
	for ; i < len(d.edits) && d.edits[i].turn < x.End; i++ {
		cost += d.edits[i].cost - d.costs[d.edits[i].turn].total
	}
	return cost
}

func (d *draft) newestCost() int { return d.exchangeCost(len(d.exchanges) - 1) }

// plan makes the result of a draft that fits.
func (pl *planner) plan(d *draft, c carried) *Plan {
	out := &Plan{
		Request: llm.Request{
			Snapshot:  pl.in.Snapshot,
			System:    pl.system,
			Tools:     pl.tools,
			Messages:  d.emit(),
			MaxTokens: pl.reserves.Output,
		},
		Shape: d.shape(),
	}
	pl.after(d, c.anchor)
	out.Report = pl.report
	pl.link(out, d)
	return out
}

// Next is what the next plan of the session is told of this one, once the
// engine has answered. Usage that is missing is given as a zero value.
func (p *Plan) Next(usage llm.Usage) *Previous { return p.pending.WithUsage(usage) }

// Pending is [Plan.Next] before the engine has answered, for the log.
func (p *Plan) Pending() Previous { return p.pending }

// ProvableMinimum is a number of prompt tokens that the engine cannot count
// fewer of, unless it left out a part of the request: half the runs of ASCII
// letters, since no tokenizer puts three words into one token, or what the
// engine counted for a request that this one begins with.
func (p *Plan) ProvableMinimum() int {
	runs := letterRuns(p.Request.System)
	for i := range p.Request.Messages {
		for _, part := range p.Request.Messages[i].Parts {
			if text, ok := part.(llm.Text); ok {
				runs += letterRuns(string(text))
			}
		}
	}
	return max(runs/2, p.counted)
}

func letterRuns(s string) (runs int) {
	inside := false
	for i := range len(s) {
		letter := (s[i]|0x20)-'a' < 26
		if letter && !inside {
			runs++
		}
		inside = letter
	}
	return runs
}

// SelectNotes builds the memory digest: the heading and, below it, as many of
// the lines, each whole or not at all, as fit into limit tokens. A line that
// does not fit is left out and the next one is tried. omitted are the indexes of
// the lines left out. Without any line the digest is empty.
func SelectNotes(p *Policy, heading string, lines []string, limit int) (digest string, omitted []int) {
	digest = strings.TrimRight(heading, "\n")
	kept := false
	for i, line := range lines {
		longer := digest + "\n" + strings.TrimRight(line, "\n")
		if p.fields.text(line) > limit || p.fields.text(longer) > limit {
			omitted = append(omitted, i)
			continue
		}
		digest, kept = longer, true
	}
	if !kept {
		return "", omitted
	}
	return digest, omitted
}
