package acp

import "github.com/drover-dev/drover/internal/jsonrpc2"

// authenticate says yes: no method is advertised, and none is needed, since
// keys are set with drover auth. Some clients call it all the same.
func (s *Server) authenticate(req *jsonrpc2.Request) (any, error) {
	if _, err := params(req); err != nil {
		return nil, err
	}
	return empty{}, nil
}
