package acp

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

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

// sessionDelete removes a session with its log and its long outputs. Deleting
// what is not there succeeds.
func (s *Server) sessionDelete(req *jsonrpc2.Request) (any, error) {
	_, id, err := sessionParams(req)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	c := s.sessions[id]
	s.mu.Unlock()
	remove := func(context.Context) (any, error) {
		err := s.opts.Sessions.Remove(id)
		if errors.Is(err, session.ErrNotFound) {
			return empty{}, nil
		}
		// There was such a session, so that its id is safe as a file name.
		if dir := s.opts.Agent.SpillDir; err == nil && dir != "" {
			err = os.RemoveAll(filepath.Join(dir, strings.ToLower(id)))
		}
		if err != nil {
			return nil, storageError("the session cannot be deleted: ", err)
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
