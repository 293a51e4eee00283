package tui

import "strings"

// style is how a piece of text looks. Colours are the terminal's own sixteen, so
// that they fit light and dark terminals alike; Bubble Tea takes them out where
// there are none (NO_COLOR).
type style uint16

const (
	bold style = 1 << iota
	faint
	italic
	underline
	reverse
)

// The colours, from the eighth bit on.
const (
	red style = (iota + 1) << 8
	green
	yellow
	blue
	magenta
	cyan
)

const colours = 0xf << 8

// with adds another style. Its colour wins.
func (s style) with(other style) style {
	if other&colours != 0 {
		s &^= colours
	}
	return s | other
}

var attributes = [...]struct {
	bit  style
	code string
}{{bold, "1"}, {faint, "2"}, {italic, "3"}, {underline, "4"}, {reverse, "7"}}

const resetSGR = "\x1b[m"

// start is the sequence that turns the style on, "" for none.
func (s style) start() string {
	if s == 0 {
		return ""
	}
	var codes []string
	for _, a := range attributes {
		if s&a.bit != 0 {
			codes = append(codes, a.code)
		}
	}
	if c := s & colours >> 8; c != 0 {
		codes = append(codes, "3"+string('0'+rune(c)))
	}
	return "\x1b[" + strings.Join(codes, ";") + "m"
}
