package tool

import (
	"context"
	"io"
	"os"
	"os/exec"
	"time"
)

// ended is how a command ended.
type ended struct {
	output  string
	note    string // how, in words
	ok      bool   // with exit code 0
	stopped bool   // because its context ended
	lost    bool   // nobody knows how
}

// start runs the command as a child, in a session and process group of its own,
// until it has ended or ctx has.
func (t *shellTool) start(ctx context.Context, c *Command, progress func(string)) (ended, error) {
	if ctx.Err() != nil {
		return ended{}, context.Cause(ctx)
	}
	// One pipe for both outputs keeps their order. It is not left to exec.Cmd,
	// which does not tell a command that failed from one whose child still held
	// the pipe.
	r, w, err := os.Pipe()
	if err != nil {
		return ended{}, err
	}
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.Dir, c.Environ, w, w // and no input
	ownGroup(cmd)
	err = t.w.Children.Start(cmd)
	w.Close() // the child has its own
	if err != nil {
		r.Close()
		return ended{}, plainError(err)
	}
	kept := &capture{dir: t.w.SpillDir, prefix: "shell", limit: c.OutputLimit}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		told := &teller{to: progress}
		_, _ = io.Copy(io.MultiWriter(kept, told), r) // ends with the output, or when r is closed
		told.close()
	}()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = cmd.Wait() // ProcessState says how it went
	}()
	stopped := false
	select {
	case <-gone:
	case <-ctx.Done():
		stopped = true
		t.stop(cmd, gone)
	}
	t.w.Children.Forget(cmd)
	held := !t.drain(r, copied)
	if held {
		// A child that outlives its command and holds the output would be lost
		// from sight.
		killGroup(cmd)
	}
	exit := exitOf(cmd.ProcessState)
	e := ended{output: kept.close(), note: exit.note(), ok: exit.Code == 0, stopped: stopped}
	if held && !stopped {
		e.note += "; a background process still held the output and was ended: redirect its output to keep one"
	}
	return e, nil
}

// drain waits until the output was read to its end. When something outside the
// command keeps it open, drain closes it and reports false.
func (t *shellTool) drain(r *os.File, copied <-chan struct{}) bool {
	defer r.Close()
	patience := time.NewTimer(t.drainDelay)
	defer patience.Stop()
	select {
	case <-copied:
		return true
	case <-patience.C:
	}
	r.Close()
	<-copied
	return false
}

// stop ends the group of a running command: politely, then for good. It returns
// when the command is gone.
func (t *shellTool) stop(cmd *exec.Cmd, gone <-chan struct{}) {
	askGroup(cmd)
	deadline := time.NewTimer(t.killDelay)
	defer deadline.Stop()
	poll := time.NewTicker(stopPoll)
	defer poll.Stop()
	ending := t.w.Children.Ending()
	for running := true; running; {
		select {
		case <-gone:
			running = false
		case <-ending:
			ending = nil
			deadline.Reset(min(t.killDelay, endDelay))
		case <-deadline.C:
			killGroup(cmd)
			<-gone
			return
		}
	}
	// The command has ended; its children may still be cleaning up.
	for commandAlive(cmd) {
		select {
		case <-poll.C:
		case <-ending:
			ending = nil
			deadline.Reset(min(t.killDelay, endDelay))
		case <-deadline.C:
			killGroup(cmd)
			return
		}
	}
}

// stopPoll is how often a group that was asked to end is looked at.
const stopPoll = 20 * time.Millisecond
