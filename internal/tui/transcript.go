package tui

// transcript is the conversation as it is shown: items of some lines each. An
// item is rendered when it comes on the screen, and again when it or the width
// has changed.
type transcript struct {
	items  []*entry
	width  int
	height int
	tight  bool // no empty lines between items

	// Unless the end is followed, line top of the item at is the first one shown.
	following bool
	at, top   int
}

// item is something in the transcript.
type item interface {
	// lines renders the item, each line at most width columns. details says that
	// what is folded shall be open.
	lines(width int, details bool) []string
}

// entry is an item with what it was rendered to.
type entry struct {
	item
	details  bool // what is folded is open
	rendered []string
	width    int // of rendered; 0 when it is out of date
}

func newTranscript() transcript { return transcript{following: true, width: 80, height: 20} }

func (t *transcript) add(i item) *entry {
	e := &entry{item: i}
	t.items = append(t.items, e)
	return e
}

// touch says that the item has changed.
func (e *entry) touch() { e.width = 0 }

func (e *entry) render(width int) []string {
	if e.width != width {
		e.rendered, e.width = e.lines(width, e.details), width
	}
	return e.rendered
}

// setDetails opens or folds everything.
func (t *transcript) setDetails(open bool) {
	for _, e := range t.items {
		if e.details != open {
			e.details = open
			e.touch()
		}
	}
}

func (t *transcript) resize(width, height int) { t.width, t.height = width, height }

// size is how many lines the item has, and an empty one behind it.
func (t *transcript) size(i int) int { return len(t.items[i].render(t.width)) + t.gap(i) }

// gap is how many empty lines are behind an item: single lines of what drover
// does stand close together.
func (t *transcript) gap(i int) int {
	if t.tight {
		return 0
	}
	if i+1 < len(t.items) && stacked(t.items[i].item) && stacked(t.items[i+1].item) && len(t.items[i].render(t.width)) == 1 {
		return 0
	}
	return 1
}

func stacked(i item) bool {
	switch i.(type) {
	case *note, *card, *thought:
		return true
	}
	return false
}

// bottom is the position at which the end is just shown.
func (t *transcript) bottom() (at, top int) {
	left := t.height
	if !t.tight {
		left++ // the empty line behind the last item is not shown
	}
	for at = len(t.items) - 1; at >= 0; at-- {
		n := t.size(at)
		if n >= left {
			return at, n - left
		}
		left -= n
	}
	return 0, 0
}

// position is the first line that is shown.
func (t *transcript) position() (at, top int) {
	if t.following || t.at >= len(t.items) {
		return t.bottom()
	}
	return t.at, min(t.top, max(0, t.size(t.at)-1))
}

// scroll moves the view by so many lines, up if negative.
func (t *transcript) scroll(n int) {
	if len(t.items) == 0 {
		return
	}
	at, top := t.position()
	for ; n < 0; n++ {
		switch {
		case top > 0:
			top--
		case at > 0:
			at--
			top = t.size(at) - 1
		}
	}
	endAt, endTop := t.bottom()
	for ; n > 0; n-- {
		if top++; top >= t.size(at) {
			at, top = at+1, 0
		}
		if at >= len(t.items) {
			break
		}
	}
	t.following = at > endAt || at == endAt && top >= endTop
	t.at, t.top = at, top
}

// showLast shows the beginning of the last item, and its end too if it has room.
func (t *transcript) showLast() {
	t.following = true
	if last := len(t.items) - 1; last >= 0 && t.size(last)-1 > t.height {
		t.at, t.top, t.following = last, 0, false
	}
}

// toTop shows the beginning.
func (t *transcript) toTop() { t.at, t.top, t.following = 0, 0, false }

// view gives the lines that are on the screen.
func (t *transcript) view() []string {
	lines := make([]string, 0, t.height)
	at, top := t.position()
	for ; at < len(t.items) && len(lines) < t.height; at++ {
		rendered := t.items[at].render(t.width)
		for ; top < len(rendered)+t.gap(at) && len(lines) < t.height; top++ {
			if top < len(rendered) {
				lines = append(lines, rendered[top])
			} else {
				lines = append(lines, "")
			}
		}
		top = 0
	}
	for len(lines) < t.height {
		lines = append(lines, "")
	}
	return lines
}

// itemAt is the item on a line of the screen, nil for none.
func (t *transcript) itemAt(y int) *entry {
	at, top := t.position()
	for ; at < len(t.items); at++ {
		if y += top; y < t.size(at) {
			return t.items[at]
		}
		y -= t.size(at)
		top = 0
	}
	return nil
}
