package mcp

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/drover-dev/drover/internal/tool"
)

// process is a server that runs as a child, in a process group of its own.
type process struct {
	children *tool.Children
	cmd      *exec.Cmd
	in       *os.File // its standard input
	out      *os.File // its standard output
	errs     tail
	drained  chan struct{} // standard error was read to its end
	gone     chan struct{} // it has ended
	stopped  sync.Once
}

// startProcess starts a server.
func startProcess(children *tool.Children, command string, args []string, dir string, environ []string) (*process, error) {
	p := &process{children: children, drained: make(chan struct{}), gone: make(chan struct{})}
	var theirs, ours []*os.File
	pipe := func(childReads bool) (child, parent *os.File, err error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, nil, err
		}
		child, parent = w, r
		if childReads {
			child, parent = r, w
		}
		theirs, ours = append(theirs, child), append(ours, parent)
		return child, parent, nil
	}
	closeAll := func(files []*os.File) {
		for _, f := range files {
			f.Close()
		}
	}
	p.cmd = exec.Command(command, args...)
	p.cmd.Dir, p.cmd.Env = dir, environ
	tool.OwnGroup(p.cmd)
	var errs *os.File
	in, parent, err := pipe(true)
	if err == nil {
		p.cmd.Stdin, p.in = in, parent
		in, p.out, err = pipe(false)
	}
	if err == nil {
		p.cmd.Stdout = in
		in, errs, err = pipe(false)
	}
	if err == nil {
		p.cmd.Stderr = in
		err = children.Start(p.cmd)
	}
	closeAll(theirs) // the child has its own
	if err != nil {
		closeAll(ours)
		return nil, err
	}
	go func() {
		defer close(p.drained)
		defer errs.Close()
		_, _ = io.Copy(&p.errs, errs) // ends with the output
	}()
	go func() {
		defer close(p.gone)
		_ = p.cmd.Wait() // ProcessState says how it went
	}()
	return p, nil
}

// stopPoll is how often a group that was asked to end is looked at.
const stopPoll = 20 * time.Millisecond

// maxKills is how often a group is killed before it is taken for gone: what hangs
// in the kernel goes when it can.
const maxKills = 5

// stop ends the process and what it started: its input ends, it is asked, and
// after delay it is made to. It returns when it is gone.
func (p *process) stop(delay time.Duration) {
	p.stopped.Do(func() {
		defer p.children.Forget(p.cmd)
		p.in.Close()
		tool.AskGroup(p.cmd)
		deadline := time.NewTimer(delay)
		defer deadline.Stop()
		poll := time.NewTicker(stopPoll)
		defer poll.Stop()
		defer p.out.Close()
		gone, kills := p.gone, 0
		for {
			select {
			case <-gone:
				gone = nil // its children may still be cleaning up
			case <-poll.C:
			case <-deadline.C:
				// A process that was killed may take a moment to go.
				tool.KillGroup(p.cmd)
				if kills++; kills > maxKills {
					<-p.gone
					return
				}
				deadline.Reset(2 * stopPoll)
			}
			if gone == nil && !tool.GroupAlive(p.cmd) {
				return
			}
		}
	})
	<-p.gone
}

// lastWordsDelay is how long a process that has ended its output may take to end,
// and its standard error with it: a child of it may hold that open for ever. A busy
// machine may take its time with what takes a moment elsewhere.
const lastWordsDelay = time.Second

// end says how the process ended, with the last line of its standard error. It
// is "" while it runs.
func (p *process) end() string {
	patience := time.NewTimer(lastWordsDelay)
	defer patience.Stop()
	select {
	case <-p.gone:
	case <-patience.C:
		return ""
	}
	select {
	case <-p.drained:
	case <-patience.C:
	}
	how := "it ended (" + p.cmd.ProcessState.String() + ")"
	if last := p.errs.lastLine(); last != "" {
		how += ", saying: " + last
	}
	return how
}

// maxErrs is how much of a server's standard error is kept, the newest, in bytes.
const maxErrs = 4 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b[max(0, len(b)-maxErrs):]...)
	t.kept = bytes.Clone(t.kept[max(0, len(t.kept)-maxErrs):])
	return len(b), nil
}

func (t *tail) lastLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.kept))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// messages passes on the lines of a server's standard output that can be
// messages: many a server greets there.
type messages struct {
	r     *os.File
	state lineState
}

type lineState uint8

const (
	lineBegins lineState = iota
	linePasses
	lineDropped
)

// Read implements [io.Reader].
func (m *messages) Read(p []byte) (int, error) {
	for {
		n, err := m.r.Read(p)
		kept := p[:0]
		for _, b := range p[:n] {
			if m.state == lineBegins && b != ' ' && b != '\t' && b != '\r' && b != '\n' {
				m.state = lineDropped
				if b == '{' {
					m.state = linePasses
				}
			}
			if m.state == linePasses {
				kept = append(kept, b)
			}
			if b == '\n' {
				m.state = lineBegins
			}
		}
		if len(kept) > 0 || err != nil || len(p) == 0 {
			return len(kept), err
		}
	}
}

// Close implements [io.Closer].
func (m *messages) Close() error { return m.r.Close() }
