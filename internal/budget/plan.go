package budget

import "github.com/drover-dev/drover/internal/llm"

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
	room     int    // what is left for the exchanges
	report   Report
}

// Make plans a request. The error is an *[OverflowError] in every case.
func Make(p *Policy, in *Input) (*Plan, error) {
	pl := newPlanner(p, in)
	costs := in.Costs
	if costs == nil {
		costs = new(Costs)
	}
	d, newest := new(draft), 0
	err := costs.update(&pl.price, in.Messages)
	if err == nil {
		d = pl.draft(costs)
		newest = d.newestCost()
	}
	switch {
	case in.Model != "" && in.Model != in.Snapshot.Target.Model:
		return nil, pl.fail(ModelMismatch, newest, nil)
	case err != nil:
		return nil, pl.fail(InvalidHistory, 0, err)
	case pl.reserves.Input <= 0:
		return nil, pl.fail(InputCapacity, newest, nil)
	case pl.room < 0:
		return nil, pl.fail(SystemAndToolSchemas, newest, nil)
	}
	carried := pl.carry(d)
	if !carried.fits && !pl.keepShortened(d, carried) {
		d.cutOlder(carried.first)
		d.run(p.selection.Stages, len(d.exchanges)-1)
		if pl.room = d.limit; d.over() > 0 {
			return nil, pl.fail(NewestExchange, d.total, nil)
		}
	}
	return pl.plan(d, carried), nil
}

// draft is the conversation with nothing changed yet.
func (pl *planner) draft(costs *Costs) *draft {
	d := &draft{
		pricer:    &pl.price,
		messages:  pl.in.Messages,
		costs:     costs.turns,
		exchanges: costs.index.Exchanges(),
		limit:     pl.room,
		step:      pl.price.selection.step(pl.room),
	}
	for _, c := range d.costs[d.firstTurn():] {
		d.total += c.total
	}
	pl.before(d)
	return d
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
	pl.room = pl.reserves.Input - pl.report.BreakdownBefore.Fixed()
	return pl
}

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
