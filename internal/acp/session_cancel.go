package acp

import "github.com/drover-dev/drover/internal/jsonrpc2"

// sessionCancel runs in the read loop: the prompts that came before it are
// registered, and no prompt that comes after it is. Without one it does nothing.
func (s *Server) sessionCancel(req *jsonrpc2.Request) (any, error) {
	c, _, err := s.find(req)
	if err != nil {
		return nil, err
	}
	c.cancel()
	return empty{}, nil
}
