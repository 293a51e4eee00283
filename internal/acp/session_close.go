package acp

import (
	"context"
	"errors"

	"github.com/drover-dev/drover/internal/jsonrpc2"
	"github.com/drover-dev/drover/internal/session"
)

// sessionClose cancels what the session does and frees it. Its log stays.
func (s *Server) sessionClose(req *jsonrpc2.Request) (any, error) {
	c, _, err := s.find(req)
	if err != nil {
		return nil, err
	}
	answer := func() {
		req.Do(func(context.Context) (any, error) { return empty{}, nil })
	}
	if !c.closeThen(answer) {
		return nil, notFound(c.id)
	}
	return nil, jsonrpc2.ErrDeferred
}

// sessionDelete removes a session and its log. Deleting what is not there
// succeeds.
func (s *Server) sessionDelete(req *jsonrpc2.Request) (any, error) {
	_, id, err := sessionParams(req)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	c := s.sessions[id]
	s.mu.Unlock()
	remove := func(context.Context) (any, error) {
		if err := s.opts.Sessions.Remove(id); err != nil && !errors.Is(err, session.ErrNotFound) {
			return nil, internal(codeStorage, "the session cannot be deleted: "+err.Error())
		}
		return empty{}, nil
	}
	if c != nil && c.closeThen(func() { req.Do(remove) }) {
		return nil, jsonrpc2.ErrDeferred
	}
	return req.Go(func(ctx context.Context) (any, error) {
		if c != nil { // closing already
			select {
			case <-c.done:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return remove(ctx)
	})
}
