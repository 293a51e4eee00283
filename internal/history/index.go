package history

import (
	"slices"

	"github.com/drover-dev/drover/internal/llm"
)

// Index is a conversation split as far as it was read. It lets a conversation
// that only grows be split at the cost of the turns that were added. The zero
// value has read nothing.
type Index struct {
	exchanges []Exchange
	read      int  // turns read
	system    int  // how many of them were leading system turns
	open      bool // the last group still waits for results
	failed    *InvalidError

	calls    []string       // ids of the last group's calls
	places   map[string]int // places of the ids in calls
	answered []bool         // by place in calls
	missing  int            // how many are not answered
}

// Extend reads the turns that were not read yet: messages is the whole
// conversation, whose first turns are the ones of the earlier calls. It returns
// an *[InvalidError] for the first turn at fault, then and on every later call.
func (x *Index) Extend(messages []llm.Message) error {
	for x.failed == nil && x.read < len(messages) {
		if reason, detail := x.add(&messages[x.read]); reason != "" {
			x.fail(reason, detail)
			break
		}
		x.read++
	}
	if x.failed != nil {
		return x.failed
	}
	return nil
}

// Complete reports whether the turns read so far can be sent: there is a user
// turn and every call has its result. A conversation that is not complete can
// still be extended.
func (x *Index) Complete() error {
	switch {
	case x.failed != nil:
		return x.failed
	case len(x.exchanges) == 0:
		return &InvalidError{Turn: -1, Reason: NoUserTurn}
	case x.missing > 0:
		return x.unanswered()
	}
	return nil
}

// Exchanges returns the exchanges read so far, oldest first. The slice belongs
// to the index; a later [Index.Extend] may lengthen its last element.
func (x *Index) Exchanges() []Exchange { return x.exchanges }

func (x *Index) fail(reason Reason, detail string) {
	if reason == MissingResult {
		x.failed = x.unanswered()
		return
	}
	x.failed = &InvalidError{Turn: x.read, Reason: reason, Detail: detail}
}

// unanswered points at the assistant turn whose call has no result: that is
// the turn a person must look for.
func (x *Index) unanswered() *InvalidError {
	g := x.lastGroup()
	return &InvalidError{Turn: g.Start, Reason: MissingResult, Detail: x.calls[slices.Index(x.answered, false)]}
}

func (x *Index) lastGroup() *Group {
	groups := x.exchanges[len(x.exchanges)-1].Groups
	return &groups[len(groups)-1]
}

// add checks the next turn and files it. An empty reason means success.
func (x *Index) add(m *llm.Message) (reason Reason, detail string) {
	if reason, detail = misplaced(m); reason != "" {
		return reason, detail
	}
	if m.Role == llm.Tool {
		return x.addResult(m)
	}
	if x.missing > 0 {
		return MissingResult, ""
	}
	afterGroup := x.open
	x.open = false
	switch m.Role {
	case llm.System:
		if x.read > x.system {
			return LateSystem, ""
		}
		x.system++
		return "", ""
	case llm.User:
		if len(x.exchanges) == 0 || !m.Continuation {
			x.exchanges = append(x.exchanges, Exchange{Start: x.read})
		} else if afterGroup && imagesAlone(m) {
			x.lastGroup().ImagesEnd = x.read + 1
		}
	default:
		if len(x.exchanges) == 0 {
			return NotStartingByUser, string(m.Role)
		}
		if len(m.Calls) > 0 {
			if reason, detail = x.openGroup(m); reason != "" {
				return reason, detail
			}
		}
	}
	x.exchanges[len(x.exchanges)-1].End = x.read + 1
	return "", ""
}

func (x *Index) openGroup(m *llm.Message) (reason Reason, detail string) {
	x.calls, x.answered = x.calls[:0], x.answered[:0]
	x.places = make(map[string]int, len(m.Calls))
	for i := range m.Calls {
		id := m.Calls[i].ID
		if id == "" {
			return EmptyCallID, m.Calls[i].Name
		}
		if _, used := x.places[id]; used {
			return DuplicateCallID, id
		}
		x.places[id] = i
		x.calls = append(x.calls, id)
		x.answered = append(x.answered, false)
	}
	x.missing = len(x.calls)
	x.open = true
	e := &x.exchanges[len(x.exchanges)-1]
	e.Groups = append(e.Groups, Group{Start: x.read, End: x.read + 1, ImagesEnd: x.read + 1})
	return "", ""
}

func (x *Index) addResult(m *llm.Message) (reason Reason, detail string) {
	switch {
	case m.CallID == "":
		return ToolWithoutID, ""
	case len(x.exchanges) == 0:
		return NotStartingByUser, string(m.Role)
	case !x.open:
		return StrayTool, m.CallID
	}
	i, known := x.places[m.CallID]
	switch {
	case !known:
		return UnknownResult, m.CallID
	case x.answered[i]:
		return DuplicateResult, m.CallID
	}
	x.answered[i] = true
	x.missing--
	g := x.lastGroup()
	g.End, g.ImagesEnd = x.read+1, x.read+1
	x.exchanges[len(x.exchanges)-1].End = x.read + 1
	return "", ""
}

func imagesAlone(m *llm.Message) bool {
	for _, p := range m.Parts {
		if text, ok := p.(llm.Text); ok && text != "" {
			return false
		}
	}
	return len(m.Parts) > 0
}

// misplaced checks the table of llm.Message: which members a role may hold.
func misplaced(m *llm.Message) (reason Reason, detail string) {
	switch m.Role {
	case llm.System, llm.User, llm.Assistant, llm.Tool:
	default:
		return UnknownRole, string(m.Role)
	}
	assistant, user, tool := m.Role == llm.Assistant, m.Role == llm.User, m.Role == llm.Tool
	switch {
	case len(m.Calls) > 0 && !assistant:
		return MisplacedCalls, string(m.Role)
	case m.CallID != "" && !tool:
		return MisplacedResult, m.CallID
	case m.Reasoning != nil && !assistant:
		return MisplacedReasoning, string(m.Role)
	case m.Continuation && !user:
		return MisplacedMark, "continuation"
	case m.IsError && !tool:
		return MisplacedMark, "error"
	case !m.Origin.IsZero() && !assistant:
		return MisplacedMark, "origin"
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case nil:
			return EmptyPart, ""
		case *llm.Image:
			if p == nil {
				return EmptyPart, ""
			}
			if !user {
				return MisplacedImage, string(m.Role)
			}
		}
	}
	return "", ""
}
