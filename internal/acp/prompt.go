package acp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/jsonrpc2"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/picker"
)

// The reasons for the end of a turn that are no error.
const (
	stopEndTurn   = "end_turn"
	stopMaxTokens = "max_tokens"
	stopCancelled = "cancelled"
)

// sessionPrompt registers the prompt in the read loop, where a cancel behind it
// finds it, and gives it to the mailbox. A prompt during a turn waits for the
// turn's end.
func (s *Server) sessionPrompt(req *jsonrpc2.Request) (any, error) {
	c, o, err := s.find(req)
	if err != nil {
		return nil, err
	}
	p := &prompt{req: req, blocks: o}
	p.ctx, p.cancel = context.WithCancelCause(req.Context())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		p.cancel(nil)
		return nil, notFound(c.id)
	}
	c.prompts = append(c.prompts, p)
	c.postLocked(func() { c.enqueue(p) })
	return nil, jsonrpc2.ErrDeferred
}

// enqueue, in the mailbox, puts a prompt behind the running turn.
func (c *conversation) enqueue(p *prompt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, p)
	if !c.turning {
		c.turning = true
		go c.takeTurns()
	}
}

// takeTurns runs the queued prompts one after the other.
func (c *conversation) takeTurns() {
	for {
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.turning = false
			if c.idle != nil {
				close(c.idle)
				c.idle = nil
			}
			c.mu.Unlock()
			return
		}
		p := c.queue[0]
		c.queue = c.queue[1:]
		c.mu.Unlock()
		c.answer(p)
	}
}

// answer runs a prompt and answers it. When the answer is sent the prompt is
// not registered any more, so a cancel that crosses it does nothing.
func (c *conversation) answer(p *prompt) {
	p.req.Do(func(context.Context) (any, error) {
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.prompts = slices.DeleteFunc(c.prompts, func(x *prompt) bool { return x == p })
			p.cancel(nil)
		}()
		reason, err := c.takeTurn(p)
		if p.ctx.Err() != nil { // whatever else went wrong, it was cancelled
			return promptAnswer{stopCancelled}, nil
		}
		if err != nil {
			return nil, turnError(err)
		}
		return promptAnswer{reason}, nil
	})
	if w := c.workbench(); w != nil {
		go c.writeTitle(w)
	}
}

func (c *conversation) takeTurn(p *prompt) (reason string, err error) {
	ctx := p.ctx
	w := c.workbench()
	if w == nil {
		return "", notFound(c.id)
	}
	if ctx.Err() != nil {
		return stopCancelled, nil // cancelled while it was queued: nobody sees it
	}
	if c.srv.opts.ConfigError != nil {
		return "", internal(codeConfiguration, c.srv.opts.ConfigError.Error())
	}
	parts, err := readPrompt(p.blocks)
	if err != nil {
		return "", err
	}
	c.sayHeld(w)
	if command, argument, ok := slashCommand(parts); ok {
		return stopEndTurn, c.runCommand(ctx, w, command, argument)
	}
	if err := c.ensureModel(ctx, w); err != nil {
		return "", err
	}
	c.refresh(w)
	end := newTurn(c, w).run(ctx, parts)
	c.afterTurn(w)
	switch end.Reason {
	case agent.EndCompleted:
		return stopEndTurn, nil
	case agent.EndMaxTokens:
		return stopMaxTokens, nil
	case agent.EndCancelled:
		return stopCancelled, nil
	}
	if end.Err == nil {
		return "", errors.New("the turn ended without a reason")
	}
	return "", end.Err
}

// ensureModel finds the session a model when it has none that could answer: an
// engine may have been started since. What a log names is not replaced by
// something else without being asked.
func (c *conversation) ensureModel(ctx context.Context, w *workbench) error {
	s := c.srv
	if s.registered(w.selector.Target()) {
		return nil
	}
	cat := s.readCatalogue(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w.setCatalogue(cat)
	current := w.selector.Target()
	if s.registered(current) { // its engine is there now
		w.selector.Select(ctx, current)
		c.sendOptions(w)
		return nil
	}
	w.mu.Lock()
	restored := w.restored
	w.mu.Unlock()
	if restored {
		return internal(llm.CodeNoAdapter, fmt.Sprintf(
			"this session used %s, and there is no provider %q any more. Add it with drover engines add, or choose another model with /model PROVIDER/MODEL",
			current, current.Provider))
	}
	t, ok := picker.Default(s.opts.Target, cat.listings)
	if !ok {
		return internal(llm.CodeNoModel, noModel(s.opts.Target, cat))
	}
	c.selectTarget(ctx, w, t)
	w.hold(chosenNotice(s.opts.Target, t))
	c.sayHeld(w)
	c.sendOptions(w)
	return nil
}

// registered reports whether a target is complete and has a provider.
func (s *Server) registered(t llm.Target) bool {
	if t.Provider == "" || t.Model == "" {
		return false
	}
	_, err := s.opts.Registry.Lookup(t.Provider)
	return err == nil
}

// chosenNotice says why a session has a model that nobody named.
func chosenNotice(configured, chosen llm.Target) string {
	if configured.IsZero() {
		return fmt.Sprintf("No model is configured; this session uses %s.", chosen)
	}
	return fmt.Sprintf("The configured model %s has no provider; this session uses %s.", configured, chosen)
}

// noModel says what was tried to find a model, and what to do.
func noModel(configured llm.Target, cat catalogue) string {
	var b strings.Builder
	b.WriteString("there is no model to use")
	if !configured.IsZero() {
		fmt.Fprintf(&b, ": the configured model is %s, and there is no provider %q", configured, configured.Provider)
	}
	for i := range cat.listings {
		l := &cat.listings[i]
		if l.Err != nil {
			fmt.Fprintf(&b, "; %s: %v", l.Provider.Name, l.Err)
		} else {
			fmt.Fprintf(&b, "; %s lists no chat model", l.Provider.Name)
		}
	}
	if cat.err != nil {
		fmt.Fprintf(&b, "; %v", cat.err)
	}
	b.WriteString(". Start an engine (ollama serve, LM Studio or llama-server) and send the prompt again, or add one with drover engines add")
	return b.String()
}
