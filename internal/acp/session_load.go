package acp

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/jsonrpc2"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/session"
)

// sessionOpen is session/load, which replays the conversation before it answers,
// and session/resume, which does not. In the read loop the id gets its mailbox,
// so what the client sends right behind it is worked off after it.
func (s *Server) sessionOpen(req *jsonrpc2.Request, replay bool) (any, error) {
	o, id, err := sessionParams(req)
	if err != nil {
		return nil, err
	}
	set, err := readSetup(o)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, jsonrpc2.ErrClosed
	}
	c := s.sessions[id]
	var before *conversation
	if c == nil || c.isClosing() {
		before, c = c, s.newConversation(id)
		s.sessions[id] = c
	}
	c.post(func() {
		req.Do(func(ctx context.Context) (any, error) {
			if before != nil {
				<-before.done // it still has the lock of the log
			}
			return c.reopen(ctx, &set, replay)
		})
	})
	return nil, jsonrpc2.ErrDeferred
}

// reopen opens the session's log, in the mailbox, or shows again what is open.
func (c *conversation) reopen(ctx context.Context, set *setup, replay bool) (any, error) {
	c.awaitIdle()
	w := c.workbench()
	if err := set.check(); err != nil {
		if w == nil {
			c.abandon()
		}
		return nil, err
	}
	if w != nil && !sameDir(w.dir, set.dir) {
		return nil, badParams("cwd: the session belongs to %s", w.dir)
	}
	var messages []llm.Message
	if w != nil && (w.onlyHere() || slices.Equal(w.dirs, set.dirs) && sameServers(w.servers, set.servers)) {
		messages = w.agent.Messages()
		for _, notice := range set.notices {
			w.hold(notice)
		}
	} else {
		c.shut() // with other directories or servers the session needs new tools
		var err error
		if w, messages, err = c.openLog(ctx, set); err != nil {
			c.abandon()
			return nil, err
		}
	}
	if replay {
		c.replay(w, messages)
	}
	c.announce(w)
	return c.state(w), nil
}

// openLog makes a session of its log. The catalogue is read first: what goes
// wrong there leaves nothing half open.
func (c *conversation) openLog(ctx context.Context, set *setup) (*workbench, []llm.Message, error) {
	s := c.srv
	if err := s.opts.ConfigError; err != nil {
		return nil, nil, internal(codeConfiguration, err.Error())
	}
	cat := s.readCatalogue(ctx)
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	log, state, err := s.opts.Sessions.Open(c.id)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return nil, nil, notFound(c.id)
	case err != nil:
		return nil, nil, storageError("", err)
	}
	if !sameDir(log.CWD(), set.dir) {
		if err := log.Close(); err != nil {
			s.log.Warn("acp: close session", "session", c.id, "error", err)
		}
		return nil, nil, badParams("cwd: the session belongs to %s", log.CWD())
	}
	messages := slices.Clone(state.Messages)
	return c.openWorkbench(ctx, set, cat, log, state), messages, nil
}

// sameDir compares folders with symbolic links resolved, since clients differ in
// what they call a folder.
func sameDir(a, b string) bool {
	if a == b || a == "" {
		return true
	}
	ra, errA := filepath.EvalSymlinks(a)
	rb, errB := filepath.EvalSymlinks(b)
	return errA == nil && errB == nil && ra == rb
}

// replay sends the conversation so far, one update for a message or a tool.
func (c *conversation) replay(w *workbench, messages []llm.Message) {
	results := make(map[int]*llm.Message) // by the index of the assistant message's call
	for i := range messages {
		m := &messages[i]
		switch m.Role {
		case llm.User:
			if !agent.IsNote(m) {
				c.replayUser(m)
			}
		case llm.Assistant:
			clear(results)
			for j := i + 1; j < len(messages) && messages[j].Role == llm.Tool; j++ {
				for k, call := range m.Calls {
					if call.ID == messages[j].CallID {
						results[k] = &messages[j]
					}
				}
			}
			c.replayAnswer(w, m, results)
		}
	}
}

func (c *conversation) replayUser(m *llm.Message) {
	id := c.messageID()
	if text := m.Text(); text != "" {
		c.update(chunk{userChunk, textContent(clip(text, maxField)), id})
	}
	for _, img := range m.Images() {
		c.update(chunk{userChunk, imageContent(img), id})
	}
}

// imageContent shows an image, or its name where it is too large for a line.
func imageContent(img *llm.Image) any {
	if base64Len := (len(img.Data) + 2) / 3 * 4; base64Len > 3*maxField || len(img.Data) == 0 {
		name := img.Name
		if name == "" {
			name = img.MediaType
		}
		return textContent(fmt.Sprintf("[image %s]", line(name)))
	}
	return imageBlock{Type: "image", Data: img.Data, MimeType: img.MediaType}
}

func (c *conversation) replayAnswer(w *workbench, m *llm.Message, results map[int]*llm.Message) {
	if m.Reasoning != nil && m.Reasoning.Text != "" {
		c.update(chunk{thoughtChunk, textContent(clip(m.Reasoning.Text, maxField)), c.messageID()})
	}
	if text := m.Text(); text != "" {
		c.update(chunk{messageChunk, textContent(clip(text, maxField)), c.messageID()})
	}
	for k, call := range m.Calls {
		card := describeCall(call, w.dir)
		update := card.announce()
		update.Status = statusFailed
		if result := results[k]; result != nil {
			if !result.IsError {
				update.Status = statusCompleted
			}
			update.Content = card.replayed(result)
		}
		c.update(update)
		if call.Name == "todo" && update.Status == statusCompleted {
			if p, ok := planOf(call.Arguments); ok {
				c.update(p)
			}
		}
	}
}
