package openai

// codeTracker follows Markdown text byte by byte and knows whether it stands in
// code: a fenced block or a span between backticks. What is quoted there is
// talked about and not meant.
type codeTracker struct {
	fence    byte // the character of the open fence, 0 if none
	fenceLen int
	opening  bool // still on the line that opened the fence
	span     int  // length of the backticks that opened the span, 0 if none
	run      int  // length of the run of fence characters being read
	runChar  byte
	runFirst bool // nothing but indentation stands before the run in its line
	indent   int  // spaces so far, -1 once the line has other text
}

// minFence is the shortest fence.
const minFence = 3

// maxFenceIndent is how far a fence may be indented.
const maxFenceIndent = 3

// inCode reports whether the next byte stands in code, if it is no fence
// character itself.
func (c *codeTracker) inCode() bool {
	if c.fence != 0 || c.run == 0 {
		return c.fence != 0 || c.span != 0
	}
	if c.runFirst && c.run >= minFence {
		return true
	}
	if c.runChar != '`' {
		return c.span != 0
	}
	return c.span != c.run // else the run closes the span
}

func (c *codeTracker) write(s string) {
	for i := range len(s) {
		c.writeByte(s[i])
	}
}

func (c *codeTracker) writeByte(b byte) {
	if b == '`' || b == '~' {
		if c.run > 0 && b == c.runChar {
			c.run++
			return
		}
		c.endRun(b)
		c.run, c.runChar, c.runFirst = 1, b, c.indent >= 0 && c.indent <= maxFenceIndent
		c.indent = -1
		return
	}
	if c.run > 0 {
		c.endRun(b)
	}
	switch b {
	case '\n', '\r':
		c.indent, c.span, c.opening = 0, 0, false
	case ' ':
		if c.indent >= 0 {
			c.indent++
		}
	default:
		c.indent = -1
	}
}

// endRun decides what the run before next was.
func (c *codeTracker) endRun(next byte) {
	run := c.run
	c.run = 0
	switch {
	case run == 0:
	case c.fence != 0:
		switch {
		case c.opening && c.fence == '`' && c.runChar == '`':
			// Backticks behind backticks in one line: it was a span.
			c.fence, c.opening = 0, false
		case c.runFirst && c.runChar == c.fence && run >= c.fenceLen && isSpace(next):
			c.fence = 0
		}
	case c.runFirst && run >= minFence:
		c.fence, c.fenceLen, c.opening = c.runChar, run, true
	case c.runChar != '`':
	case c.span == 0:
		c.span = run
	case c.span == run:
		c.span = 0
	}
}
