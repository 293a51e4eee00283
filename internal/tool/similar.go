package tool

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

const (
	// maxSimilarLines is how many lines of a file are compared when an edit finds
	// nothing, and maxCompareBytes how much of each.
	maxSimilarLines = 50_000
	maxCompareBytes = 200
	// maxSimilarBytes bounds the text that is compared, and maxWantedLines the one
	// that is looked for.
	maxSimilarBytes = 4 << 20
	maxWantedLines  = 5000
	// similarPoll is how many lines are compared before an edit may be stopped.
	similarPoll = 250
	// maxShownLines and maxShownBytes bound what the error quotes.
	maxShownLines = 30
	maxShownBytes = 2000
	// minSimilarity is what two lines must have in common to be worth showing,
	// from 0 to 1.
	minSimilarity = 0.55
)

// noMatch explains why an edit found nothing, with the lines of the file that
// come nearest, so that the model can copy them instead of reading again.
func noMatch(ctx context.Context, text, old string) error {
	have := firstLines(text)
	want := firstLines(old)
	nothing := errors.New("old does not match, and nothing similar is there: read the file")
	if len(old) > maxSimilarBytes || len(want) > maxWantedLines {
		return nothing // not worth the time
	}
	at, same := sameButSpace(ctx, have, want)
	if same {
		near := have[at : at+len(want)]
		return fmt.Errorf("old does not match: only white space is different from %s (%s). The file has:\n%s",
			lineRange(at+1, len(near)), spaceDifference(near, want), quoteLines(near))
	}
	at, similar := mostSimilar(ctx, have, want)
	switch {
	case ctx.Err() != nil:
		return errEditStopped
	case !similar:
		return nothing
	}
	near := have[at:min(len(have), at+len(want))]
	return fmt.Errorf("old does not match. Nearest is %s:\n%s", lineRange(at+1, len(near)), quoteLines(near))
}

// firstLines gives the lines of a text that are compared.
func firstLines(text string) []string {
	text = toLF(text[:min(len(text), maxSimilarBytes)])
	lines := strings.SplitN(strings.TrimSuffix(text, "\n"), "\n", maxSimilarLines+1)
	return lines[:min(len(lines), maxSimilarLines)]
}

func lineRange(first, n int) string {
	if n == 1 {
		return fmt.Sprintf("line %d", first)
	}
	return fmt.Sprintf("lines %d-%d", first, first+n-1)
}

// quoteLines gives lines as they stand in the file, bounded.
func quoteLines(lines []string) string {
	more := ""
	if len(lines) > maxShownLines {
		lines, more = lines[:maxShownLines], "\n..."
	}
	return cutText(strings.Join(lines, "\n"), maxShownBytes) + more
}

// sameButSpace finds the lines that are equal but for white space.
func sameButSpace(ctx context.Context, have, want []string) (at int, ok bool) {
	w := plainLines(ctx, want)
	if strings.TrimSpace(w) == "" {
		return 0, false
	}
	h := plainLines(ctx, have)
	// Each line begins and ends with "\n", so that whole lines match.
	i := strings.Index(h, w)
	if i < 0 || ctx.Err() != nil {
		return 0, false
	}
	return strings.Count(h[:i], "\n"), true
}

// plainLines joins lines without the white space that may be different.
func plainLines(ctx context.Context, lines []string) string {
	var b strings.Builder
	b.WriteByte('\n')
	for i, l := range lines {
		if i%similarPoll == 0 && ctx.Err() != nil {
			break
		}
		b.WriteString(strings.Join(strings.Fields(l), " "))
		b.WriteByte('\n')
	}
	return b.String()
}

// spaceDifference names the first difference in white space.
func spaceDifference(have, want []string) string {
	for i, h := range have {
		w := want[i]
		if h == w {
			continue
		}
		hi, wi := indentOf(h), indentOf(w)
		switch {
		case hi != wi && strings.Contains(hi, "\t") != strings.Contains(wi, "\t"):
			return fmt.Sprintf("line %d of old is indented with %s, the file with %s", i+1, spaceNames(wi), spaceNames(hi))
		case hi != wi:
			return fmt.Sprintf("line %d of old is indented by %s, the file by %s", i+1, spaceNames(wi), spaceNames(hi))
		case strings.TrimRight(h, " \t") == strings.TrimRight(w, " \t"):
			return fmt.Sprintf("line %d of old differs at its end: %s there, %s in the file",
				i+1, spaceNames(w[len(strings.TrimRight(w, " \t")):]), spaceNames(h[len(strings.TrimRight(h, " \t")):]))
		}
		return fmt.Sprintf("inside line %d of old", i+1)
	}
	return "at the end"
}

func indentOf(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }

// spaceNames counts white space: "1 tab and 2 spaces".
func spaceNames(space string) string {
	tabs, spaces := strings.Count(space, "\t"), strings.Count(space, " ")
	switch {
	case tabs > 0 && spaces > 0:
		return plural(tabs, "tab") + " and " + plural(spaces, "space")
	case tabs > 0:
		return plural(tabs, "tab")
	case spaces > 0:
		return plural(spaces, "space")
	}
	return "nothing"
}

// mostSimilar finds where want would stand best. The longest line of want leads:
// it is the least likely to be found by chance.
func mostSimilar(ctx context.Context, have, want []string) (at int, ok bool) {
	lead := 0
	for i, l := range want {
		if len(strings.TrimSpace(l)) > len(strings.TrimSpace(want[lead])) {
			lead = i
		}
	}
	pairs := newPairs(want[lead])
	best, bestAt := 0.0, -1
	for i, l := range have {
		if i%similarPoll == 0 && ctx.Err() != nil {
			return 0, false
		}
		// Of lines that are alike the one counts whose place fits.
		if s := pairs.similarity(l); s > best {
			best, bestAt = s, i
		}
	}
	if best < minSimilarity {
		return 0, false
	}
	return max(0, bestAt-lead), true
}

// pairs are the pairs of neighbouring bytes of a line, for the coefficient of
// Dice: twice the common pairs by all pairs.
type pairs struct {
	count map[[2]byte]int
	n     int
}

func linePairs(line string) string {
	line = strings.TrimSpace(line)
	return line[:min(len(line), maxCompareBytes)]
}

func newPairs(line string) *pairs {
	line = linePairs(line)
	p := &pairs{count: make(map[[2]byte]int), n: max(0, len(line)-1)}
	for i := range p.n {
		p.count[[2]byte{line[i], line[i+1]}]++
	}
	return p
}

func (p *pairs) similarity(line string) float64 {
	line = linePairs(line)
	n := max(0, len(line)-1)
	if p.n == 0 || n == 0 {
		return 0
	}
	if bound := 2 * float64(min(n, p.n)) / float64(n+p.n); bound < minSimilarity {
		return 0 // too short or too long to reach it
	}
	seen := make(map[[2]byte]int, n)
	common := 0
	for i := range n {
		pair := [2]byte{line[i], line[i+1]}
		if seen[pair] < p.count[pair] {
			seen[pair]++
			common++
		}
	}
	return 2 * float64(common) / float64(n+p.n)
}
