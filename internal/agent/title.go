package agent

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/session"
)

// maxTitle bounds a title, in characters.
const maxTitle = 60

// titleWords asks for a title behind the conversation itself: the request begins
// with the bytes of the turn's last one, so an engine computes little for it and
// loses nothing of what it has stored.
const titleWords = "[drover: give this conversation a title of three to six words, in the language of the user. " +
	"Answer with the title alone and call no tool.]"

const (
	// titleOutput is the output asked for a title, in tokens: room for a model
	// that thinks first.
	titleOutput = 512
	// longestTitling bounds the request for a title. The turn is over, so a slow
	// engine must not be kept busy for long.
	longestTitling = time.Minute
)

// title names the session after the first words of its first prompt.
func (t *turn) title(parts []llm.Part) {
	if t.Title() != "" {
		return
	}
	m := llm.Message{Parts: parts}
	line, _, _ := strings.Cut(strings.TrimSpace(m.Text()), "\n")
	if line = shortTitle(line); line != "" {
		t.append(&session.SessionInfo{Title: line})
	}
}

// WriteTitle lets the model write the session's title where [Options.ModelTitles]
// asks for it, once, after the first turn, and reports whether the title has
// changed. Front ends call it when they have shown the end of a turn. A turn that
// begins ends it, and whatever fails leaves the title as it was.
func (a *Agent) WriteTitle(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, longestTitling)
	defer cancel()
	select {
	case a.turns <- struct{}{}:
	default:
		return false
	}
	defer func() { <-a.turns }()
	a.mu.Lock()
	due := a.opts.ModelTitles && !a.closed && !a.titled && a.waiting == 0 &&
		a.state.Turns == 1 && a.state.End != nil && a.state.End.Reason == session.EndCompleted
	a.titled = a.titled || due
	a.stopTitle = cancel
	a.mu.Unlock()
	if !due {
		return false
	}
	t := &turn{Agent: a, emit: func(Event) {}, around: a.surroundings(), remember: a.memory.Digest()}
	title, err := t.writeTitle(ctx)
	if err != nil {
		a.opts.Logger.Debug("agent: no title from the model", "error", err)
	}
	return title != "" && t.gate(&session.SessionInfo{Title: title}) == nil
}

// waitForTurn counts a turn, or the end of the session, that waits for its time:
// a request for a title gives way to it.
func (a *Agent) waitForTurn(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting += n
	if a.stopTitle != nil {
		a.stopTitle()
	}
}

// writeTitle makes the request. The answer is logged and no part of the
// conversation.
func (t *turn) writeTitle(ctx context.Context) (string, error) {
	snap, err := t.current(ctx)
	if err != nil {
		return "", err
	}
	t.maxOutput = titleOutput
	plan, err := t.plan(&snap, titleWords)
	if err != nil {
		return "", err
	}
	ans, err := t.stream(ctx, plan)
	rec := answerRecord(&snap, ans)
	rec.Discarded, rec.Interrupted = true, err != nil
	t.append(rec)
	if err != nil {
		return "", err
	}
	return readTitle(rec.Text), nil
}

// readTitle finds the title in what a model answered: its first line with a
// letter or digit in it, without the marks that models like to add.
func readTitle(answer string) string {
	for line := range strings.Lines(answer) {
		if name, rest, ok := strings.Cut(line, ":"); ok && strings.EqualFold(strings.Trim(name, "*# "), "title") {
			line = rest
		}
		line = strings.TrimFunc(line, func(r rune) bool {
			return unicode.IsSpace(r) || strings.ContainsRune("\"'`*#_.“”„«»", r)
		})
		if strings.ContainsFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			return shortTitle(line)
		}
	}
	return ""
}

// shortTitle is a line without control characters, at most maxTitle long.
func shortTitle(line string) string {
	line = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, line)
	line = strings.Join(strings.Fields(line), " ")
	if utf8.RuneCountInString(line) > maxTitle {
		line = strings.TrimSpace(string([]rune(line)[:maxTitle])) + "…"
	}
	return line
}
