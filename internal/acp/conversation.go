package acp

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/drover-dev/drover/internal/jsonrpc2"
)

// conversation is one session. It exists from the moment a client names or
// makes it until it is closed.
//
// What the mailbox alone uses is marked so: its functions run one at a time.
type conversation struct {
	srv  *Server
	id   string
	done chan struct{} // closed when everything of the session has ended

	// Message ids are unique among all processes that serve the session, since a
	// client keeps those of earlier ones.
	idPrefix string

	mu      sync.Mutex
	jobs    []func()  // the mailbox
	working bool      // a goroutine works the mailbox off
	prompts []*prompt // registered and not answered, oldest first
	queue   []*prompt // taken from the mailbox and not begun
	turning bool      // a goroutine works the queue off
	idle    chan struct{}
	closing bool // takes no messages any more
	leaving bool // abandon is in the mailbox
	lastID  int  // of messages

	// open is what the session works with, nil before it is opened and after.
	// Only the mailbox replaces it; turns and timers read it under mu.
	open *workbench
}

func (s *Server) newConversation(id string) *conversation {
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	return &conversation{
		srv: s, id: id, done: make(chan struct{}),
		idPrefix: hex.EncodeToString(random[:]) + "-",
	}
}

// post puts a function into the mailbox.
func (c *conversation) post(job func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.postLocked(job)
}

func (c *conversation) postLocked(job func()) {
	c.jobs = append(c.jobs, job)
	if !c.working {
		c.working = true
		go c.work()
	}
}

// work runs what is in the mailbox until it is empty.
func (c *conversation) work() {
	for {
		c.mu.Lock()
		if len(c.jobs) == 0 {
			c.working = false
			c.mu.Unlock()
			return
		}
		job := c.jobs[0]
		c.jobs = c.jobs[1:]
		c.mu.Unlock()
		job()
	}
}

// workbench returns what the session works with, nil if it is not open.
func (c *conversation) workbench() *workbench {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

func (c *conversation) isClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closing
}

// usable says, in the mailbox, whether the session was opened: the message that
// should have opened it may have failed.
func (c *conversation) usable() error {
	if c.workbench() == nil {
		return notFound(c.id)
	}
	return nil
}

// awaitIdle waits, in the mailbox, until no turn runs.
func (c *conversation) awaitIdle() {
	c.mu.Lock()
	if !c.turning {
		c.mu.Unlock()
		return
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.mu.Unlock()
	<-idle
}

// cancel gives a cancel to every prompt that is registered, and only to those.
func (c *conversation) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancelLocked()
}

func (c *conversation) cancelLocked() {
	for _, p := range c.prompts {
		p.cancel(errCancelled)
	}
}

var errCancelled = errors.New("the client cancelled the turn")

// close cancels the session's turns and closes it behind everything that is in
// the mailbox. It does not wait; done tells when it is over.
func (c *conversation) close() { c.closeThen(nil) }

// closeThen is close with something to do afterwards, in the mailbox. It
// reports false, and drops then, when the session is closing already.
func (c *conversation) closeThen(then func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	c.closing = true
	c.cancelLocked()
	c.postLocked(func() {
		c.awaitIdle()
		c.shut()
		if then != nil {
			then()
		}
		c.srv.forget(c)
		close(c.done)
	})
	return true
}

// shut closes, in the mailbox and while no turn runs, what the session works
// with.
func (c *conversation) shut() {
	c.mu.Lock()
	w := c.open
	c.open = nil
	c.mu.Unlock()
	if w == nil {
		return
	}
	w.selector.Close()
	if err := w.agent.Close(); err != nil {
		c.srv.log.Warn("acp: close session", "session", c.id, "error", err)
	}
}

// abandon ends a session that could not be opened, behind everything that is in
// the mailbox: the next message may open it.
func (c *conversation) abandon() {
	c.srv.mu.Lock() // nobody finds it meanwhile
	defer c.srv.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closing: // whoever closes it does the rest
	case c.open != nil, c.leaving:
	case len(c.jobs) > 0:
		// Once, however many attempts fail: two would wait for each other.
		c.leaving = true
		c.postLocked(func() {
			c.mu.Lock()
			c.leaving = false
			c.mu.Unlock()
			c.abandon()
		})
	default:
		c.closing = true
		c.srv.forgetLocked(c)
		// done tells a session that waits for the id to go on.
		close(c.done)
	}
}

// update sends an update of the session.
func (c *conversation) update(update any) { c.srv.notify(c.id, update) }

// messageID makes an id for a message.
func (c *conversation) messageID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastID++
	return c.idPrefix + strconv.Itoa(c.lastID)
}

// announce sends, a little after the answer that opened the session, what a
// client should know of it.
func (c *conversation) announce(w *workbench) {
	time.AfterFunc(announceDelay, func() {
		c.post(func() {
			if c.workbench() != w {
				return
			}
			c.update(commandsUpdate{Kind: "available_commands_update", Commands: slashCommands()})
			w.mu.Lock()
			title := w.title
			w.mu.Unlock()
			c.sendInfo(w, title)
			c.sayNow(w)
			go c.sendOptionsAfterProbe(w)
		})
	})
}

// sendOptionsAfterProbe sends what the probe of the session's model has found
// out since the session was opened.
func (c *conversation) sendOptionsAfterProbe(w *workbench) {
	// The probe is bounded by itself, and its failure changes no option.
	_, _ = w.selector.Wait(context.Background())
	c.post(func() {
		if c.workbench() == w {
			c.sendOptions(w)
		}
	})
}

// refresh reads the catalogue again, behind everything else, if the session's
// snapshot is old: engines come and go, and load other models.
func (c *conversation) refresh(w *workbench) {
	w.mu.Lock()
	due := time.Since(w.readAt) >= refreshAge
	if due {
		w.readAt = time.Now()
	}
	w.mu.Unlock()
	if !due {
		return
	}
	go func() {
		cat := c.srv.readCatalogue(context.Background())
		c.post(func() {
			if c.workbench() == w {
				w.setCatalogue(cat)
				c.sendOptions(w)
			}
		})
	}()
}

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// prompt is a request for a turn.
type prompt struct {
	req    *jsonrpc2.Request
	blocks object
	ctx    context.Context
	cancel context.CancelCauseFunc
}
