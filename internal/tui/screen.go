package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/tool"
)

// screen is everything that the UI knows. Messages change it in Update; View
// shows it and changes nothing that could be seen.
type screen struct {
	desk *desk
	life context.Context // of the UI: what it starts ends with it
	now  func() time.Time

	width, height int
	transcript    transcript
	composer      composer
	completion    completion
	files         fileList
	chooser       *chooser
	log           transcript // what was planned, trimmed, retried and refused
	logOpen       bool
	details       bool

	bench    *bench // nil until it is open
	listings []catalog.Listing
	looking  bool
	again    bool   // they are looked for again soon
	found    bool   // a model was chosen once
	none     *entry // what was tried, while there is no model

	pending  bool // the handshake with the selected model is not over
	selected int  // counts the selections, to tell the newest handshake
	switched bool // the person chose the model that it is with
	snapshot llm.Snapshot
	meter    meter
	eager    bool // send what is written when the handshake is over

	turn   *turn // nil while none runs
	queued []queued
	asks   []*ask

	leaving  int // counts the presses of Ctrl-C that could have left
	armed    bool
	presses  int // of keys, to notice that somebody is typing
	frame    int // of the mark that turns
	ticking  bool
	failed   error // the reason to leave
	quitting bool
}

// turn is a turn that runs.
type turn struct {
	cancel     context.CancelFunc
	cancelling bool
	started    time.Time
	prompt     *entry
	state      string // what it does, for the line above the composer
	answer     *entry
	thought    *entry
	thinking   time.Time
	cards      map[string]*entry
	steering   []queued // given to the turn and not taken yet
	retry      *entry   // the line that says that a request is sent again
	store      string   // the newest notice about saving

	sent, first, last time.Time // of the request: sent, its first and last piece
}

// queued is a prompt that waits.
type queued struct {
	parts []llm.Part
	text  string
}

// Messages.
type (
	batch      []event // of a turn
	tickMsg    time.Time
	lookMsg    struct{}
	lookedMsg  lookedAt
	openedMsg  opened
	probedMsg  probed
	disarmMsg  int
	armMsg     struct{ ask *ask }
	imageMsg   attached
	insertMsg  string
	filesMsg   fileList
	chooserMsg struct {
		kind   chooserKind
		rows   []row
		status string
	}
	reportMsg struct {
		text string
		err  error
	}
)

type lookedAt struct {
	listings []catalog.Listing
	err      error
}

type opened struct {
	bench *bench
	err   error
}

type attached struct {
	image *llm.Image
	err   error
}

// minWidth is the width down to which lines are made to fit; the right side of a
// narrower terminal is cut.
const minWidth = 20

// How often things happen.
const (
	// lookAgain is how soon engines are looked for again while there is none.
	lookAgain = 3 * time.Second
	// tick is how often the mark of a running turn turns.
	tick = 200 * time.Millisecond
	// leaveTime is how soon the second Ctrl-C has to follow the first.
	leaveTime = 2 * time.Second
	// quiet is how long nobody may have typed before a question takes keys: what
	// was meant for the composer must not answer it.
	quiet = 400 * time.Millisecond
	// longQuiet is the same where a prompt is half written.
	longQuiet = 1500 * time.Millisecond
)

func newScreen(ctx context.Context, d *desk) *screen {
	s := &screen{
		desk: d, life: ctx, now: time.Now, width: 80, height: 24,
		transcript: newTranscript(), log: newTranscript(),
	}
	s.log.tight = true
	return s
}

// Init implements [tea.Model]. The first frame is drawn without waiting for any
// of this.
func (s *screen) Init() tea.Cmd {
	return tea.Batch(s.openSession(s.desk.opts.Resume), s.look(), s.tick())
}

// Update implements [tea.Model].
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := s.update(msg)
	if s.busy() && !s.ticking {
		cmd = tea.Batch(cmd, s.tick())
	}
	return s, cmd
}

func (s *screen) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = max(msg.Width, minWidth), max(msg.Height, 1)
	case tea.KeyPressMsg:
		s.presses++
		return s.key(msg)
	case tea.PasteMsg:
		s.presses++
		return s.paste(msg.Content)
	case tea.MouseWheelMsg:
		s.wheel(msg)
	case tea.MouseClickMsg:
		s.click(msg)
	case batch:
		return s.events(msg)
	case tickMsg:
		s.ticking = false
		s.frame++
	case lookMsg:
		s.again = false
		return s.look()
	case lookedMsg:
		return s.looked(lookedAt(msg))
	case openedMsg:
		return s.opened(opened(msg))
	case probedMsg:
		return s.probed(probed(msg))
	case disarmMsg:
		if int(msg) == s.leaving {
			s.armed = false
		}
	case armMsg:
		return s.arm(msg.ask)
	case imageMsg:
		s.attach(attached(msg))
	case insertMsg:
		s.written(s.composer.insert(string(msg)))
	case filesMsg:
		s.files = fileList(msg)
		s.recomplete()
	case chooserMsg:
		if s.chooser != nil && s.chooser.kind == msg.kind {
			s.chooser.replace(msg.rows)
			s.chooser.status = msg.status
		}
	case modelsMsg:
		s.relisted(lookedAt(msg))
	case reportMsg:
		if msg.err != nil {
			s.fail(msg.err)
		} else {
			s.transcript.add(&report{msg.text})
			s.transcript.showLast()
		}
	}
	return nil
}

// busy reports whether something turns.
func (s *screen) busy() bool { return s.turn != nil || s.pending || s.looking }

func (s *screen) tick() tea.Cmd {
	s.ticking = true
	return tea.Tick(tick, func(t time.Time) tea.Msg { return tickMsg(t) })
}

// say shows something that drover says.
func (s *screen) say(kind noteKind, text string) *entry {
	return s.transcript.add(&note{text: text, kind: kind})
}

func (s *screen) fail(err error) *entry { return s.say(noteError, s.desk.opts.Explain(err)) }

// note writes a line of the activity log.
func (s *screen) note(at time.Time, kind noteKind, text string) {
	s.log.add(&note{text: at.Format("15:04:05") + "  " + text, kind: kind})
	if n := len(s.log.items) - maxLog; n > 0 {
		s.log.items = s.log.items[n:]
	}
}

// maxLog is how many lines the activity log keeps.
const maxLog = 5000

func (s *screen) openSession(id string) tea.Cmd {
	return func() tea.Msg {
		b, err := s.desk.openSession(id)
		return openedMsg{b, err}
	}
}

// opened shows the session. When the first one cannot be opened there is nothing
// to show, and the UI ends.
func (s *screen) opened(o opened) tea.Cmd {
	if o.err != nil {
		if s.bench == nil {
			s.failed = o.err
			return s.quit()
		}
		s.fail(o.err)
		return nil
	}
	before := s.bench
	b := o.bench
	s.bench, s.snapshot, s.meter, s.queued, s.pending = b, llm.Snapshot{}, meter{}, nil, false
	s.transcript.items, s.transcript.following = nil, true
	id := ""
	if b.began {
		id = b.id
	}
	s.transcript.add(&welcome{dir: b.dir, session: id})
	s.transcript.replay(b.messages, b.trim)
	s.transcript.setDetails(s.details)
	for _, m := range b.messages {
		if m.Role == llm.User && !m.Continuation {
			s.composer.remember(m.Text())
		}
	}
	for _, n := range b.notes {
		s.say(noteInfo, n)
	}
	if before != nil && !b.restored {
		if t := before.selector.Target(); !t.IsZero() {
			b.wanted = t
		}
		b.selector.SetEffort(before.selector.Effort())
	}
	s.files = fileList{}
	s.found = false
	return s.chooseTarget()
}

func (s *screen) look() tea.Cmd {
	s.looking = true
	return func() tea.Msg {
		listings, err := s.desk.look(s.life)
		return lookedMsg{listings, err}
	}
}

func (s *screen) looked(l lookedAt) tea.Cmd {
	s.looking = false
	if l.err != nil {
		return s.nothingFound(l.err)
	}
	s.listings = l.listings
	for i := range l.listings {
		if err := l.listings[i].Err; err != nil {
			s.note(s.now(), noteWarning, l.listings[i].Provider.ID+": "+err.Error())
		}
	}
	return s.chooseTarget()
}

// chooseTarget gives the session a model as soon as both are known, and looks
// again later when there is none.
func (s *screen) chooseTarget() tea.Cmd {
	if s.bench == nil || s.listings == nil || s.found {
		return nil
	}
	t, text, err := s.desk.choose(s.bench, s.listings)
	if err != nil {
		return s.nothingFound(err)
	}
	s.found = true
	if s.none != nil {
		s.none.item = &note{text: "found " + t.Provider}
		s.none.touch()
		s.none = nil
	}
	if text != "" {
		s.say(noteInfo, text)
	}
	return s.selectTarget(t)
}

// nothingFound shows why there is no model, and looks again later.
func (s *screen) nothingFound(err error) tea.Cmd {
	s.none = s.replaceNone(s.desk.opts.Explain(err))
	if s.eager {
		s.noModelYet()
	}
	if s.again {
		return nil
	}
	s.again = true
	return tea.Tick(lookAgain, func(time.Time) tea.Msg { return lookMsg{} })
}

// replaceNone shows why there is no model, in place of what was shown before.
func (s *screen) replaceNone(text string) *entry {
	n := &note{text: text + "\n\nLooking again every few seconds.", kind: noteWarning}
	if s.none == nil {
		return s.transcript.add(n)
	}
	if old, ok := s.none.item.(*note); ok && old.text == n.text {
		return s.none
	}
	s.none.item = n
	s.none.touch()
	return s.none
}

// selectTarget makes t the session's model and waits for the handshake.
func (s *screen) selectTarget(t llm.Target) tea.Cmd {
	b := s.bench
	s.found = true
	b.selector.Select(s.life, t)
	s.pending = true
	s.selected++
	n := s.selected
	s.snapshot, _ = b.selector.Current()
	return func() tea.Msg {
		p := s.desk.probe(s.life, b)
		p.selection = n
		return probedMsg(p)
	}
}

// probed takes in what the handshake gave. What was asked about another model or
// another session is dropped.
func (s *screen) probed(p probed) tea.Cmd {
	if p.bench != s.bench || p.selection != s.selected {
		return nil
	}
	s.pending = false
	if p.err != nil {
		s.fail(p.err)
		s.eager = false
		return nil
	}
	s.snapshot = p.snapshot
	if s.turn == nil {
		s.meter = meter{used: p.estimate, window: p.window, estimated: true}
	}
	text := "model " + p.snapshot.Target.String()
	if facts := describeModel(&p.info); facts != "" {
		text += ": " + facts
	}
	if s.switched || len(s.bench.messages) == 0 {
		s.say(noteInfo, text)
	}
	s.switched = false
	s.note(s.now(), noteInfo, text)
	for _, n := range p.info.Notes {
		s.say(noteWarning, n)
	}
	if s.eager {
		s.eager = false
		return s.submit()
	}
	return nil
}

func (s *screen) quit() tea.Cmd {
	s.quitting = true
	if s.turn != nil {
		s.turn.cancel()
	}
	return tea.Quit
}

func (s *screen) mode() tool.Mode { return s.desk.gate.Mode() }

// startTurn begins a turn.
func (s *screen) startTurn(parts []llm.Part) tea.Cmd {
	ctx, cancel := context.WithCancel(s.life)
	t := &turn{cancel: cancel, started: s.now(), cards: make(map[string]*entry), state: "planning"}
	t.prompt = s.transcript.add(&prompt{text: promptText(parts), images: imageNames(parts)})
	s.turn = t
	s.transcript.following = true
	b := s.bench
	return func() tea.Msg {
		defer cancel()
		s.desk.turn(ctx, b, parts)
		return nil
	}
}

// cancelTurn cancels the running turn; what waits behind it comes back.
func (s *screen) cancelTurn() {
	if s.turn == nil || s.turn.cancelling {
		return
	}
	s.turn.cancelling = true
	s.turn.state = "cancelling"
	s.turn.cancel()
}

// endTurn takes in how a turn ended, and begins with the next prompt.
func (s *screen) endTurn(end agent.End, at time.Time) tea.Cmd {
	t := s.turn
	s.closeParts(at)
	for _, e := range t.cards {
		if c := e.item.(*card); c.state != cardDone {
			c.finish(tool.Result{Status: tool.StatusUnknown, Text: c.output}, at)
			e.touch()
		}
	}
	s.turn, s.asks = nil, nil
	switch end.Reason {
	case agent.EndCancelled:
		s.say(noteWarning, "cancelled")
	case agent.EndError:
		if end.Err != nil {
			s.fail(end.Err)
			s.note(at, noteError, end.Err.Error())
		}
	}
	var back []queued
	for _, parts := range end.Unsent {
		back = append(back, queued{parts, promptText(parts)})
	}
	s.queued = append(back, s.queued...)
	if s.quitting || len(s.queued) == 0 {
		return nil
	}
	if end.Reason == agent.EndCompleted || end.Reason == agent.EndMaxTokens {
		next := s.queued[0]
		s.queued = s.queued[1:]
		return s.startTurn(next.parts)
	}
	s.takeBack()
	return nil
}

// takeBack puts the prompts that wait back into the composer.
func (s *screen) takeBack() {
	text := ""
	for _, q := range s.queued {
		if q.text != "" {
			text += q.text + "\n"
		}
		for _, p := range q.parts {
			if img, ok := p.(*llm.Image); ok {
				s.composer.images = append(s.composer.images, img)
			}
		}
	}
	s.queued = nil
	if s.composer.text == "" && len(text) > 0 {
		text = text[:len(text)-1]
	}
	s.written(s.composer.set(text + s.composer.text))
}
