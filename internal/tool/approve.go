package tool

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Mode is how much a session may do without asking. The zero value is Ask.
type Mode uint8

// The modes.
const (
	ModeAsk      Mode = iota // reads inside the roots are free, everything else asks
	ModeEdit                 // writes inside the roots are free too
	ModeReadOnly             // no writes, no commands
	ModeFull                 // everything is free
)

var modeNames = []string{"ask", "edit", "read-only", "full"}

// Modes lists the modes in the order in which they are offered.
func Modes() []Mode { return []Mode{ModeAsk, ModeEdit, ModeReadOnly, ModeFull} }

func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("invalid(%d)", m)
}

// ParseMode reads ask, edit, read-only or full; the empty string is ask.
func ParseMode(s string) (Mode, error) {
	if s == "" {
		return ModeAsk, nil
	}
	for i, n := range modeNames {
		if n == s {
			return Mode(i), nil
		}
	}
	return ModeAsk, fmt.Errorf("unknown mode %q (one of ask, edit, read-only, full)", s)
}

// Decision is a person's answer to a question.
type Decision uint8

// The answers. The zero value is the safe one.
const (
	RejectOnce Decision = iota
	RejectAlways
	AllowOnce
	AllowAlways
	Cancelled // the turn is being cancelled
)

var decisionNames = []string{"reject_once", "reject_always", "allow_once", "allow_always", "cancelled"}

func (d Decision) String() string {
	if int(d) < len(decisionNames) {
		return decisionNames[d]
	}
	return fmt.Sprintf("invalid(%d)", d)
}

// Allowed reports whether the call may run.
func (d Decision) Allowed() bool { return d == AllowOnce || d == AllowAlways }

// Question asks whether one call may run.
type Question struct {
	CallID string
	Tool   string
	Action *Action
	// Arguments are the raw arguments of the call.
	Arguments string
}

// Approver asks a person. It is given by the front end. Approve returns when
// the person has answered or ctx ends; an error means that nobody can be asked,
// and its text tells the model and the person what would allow the call.
type Approver interface {
	Approve(ctx context.Context, q *Question) (Decision, error)
}

// Verdict is what a [Gate] says before anybody is asked.
type Verdict uint8

// The verdicts. The zero value is the safe one.
const (
	Deny Verdict = iota
	Ask
	Allow
)

// Gate decides which calls of one session run, which are refused and which a
// person is asked about. It remembers the answers "always" for the session,
// nothing longer. It is safe for concurrent use.
type Gate struct {
	mu       sync.Mutex
	mode     Mode
	allowed  map[string]bool // by tool and scope
	rejected map[string]bool
}

// NewGate makes a gate in a mode.
func NewGate(mode Mode) *Gate {
	return &Gate{mode: mode, allowed: make(map[string]bool), rejected: make(map[string]bool)}
}

// Mode returns the mode.
func (g *Gate) Mode() Mode {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mode
}

// SetMode changes the mode for the calls that come after.
func (g *Gate) SetMode(m Mode) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mode = m
}

// Check says what is to be done with a call. The reason goes with Deny.
func (g *Gate) Check(q *Question) (v Verdict, reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	free, forbidden := g.mode.rules(q.Action)
	switch {
	case g.anyScope(q, g.rejected):
		return Deny, "The user refused this kind of call for the whole session."
	case forbidden:
		return Deny, fmt.Sprintf("The session's mode is %s, which does not allow this.", g.mode)
	case free, g.everyScope(q, g.allowed):
		return Allow, ""
	}
	return Ask, ""
}

func (g *Gate) anyScope(q *Question, in map[string]bool) bool {
	return slices.ContainsFunc(q.Action.Scopes, func(scope string) bool { return in[scopeKey(q.Tool, scope)] })
}

func (g *Gate) everyScope(q *Question, in map[string]bool) bool {
	for _, scope := range q.Action.Scopes {
		if !in[scopeKey(q.Tool, scope)] {
			return false
		}
	}
	return len(q.Action.Scopes) > 0
}

// rules is the table of modes.
func (m Mode) rules(a *Action) (free, forbidden bool) {
	switch a.Access {
	case AccessNone, AccessRead:
		return true, false
	case AccessReadOutside:
		return m == ModeFull, false
	case AccessWrite:
		return m == ModeEdit || m == ModeFull, m == ModeReadOnly
	case AccessExecute:
		return m == ModeFull, m == ModeReadOnly
	default: // external
		return m == ModeFull, m == ModeReadOnly && !a.ReadOnly
	}
}

// Remember keeps an answer "always".
func (g *Gate) Remember(q *Question, d Decision) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, scope := range q.Action.Scopes {
		switch d {
		case AllowAlways:
			g.allowed[scopeKey(q.Tool, scope)] = true
		case RejectAlways:
			g.rejected[scopeKey(q.Tool, scope)] = true
		}
	}
}

func scopeKey(tool, scope string) string { return tool + "\x00" + scope }
