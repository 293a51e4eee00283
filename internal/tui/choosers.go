package tui

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/drover-dev/drover/internal/brief"
	"github.com/drover-dev/drover/internal/catalog"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/picker"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/tool"
)

// openChooser shows a list to choose from.
func (s *screen) openChooser(kind chooserKind) tea.Cmd {
	if a := s.asked(); s.bench == nil || a != nil && a.ready { // which would hide it
		return nil
	}
	c := &chooser{kind: kind}
	var cmd tea.Cmd
	switch kind {
	case chooseModel:
		c.title = "Model"
		c.rows = s.modelRows(s.listings)
		c.status = "asking the engines"
		cmd = s.refreshModels()
	case chooseEffort:
		c.title = "Effort"
		for _, e := range llm.Efforts() {
			c.rows = append(c.rows, row{value: e, text: e.String(), meaning: brief.Effort(e, s.snapshot, s.desk.policy()), current: e == s.bench.selector.Effort()})
		}
	case chooseMode:
		c.title = "Mode"
		for _, m := range tool.Modes() {
			c.rows = append(c.rows, row{value: m, text: m.String(), meaning: brief.Mode(m), current: m == s.mode()})
		}
	case chooseSession:
		c.title = "Session"
		c.status = "reading"
		cmd = s.listSessions()
	}
	c.reset()
	s.chooser = c
	return cmd
}

// refreshModels lists the models again. The list that is known is shown
// meanwhile, and a provider that is dead has a line that says so.
func (s *screen) refreshModels() tea.Cmd {
	return func() tea.Msg {
		listings, err := s.desk.look(s.life)
		return modelsMsg{listings, err}
	}
}

// modelsMsg is a fresh list of models.
type modelsMsg lookedAt

// relisted shows the fresh list of models, if it is still wanted.
func (s *screen) relisted(l lookedAt) {
	status := ""
	if l.err != nil {
		status = l.err.Error()
	} else {
		s.listings = l.listings
	}
	if s.chooser != nil && s.chooser.kind == chooseModel {
		s.chooser.replace(s.modelRows(s.listings))
		s.chooser.status = status
	}
}

func (s *screen) modelRows(listings []catalog.Listing) []row {
	var rows []row
	current := s.snapshot.Target
	listed := false
	for i := range listings {
		l := &listings[i]
		heading := row{text: l.Provider.Name, heading: true}
		if l.Err != nil {
			heading.failed, heading.meaning = true, l.Err.Error()
		} else if len(l.Models) == 0 {
			heading.meaning = "lists no model"
		}
		rows = append(rows, heading)
		models := picker.Order(l.Models)
		for j := range models {
			m := models[j]
			if known, ok := s.desk.opts.Targets.Get(m.Target()); ok {
				m.Window, m.Capabilities = known.Window, known.Capabilities
			}
			r := row{value: m.Target(), text: m.ID, meaning: describeModel(&m), current: m.Target() == current}
			listed = listed || r.current
			rows = append(rows, r)
		}
	}
	if !listed && !current.IsZero() {
		rows = append([]row{{value: current, text: current.String(), meaning: "not listed", current: true}}, rows...)
	}
	return rows
}

func (s *screen) listSessions() tea.Cmd {
	b, now := s.bench, s.now()
	return func() tea.Msg {
		infos, err := s.desk.list(b.dir)
		if err != nil {
			return chooserMsg{kind: chooseSession, status: err.Error()}
		}
		return chooserMsg{kind: chooseSession, rows: sessionRows(infos, b.id, now)}
	}
}

func sessionRows(infos []session.Info, current string, now time.Time) []row {
	var rows []row
	for i := range infos {
		info := &infos[i]
		if info.Turns == 0 && info.ID != current {
			continue
		}
		title := info.Title
		if title == "" {
			title = "(nothing said yet)"
		}
		facts := []string{ago(info.Updated, now), plural(info.Turns, "turn")}
		if !info.Target.IsZero() {
			facts = append(facts, info.Target.String())
		}
		if info.Problem != nil {
			facts = append(facts, info.Problem.Error())
		}
		rows = append(rows, row{value: info.ID, text: title, meaning: strings.Join(facts, " · "), current: info.ID == current})
	}
	return rows
}

// chooserKey works on a key for the list that is open.
func (s *screen) chooserKey(name, text string) (cmd tea.Cmd, done bool) {
	switch name {
	case "esc":
		s.chooser = nil
		return nil, true
	case "enter":
		r := s.chooser.chosen()
		if r == nil {
			// What is typed may be a model that nobody lists.
			if t, err := llm.ParseTarget(s.chooser.filter); s.chooser.kind == chooseModel && err == nil {
				s.chooser = nil
				return s.modelCommand(t.String()), true
			}
			return nil, true
		}
		s.chooser = nil
		return s.chose(r), true
	}
	return nil, s.chooser.key(name, text)
}

func (s *screen) chose(r *row) tea.Cmd {
	switch v := r.value.(type) {
	case llm.Target:
		return s.switchModel(v)
	case llm.Effort:
		s.setEffort(v)
	case tool.Mode:
		s.setMode(v)
	case string:
		if v != s.bench.id {
			return s.switchSession(v)
		}
	}
	return nil
}

// fileList are the files of the session's folder, for completion.
type fileList struct {
	names   []string
	read    time.Time
	reading bool
}

const (
	// maxFiles bounds the files that are completed.
	maxFiles = 20_000
	// filesAge is how old the list of files gets before it is read again.
	filesAge = 10 * time.Second
)

// afterTyping looks what could stand at the cursor.
func (s *screen) afterTyping() tea.Cmd {
	s.armed = false
	wants := s.recomplete()
	if !wants || s.bench == nil || s.files.reading || s.now().Sub(s.files.read) < filesAge {
		return nil
	}
	s.files.reading = true
	b, now := s.bench, s.now()
	return func() tea.Msg {
		names := tool.Files(s.life, b.dir, maxFiles)
		return filesMsg{names: names, read: now}
	}
}

func (s *screen) recomplete() (wantsFiles bool) {
	before := s.completion
	s.completion, wantsFiles = s.composer.complete(s.files.names)
	if s.completion.from == before.from && s.completion.word == before.word {
		s.completion.at = min(before.at, max(0, len(s.completion.choices)-1))
	}
	return wantsFiles
}

// completionKey works on a key for the completion that is shown.
func (s *screen) completionKey(name string) bool {
	c := &s.completion
	switch name {
	case "up":
		c.at = (c.at + len(c.choices) - 1) % len(c.choices)
	case "down":
		c.at = (c.at + 1) % len(c.choices)
	case "tab":
		s.accept()
	case "enter":
		// A command that is written out is run, not completed.
		if _, _, whole := readCommand(s.composer.text); whole {
			return false
		}
		s.accept()
	default:
		return false
	}
	return true
}

// accept writes the marked word.
func (s *screen) accept() {
	c := s.completion
	s.completion = completion{}
	s.composer.cut(c.from, c.from+len(c.word))
	s.composer.insert(c.choices[c.at].text + " ")
}

func openImage(path string, size int64) (*llm.Image, error) {
	if size > llm.MaxImageBytes {
		return nil, fmt.Errorf("%s has %s bytes, more than %s", path, brief.Thousands(int(size)), brief.Thousands(llm.MaxImageBytes))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return llm.NewImage(filepath.Base(path), data)
}
