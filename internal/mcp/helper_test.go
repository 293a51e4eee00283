package mcp_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-dev/drover/internal/mcp"
	"github.com/drover-dev/drover/internal/tool"
)

// TestMain makes the test binary a server when a test starts it as one.
func TestMain(m *testing.M) {
	if kind := os.Getenv("TEST_MCP_SERVER"); kind != "" {
		serve(kind)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serve is a server on stdio of a kind: good, mute, banner, deaf, stubborn,
// broken, refusing or many.
func serve(kind string) {
	fmt.Fprintf(os.Stderr, "server %s starts with %s\n", kind, os.Getenv("TEST_SECRET"))
	switch kind {
	case "mute": // reads, and never answers
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	case "broken":
		fmt.Fprintln(os.Stderr, "no such database: "+os.Getenv("TEST_SECRET"))
		os.Exit(3)
	case "loud": // more on stderr than a pipe holds
		for range 20_000 {
			fmt.Fprintln(os.Stderr, strings.Repeat("x", 100))
		}
	case "nonsense": // from the start
		spout("{nonsense}\n", false)
	case "endless":
		spout(`{"jsonrpc":"`, true)
	case "banner":
		fmt.Println("Welcome to the server!")
		fmt.Println("[INFO] listening on stdio")
	case "stubborn": // ends neither with its input nor when it is asked
		signal.Ignore(syscall.SIGTERM)
		writePID()
		defer time.Sleep(time.Minute)
	}
	s := newServer(kind)
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
	}
}

// spout writes what is no message for as long as somebody reads, or ends the line
// and waits.
func spout(text string, endless bool) {
	_, err := os.Stdout.WriteString(text)
	for filler := strings.Repeat("x", 1<<16); endless && err == nil; {
		_, err = os.Stdout.WriteString(filler)
	}
	for err == nil {
		time.Sleep(time.Millisecond)
		_, err = os.Stdout.WriteString("{}\n")
	}
}

// writePID tells the test who runs.
func writePID() {
	if name := os.Getenv("TEST_PID_FILE"); name != "" {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(f, os.Getpid())
		f.Close()
	}
}

const plainSchema = `{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740991}}}`

func text(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}

func newServer(kind string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	add := func(name string, readOnly bool, f sdk.ToolHandler) {
		s.AddTool(&sdk.Tool{
			Name: name, Description: "The tool <" + name + "> & more", InputSchema: json.RawMessage(plainSchema),
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: readOnly},
		}, f)
	}
	if kind == "many" {
		for i := range 200 {
			add(fmt.Sprintf("tool_%03d", i), false, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return text(fmt.Sprint("this is ", i)), nil
			})
		}
		return s
	}
	if kind == "spouting" {
		add("nonsense", false, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			spout("{nonsense}\n", false)
			return nil, nil
		})
		add("endless", false, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			spout(`{"jsonrpc":"`, true)
			return nil, nil
		})
		return s
	}
	if kind != "stubborn" {
		writePID()
	}
	add("echo", true, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(string(r.Params.Arguments)), nil
	})
	add("env", true, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(strings.Join(os.Environ(), "\n")), nil
	})
	add("fail", false, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		r := text("the disk is full")
		r.IsError = true
		return r, nil
	})
	add("die", false, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "panic: out of cheese, key "+os.Getenv("TEST_SECRET"))
		os.Exit(7)
		return nil, nil
	})
	add("hang", false, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if token := r.Params.GetProgressToken(); token != nil {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Message: "hanging", Progress: 1})
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	add("grow", false, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		add("grown.tool", false, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return text("I am new"), nil
		})
		return text("grown"), nil
	})
	add("long", true, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var args struct{ N int }
		_ = json.Unmarshal(r.Params.Arguments, &args)
		return text("<start>" + strings.Repeat("a", args.N-12) + "<end>"), nil
	})
	add("mixed", true, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return mixed(), nil
	})
	add("same", true, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		r := text(`{ "a": 12345678901234567 }`)
		r.StructuredContent = json.RawMessage(`{"a":12345678901234567}`)
		return r, nil
	})
	return s
}

func mixed() *sdk.CallToolResult {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, 3, 2)))
	return &sdk.CallToolResult{
		Content: []sdk.Content{
			&sdk.TextContent{Text: "first"},
			&sdk.ImageContent{MIMEType: "image/png", Data: b.Bytes()},
			&sdk.ImageContent{MIMEType: "image/tiff", Data: []byte("II*\x00")},
			&sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("RIFF")},
			&sdk.ResourceLink{URI: "file:///a.txt", Name: "a.txt", MIMEType: "text/plain"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "db://row", Text: "row text"}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "db://blob", MIMEType: "application/zip", Blob: []byte("PK")}},
		},
		StructuredContent: map[string]any{"rows": []int{1, 2}},
	}
}

// child describes this binary as a server.
func child(t *testing.T, name, kind string, env ...string) tool.ServerSpec {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return tool.ServerSpec{
		Name: name, Command: self, Args: []string{"-test.run=^$"},
		Env: append([]string{"TEST_MCP_SERVER=" + kind, "GORACE=atexit_sleep_ms=0"}, env...),
	}
}

// connect starts servers and waits for them.
func connect(t *testing.T, opts *mcp.Options, specs ...tool.ServerSpec) *mcp.Hub {
	t.Helper()
	if opts == nil {
		opts = new(mcp.Options)
	}
	opts.Dir = t.TempDir()
	opts.StartTimeout = cmp.Or(opts.StartTimeout, time.Minute) // a busy machine starts them slowly
	opts.Environ = append(opts.Environ, os.Environ()...)
	h := mcp.Connect(t.Context(), specs, opts)
	t.Cleanup(func() { _ = h.Close() })
	h.Wait(t.Context())
	return h
}

func find(t *testing.T, h *mcp.Hub, name string) tool.Tool {
	t.Helper()
	for _, impl := range h.Tools() {
		if impl.Def().Name == name {
			return impl
		}
	}
	t.Fatalf("no tool %s among %v; notices: %q", name, names(h), h.Notices())
	return nil
}

func names(h *mcp.Hub) []string {
	var list []string
	for _, impl := range h.Tools() {
		list = append(list, impl.Def().Name)
	}
	return list
}

func prepare(t *testing.T, h *mcp.Hub, name, arguments string) *tool.Action {
	t.Helper()
	a, err := tool.Prepare(t.Context(), find(t, h, name), arguments)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func call(t *testing.T, h *mcp.Hub, name, arguments string) tool.Result {
	t.Helper()
	return tool.Run(t.Context(), prepare(t, h, name, arguments), nil)
}

// pids are the processes that have told who they are.
func pids(t *testing.T, file string) []int {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []int
	for _, f := range strings.Fields(string(data)) {
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, n)
	}
	return list
}

// untilGone fails for a process that still runs after a while. What was killed needs
// a moment to go.
func untilGone(t *testing.T, list ...int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for _, pid := range list {
		for ; alive(pid); <-look.C {
			if time.Now().After(deadline) {
				t.Errorf("process %d still runs", pid)
				if p, err := os.FindProcess(pid); err == nil {
					_ = p.Kill() // it may have ended by now
				}
				break
			}
		}
	}
}

func pidFile(t *testing.T) string { return filepath.Join(t.TempDir(), "pids") }
