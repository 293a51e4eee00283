package acp

import (
	"context"

	"github.com/drover-dev/drover/internal/jsonrpc2"
	"github.com/drover-dev/drover/internal/tool"
)

// setMode is the older form of setting the mode option; both stay in step.
func (s *Server) setMode(req *jsonrpc2.Request) (any, error) {
	return s.inMailbox(req, func(_ context.Context, c *conversation, o object) (any, error) {
		id, ok := o.text("modeId")
		if !ok {
			return nil, badParams("modeId must be a string")
		}
		w := c.workbench()
		if err := w.setMode(id); err != nil {
			return nil, err
		}
		c.sendOptions(w)
		return empty{}, nil
	})
}

// setMode changes the mode for the calls that come after.
func (w *workbench) setMode(value string) error {
	m, err := tool.ParseMode(value)
	if err != nil || value == "" {
		return badParams("no mode %.100q", value)
	}
	w.gate.SetMode(m)
	return nil
}
