package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveMCP is a server on stdio for scripts.
func serveMCP() {
	s := mcp.NewServer(&mcp.Implementation{Name: "shelf", Version: "1"}, nil)
	for name, readOnly := range map[string]bool{"look": true, "put": false} {
		s.AddTool(&mcp.Tool{
			Name: name, Description: "Books", InputSchema: json.RawMessage(`{"type":"object","properties":{"book":{"type":"string"}}}`),
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: readOnly},
		}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{
				&mcp.TextContent{Text: fmt.Sprintf("%s %s in %s", name, r.Params.Arguments, os.Getenv("SHELF"))},
			}}, nil
		})
	}
	_ = s.Run(context.Background(), &mcp.StdioTransport{})
}
