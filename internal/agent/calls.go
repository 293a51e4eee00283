package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/tool"
)

// maxConcurrent is how many read-only calls run side by side.
const maxConcurrent = 8

// call is one call of an answer on its way to a result.
type call struct {
	llm.ToolCall
	action  *tool.Action
	problem string // why it cannot be prepared
	result  tool.Result
	pending bool // the person was told of it
	done    bool
	millis  int64
}

// runCalls runs the calls of an answer in order. Read-only calls that need no
// question run side by side; any other call waits for those before it and is
// waited for by those behind it. Every call gets a result in the log.
func (t *turn) runCalls(ctx context.Context, ans *answer) error {
	calls := newCalls(ans.calls)
	set := t.callable()
	for i := 0; i < len(calls); {
		n := t.prepareBatch(ctx, set, calls[i:])
		if err := t.runBatch(ctx, calls[i:i+n]); err != nil {
			t.refuseRest(calls, "Not executed: the turn was stopped.")
			t.returnImages(calls)
			return err
		}
		i += n
	}
	t.returnImages(calls)
	return ctx.Err()
}

// callable are the tools that the model was offered, without those that were
// turned off since. What the engine has told of itself meanwhile changes nothing
// about what this answer may call.
func (t *turn) callable() *tool.Set {
	offered := make(map[string]bool)
	for i := range t.sent.Request.Tools {
		offered[t.sent.Request.Tools[i].Name] = true
	}
	tools := t.turnedOn(t.everyTool())
	return tool.NewSet(slices.DeleteFunc(tools, func(x tool.Tool) bool { return !offered[x.Def().Name] })...)
}

func newCalls(list []llm.ToolCall) []*call {
	calls := make([]*call, len(list))
	for i, c := range list {
		calls[i] = &call{ToolCall: c}
	}
	return calls
}

// prepareBatch prepares calls up to the first that has to run alone, and tells
// how many belong together: at least one.
func (t *turn) prepareBatch(ctx context.Context, set *tool.Set, calls []*call) int {
	for n, c := range calls {
		if n == maxConcurrent {
			return n
		}
		if c.action == nil && c.problem == "" {
			c.action, c.problem = t.prepare(ctx, set, &c.ToolCall)
		}
		alone := c.action == nil || !c.action.ReadOnly
		if !alone {
			verdict, _ := t.opts.Gate.Check(t.question(c))
			alone = verdict != tool.Allow
		}
		if alone {
			return max(n, 1)
		}
	}
	return len(calls)
}

// prepare gives the action of a call, or the reason why there is none.
func (t *turn) prepare(ctx context.Context, set *tool.Set, c *llm.ToolCall) (*tool.Action, string) {
	impl, ok := set.Lookup(c.Name)
	if !ok {
		return nil, fmt.Sprintf("There is no tool %q. The tools are: %s.", c.Name, toolNames(set))
	}
	arguments, err := llm.RepairArguments(c.Arguments)
	if err != nil {
		return nil, fmt.Sprintf("Not executed: %v. The arguments were: %s", err, c.Arguments)
	}
	action, err := tool.Prepare(ctx, impl, llm.CoerceArguments(arguments, impl.Def().Parameters))
	if err != nil {
		return nil, err.Error()
	}
	return action, ""
}

func toolNames(set *tool.Set) string {
	names := ""
	for i, d := range set.Defs() {
		if i > 0 {
			names += ", "
		}
		names += d.Name
	}
	return names
}

func (t *turn) question(c *call) *tool.Question {
	return &tool.Question{CallID: c.ID, Tool: c.Name, Action: c.action, Arguments: c.Arguments}
}

// runBatch takes calls that run together, or one that runs alone, to their
// results and logs these in order.
func (t *turn) runBatch(ctx context.Context, calls []*call) error {
	var stopped error
	for _, c := range calls {
		t.present(c)
		if stopped = t.admit(ctx, c); stopped != nil {
			break
		}
	}
	if stopped == nil {
		var wg sync.WaitGroup
		for _, c := range calls {
			if c.done {
				continue
			}
			wg.Go(func() { t.runOne(ctx, c) })
		}
		wg.Wait()
	}
	for _, c := range calls {
		if c.done {
			t.finish(c)
		}
	}
	if stopped == nil {
		stopped = ctx.Err()
	}
	return stopped
}

// admit logs the intent of a call and asks whether it may run. A call that may
// not run is done with a result. The error is errStopped, or that of ctx.
func (t *turn) admit(ctx context.Context, c *call) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := t.checkProgress(ctx, c); err != nil {
		return err
	}
	if c.action == nil {
		t.append(&session.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
		c.settle(tool.StatusError, c.problem)
		return nil
	}
	q := t.question(c)
	verdict, reason := t.opts.Gate.Check(q)
	err := t.append(&session.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments, Started: verdict == tool.Allow})
	if err != nil && !c.action.ReadOnly {
		c.settle(tool.StatusNotExecuted, "Not executed: the session log cannot be written, and a change that is not logged could be lost or made twice.")
		return nil
	}
	switch verdict {
	case tool.Allow:
		return nil
	case tool.Deny:
		c.settle(tool.StatusDenied, "Denied. "+reason)
		return nil
	}
	return t.askPerson(ctx, c, q)
}

func (t *turn) askPerson(ctx context.Context, c *call, q *tool.Question) error {
	decision, reason := tool.RejectOnce, "The user refused this call."
	if t.approver == nil {
		reason = "Nobody can be asked in this session."
	} else if d, err := t.approver.Approve(ctx, q); err != nil {
		reason = sentence(err.Error())
	} else {
		decision = d
	}
	if ctx.Err() != nil {
		decision = tool.Cancelled
	}
	t.opts.Gate.Remember(q, decision)
	rec := &session.PermissionDecision{
		CallID: c.ID, Tool: c.Name, Decision: decision.String(), Allowed: decision.Allowed(), Scopes: q.Action.Scopes,
	}
	if !decision.Allowed() {
		rec.Reason = reason
	}
	if err := t.append(rec); err != nil && decision.Allowed() && !c.action.ReadOnly {
		c.settle(tool.StatusNotExecuted, "Not executed: the session log cannot be written.")
		return nil
	}
	switch {
	case decision == tool.Cancelled:
		return errStopped
	case !decision.Allowed():
		c.settle(tool.StatusDenied, "Denied. "+reason)
	}
	return nil
}

func (t *turn) runOne(ctx context.Context, c *call) {
	t.emit(CallStarted{ID: c.ID})
	start := t.opts.Now()
	c.result = tool.Run(ctx, c.action, func(text string) { t.emit(CallOutput{ID: c.ID, Text: text}) })
	c.millis = t.opts.Now().Sub(start).Milliseconds()
	c.done = true
}

func (c *call) settle(status tool.Status, text string) {
	c.result = tool.Result{Status: status, Text: text}
	c.done = true
}

// finish logs and tells the result of a call.
func (t *turn) finish(c *call) {
	t.append(&session.ToolResult{
		ID: c.ID, Status: session.Status(c.result.Status), Text: c.result.Text, DurationMS: c.millis,
	})
	t.seen.record(c)
	t.emit(CallFinished{ID: c.ID, Name: c.Name, Result: c.result})
}

// present shows a call before anything is decided about it.
func (t *turn) present(c *call) {
	if !c.pending {
		c.pending = true
		t.emit(CallPending{Call: c.ToolCall, Action: c.action})
	}
}

// refuseRest shows every call that has no result and gives it one.
func (t *turn) refuseRest(calls []*call, text string) {
	for _, c := range calls {
		if c.done {
			continue
		}
		if !c.pending {
			t.present(c)
			t.append(&session.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
		}
		c.settle(tool.StatusNotExecuted, text)
		t.finish(c)
	}
}

// returnImages hands the images of results to the model, in one user message
// behind the results: a tool message holds text alone.
func (t *turn) returnImages(calls []*call) {
	var parts []llm.Part
	for _, c := range calls {
		for _, img := range c.result.Images {
			parts = append(parts, img)
		}
	}
	if len(parts) > 0 {
		t.append(&session.UserMessage{Parts: t.scaled(parts), Continuation: true})
	}
}

// sentence makes the text of an error a sentence.
func sentence(text string) string {
	first, n := utf8.DecodeRuneInString(text)
	if n == 0 {
		return text
	}
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[n:], ".") + "."
}
