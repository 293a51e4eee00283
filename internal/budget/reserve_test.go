package budget

import (
	"math"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
)

func TestReserves(t *testing.T) {
	for _, c := range []struct {
		window, requested, output, safety, input int
	}{
		{10000, 9000, 5000, 500, 4500},
		{8192, 8192, 4096, 409, 3687},
		{2048, 4096, 1024, 256, 768},
		{131072, 8192, 8192, 2048, 120832},
		{258, 1, 1, 256, 1},
		{257, 1, 1, 256, 0},
		{513, 1 << 40, 256, 256, 1},
		{512, 1 << 40, 256, 256, 0},
		{1, 1, 0, 256, -255},
		{4096, -5, 1, 256, 3839},
		{math.MaxInt, math.MaxInt, math.MaxInt / 2, 2048, math.MaxInt - math.MaxInt/2 - 2048},
	} {
		s := llm.Snapshot{Window: llm.Window{Tokens: c.window, Source: llm.Declared}}
		for _, p := range []*Policy{Policy1(), Policy2()} {
			r := ReservesFor(p, &s, c.requested)
			if r.Output != c.output || r.Safety != c.safety || r.Input != c.input || r.Window != c.window || r.Source != llm.Declared {
				t.Errorf("window %d, requested %d: %+v, want %d, %d, %d", c.window, c.requested, r, c.output, c.safety, c.input)
			}
		}
	}
}

func TestUnknownWindowIsAssumed(t *testing.T) {
	for _, tokens := range []int{0, -1} {
		s := llm.Snapshot{Window: llm.Window{Tokens: tokens, Source: llm.Effective}}
		if r := ReservesFor(Policy1(), &s, 1024); r.Window != 8192 || r.Source != llm.Fallback {
			t.Errorf("window %d: %+v", tokens, r)
		}
	}
}

func TestOutputLimitOfTheEngine(t *testing.T) {
	s := llm.Snapshot{Window: llm.Window{Tokens: 100_000, OutputLimit: 4000}}
	for requested, want := range map[int]int{3999: 3999, 4000: 4000, 4001: 4000} {
		if r := ReservesFor(Policy2(), &s, requested); r.Output != want || r.Input != 100_000-want-2048 {
			t.Errorf("requested %d: %+v", requested, r)
		}
	}
}

func TestEffortCeilings(t *testing.T) {
	for _, c := range []struct {
		effort llm.Effort
		want   int
	}{{llm.Graze, 1024}, {llm.Trot, 2048}, {llm.Climb, 4096}, {llm.Summit, 8192}, {0, 4096}, {200, 8192}} {
		for _, reasoning := range []llm.Support{llm.Unknown, llm.Supported, llm.Unsupported} {
			s := llm.Snapshot{Effort: c.effort, Window: llm.Window{Tokens: 1 << 20}}
			s.Capabilities.Reasoning.Support = reasoning
			if r := ReservesFor(Policy1(), &s, 0); r.Output != c.want {
				t.Errorf("policy 1, effort %s, reasoning %s: %d", c.effort, reasoning, r.Output)
			}
			want := c.want
			if reasoning == llm.Supported {
				want *= 2
			}
			if r := ReservesFor(Policy2(), &s, 0); r.Output != want {
				t.Errorf("policy 2, effort %s, reasoning %s: %d", c.effort, reasoning, r.Output)
			}
			if r := ReservesFor(Policy2(), &s, 700); r.Output != 700 {
				t.Errorf("an explicit request became %d", r.Output)
			}
		}
	}
}
