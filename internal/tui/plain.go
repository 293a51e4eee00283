package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/brief"
	"github.com/drover-dev/drover/internal/budget"
	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/picker"
	"github.com/drover-dev/drover/internal/tool"
)

// plain is the UI on lines: what was written is never changed, and nothing has a
// colour.
type plain struct {
	desk  *desk
	life  context.Context
	out   io.Writer
	lines <-chan string
	typed []string // lines that wait for their turn
	over  bool     // no line comes any more
	stops <-chan os.Signal

	bench    *bench
	listings []catalog.Listing
	midLine  bool
	thinking bool
	stopped  time.Time // the last interrupt
	err      error     // of writing
}

// pasteQuiet is how long no line comes behind the last one of a text that was pasted.
const pasteQuiet = 50 * time.Millisecond

// maxTyped is how many lines are taken from the terminal before they are wanted.
const maxTyped = 64

// RunPlain is [Run] on lines, for screen readers and for terminals that can do no
// more.
func RunPlain(ctx context.Context, opts *Options) (Ended, error) {
	// An interrupt cancels the turn and not everything, so it is taken here.
	stops := make(chan os.Signal, 2)
	signal.Notify(stops, os.Interrupt)
	defer signal.Stop(stops)
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	context.AfterFunc(ctx, func() {
		if !strings.HasPrefix(context.Cause(ctx).Error(), os.Interrupt.String()) {
			stop()
		}
	})
	p := &plain{desk: newDesk(opts), life: life, out: opts.Out, lines: readLines(opts.In, life), stops: stops}
	err := p.run()
	stop()
	ended := p.desk.ended()
	close(p.desk.over)
	return ended, errors.Join(err, p.err, p.desk.close())
}

func (p *plain) run() error {
	var err error
	if p.bench, err = p.desk.openSession(p.desk.opts.Resume); err != nil {
		return err
	}
	p.say("drover in %s. Type a prompt; /help lists the commands, /quit leaves.", p.bench.dir)
	p.replay()
	p.findModel()
	for p.life.Err() == nil && p.err == nil {
		text, ok := p.read("> ")
		if !ok {
			return nil
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		if name, argument, isCommand := readCommand(text); isCommand {
			if name == "quit" {
				return nil
			}
			p.command(name, argument)
			continue
		}
		if p.bench.selector.Target().IsZero() && !p.findModel() {
			continue
		}
		p.turn([]llm.Part{llm.Text(text)})
	}
	return p.life.Err()
}

// say writes a line of drover's.
func (p *plain) say(format string, args ...any) {
	if p.midLine {
		p.write("\n")
	}
	p.write(clean(fmt.Sprintf(format, args...)) + "\n")
	p.thinking = false
}

func (p *plain) fail(err error) { p.say("Error: %s", p.desk.opts.Explain(err)) }

func (p *plain) write(text string) {
	if text == "" || p.err != nil {
		return
	}
	p.midLine = !strings.HasSuffix(text, "\n")
	_, p.err = io.WriteString(p.out, text)
}

// clean is text with nothing in it that changes a terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && hidden(r) {
			return '\uFFFD'
		}
		return r
	}, strings.ReplaceAll(s, "\r\n", "\n"))
}

// read gives the next prompt: a line, with those behind it as long as they end
// with a backslash. ok is false when the person wants to leave.
func (p *plain) read(mark string) (text string, ok bool) {
	interrupted := false
	p.write(mark)
	for {
		line, got := "", false
		if len(p.typed) > 0 {
			line, p.typed, got = p.typed[0], p.typed[1:], true
		} else if p.over {
			return "", false
		} else {
			select {
			case line, got = <-p.lines:
				if !got {
					p.over = true
					p.write("\n")
					return "", false
				}
			case <-p.stops:
				if p.again() || interrupted {
					p.write("\n")
					return "", false
				}
				interrupted, text = true, "" // what was begun is given up
				p.say("\nPress Ctrl-C again to leave.")
				p.write(mark)
				continue
			case <-p.life.Done():
				return "", false
			}
		}
		p.midLine, p.stopped = false, time.Time{} // the person ended the line, and stays
		if head, more := strings.CutSuffix(line, `\`); more {
			text += head + "\n"
			continue
		}
		return text + line, true
	}
}

// findModel looks for engines and chooses a model, or says what was tried.
func (p *plain) findModel() bool {
	p.say("Looking for engines.")
	ctx, done := p.interruptible()
	listings, err := p.desk.look(ctx)
	interrupted := ctx.Err() != nil
	done()
	switch {
	case interrupted:
		p.say("\nCancelled.")
		return false
	case err != nil:
		p.fail(err)
		return false
	}
	p.listings = listings
	t, note, err := p.desk.choose(p.bench, listings)
	if err != nil {
		p.fail(err)
		p.say("Every prompt looks again.")
		return false
	}
	if note != "" {
		p.say("%s", note)
	}
	return p.selectModel(t)
}

func (p *plain) selectModel(t llm.Target) bool {
	p.bench.selector.Select(p.life, t)
	res := p.desk.probe(p.life, p.bench)
	if res.err != nil {
		p.fail(res.err)
		return false
	}
	text := "Model " + t.String()
	if facts := describeModel(&res.info); facts != "" {
		text += ": " + facts
	}
	p.say("%s.", text)
	for _, n := range res.info.Notes {
		p.say("Note: %s", n)
	}
	return true
}

// turn runs a turn and writes what happens.
func (p *plain) turn(parts []llm.Part) {
	ctx, cancel := context.WithCancel(p.life)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.desk.turn(ctx, p.bench, parts)
	}()
	trim, ended := "", false
	for !ended {
		select {
		case ev := <-p.desk.events:
			switch what := ev.what.(type) {
			case agent.Notice:
				if what.Kind == agent.NoticeTrim {
					trim = what.Text // said once, with its last figures
					continue
				}
				p.event(what)
			case agent.End:
				if trim != "" {
					p.say("Note: %s", trim)
				}
				p.end(what)
				ended = true
			case question:
				p.ask(ctx, what)
			case withdrawn:
			default:
				p.event(what)
			}
			if p.err != nil {
				cancel()
			}
		case <-p.stops:
			cancel()
			p.cancelling()
		}
	}
	// A title may still be written; the next turn ends that.
	go func() { <-done }()
}

func (p *plain) event(what any) {
	switch ev := what.(type) {
	case agent.Waiting:
		p.say("The engine is reading the prompt, %s.", short(ev.Elapsed))
	case agent.Text:
		p.thinking = false
		p.write(clean(string(ev)))
	case agent.Reasoning:
		if !p.thinking {
			p.say("Thinking.")
			p.thinking = true
		}
	case agent.CallPending:
		c := newCard(ev.Call, ev.Action)
		title, _, _ := strings.Cut(c.title(), "\n")
		p.say("Tool %s: %s", ev.Call.Name, title)
	case agent.CallFinished:
		first, _, more := strings.Cut(strings.TrimSpace(withoutSequences(ev.Result.Text)), "\n")
		if more {
			first += " …"
		}
		p.say("Tool %s, %s: %s", ev.Name, brief.Outcome(ev.Result.Status), first)
	case agent.Notice:
		p.say("Note: %s", ev.Text)
	case agent.Retrying:
		p.say("Note: %s; trying again in %s.", ev.Err.Message, short(ev.Wait))
	case agent.Usage:
		p.bench.spent.Add(ev.Target, &ev.Usage)
		text := ""
		if ev.Window.Tokens > 0 {
			m := meter{used: ev.Usage.PromptTokens + ev.Usage.CompletionTokens, window: ev.Window, estimated: ev.Usage.Estimated}
			text = "Window: " + m.String() + "."
		}
		if cost := p.desk.cost(p.bench, p.listings); cost != "" {
			text = strings.TrimSpace(text + " Cost so far: " + cost + ".")
		}
		if text != "" {
			p.say("%s", text)
		}
	}
}

func (p *plain) end(end agent.End) {
	switch end.Reason {
	case agent.EndCancelled:
		p.say("Cancelled.")
	case agent.EndError:
		p.fail(end.Err)
	default:
		if p.midLine {
			p.write("\n")
		}
	}
}

// cancelling says that the turn is cancelled. Lines that wait behind it are given up,
// as a terminal does with what is typed before an interrupt: the rest of a text that
// was pasted would become a turn for each of its lines. The next interrupt ends that,
// whatever still comes, and leaves.
func (p *plain) cancelling() {
	p.over = p.again() || p.over
	p.say("\nCancelling.")
	given := len(p.typed)
	p.typed = nil
	for more := true; more; {
		select {
		case <-p.stops:
			p.over, more = true, false
			continue
		case <-p.life.Done():
			more = false
			continue
		default: // they go before lines, which may come without an end
		}
		select {
		case _, more = <-p.lines:
			if more {
				given++
			}
		case <-time.After(pasteQuiet):
			more = false
		}
	}
	if given > 0 {
		p.say("Given up: %s typed meanwhile.", plural(given, "line"))
	}
}

// again notes an interrupt, and reports whether it came soon behind another one: then
// the person wants to leave.
func (p *plain) again() bool {
	now := time.Now()
	soon := now.Sub(p.stopped) < leaveTime
	p.stopped = now
	return soon
}

// ask asks about a call. Lines that were typed before are no answer.
func (p *plain) ask(ctx context.Context, q question) {
	for len(p.lines) > 0 {
		p.typed = append(p.typed, <-p.lines)
	}
	p.say("Question: %s wants to do this: %s", q.Tool, q.Action.Title)
	c := newCard(llm.ToolCall{ID: q.CallID, Name: q.Tool, Arguments: q.Arguments}, q.Action)
	c.asking = true
	switch {
	case q.Action.Diff != nil:
		p.say("%s", strings.TrimRight(q.Action.Diff.Unified(strings.TrimPrefix(q.Action.Title, "/")), "\n"))
	case q.Action.Access == tool.AccessExternal:
		p.say("%s", q.Arguments)
	case q.Action.Command != "":
		p.say("%s", q.Action.Command)
	}
	answers := permissions(q.Action.Scopes)
	for _, a := range answers {
		p.say("  %s: %s", a.key, a.text)
	}
	for {
		p.write("Allow? ")
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.over = true
				p.say("No answer comes any more: rejected.")
				q.answer <- tool.RejectOnce
				return
			}
			p.midLine = false
			for _, a := range answers {
				if strings.EqualFold(strings.TrimSpace(line), a.key) {
					q.answer <- a.decision
					return
				}
			}
		case <-p.stops:
			q.answer <- tool.Cancelled
			p.cancelling()
			return
		case <-ctx.Done():
			return
		}
	}
}

// replay writes the conversation that goes on.
func (p *plain) replay() {
	for _, n := range p.bench.notes {
		p.say("Note: %s", n)
	}
	for i := range p.bench.messages {
		m := &p.bench.messages[i]
		switch m.Role {
		case llm.User:
			if !agent.IsNote(m) {
				p.say("> %s", strings.Join(append(imageNames(m.Parts), m.Text()), " "))
			}
		case llm.Assistant:
			if text := m.Text(); text != "" {
				p.say("%s", text)
			}
			for _, call := range m.Calls {
				p.say("Tool %s: %s", call.Name, newCard(call, nil).title())
			}
		}
	}
	if p.bench.trim != "" {
		p.say("Note: %s", p.bench.trim)
	}
}

// command answers a command on lines.
func (p *plain) command(name, argument string) {
	text, err := p.commandText(name, argument)
	if err != nil {
		p.fail(err)
		return
	}
	if text != "" {
		p.say("%s", strings.TrimRight(text, "\n"))
	}
}

func (p *plain) commandText(name, argument string) (string, error) {
	b := p.bench
	switch name {
	case "help":
		return plainHelp(), nil
	case "model":
		return p.model(argument)
	case "effort":
		if argument == "" {
			return choices("effort", b.selector.Effort().String(), effortLines(b, p.desk.policy())), nil
		}
		e, err := llm.ParseEffort(strings.ToLower(argument))
		if err != nil {
			return "", err
		}
		b.selector.SetEffort(e)
		return "Effort " + e.String() + ".", nil
	case "mode":
		if argument == "" {
			return choices("mode", p.desk.gate.Mode().String(), modeLines()), nil
		}
		m, err := tool.ParseMode(strings.ToLower(argument))
		if err != nil {
			return "", err
		}
		p.desk.gate.SetMode(m)
		return "Mode " + m.String() + ": " + brief.Mode(m) + ".", nil
	case "context":
		return contextText(p.life, b)
	case "tools":
		return toolsText(p.life, b, p.desk.policy(), argument)
	case "memory":
		return brief.Notes(b.agent.Memory(), argument)
	case "sessions":
		return p.sessions(argument)
	case "new":
		return p.switchTo("")
	}
	return "/" + name + " is for the screen alone.", nil
}

func plainHelp() string {
	var b strings.Builder
	for _, c := range commands {
		if c.name != "copy" && c.name != "log" {
			fmt.Fprintf(&b, "%s: %s\n", strings.TrimSpace("/"+c.name+" "+c.argument), c.meaning)
		}
	}
	b.WriteString(`A line that ends with \ goes on in the next. Ctrl-C cancels; twice, or Ctrl-D, leaves.`)
	return b.String()
}

// choices lists what an option can be.
func choices(name, current string, lines []string) string {
	return fmt.Sprintf("The %s is %s. /%s NAME chooses one of these:\n%s", name, current, name, strings.Join(lines, "\n"))
}

func effortLines(b *bench, policy *budget.Policy) []string {
	snapshot, _ := b.selector.Current()
	var lines []string
	for _, e := range llm.Efforts() {
		lines = append(lines, e.String()+": "+brief.Effort(e, snapshot, policy))
	}
	return lines
}

func modeLines() []string {
	var lines []string
	for _, m := range tool.Modes() {
		lines = append(lines, m.String()+": "+brief.Mode(m))
	}
	return lines
}

func (p *plain) model(argument string) (string, error) {
	if argument != "" {
		t, err := llm.ParseTarget(argument)
		if err == nil {
			err = p.desk.opts.Provided(t.Provider)
		}
		if err == nil {
			p.selectModel(t)
		}
		return "", err
	}
	listings, err := p.desk.look(p.life)
	if err != nil {
		return "", err
	}
	p.listings = listings
	var lines []string
	for i := range listings {
		l := &listings[i]
		if l.Err != nil {
			lines = append(lines, l.Provider.ID+": "+l.Err.Error())
		}
		models := picker.Order(l.Models)
		for j := range models {
			lines = append(lines, models[j].Target().String()+"  "+describeModel(&models[j]))
		}
	}
	return choices("model", p.bench.selector.Target().String(), lines), nil
}

func (p *plain) sessions(id string) (string, error) {
	if id != "" {
		return p.switchTo(id)
	}
	infos, err := p.desk.list(p.bench.dir)
	if err != nil {
		return "", err
	}
	var lines []string
	for _, r := range sessionRows(infos, p.bench.id, time.Now()) {
		lines = append(lines, fmt.Sprintf("%s  %s (%s)", r.value, r.text, r.meaning))
	}
	return choices("session", p.bench.id, lines), nil
}

func (p *plain) switchTo(id string) (string, error) {
	b, err := p.desk.openSession(id)
	if err != nil {
		return "", err
	}
	if !b.restored {
		if t := p.bench.selector.Target(); !t.IsZero() {
			b.wanted = t
		}
		b.selector.SetEffort(p.bench.selector.Effort())
	}
	p.bench = b
	p.say("Session %s.", b.id)
	p.replay()
	if t, note, err := p.desk.choose(b, p.listings); err != nil {
		p.fail(err)
	} else {
		if note != "" {
			p.say("%s", note)
		}
		p.selectModel(t)
	}
	return "", nil
}
