package agent

import (
	"context"
	"fmt"

	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

// maxSameResult is how often a call may give the same result before a person is
// asked whether the model is getting anywhere.
const maxSameResult = 2

// outcomes remembers, since the last change, which calls gave the same result
// over and over.
type outcomes map[string]outcome

type outcome struct {
	text string
	ids  []string // the calls that gave it, without interruption
}

// record takes in the result of a call that ran.
func (o outcomes) record(c *call) {
	switch c.result.Status {
	case tool.StatusDenied, tool.StatusNotExecuted:
		return
	}
	if c.changed() {
		for key := range o {
			// A command that is repeated does not stand for progress by itself.
			if c.action.Access == tool.AccessWrite || key != c.key() {
				delete(o, key)
			}
		}
	}
	known := o[c.key()]
	if known.text != c.result.Text {
		known = outcome{text: c.result.Text}
	}
	known.ids = append(known.ids, c.ID)
	o[c.key()] = known
}

// changed reports whether a call may have changed what others will see. A write
// that failed changed nothing; of a command nobody knows how far it came.
func (c *call) changed() bool {
	if c.action == nil || c.action.ReadOnly || c.action.Access < tool.AccessWrite {
		return false
	}
	return c.result.Status == tool.StatusOK || c.action.Access > tool.AccessWrite
}

// key is the same for calls that ask for the same.
func (c *call) key() string {
	arguments := c.Arguments
	if object, err := llm.RepairArguments(arguments); err == nil {
		if canonical, err := llm.CanonicalJSON([]byte(object)); err == nil {
			arguments = canonical
		}
	}
	return c.Name + "\x00" + arguments
}

// checkProgress asks what to do about a call whose result the model has seen
// often enough, and sees still. With nobody to ask the turn ends.
func (t *turn) checkProgress(ctx context.Context, c *call) error {
	known := t.seen[c.key()]
	if len(known.ids) < maxSameResult || !shows(t.sent, known, maxSameResult) {
		return nil
	}
	stuck := llm.Errorf(llm.CodeNoProgress, "the model asked for the same again (%s) after it got the same result %d times", c.title(), len(known.ids))
	if t.approver == nil {
		return stuck
	}
	decision, err := t.approver.Approve(ctx, &tool.Question{
		CallID: c.ID, Tool: c.Name, Arguments: c.Arguments,
		Action: &tool.Action{
			Title: fmt.Sprintf("%s once more? It gave the same result %d times", c.title(), len(known.ids)),
			Kind:  tool.KindOther,
		},
	})
	switch {
	case err != nil || decision == tool.RejectOnce || decision == tool.RejectAlways:
		return stuck
	case ctx.Err() != nil || !decision.Allowed():
		return errStopped
	}
	delete(t.seen, c.key())
	return nil
}

func (c *call) title() string {
	if c.action != nil {
		return c.Name + " " + c.action.Title
	}
	return c.Name
}

// shows reports whether a request holds at least n of the results whole.
func shows(plan *budget.Plan, o outcome, n int) bool {
	if plan == nil {
		return false
	}
	ids := make(map[string]bool, len(o.ids))
	for _, id := range o.ids {
		ids[id] = true
	}
	for i := range plan.Request.Messages {
		if m := &plan.Request.Messages[i]; m.Role == llm.Tool && ids[m.CallID] && m.Text() == o.text {
			n--
		}
	}
	return n <= 0
}
