package acp

import (
	"context"

	"github.com/drover-dev/drover/internal/jsonrpc2"
	"github.com/drover-dev/drover/internal/llm"
)

// setConfigOption sets one option of one session and answers with the complete
// list. A value that is not offered is refused, and nothing has changed then.
func (s *Server) setConfigOption(req *jsonrpc2.Request) (any, error) {
	return s.inMailbox(req, func(ctx context.Context, c *conversation, o object) (any, error) {
		id, ok := o.text("configId")
		if !ok {
			return nil, badParams("configId must be a string")
		}
		value, ok := o.text("value")
		if !ok {
			return nil, badParams("the value of %.100q must be a string", id)
		}
		w := c.workbench()
		switch id {
		case "mode":
			if err := w.setMode(value); err != nil {
				return nil, err
			}
			// Clients that know modes alone learn it from this.
			c.update(modeUpdate{Kind: "current_mode_update", Current: value})
		case "effort":
			e, err := llm.ParseEffort(value)
			if err != nil || e == 0 {
				return nil, badParams("no effort %.100q", value)
			}
			w.selector.SetEffort(e)
		case "model":
			if err := c.setModelValue(ctx, w, value); err != nil {
				return nil, err
			}
		default:
			return nil, badParams("no option %.100q", id)
		}
		return configState{c.options(w)}, nil
	})
}

// setModelValue selects the model of a value of the session's catalogue: of the
// snapshot that was advertised, or else of a fresh one.
func (c *conversation) setModelValue(ctx context.Context, w *workbench, value string) error {
	t, ok := c.choice(w).find(value)
	if !ok {
		cat := c.srv.readCatalogue(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		w.setCatalogue(cat)
		if t, ok = c.choice(w).find(value); !ok {
			return badParams("no model %.200q is listed", value)
		}
	}
	return c.probeTarget(ctx, w, t)
}

// probeTarget selects t and waits, at most as long as a probe may take, for what
// its engine says of it. When the provider refuses the model the old one is
// selected again.
func (c *conversation) probeTarget(ctx context.Context, w *workbench, t llm.Target) error {
	w.mu.Lock()
	before, restored, past := w.selector.Target(), w.restored, len(w.past)
	w.mu.Unlock()
	c.selectTarget(ctx, w, t)
	if _, err := w.selector.Wait(ctx); err != nil && ctx.Err() == nil {
		w.selector.Restore(ctx, before)
		w.mu.Lock()
		w.restored, w.past = restored, w.past[:past]
		w.mu.Unlock()
		return badParams("%s cannot be used: %v", t, err)
	}
	return nil
}
