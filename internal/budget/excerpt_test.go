package budget

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
	"pgregory.net/rapid"

	"github.com/drover-dev/drover/internal/llm"
)

// boundaries are the places where characters begin, and the end.
func boundaries(s string) []int {
	at := []int{0}
	for g := uniseg.NewGraphemes(s); g.Next(); {
		_, end := g.Positions()
		at = append(at, end)
	}
	return at
}

func TestCharactersFromBothEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genText(400).Draw(t, "text")
		want := boundaries(s)
		chars := newCharacters(s)
		for k := range want {
			if got := chars.first(k); got != want[k] {
				t.Fatalf("the first %d characters of %q end at %d, want %d", k, s, got, want[k])
			}
			if got := chars.last(k); got != want[len(want)-1-k] {
				t.Fatalf("the last %d characters of %q begin at %d, want %d", k, s, got, want[len(want)-1-k])
			}
		}
		i := rapid.IntRange(0, len(s)).Draw(t, "place")
		n, found := slices.BinarySearch(want, i)
		if !found {
			n--
		}
		if got := boundaryAtMost(s, i); got != want[n] {
			t.Fatalf("the last boundary up to %d of %q is %d, want %d", i, s, got, want[n])
		}
		if n, _ = slices.BinarySearch(want, i); boundaryAtLeast(s, i) != want[n] {
			t.Fatalf("the first boundary from %d of %q is %d, want %d", i, s, boundaryAtLeast(s, i), want[n])
		}
	})
}

// bestExcerpt tries every size.
func bestExcerpt(s string, allowed int, price func(head, tail int) int) (kept int) {
	at := boundaries(s)
	kept = -1
	for k := range len(at) - 1 {
		head, tail := at[(k+1)/2], len(s)-at[len(at)-1-k/2]
		if head+tail < len(s) && price(head, tail) <= allowed {
			kept = k
		}
	}
	return kept
}

// The excerpt that is found is the largest one: for policy 1 exactly, for
// policy 2 within 32 tokens.
func TestLargestExcerpt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := policies(t)
		price := newPricer(p, &llm.Snapshot{})
		role := rapid.SampledFrom([]llm.Role{llm.User, llm.Tool}).Draw(t, "role")
		s := genText(600).Draw(t, "text")
		cost := price.textOf(role, s)
		allowed := rapid.IntRange(0, cost).Draw(t, "allowed")
		of := func(head, tail int) int { return price.textOf(role, price.excerptOf(role, s, cost, head, tail)) }
		head, tail, ok := largestExcerpt(s, allowed, of)
		best := bestExcerpt(s, allowed, of)
		if !ok {
			if best >= 0 && of(0, 0) <= allowed {
				t.Fatalf("no excerpt of %q within %d, but one of %d characters", s, allowed, best)
			}
			return
		}
		if of(head, tail) > allowed || head+tail >= len(s) {
			t.Fatalf("excerpt %d+%d of %d bytes costs %d of %d", head, tail, len(s), of(head, tail), allowed)
		}
		front, back := uniseg.GraphemeClusterCount(s[:head]), uniseg.GraphemeClusterCount(s[len(s)-tail:])
		if front != back && front != back+1 {
			t.Fatalf("%d characters before the marker, %d after it", front, back)
		}
		at := boundaries(s)
		bestCost := of(at[(best+1)/2], len(s)-at[len(at)-1-best/2])
		if slack := bestCost - of(head, tail); front+back < best && (p.Version == 1 || slack > 32) {
			t.Fatalf("policy %d kept %d characters of %q for %d of %d tokens, %d for %d were possible",
				p.Version, front+back, s, of(head, tail), allowed, best, bestCost)
		}
	})
}

func TestExcerptMarkerStandsOnItsOwnLine(t *testing.T) {
	price := newPricer(Policy1(), &llm.Snapshot{})
	for _, c := range []struct {
		text       string
		head, tail int
		want       string
	}{
		{"abcdefghij", 2, 2, "ab\n[... about 3 tokens left out ...]\nij"},
		{"abcdefghij", 0, 0, "[... about 5 tokens left out ...]"},
		{"ab\ncdefg\nij", 3, 3, "ab\n[... about 2 tokens left out ...]\nij"},
		{"ab\ncdefg\nij", 3, 2, "ab\n[... about 3 tokens left out ...]\nij"},
	} {
		if got := price.excerptOf(llm.User, c.text, cautiousText(c.text), c.head, c.tail); got != c.want {
			t.Errorf("excerpt %d+%d of %q = %q, want %q", c.head, c.tail, c.text, got, c.want)
		}
	}
}

func TestFixedCut(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	for _, c := range []struct {
		name       string
		text       string
		head, tail int
	}{
		{"at lines", strings.Repeat(line, 50), 1000, 500},
		{"one long line", strings.Repeat("y", 5000), 1024, 512},
		{"between characters", "z" + strings.Repeat("你", 2000), 1024, 510},
		{"lines too far in", "a\n" + strings.Repeat("y", 5000) + "\nb", 1024, 512},
	} {
		if head, tail := fixedCut(c.text); head != c.head || tail != c.tail {
			t.Errorf("%s: %d+%d, want %d+%d", c.name, head, tail, c.head, c.tail)
		}
	}
}

// A long excerpt search stays proportional to what is kept.
func BenchmarkLargestExcerpt(b *testing.B) {
	for _, p := range []*Policy{Policy1(), Policy2()} {
		text := mixed(10 << 20)
		price := newPricer(p, &llm.Snapshot{})
		cost := price.textOf(llm.User, text)
		b.Run(map[int]string{1: "policy1", 2: "policy2"}[p.Version], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				largestExcerpt(text, 100_000, func(head, tail int) int {
					return price.textOf(llm.User, price.excerptOf(llm.User, text, cost, head, tail))
				})
			}
		})
	}
}

// A text of one endless character, or of emoji that may all belong together, costs
// its length once: the time for a megabyte is the same for 1 and for 4.
func BenchmarkEndlessCharacters(b *testing.B) {
	price := newPricer(Policy1(), &llm.Snapshot{})
	for _, megabytes := range []int{1, 4} {
		for name, unit := range map[string]string{"marks": "\u0301", "joiners": "👩\u200d"} {
			text := strings.Repeat(unit, megabytes<<20/len(unit))
			cost := price.textOf(llm.User, text)
			b.Run(fmt.Sprintf("%s/%dMB", name, megabytes), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					largestExcerpt(text, 100_000, func(head, tail int) int {
						return price.textOf(llm.User, price.excerptOf(llm.User, text, cost, head, tail))
					})
				}
			})
		}
	}
}

// FuzzExcerpt cuts any text to any size.
func FuzzExcerpt(f *testing.F) {
	f.Add("hello, world", 3, 1)
	f.Add(strings.Repeat("🇩🇪👩‍👩‍👧e\u0301\r\n", 20), 30, 2)
	f.Add("\xff\xfe\x00", 1, 2)
	f.Fuzz(func(t *testing.T, text string, allowed, version int) {
		p, ok := PolicyByVersion(1 + version&1)
		if !ok {
			t.Fatal("no policy")
		}
		price := newPricer(p, &llm.Snapshot{})
		cost := price.textOf(llm.Tool, text)
		allowed = min(max(allowed, 0), cost)
		of := func(head, tail int) int {
			return price.textOf(llm.Tool, price.excerptOf(llm.Tool, text, cost, head, tail))
		}
		head, tail, ok := largestExcerpt(text, allowed, of)
		if ok && (head < 0 || tail < 0 || head+tail >= len(text) || of(head, tail) > allowed) {
			t.Fatalf("%d+%d of %d bytes for %d of %d", head, tail, len(text), of(head, tail), allowed)
		}
		if len(text) >= fixedLeast {
			if head, tail := fixedCut(text); head < 0 || tail < 0 || head > fixedHead || tail > fixedTail || head+tail > len(text) {
				t.Fatalf("fixed cut %d+%d of %d bytes", head, tail, len(text))
			}
		}
	})
}
