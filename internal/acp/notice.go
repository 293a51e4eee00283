package acp

// Notices are told to the person and are no part of the conversation. A client
// with the capability session.notices gets them as notices at any time; another
// gets them as a thought that is marked as drover's, and only inside a turn:
// between turns a client would show it as an answer to nothing.

// hold keeps a notice until it can be said.
func (w *workbench) hold(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notices = append(w.notices, text)
}

func (w *workbench) takeNotices() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.notices
	w.notices = nil
	return list
}

// sayNow says what is held to a client that takes notices between turns.
func (c *conversation) sayNow(w *workbench) {
	if c.srv.client.Load().notices {
		c.sayHeld(w)
	}
}

// sayHeld says, in a turn, what is held.
func (c *conversation) sayHeld(w *workbench) {
	for _, text := range w.takeNotices() {
		c.say("info", text)
	}
}

// say tells the person something, in a turn or to a client that takes notices.
func (c *conversation) say(severity, text string) {
	text = line(text)
	if text == "" {
		return
	}
	if c.srv.client.Load().notices {
		c.update(noticeUpdate{Kind: "notice", Severity: severity, Title: text})
		return
	}
	c.update(chunk{thoughtChunk, textContent("[drover] " + text + "\n\n"), c.messageID()})
}
