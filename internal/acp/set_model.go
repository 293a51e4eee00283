package acp

import (
	"context"

	"github.com/drover-dev/drover/internal/jsonrpc2"
	"github.com/drover-dev/drover/internal/llm"
)

// setModel is the alias of older clients. It takes a value of the model option,
// or PROVIDER/MODEL of one that is listed.
func (s *Server) setModel(req *jsonrpc2.Request) (any, error) {
	return s.inMailbox(req, func(ctx context.Context, c *conversation, o object) (any, error) {
		value, ok := o.text("modelId")
		if !ok {
			return nil, badParams("modelId must be a string")
		}
		if t, err := llm.ParseTarget(value); err == nil && value[0] != '[' {
			value = modelValue(t)
		}
		w := c.workbench()
		if err := c.setModelValue(ctx, w, value); err != nil {
			return nil, err
		}
		c.sendOptions(w)
		return empty{}, nil
	})
}
