// Package livetest runs real inference engines for tests: llama-server and
// Ollama with the scripted models that scripts/engines installs.
//
// Every server is the caller's own. It listens on a free loopback port, uses
// one thread, knows nothing of the person's settings, and ends with the test;
// its log is shown when the test has failed. A test that asks for an engine
// which is not installed fails: it never skips. So tests that use this package
// are in files with the build tag "engines".
//
// What the models answer is in scripts/tinymodel/data. The last marker in the
// context decides, for example [[call]], [[read]], [[two]] or [[loop]].
package livetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// startLimit is how long an engine may take until it answers, and how long
	// the creation of an Ollama model may take.
	startLimit = 60 * time.Second
	// pollInterval is the time between two looks at an engine that starts.
	pollInterval = 25 * time.Millisecond
	// stopLimit is how long an engine may take to end by itself.
	stopLimit = 5 * time.Second
	// maxLog is how much of the end of an engine's log is kept, in bytes.
	maxLog = 1 << 20
	// attempts is how often a start is tried: another process may take the port
	// between the choice and its use.
	attempts = 3
)

// Dir returns the folder in which scripts/engines installs. Tests may set
// DROVER_ENGINES to use another one than the default.
func Dir() string {
	if dir := os.Getenv("DROVER_ENGINES"); dir != "" {
		return dir
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "drover-engines"
	}
	return filepath.Join(cache, "drover-engines")
}

// Models returns the folder of the scripted models, NAME.gguf and NAME.Modelfile.
func Models() string { return filepath.Join(Dir(), "models") }

// A Server is a running engine. Its methods may be called from any goroutine.
type Server struct {
	// URL is the root of the engine, such as http://127.0.0.1:41234.
	URL string

	command *exec.Cmd
	log     *tail
	// ended is closed when the process has ended and its log is complete.
	ended chan struct{}
	// reap ends what is left of the process group, once: its number may be another's later.
	reap func()
	// ollama is the program with which models are created, empty for llama-server.
	ollama string
}

// Llama starts llama-server with a model: plain, think, vision or vocab. The
// projector of vision is loaded with it. Without a model it starts the router,
// which needs "--models-dir" and a folder, such as [Models]. The further
// arguments come last, so they win over those of this package.
func Llama(tb testing.TB, model string, args ...string) *Server {
	tb.Helper()
	program := filepath.Join(Dir(), "llama.cpp", "lib", "llama-server")
	command := []string{"--host", "127.0.0.1", "--threads", "1", "--offline"}
	needed := []string{program}
	if model != "" {
		file := filepath.Join(Models(), model+".gguf")
		needed = append(needed, file)
		command = append(command, "--model", file)
		if projector := filepath.Join(Models(), model+"-mmproj.gguf"); exists(projector) {
			command = append(command, "--mmproj", projector)
		}
	}
	require(tb, needed)
	return launch(tb, "/health", func(address string) *exec.Cmd {
		_, port, _ := net.SplitHostPort(address)
		c := exec.Command(program, slices.Concat(command, []string{"--port", port}, args)...)
		c.Env = []string{"HOME=" + tb.TempDir()}
		return c
	})
}

// Ollama starts Ollama with the models plain and think; see [Server.Create] for
// more. The settings, such as "OLLAMA_CONTEXT_LENGTH=1024", are its whole
// environment but for what it needs to run.
func Ollama(tb testing.TB, env ...string) *Server {
	tb.Helper()
	program := filepath.Join(Dir(), "ollama", "bin", "ollama")
	require(tb, []string{program})
	s := launch(tb, "/api/version", func(address string) *exec.Cmd {
		home := tb.TempDir()
		c := exec.Command(program, "serve")
		c.Env = append([]string{
			"HOME=" + home,
			"PATH=" + os.Getenv("PATH"),
			"OLLAMA_HOST=" + address,
			"OLLAMA_MODELS=" + filepath.Join(home, "models"),
			"OLLAMA_NOPRUNE=1",
		}, env...)
		return c
	})
	s.ollama = program
	s.Create(tb, "plain")
	s.Create(tb, "think")
	return s
}

// Create adds a model to a running Ollama: plain and think are there already,
// bare has no tools, vision takes images.
func (s *Server) Create(tb testing.TB, model string) {
	tb.Helper()
	if s.ollama == "" {
		tb.Fatal("livetest: Create is for Ollama")
	}
	file := filepath.Join(Models(), model+".Modelfile")
	require(tb, []string{file})
	ctx, cancel := context.WithTimeout(tb.Context(), startLimit)
	defer cancel()
	create := exec.CommandContext(ctx, s.ollama, "create", model, "--file", file)
	create.Env = []string{"HOME=" + tb.TempDir(), "OLLAMA_HOST=" + strings.TrimPrefix(s.URL, "http://")}
	if out, err := create.CombinedOutput(); err != nil {
		tb.Fatalf("livetest: create the Ollama model %s: %v\n%s", model, err, out)
	}
}

// Stop ends the engine, politely at first, and waits until it is gone. The port is closed then.
func (s *Server) Stop() {
	select {
	case <-s.ended:
	default:
		interrupt(s.command)
		select {
		case <-s.ended:
		case <-time.After(stopLimit):
		}
	}
	s.Kill()
}

// Kill ends the engine as a crash would, and waits until it is gone.
func (s *Server) Kill() {
	s.reap()
	<-s.ended
}

// Log returns what the engine has written so far, at most the last 1 MiB.
func (s *Server) Log() string { return s.log.String() }

// launch starts an engine and waits until the path answers 200. The command is
// made anew for each attempt, for the address to listen on.
func launch(tb testing.TB, path string, command func(address string) *exec.Cmd) *Server {
	tb.Helper()
	var s *Server
	var err error
	for range attempts {
		var address string
		if address, err = freeAddress(); err != nil {
			break
		}
		if s, err = start(command(address), address); err != nil {
			break
		}
		if err = s.wait(tb.Context(), path); err == nil {
			tb.Cleanup(func() {
				s.Stop()
				if tb.Failed() {
					tb.Logf("log of %s:\n%s", filepath.Base(s.command.Path), s.Log())
				}
			})
			return s
		}
		s.Kill()
		err = fmt.Errorf("%w\n%s", err, s.Log())
		if !strings.Contains(s.Log(), "bind") {
			break
		}
	}
	tb.Fatalf("livetest: %v", err)
	return nil
}

// start runs the command in a process group of its own.
func start(c *exec.Cmd, address string) (*Server, error) {
	s := &Server{URL: "http://" + address, command: c, log: &tail{}, ended: make(chan struct{})}
	c.Stdout, c.Stderr = s.log, s.log
	// A process that an engine has started, and that outlives it, keeps the log open.
	c.WaitDelay = stopLimit
	isolate(c)
	if err := c.Start(); err != nil {
		return nil, err
	}
	unguard := guard(c)
	s.reap = sync.OnceFunc(func() {
		kill(c)
		unguard()
	})
	go func() {
		defer close(s.ended)
		// How it ended does not matter: the one reason to care is a failed start, where the log tells.
		_ = c.Wait()
	}()
	return s, nil
}

// wait returns when the engine answers 200, has ended, or takes too long.
func (s *Server) wait(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
		if err != nil {
			return err
		}
		if response, err := client.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK && s.listens() {
				return nil
			}
		}
		select {
		case <-s.ended:
			return errors.New("the engine has ended while it started")
		case <-ctx.Done():
			return fmt.Errorf("the engine is not ready: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// listens tells whether the engine itself has the port, and not another process that
// took it in between and answers as an engine would.
func (s *Server) listens() bool {
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, "istening on ") && strings.Contains(line, strings.TrimPrefix(s.URL, "http://")) {
			return true
		}
	}
	return false
}

// freeAddress returns a loopback address with a port on which nothing listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func require(tb testing.TB, files []string) {
	tb.Helper()
	for _, f := range files {
		if !exists(f) {
			tb.Fatalf("livetest: %s is missing: run scripts/engines", f)
		}
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
	lost int
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	// Cut rarely, so that a long log is not copied with each line.
	if extra := len(t.text) - maxLog; extra > maxLog {
		t.text = bytes.Clone(t.text[extra:])
		t.lost += extra
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	extra := max(0, len(t.text)-maxLog)
	if lost := t.lost + extra; lost > 0 {
		return "(" + strconv.Itoa(lost) + " bytes left out)\n" + string(t.text[extra:])
	}
	return string(t.text)
}
