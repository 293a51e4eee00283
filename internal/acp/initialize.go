package acp

import "github.com/drover-dev/drover/internal/jsonrpc2"

// protocolVersion is the one version that is spoken. A client that asks for a
// newer one is answered with it and decides for itself.
const protocolVersion = 1

// initialize answers from values alone: an editor waits for it when it starts.
func (s *Server) initialize(req *jsonrpc2.Request) (any, error) {
	o, err := params(req)
	if err != nil {
		return nil, err
	}
	c := readClient(o)
	s.client.Store(&c)
	s.log.Info("acp: client", "name", c.name, "version", c.version)

	version := s.opts.Version
	if version == "" {
		version = "unknown"
	}
	answer := initializeAnswer{
		ProtocolVersion: protocolVersion,
		AuthMethods:     []struct{}{},
		AgentInfo:       implementation{Name: "drover", Title: "drover", Version: version},
	}
	answer.Capabilities.LoadSession = true
	answer.Capabilities.Prompt.Image = true
	answer.Capabilities.Prompt.EmbeddedContext = true
	answer.Capabilities.MCP.HTTP, answer.Capabilities.MCP.SSE = true, true
	return answer, nil
}
