package acp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/drover-dev/drover/internal/jsonrpc2"
)

// editorFS reads and writes text files through the editor, so that unsaved
// buffers count. It is a [tool.FS]: the tools have checked the paths.
type editorFS struct{ c *conversation }

// ReadTextFile implements [tool.FS]. Clients have many ways to say that a file
// is not there; the disk decides, as the file is inside the session's folders.
// Some know only the files of the projects that they show and say "not found" of
// others: those are as they are on disk.
func (e *editorFS) ReadTextFile(ctx context.Context, path string) (string, error) {
	var answer struct {
		Content *string `json:"content"`
	}
	err := e.c.srv.conn.Call(ctx, "fs/read_text_file", struct {
		SessionID string `json:"sessionId"`
		Path      string `json:"path"`
	}{e.c.id, path}, &answer)
	switch {
	case err == nil && answer.Content != nil:
		return *answer.Content, nil
	case err == nil: // not an empty file: nobody knows what is in it
		err = errors.New("its answer has no content")
	}
	if rpc, ok := errors.AsType[*jsonrpc2.Error](err); ok {
		if _, statErr := os.Lstat(path); rpc.Code == rpcNotFound || errors.Is(statErr, fs.ErrNotExist) {
			return "", &fs.PathError{Op: "read", Path: path, Err: fs.ErrNotExist}
		}
	}
	return "", fmt.Errorf("read %s in the editor: %w", path, err)
}

// WriteTextFile implements [tool.FS].
func (e *editorFS) WriteTextFile(ctx context.Context, path, text string) error {
	err := e.c.srv.conn.Call(ctx, "fs/write_text_file", struct {
		SessionID string `json:"sessionId"`
		Path      string `json:"path"`
		Content   string `json:"content"`
	}{e.c.id, path, text}, nil)
	if rpc, ok := errors.AsType[*jsonrpc2.Error](err); ok && rpc.Code == rpcNotFound {
		return &fs.PathError{Op: "write", Path: path, Err: fs.ErrNotExist}
	}
	if err != nil {
		return fmt.Errorf("write %s in the editor: %w", path, err)
	}
	return nil
}
