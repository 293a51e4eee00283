package openai

import (
	"fmt"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
)

// PrintedCallError is the cause of a MALFORMED_RESPONSE for an answer that
// printed a tool call as text: the engine did not recognise it. Such a call is
// never run.
type PrintedCallError struct {
	// Tool is the tool that it names, "" if it names none.
	Tool string
	// Marker is what gave it away.
	Marker string
	// Text is the markup from its marker on, cut at maxMarkupBytes: for the log.
	Text string
}

func (e *PrintedCallError) Error() string {
	if e.Tool == "" {
		return fmt.Sprintf("the model printed a tool call (%s) as text", e.Marker)
	}
	return fmt.Sprintf("the model printed a call of the tool %s (%s) as text", e.Tool, e.Marker)
}

// PrintedCall is the markup. Callers that do not know the dialect find the error
// by this method.
func (e *PrintedCallError) PrintedCall() string { return e.Text }

// markupHint names what to change, by engine.
const markupHint = "the engine did not parse it; turn on its tool parser: llama.cpp --jinja, " +
	"vLLM --enable-auto-tool-choice with --tool-call-parser, SGLang --tool-call-parser, " +
	"Ollama and LM Studio a model whose template knows tools"

const (
	// maxMarkupBytes bounds how much is held back behind a marker before it
	// counts as text, and how much of a printed call is kept.
	maxMarkupBytes = 4 << 10
	// maxMarkupMisses is how often that may happen in one answer before markers
	// are not looked for any more: a bound on the work.
	maxMarkupMisses = 64
)

// marker is a text that models begin a printed tool call with.
type marker struct {
	text string
	kind markupKind
}

type markupKind uint8

const (
	markupBlock    markupKind = iota // a tag around JSON, a nested tag or a name
	markupName                       // the name follows directly
	markupList                       // Mistral: a name or JSON
	markupSections                   // special tokens with the name somewhere behind
	markupCertain                    // special tokens that mean nothing else
	markupHarmony                    // a channel header
)

// markers are what the formats in use begin with. DSML comes with several
// renderings of its bar.
var markers = [...]marker{
	{"<tool_call>", markupBlock},
	{"<tool_calls>", markupBlock},
	{"<function_call>", markupBlock},
	{"<function_calls>", markupBlock},
	{"<minimax:tool_call>", markupBlock},
	{"<|tool_call|>", markupBlock},
	{"<|python_tag|>", markupBlock},
	{"<function=", markupName},
	{"<function name=\"", markupName},
	{"<invoke name=\"", markupName},
	{"[TOOL_CALLS]", markupList},
	{"<｜tool▁calls▁begin｜>", markupSections},
	{"<｜tool▁call▁begin｜>", markupSections},
	{"<|tool_calls_section_begin|>", markupSections},
	{"<|tool_call_begin|>", markupSections},
	{"<｜DSML｜", markupCertain},
	{"<‖DSML‖", markupCertain},
	{"<｜｜DSML｜｜", markupCertain},
	{"<|DSML|", markupCertain},
	{"<||DSML||", markupCertain},
	{"<|channel|>", markupHarmony},
}

// markupScanner passes an answer's text on and holds back what may be a printed
// tool call, from its marker on. Code is passed: markup quoted there is talked
// about.
type markupScanner struct {
	out   func(text string)
	tools map[string]bool // on offer

	code   codeTracker
	held   []byte // from a marker, or the beginning of one, on
	marker *marker
	found  *PrintedCallError
	misses int
}

// write takes in a piece of text.
func (m *markupScanner) write(s string) { inPieces(s, m.piece) }

func (m *markupScanner) piece(s string) (rest string) {
	switch {
	case m.found != nil:
		m.keep(s)
		return ""
	case m.marker != nil:
		n := min(len(s), maxMarkupBytes-len(m.held))
		m.held = append(m.held, s[:n]...)
		return m.decide(false) + s[n:]
	}
	return m.scan(s)
}

// close decides what is still held back: the text is over.
func (m *markupScanner) close() {
	for m.marker != nil && m.found == nil {
		m.write(m.decide(true))
	}
	if m.found != nil && m.found.Tool == "" {
		// The name may stand behind the marker that was enough to decide.
		m.found.Tool, _ = m.judgeSection(m.found.Text, true)
	}
	if m.found == nil && len(m.held) > 0 {
		m.out(string(m.held))
		m.held = m.held[:0]
	}
}

// keep keeps what follows a printed call, for the log.
func (m *markupScanner) keep(s string) {
	m.found.Text += s[:min(len(s), max(0, maxMarkupBytes-len(m.found.Text)))]
}

// scan passes text on up to a marker.
func (m *markupScanner) scan(s string) (rest string) {
	if len(m.held) > 0 {
		s = string(m.held) + s
		m.held = m.held[:0]
	}
	for i := range len(s) {
		c := s[i]
		if (c == '<' || c == '[') && m.misses < maxMarkupMisses && !m.code.inCode() {
			found, partial := matchMarker(s[i:])
			if found != nil || partial {
				if i > 0 {
					m.out(s[:i])
				}
				m.marker = found
				if partial {
					m.held = append(m.held, s[i:]...)
					return ""
				}
				return s[i:]
			}
		}
		m.code.writeByte(c)
	}
	m.out(s)
	return ""
}

// matchMarker finds the marker that s begins with; partial says that s is the
// beginning of one.
func matchMarker(s string) (found *marker, partial bool) {
	for i := range markers {
		switch text := markers[i].text; {
		case strings.HasPrefix(s, text):
			return &markers[i], false
		case strings.HasPrefix(text, s):
			partial = true
		}
	}
	return nil, partial
}

// decide judges the held text. It gives back what is to be read on.
func (m *markupScanner) decide(end bool) (rest string) {
	held := string(m.held)
	tool, verdict := m.judge(held[len(m.marker.text):], end)
	if verdict == undecided && !end {
		if len(held) < maxMarkupBytes {
			return ""
		}
		m.misses++
	}
	marker := m.marker
	m.held, m.marker = m.held[:0], nil
	if verdict == printedCall {
		m.found = &PrintedCallError{Tool: tool, Marker: marker.text}
		m.keep(held)
		return ""
	}
	// The marker is text; what follows it is looked at again.
	m.out(held[:1])
	m.code.write(held[:1])
	return held[1:]
}

type verdict uint8

const (
	undecided verdict = iota
	plainText
	printedCall
)

// judge says whether what follows a marker is a call of a tool on offer.
func (m *markupScanner) judge(s string, end bool) (tool string, v verdict) {
	switch m.marker.kind {
	case markupName:
		return m.judgeName(s, end, `>"`)
	case markupCertain:
		if len(m.tools) > 0 {
			return "", printedCall
		}
		return "", plainText
	case markupHarmony:
		return m.judgeChannel(s, end)
	case markupSections:
		return m.judgeSection(s, end)
	}
	s = strings.TrimLeft(s, " \t\r\n")
	if s == "" {
		return "", undecided
	}
	switch c := s[0]; {
	case c == '{' || c == '[':
		return m.judgeJSON(s)
	case c == '<' && m.marker.kind == markupBlock:
		return m.judgeTag(s, end)
	case nameByte(c):
		return m.judgeName(s, end, "\r\n<{([")
	}
	return "", plainText
}

// nameTags are the tags that hold a tool's name inside a block.
var nameTags = [...]string{"<function=", "<function name=\"", "<invoke name=\"", "<tool_name>", "<name>"}

func (m *markupScanner) judgeTag(s string, end bool) (tool string, v verdict) {
	v = plainText
	for _, tag := range nameTags {
		if rest, ok := strings.CutPrefix(s, tag); ok {
			return m.judgeName(strings.TrimLeft(rest, " \t\r\n"), end, `>"<`)
		}
		if strings.HasPrefix(tag, s) {
			v = undecided
		}
	}
	return "", v
}

// judgeName reads a name that ends before one of the bytes in stop.
func (m *markupScanner) judgeName(s string, end bool, stop string) (tool string, v verdict) {
	n := 0
	for n < len(s) && nameByte(s[n]) {
		n++
	}
	name := m.offered(s[:n])
	switch {
	case n == len(s) && !end:
		const longestName = 256 // bytes; longer ones are no tool's
		if n > longestName {
			return "", plainText
		}
		return "", undecided
	case name == "", n < len(s) && !strings.ContainsRune(stop, rune(s[n])):
		return "", plainText
	}
	return name, printedCall
}

// judgeJSON looks for a member "name" that names a tool on offer.
func (m *markupScanner) judgeJSON(s string) (tool string, v verdict) {
	const key = `"name"`
	for rest := s; ; {
		i := strings.Index(rest, key)
		if i < 0 {
			break
		}
		rest = strings.TrimLeft(rest[i+len(key):], " \t\r\n")
		after, ok := strings.CutPrefix(rest, ":")
		if !ok {
			continue
		}
		after, ok = strings.CutPrefix(strings.TrimLeft(after, " \t\r\n"), `"`)
		name, _, closed := strings.Cut(after, `"`)
		if ok && closed && m.offered(name) != "" {
			return m.offered(name), printedCall
		}
	}
	if strings.Contains(s, "</") {
		return "", plainText
	}
	return "", undecided
}

// judgeSection looks for the name of a tool on offer as a whole word.
func (m *markupScanner) judgeSection(s string, end bool) (tool string, v verdict) {
	const reach = 256 // bytes behind the marker
	for i := 0; i < len(s) && i < reach; {
		n := i
		for n < len(s) && nameByte(s[n]) {
			n++
		}
		if n == len(s) && !end {
			return "", undecided // the word may go on
		}
		if name := m.offered(s[i:n]); name != "" {
			return name, printedCall
		}
		i = max(n, i+1)
	}
	if len(s) >= reach {
		return "", plainText
	}
	return "", undecided
}

// judgeChannel reads a harmony channel header. The commentary channel is where
// calls go; the others are calls only when they are addressed to a tool.
func (m *markupScanner) judgeChannel(s string, end bool) (tool string, v verdict) {
	const commentary, message, address = "commentary", "<|message|>", "to="
	header, _, complete := strings.Cut(s, message)
	if i := strings.Index(header, address); i >= 0 {
		name := header[i+len(address):]
		n := 0
		for n < len(name) && nameByte(name[n]) {
			n++
		}
		if tool = m.offered(name[:n]); tool != "" && (n < len(name) || complete) {
			return tool, printedCall
		}
	}
	const longestHeader = 200 // bytes
	switch {
	case strings.HasPrefix(header, commentary) && (complete || end || len(header) > longestHeader):
		return "", printedCall
	case complete, len(header) > longestHeader:
		return "", plainText
	}
	return "", undecided
}

// offered gives the tool on offer that a printed name means, "" if none.
// Formats write functions. before it and a number behind it.
func (m *markupScanner) offered(name string) string {
	name = strings.TrimPrefix(name, "functions.")
	if m.tools[name] {
		return name
	}
	if base, _, ok := strings.Cut(name, ":"); ok && m.tools[base] {
		return base
	}
	return ""
}

func nameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '_' || c == '-' || c == '.' || c == ':' || c == '/'
}

// offeredNames is the set of the tools' names.
func offeredNames(tools []llm.ToolDef) map[string]bool {
	names := make(map[string]bool, len(tools))
	for i := range tools {
		names[tools[i].Name] = true
	}
	return names
}
