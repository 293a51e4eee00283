package session

import (
	"fmt"
	"slices"
	"time"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
)

// State is a conversation as its records say. The zero value is an empty one.
//
// Whoever writes a log keeps one State and applies each record after appending
// it, in the same order; folding the log gives the same State. It is not safe for concurrent use,
// and its fields are for reading.
type State struct {
	ID      string
	CWD     string
	Created time.Time
	Updated time.Time // of the last record

	// Messages is what a model saw or will see: the input of planning. It is a
	// valid history at any time, since an answer with calls joins it together
	// with its results, in the order of the calls.
	Messages []llm.Message
	// Header is the last request header: the selection to restore. Nil if none.
	Header *RequestHeader
	// Used are the models of all requests, in the order of their first one.
	Used []llm.Target
	// Plan is the last plan, nil if none.
	Plan *RequestPlan
	// Previous is the shape of the last request that was answered, with the
	// engine's count if there was one; nil if there was no such request.
	Previous *budget.Previous
	Title    string
	Usage    Totals
	// Spent is what providers counted for each model, without guesses of drover's.
	Spent map[llm.Target]llm.Usage
	// Notice is what the newest turn's requests left out, nil for nothing.
	Notice *PlanNotice
	// Turns counts the turns that were started.
	Turns int
	// OpenTurn says that a turn has not ended.
	OpenTurn bool
	// End is how the last turn ended, nil while one is open or none was.
	End *TurnEnd
	// NextSeq is the number of the next record.
	NextSeq int

	// Warnings say what was wrong with the log, at most MaxWarnings of them.
	Warnings []Warning
	// Unreadable counts the lines that could not be read, Missing the records
	// that the numbering lacks beside these. See [State.Intact].
	Unreadable int
	Missing    int

	group *group        // the newest answer with calls, until all have results
	held  []llm.Message // continuations that came while the group was open
	begun bool          // Messages holds the beginning of an exchange
	next  *budget.Previous
	line  int // of the record that is applied, while folding
}

// Totals sums up what engines counted.
type Totals struct {
	Requests         int // answers with a count
	PromptTokens     int
	CompletionTokens int
	CachedTokens     int
	ReasoningTokens  int
	Estimated        bool // some of it is a guess of drover's
}

// OpenCall is a call without a result.
type OpenCall struct {
	llm.ToolCall
	Intended bool // its ToolCall was logged
	Decided  bool // a permission was given or refused
	Started  bool // it may have had an effect
}

// group is an answer with its calls and the results so far, by call.
type group struct {
	answer  llm.Message
	open    []OpenCall
	results []*llm.Message
	missing int // results
}

// MaxWarnings bounds the warnings that a State keeps.
const MaxWarnings = 100

// Warning says what is wrong with a log. Line counts from 1; 0 is no line in
// particular.
type Warning struct {
	Line int
	Text string
}

func (w Warning) String() string {
	if w.Line == 0 {
		return w.Text
	}
	return fmt.Sprintf("line %d: %s", w.Line, w.Text)
}

func (s *State) warn(format string, args ...any) {
	s.Warnings = addWarning(s.Warnings, Warning{s.line, fmt.Sprintf(format, args...)})
}

func addWarning(list []Warning, w Warning) []Warning {
	switch n := len(list); {
	case n < MaxWarnings-1:
		return append(list, w)
	case n == MaxWarnings-1:
		return append(list, Warning{0, "there are more problems than are listed here"})
	}
	return list
}

// Intact reports whether all records could be read. What rewrites the past
// (going back to an earlier turn, undoing changes) must refuse when they were
// not; going on from the end is safe.
func (s *State) Intact() bool { return s.Unreadable == 0 && s.Missing == 0 }

// OpenCalls lists the calls of the newest answer that have no result yet.
func (s *State) OpenCalls() []OpenCall {
	if s.group == nil {
		return nil
	}
	var open []OpenCall
	for i, c := range s.group.open {
		if s.group.results[i] == nil {
			open = append(open, c)
		}
	}
	return open
}

// Interruption gives the records that close a turn whose writer is gone: a
// result for each open call, then the end of the turn. It is nil when no turn is
// open.
func (s *State) Interruption() []Record {
	if !s.OpenTurn {
		return nil
	}
	recs := s.missingResults()
	return append(recs, &TurnEnd{
		Reason:  EndInterrupted,
		Message: "drover ended before the turn did",
	})
}

// missingResults makes a result for each open call.
func (s *State) missingResults() []Record {
	var recs []Record
	for _, c := range s.OpenCalls() {
		r := &ToolResult{
			ID: c.ID, Status: StatusNotExecuted,
			Text: "Not executed: drover ended before the call started.",
		}
		if c.Started {
			r.Status = StatusUnknown
			r.Text = "Result unknown: drover ended while the call ran. It may have taken effect, wholly or in part; check before doing it again."
		}
		recs = append(recs, r)
	}
	return recs
}

// Apply takes in the next record. It never fails: what cannot follow the records
// before it is left out of the history with a warning, and results that should
// have come before it are made up.
func (s *State) Apply(rec Record) {
	for _, r := range s.required(rec) {
		why := "no result was logged for an earlier call"
		if _, ok := r.(*UserMessage); ok {
			why = "an answer without a question"
		}
		s.warn("record %d: %s", rec.stamp().Seq, why)
		s.apply(r)
	}
	if why := s.orphan(rec); why != "" {
		s.warn("record %d: %s", rec.stamp().Seq, why)
	} else {
		s.apply(rec)
	}
	s.NextSeq = max(s.NextSeq, rec.stamp().Seq+1)
	if t := rec.stamp().Time; !t.IsZero() {
		s.Updated = t
	}
}

// required gives the records that are missing before rec.
func (s *State) required(rec Record) []Record {
	switch rec := rec.(type) {
	case *UserMessage:
		if rec.Continuation { // waits for the results
			return nil
		}
	case *TurnStart, *TurnEnd:
	case *AssistantMessage:
		if rec.silent() {
			return nil
		}
		if !s.begun {
			lost := llm.Text("[the beginning of this conversation could not be read]")
			return []Record{&UserMessage{Parts: []llm.Part{lost}}}
		}
	default:
		return nil
	}
	return s.missingResults()
}

// orphan says why rec cannot follow, or "".
func (s *State) orphan(rec Record) string {
	if r, ok := rec.(*ToolResult); ok {
		if s.group == nil || s.group.index(r.ID) < 0 {
			return fmt.Sprintf("a result for call %q, which is not open", r.ID)
		}
	}
	return ""
}

// index finds the first call with an id that has no result, else -1. Engines
// repeat ids, within an answer too.
func (g *group) index(id string) int {
	for i := range g.open {
		if g.results[i] == nil && g.open[i].ID == id {
			return i
		}
	}
	return -1
}

func (s *State) apply(rec Record) {
	switch rec := rec.(type) {
	case *TurnStart:
		s.Turns++
		if rec.Turn > 0 {
			s.Turns = rec.Turn
		}
		s.OpenTurn, s.End, s.Notice = true, nil, nil
	case *UserMessage:
		s.applyUser(rec)
	case *RequestHeader:
		s.Header = rec
		if t := rec.Snapshot.Target; !slices.Contains(s.Used, t) {
			s.Used = append(s.Used, t)
		}
	case *RequestPlan:
		if s.next = nil; rec.Aside == "" {
			s.Plan, s.next = rec, rec.Next
		}
	case *AssistantMessage:
		s.applyAnswer(rec)
	case *ToolCall:
		s.mark(rec.ID, func(c *OpenCall) {
			c.Intended = true
			c.Started = c.Started || rec.Started
		})
	case *PermissionDecision:
		s.mark(rec.CallID, func(c *OpenCall) {
			c.Decided = true
			c.Started = c.Started || rec.Allowed
		})
	case *ToolResult:
		s.applyResult(rec)
	case *PlanNotice:
		s.Notice = rec
	case *TurnEnd:
		s.OpenTurn, s.End = false, rec
	case *SessionInfo:
		s.Title = rec.Title
	}
}

// mark changes the first open call with an id that the change concerns.
func (s *State) mark(id string, change func(*OpenCall)) {
	if s.group == nil {
		return
	}
	if i := s.group.index(id); i >= 0 {
		change(&s.group.open[i])
	}
}

func (s *State) applyUser(rec *UserMessage) {
	m := llm.Message{Role: llm.User, Continuation: rec.Continuation, Parts: rec.Parts}
	if lost := slices.ContainsFunc(rec.Parts, isLost); lost {
		m.Parts = slices.Clone(rec.Parts)
		for i, p := range m.Parts {
			if isLost(p) {
				m.Parts[i] = missingImage(p.(*llm.Image))
				s.warn("record %d: %s", rec.Seq, m.Parts[i])
			}
		}
	}
	if !rec.Continuation {
		s.OpenTurn, s.End = true, nil
	}
	if s.group != nil {
		s.held = append(s.held, m)
		return
	}
	s.addUser(m)
}

func (s *State) addUser(m llm.Message) {
	if !s.begun { // nothing to continue
		m.Continuation = false
	}
	s.begun = true
	s.Messages = append(s.Messages, m)
}

// isLost reports whether a part is an image without its bytes.
func isLost(p llm.Part) bool {
	img, ok := p.(*llm.Image)
	return ok && len(img.Data) == 0
}

// silent reports whether an answer adds nothing to the history.
func (r *AssistantMessage) silent() bool {
	return r.Discarded || r.Text == "" && (len(r.Calls) == 0 || r.Interrupted)
}

func (s *State) applyAnswer(rec *AssistantMessage) {
	s.count(rec)
	if rec.silent() {
		return
	}
	m := llm.Message{Role: llm.Assistant, Reasoning: rec.Reasoning, Origin: rec.Target}
	if rec.Text != "" {
		m.Parts = []llm.Part{llm.Text(rec.Text)}
	}
	if len(rec.Calls) == 0 || rec.Interrupted {
		s.Messages = append(s.Messages, m)
		return
	}
	m.Calls = uniqueIDs(rec.Calls)
	g := &group{
		answer:  m,
		open:    make([]OpenCall, len(rec.Calls)),
		results: make([]*llm.Message, len(rec.Calls)),
		missing: len(rec.Calls),
	}
	for i, c := range rec.Calls {
		g.open[i].ToolCall = c
	}
	s.group = g
	s.OpenTurn, s.End = true, nil // also when its start is lost
}

// uniqueIDs gives the calls with ids that are neither empty nor used twice,
// which no engine takes.
func uniqueIDs(calls []llm.ToolCall) []llm.ToolCall {
	unique := slices.Clone(calls)
	used := make(map[string]bool, len(calls))
	for _, c := range calls {
		used[c.ID] = true
	}
	seen := make(map[string]bool, len(calls))
	for i := range unique {
		id := unique[i].ID
		for n := 2; id == "" || seen[id]; n++ {
			if id = fmt.Sprintf("%s_%d", unique[i].ID, n); used[id] {
				id = ""
			}
		}
		unique[i].ID = id
		seen[id] = true
	}
	return unique
}

// count adds up usage, and ties the count to the shape of the request.
func (s *State) count(rec *AssistantMessage) {
	u := rec.Usage
	if s.next != nil {
		counted := llm.Usage{}
		if u != nil {
			counted = *u
		}
		s.Previous, s.next = s.next.WithUsage(counted), nil
	}
	if u == nil {
		return
	}
	s.Usage.Requests++
	s.Usage.PromptTokens += u.PromptTokens
	s.Usage.CompletionTokens += u.CompletionTokens
	s.Usage.CachedTokens += u.CachedTokens
	s.Usage.ReasoningTokens += u.ReasoningTokens
	s.Usage.Estimated = s.Usage.Estimated || u.Estimated
	if !u.Estimated {
		if s.Spent == nil {
			s.Spent = make(map[llm.Target]llm.Usage)
		}
		s.Spent[rec.Target] = s.Spent[rec.Target].Plus(u)
	}
}

func (s *State) applyResult(rec *ToolResult) {
	g := s.group
	i := g.index(rec.ID)
	g.results[i] = &llm.Message{
		Role: llm.Tool, CallID: g.answer.Calls[i].ID, IsError: rec.Status != StatusOK,
		Parts: []llm.Part{llm.Text(rec.Text)},
	}
	if g.missing--; g.missing > 0 {
		return
	}
	s.Messages = append(s.Messages, g.answer)
	for _, m := range g.results {
		s.Messages = append(s.Messages, *m)
	}
	held := s.held
	s.group, s.held = nil, nil
	for _, m := range held {
		s.addUser(m)
	}
}
