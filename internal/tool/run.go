package tool

import (
	"context"
	"fmt"
	"strings"
)

// maxPanicText bounds what of a panic's value reaches the model, in bytes.
const maxPanicText = 500

// Prepare prepares a call like [Tool.Prepare]; a panic becomes an error, and so
// does an action that nobody could run.
func Prepare(ctx context.Context, t Tool, arguments string) (a *Action, err error) {
	defer func() {
		if v := recover(); v != nil {
			a, err = nil, fmt.Errorf("the tool failed while preparing the call: %s", panicText(v))
		}
	}()
	a, err = t.Prepare(ctx, arguments)
	if err == nil && (a == nil || a.Run == nil) {
		return nil, fmt.Errorf("the tool prepared nothing to run")
	}
	return a, err
}

// Run runs an action that was allowed. Whatever the tool does, the result has a
// status and a text of valid UTF-8 that is not empty: a panic becomes a failure,
// of unknown effect unless the action is read-only.
func Run(ctx context.Context, a *Action, progress func(text string)) (r Result) {
	defer func() {
		if v := recover(); v != nil {
			r = Failed("The tool failed: " + panicText(v))
			if !a.ReadOnly {
				r.Status = StatusUnknown
			}
		}
		r = r.complete()
	}()
	if progress == nil {
		progress = func(string) {}
	}
	return a.Run(ctx, progress)
}

// complete fills in what a tool left out.
func (r Result) complete() Result {
	if r.Status == "" {
		r.Status = StatusOK
	}
	r.Text = strings.ToValidUTF8(r.Text, "\uFFFD")
	switch {
	case r.Text != "":
	case r.Status == StatusOK:
		r.Text = "[done, no output]"
	default:
		r.Text = "[" + string(r.Status) + ", no output]"
	}
	return r
}

func panicText(v any) string { return cutText(fmt.Sprint(v), maxPanicText) }
