package acp

import (
	"strings"
	"time"
	"unicode/utf8"
)

// What one message to the client may hold. The sum of the members of the
// largest message, a tool call with a diff, stays under 1 MiB as JSON.
const (
	// maxField bounds one text of an update, in bytes of its JSON form.
	maxField = 256 << 10
	// maxRawInput bounds the raw arguments of a tool call, in bytes of JSON.
	maxRawInput = 64 << 10
	// maxTitle bounds titles and other lines for people, in bytes of JSON.
	maxTitle = 4 << 10
	// maxModels is how many models of one provider are shown beside the current
	// one; any other of its list can be set all the same.
	maxModels = 100
	// maxShown bounds the models shown of all providers together.
	maxShown = 1000
	// maxName and maxDescription bound the texts of one model, in bytes of JSON.
	maxName        = 200
	maxDescription = 300
	// maxPage is how many sessions one answer to session/list holds.
	maxPage = 100
)

// Times.
const (
	// readyTimeout bounds the search for engines when a session is opened.
	readyTimeout = 2 * time.Second
	// announceDelay is how long after the answer that opens a session the first
	// updates follow: clients drop updates of a session that they do not know yet.
	announceDelay = 100 * time.Millisecond
	// outputInterval is the least time between two updates with the output of
	// one running tool: five a second.
	outputInterval = 200 * time.Millisecond
	// waitingNotice is after how long a person is told that the engine is still
	// computing the prompt.
	waitingNotice = 10 * time.Second
	// refreshAge is how old a session's snapshot of the catalogue gets before a
	// turn has it read again.
	refreshAge = 30 * time.Second
	// terminalPatience is how long a client may take to end a command in its
	// terminal, to give its output, and to release it.
	terminalPatience = 2 * time.Second
	// lateTerminal is how long a terminal that the client has not made yet is
	// waited for, so as to release it.
	lateTerminal = 10 * time.Minute
	// exitTimeout bounds what happens between the end of input and the return of
	// Serve.
	exitTimeout = 800 * time.Millisecond
)

// jsonLen is how many bytes r takes in a JSON string.
func jsonLen(r rune, size int) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t':
		return 2
	case r < 0x20 || r == '\u2028' || r == '\u2029':
		return 6
	case r == utf8.RuneError && size == 1:
		return 6
	}
	return size
}

// headFits is the length of the longest prefix of s that takes at most limit
// bytes as JSON.
func headFits(s string, limit int) int {
	if 6*len(s) <= limit {
		return len(s)
	}
	used := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if used += jsonLen(r, size); used > limit {
			return i
		}
		i += size
	}
	return len(s)
}

// tailFits is where the longest suffix of s begins that takes at most limit
// bytes as JSON.
func tailFits(s string, limit int) int {
	if 6*len(s) <= limit {
		return 0
	}
	used := 0
	for i := len(s); i > 0; {
		r, size := utf8.DecodeLastRuneInString(s[:i])
		if used += jsonLen(r, size); used > limit {
			return i
		}
		i -= size
	}
	return 0
}

// clip shortens a text to limit bytes of JSON by leaving out its middle.
func clip(s string, limit int) string {
	if headFits(s, limit) == len(s) {
		return s
	}
	const mark = "\n[... not shown ...]\n"
	half := (limit - 2*len(mark)) / 2
	return s[:headFits(s, half)] + mark + s[tailFits(s, half):]
}

// line makes one bounded line of a text for people.
func line(s string) string { return shortLine(s, maxTitle) }

func shortLine(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	if n := headFits(s, limit); n < len(s) {
		return s[:n] + "..."
	}
	return s
}
