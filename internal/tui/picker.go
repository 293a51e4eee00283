package tui

import (
	"strings"
	"unicode/utf8"
)

// chooser is a list to choose from, with a filter that is typed.
type chooser struct {
	title  string
	kind   chooserKind
	rows   []row
	filter string
	at     int    // the marked one of those that are shown
	status string // shown beside the title: what is still loading
}

type chooserKind uint8

const (
	chooseModel chooserKind = iota
	chooseEffort
	chooseMode
	chooseSession
)

// row is a line of a list. A heading cannot be chosen.
type row struct {
	value   any
	text    string
	meaning string
	heading bool
	current bool
	failed  bool // a heading with a trouble
}

// shown are the rows that the filter leaves: those whose words it holds, below
// their headings.
func (c *chooser) shown() []row {
	if c.filter == "" {
		return c.rows
	}
	words := strings.Fields(strings.ToLower(c.filter))
	var list []row
	var heading *row
	for i := range c.rows {
		r := &c.rows[i]
		if r.heading {
			heading = r
			continue
		}
		text := strings.ToLower(r.text + " " + r.meaning)
		if heading != nil {
			text += " " + strings.ToLower(heading.text)
		}
		all := true
		for _, w := range words {
			all = all && strings.Contains(text, w)
		}
		if !all {
			continue
		}
		if heading != nil {
			list = append(list, *heading)
			heading = nil
		}
		list = append(list, *r)
	}
	return list
}

// reset marks the current row, or the first.
func (c *chooser) reset() {
	c.at = 0
	rows := c.shown()
	for i, r := range rows {
		if r.current && c.filter == "" {
			c.at = i
			return
		}
	}
	c.skip(rows, 1)
}

// replace shows other rows and keeps the marked one marked if it is still there.
func (c *chooser) replace(rows []row) {
	marked := c.chosen()
	c.rows = rows
	c.reset()
	if marked == nil {
		return
	}
	for i, r := range c.shown() {
		if !r.heading && r.value == marked.value {
			c.at = i
			return
		}
	}
}

// skip moves on to the next row that can be chosen.
func (c *chooser) skip(rows []row, by int) {
	for c.at >= 0 && c.at < len(rows) && rows[c.at].heading {
		c.at += by
	}
}

func (c *chooser) move(by int) {
	rows := c.shown()
	before := c.at
	c.at = min(max(c.at+by, 0), max(0, len(rows)-1))
	step := 1
	if by < 0 {
		step = -1
	}
	if c.skip(rows, step); c.at < 0 || c.at >= len(rows) {
		c.at = before
	}
}

// chosen is the marked row, nil if there is none.
func (c *chooser) chosen() *row {
	rows := c.shown()
	if c.at < 0 || c.at >= len(rows) || rows[c.at].heading {
		return nil
	}
	return &rows[c.at]
}

// key reports whether the key was for the list: it moves or filters.
func (c *chooser) key(name, text string) bool {
	switch name {
	case "up", "ctrl+p":
		c.move(-1)
	case "down", "ctrl+n", "tab":
		c.move(1)
	case "pgup":
		c.move(-8)
	case "pgdown":
		c.move(8)
	case "backspace":
		if c.filter != "" {
			_, size := utf8.DecodeLastRuneInString(c.filter)
			c.filter = c.filter[:len(c.filter)-size]
			c.reset()
		}
	case "ctrl+u":
		c.filter = ""
		c.reset()
	default:
		if text == "" {
			return false
		}
		c.filter += text
		c.reset()
	}
	return true
}

// view shows the list in at most height lines.
func (c *chooser) view(width, height int) []string {
	head := []run{{c.title, bold}}
	if c.filter != "" {
		head = append(head, run{"  " + c.filter, cyan}, run{"▏", cyan})
	} else {
		head = append(head, run{"  type to filter · Enter chooses · Esc closes", faint})
	}
	if c.status != "" {
		head = append(head, run{"  " + c.status, yellow})
	}
	lines := []string{oneLine(width, head...)}
	rows := c.shown()
	if len(rows) == 0 {
		none := "nothing matches"
		if c.filter == "" {
			none = "nothing to choose from"
		}
		return append(lines, oneLine(width, run{"  " + none, faint}))
	}
	height = max(height-1, 1)
	first := min(max(0, c.at-height/2), max(0, len(rows)-height))
	wide := 0
	for _, r := range rows {
		if !r.heading {
			wide = max(wide, columns(cells(run{r.text, 0})))
		}
	}
	wide = min(wide, width/2)
	for i := first; i < min(len(rows), first+height); i++ {
		lines = append(lines, rows[i].view(width, wide, i == c.at))
	}
	return lines
}

func (r *row) view(width, wide int, marked bool) string {
	if r.heading {
		s := blue
		if r.failed {
			s = yellow
		}
		return oneLine(width, run{r.text, s | bold}, run{"  " + r.meaning, faint})
	}
	s, mark := style(0), "  "
	if marked {
		s, mark = bold|cyan, "▸ "
	}
	dot := "  "
	if r.current {
		dot = "● "
	}
	name := paint(fit(flat(cells(run{r.text, s})), wide))
	return oneLine(4, run{mark, s}, run{dot, green}) + name + oneLine(max(0, width-wide-6), run{"  " + r.meaning, faint})
}
