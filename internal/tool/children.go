package tool

import (
	"errors"
	"os/exec"
	"sync"
	"time"
)

// Children are the programs that a process has started and has to take along
// when it ends. The methods of a nil *Children keep no account. They are safe for
// concurrent use.
type Children struct {
	ending chan struct{}

	mu      sync.Mutex
	running map[*exec.Cmd]bool
	ended   bool // End was called
	killed  bool // Kill was called
}

// NewChildren makes an account with nothing on it.
func NewChildren() *Children {
	return &Children{ending: make(chan struct{}), running: make(map[*exec.Cmd]bool)}
}

// Ending is closed when the process is about to end: who is asked to end a
// program has little time then.
func (c *Children) Ending() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.ending
}

// End says that the process is about to end.
func (c *Children) End() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.ended = true
		close(c.ending)
	}
}

// errKilled is why nothing is started any more.
var errKilled = errors.New("drover is about to end")

// Start starts a command, which is in a group of its own, and puts it on the
// account. The lock is held meanwhile, so that Kill misses none.
func (c *Children) Start(cmd *exec.Cmd) error {
	if c == nil {
		return cmd.Start()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killed {
		return errKilled
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.running[cmd] = true
	return nil
}

// Forget takes a command off the account: it has ended, and what it has started
// has, or may go on.
func (c *Children) Forget(cmd *exec.Cmd) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, cmd)
}

// killLimit bounds [Children.Kill], so that a process can always be ended: a program
// on a file system that hangs may be starting, which keeps the lock.
const killLimit = 5 * time.Second

// Kill ends whatever still runs, with the groups, and has nothing started any
// more. It does not wait until all is gone: that needs no help.
func (c *Children) Kill() { c.killWithin(killLimit) }

func (c *Children) killWithin(limit time.Duration) {
	if c == nil {
		return
	}
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.killed = true
		for cmd := range c.running {
			killGroup(cmd)
		}
		clear(c.running)
	}()
	patience := time.NewTimer(limit)
	defer patience.Stop()
	select {
	case <-killed:
	case <-patience.C:
	}
}
