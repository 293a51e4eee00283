package tool

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// maxScopes is how many commands one line may have for "always": nobody
	// reads a longer list before agreeing to it.
	maxScopes = 8
	// maxScopedCommand bounds a line that is parsed, in bytes.
	maxScopedCommand = 16 << 10
)

// commandScopes gives one scope for each simple command of a line, in their
// order and each once: a known program, with what it is told to do where that is a
// word of its own ("git status"), or all words of one that is not known. It gives
// none when a command could be hidden: everything that is not known to be plain
// counts as such.
func commandScopes(command string) []string {
	// The parser takes "\r\n" for a line's end, a shell does not.
	if len(command) > maxScopedCommand || strings.ContainsAny(command, "\r\x00") {
		return nil
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil {
		return nil
	}
	s := &scoper{plain: true}
	s.statements(file.Stmts)
	if !s.plain || len(s.scopes) > maxScopes {
		return nil
	}
	return s.scopes
}

// scoper collects scopes as long as all is plain.
type scoper struct {
	scopes []string
	plain  bool
	fed    bool // the command reads what the line gives it
}

func (s *scoper) statements(list []*syntax.Stmt) {
	for _, stmt := range list {
		s.statement(stmt)
	}
}

func (s *scoper) statement(stmt *syntax.Stmt) {
	defer func(fed bool) { s.fed = fed }(s.fed)
	for _, r := range stmt.Redirs {
		s.redirect(r)
	}
	if stmt.Coprocess || stmt.Disown {
		s.plain = false
	}
	switch c := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		s.call(c)
	case *syntax.BinaryCmd:
		s.statement(c.X)
		s.fed = s.fed || c.Op == syntax.Pipe || c.Op == syntax.PipeAll
		s.statement(c.Y)
	case *syntax.Subshell:
		s.statements(c.Stmts)
	case *syntax.Block:
		s.statements(c.Stmts)
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			s.statements(c.Cond)
			s.statements(c.Then)
		}
	case *syntax.WhileClause:
		s.statements(c.Cond)
		s.statements(c.Do)
	case *syntax.ForClause:
		s.loop(c)
	default: // functions, declarations, tests, arithmetic, nothing but a redirection
		s.plain = false
	}
}

func (s *scoper) loop(c *syntax.ForClause) {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok || c.Select || !iter.InPos.IsValid() || !loopName.matches(iter.Name.Value) {
		s.plain = false
		return
	}
	for _, w := range iter.Items {
		// What the variable holds becomes arguments in the loop: no options, and
		// nothing that falls apart into several words.
		text := s.word(w)
		if text.variable || !plainName.matches(patternSigns.Replace(text.text)) {
			s.plain = false
		}
	}
	s.statements(c.Do)
}

// redirect allows reading and what ends in another stream or in nothing.
func (s *scoper) redirect(r *syntax.Redirect) {
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		s.plain = false
	}
	target := s.word(r.Word)
	if r.Hdoc != nil {
		s.nothingRuns(r.Hdoc)
	}
	switch r.Op {
	case syntax.RdrIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		s.fed = true
	case syntax.DplOut, syntax.DplIn:
		if !target.literal() || strings.Trim(target.text, "0123456789-") != "" {
			s.plain = false
		}
	default:
		if !target.literal() || target.text != "/dev/null" {
			s.plain = false
		}
	}
}

// nothingRuns checks that the shell runs nothing to find out what a word is.
func (s *scoper) nothingRuns(w *syntax.Word) {
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case nil, *syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted:
		case *syntax.ParamExp:
			// Only $name: other forms can run commands, ${x@P} for one.
			if n.Param == nil || n.Excl || n.Length || n.Index != nil || n.Slice != nil || n.Repl != nil ||
				n.Exp != nil || n.Names != 0 || n.NestedParam != nil {
				s.plain = false
			}
		default:
			s.plain = false
		}
		return s.plain
	})
}

// argument is a word as far as it is known before it runs.
type argument struct {
	text     string // with what stands in quotes, without variables
	variable bool   // a variable adds to it
	pattern  bool   // it may stand for names of files
}

func (a argument) literal() bool { return !a.variable && !a.pattern }

// word reads a word.
func (s *scoper) word(w *syntax.Word) argument {
	var a argument
	if w == nil {
		return a
	}
	s.nothingRuns(w)
	var b strings.Builder
	for _, part := range w.Parts {
		s.part(part, &a, &b)
	}
	a.text = b.String()
	return a
}

func (s *scoper) part(part syntax.WordPart, a *argument, b *strings.Builder) {
	switch p := part.(type) {
	case *syntax.Lit:
		text, special := unescape(p.Value)
		b.WriteString(text)
		a.pattern = a.pattern || strings.ContainsAny(special, "*?[~")
		if strings.Contains(special, "{") && (strings.Contains(special, ",") || strings.Contains(special, "..")) {
			s.plain = false // {a,b} becomes several words
		}
	case *syntax.SglQuoted:
		s.plain = s.plain && !p.Dollar // $'...' has escapes of its own
		b.WriteString(p.Value)
	case *syntax.DblQuoted:
		s.plain = s.plain && !p.Dollar
		for _, q := range p.Parts {
			lit, ok := q.(*syntax.Lit)
			if !ok {
				a.variable = true
				continue
			}
			b.WriteString(quotedEscapes.Replace(lit.Value))
		}
	default:
		a.variable = true
	}
}

// patternSigns takes the signs of patterns off.
var patternSigns = strings.NewReplacer("*", "", "?", "", "[", "", "]", "")

// quotedEscapes are the escapes between double quotes.
var quotedEscapes = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\$`, `$`, "\\`", "`")

// unescape takes the backslashes off a word outside quotes. special is what of
// it was not escaped.
func unescape(lit string) (text, special string) {
	var t, sp strings.Builder
	for i := 0; i < len(lit); i++ {
		if lit[i] == '\\' && i+1 < len(lit) {
			i++
		} else {
			sp.WriteByte(lit[i])
		}
		t.WriteByte(lit[i])
	}
	return t.String(), sp.String()
}

// call adds the scope of a simple command.
func (s *scoper) call(c *syntax.CallExpr) {
	if len(c.Args) == 0 || len(c.Assigns) > 0 { // a variable may change what a program does
		s.plain = false
		return
	}
	var args []argument
	for _, w := range c.Args {
		args = append(args, s.word(w))
	}
	scope, ok := scopeOf(args, s.fed)
	if !ok {
		s.plain = false
		return
	}
	if !slices.Contains(s.scopes, scope) {
		s.scopes = append(s.scopes, scope)
	}
}

// maxExactScope bounds a scope, in bytes: what a person agrees to has to be read.
const maxExactScope = 200

// scopeOf is the scope of a command with its arguments: of a known one its name,
// while its options are known too, of another all its words. fed says that it reads
// what another command or the line itself gives it, which may be commands.
func scopeOf(args []argument, fed bool) (scope string, ok bool) {
	// A program by path is looked up by its name and named by its path.
	name := strings.TrimSuffix(path.Base(args[0].text), ".exe")
	if !args[0].literal() || !plainName.matches(args[0].text) || hiding[name] || hiding[args[0].text] {
		return "", false
	}
	if name == "printf" {
		// -v runs what stands in an index.
		return args[0].text, len(args) < 2 || args[1].literal() && !strings.HasPrefix(args[1].text, "-")
	}
	if o, words := known(args); o != nil {
		return knownScope(o, args, words)
	}
	if fed {
		return "", false
	}
	var exact []string
	for i, a := range args {
		if !a.literal() || !exactWord.matches(a.text) || i > 0 && hidingOption(a.text) {
			return "", false
		}
		exact = append(exact, a.text)
		if runners[strings.Join(exact, " ")] {
			return "", false
		}
	}
	switch {
	case interpreters[name] && (len(args) < 2 || !plainName.matches(args[1].text)) && !isModule(args):
		return "", false // the program is its input, or in an option
	case subcommands[name] && len(args) > 1 && !plainName.matches(args[1].text):
		// An option before what it is told to do may change everything, as in
		// git -c alias.x='!rm' x.
		return "", false
	}
	scope = strings.Join(exact, " ")
	return scope, len(scope) <= maxExactScope
}

// isModule reports python -m MODULE.
func isModule(args []argument) bool {
	return len(args) > 2 && args[1].text == "-m" && plainName.matches(args[2].text)
}

// hidingOption reports whether a word is one of the hiding arguments, or the start
// of a long one: programs take that for the whole.
func hidingOption(word string) bool {
	name, _, _ := strings.Cut(word, "=")
	if hidingArguments[name] {
		return true
	}
	if !strings.HasPrefix(name, "-") {
		return false
	}
	name = strings.TrimLeft(name, "-")
	for h := range hidingArguments {
		if h = strings.TrimLeft(h, "-"); name != "" && (strings.HasPrefix(h, name) && len(name) > 1 || strings.HasPrefix(name, h)) {
			return true
		}
	}
	return false
}
