package engine

import (
	"net"
	"net/netip"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
)

// CheckKey says whether the configured key may be sent to the configured
// endpoint, without any I/O. Its error is INVALID_CREDENTIAL or
// MISSING_CREDENTIAL.
func (e *Engine) CheckKey() error {
	if err := e.keyFor(true); err != nil {
		return err
	}
	return nil
}

// keyFor is the reason why a request cannot be sent. A list of models may be
// asked for without a key.
func (e *Engine) keyFor(generation bool) *llm.Error {
	if e.keyErr != nil {
		return e.keyErr
	}
	if generation && e.opts.KeyRequired && e.opts.Key == "" {
		hint := e.opts.KeyHint
		if hint != "" {
			hint = ": " + hint
		}
		return llm.Errorf(llm.CodeMissingCredential, "%s needs an API key%s", e.opts.Name, hint)
	}
	return nil
}

func (e *Engine) checkKey() *llm.Error {
	if e.opts.KeyErr != nil {
		return e.opts.KeyErr
	}
	if e.opts.Key == "" {
		return nil
	}
	// A header value could carry more, but no key has it: a pasted quote or a
	// line break is a mistake that an engine would answer with a puzzling 401.
	if strings.ContainsFunc(e.opts.Key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return llm.Errorf(llm.CodeInvalidCredential,
			"the API key of %s has characters other than printable ASCII", e.opts.Name)
	}
	if e.saved.scheme == "http" && e.saved.reach() == reachPublic && !e.opts.Insecure {
		return e.clearTextKey()
	}
	return nil
}

func (e *Engine) clearTextKey() *llm.Error {
	return llm.Errorf(llm.CodeInvalidCredential,
		"the API key of %s would cross the network in clear text to %s: use https, or set insecure = true",
		e.opts.Name, e.saved)
}

// checkPeer refuses a connection that would carry the key in clear text. It
// decides about names of private networks, which may stand for any address.
func (e *Engine) checkPeer(conn net.Conn) error {
	if e.opts.Key == "" || e.opts.Insecure || e.saved.scheme != "http" || e.saved.reach() != reachName {
		return nil
	}
	peer, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil || privateAddr(peer.Addr()) { // err: a test's pipe
		return nil
	}
	return e.clearTextKey()
}

// minKeyPart is the shortest beginning of a key that is hidden: less tells
// nothing, and may be part of any word.
const minKeyPart = 4

// redact takes the key out of a text: some services repeat it in an error. Where
// the text was cut in the middle of the key, what is left of it goes, too.
func (e *Engine) redact(text string) string {
	if e.opts.Key == "" {
		return text
	}
	const hidden, cut = "[key]", "..."
	text = strings.ReplaceAll(text, e.opts.Key, hidden)
	for n := len(e.opts.Key) - 1; n >= minKeyPart; n-- {
		text = strings.ReplaceAll(text, e.opts.Key[:n]+cut, hidden+cut)
	}
	return text
}
