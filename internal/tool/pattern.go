package tool

import (
	"regexp"
	"sync"
)

// pattern makes an expression that is compiled when it is first used. The start of
// the program, which editors wait for, must not pay for what the first command needs.
func pattern(expr string) lazyPattern {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

type lazyPattern func() *regexp.Regexp

func (p lazyPattern) matches(s string) bool { return p().MatchString(s) }
