package brief

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
)

// Spent is what the providers of a session have counted for each model.
type Spent map[llm.Target]llm.Usage

// Add takes note of a request. Nobody is billed for a guess.
func (s *Spent) Add(t llm.Target, u *llm.Usage) {
	if u.Estimated {
		return
	}
	if *s == nil {
		*s = make(Spent)
	}
	(*s)[t] = (*s)[t].Plus(u)
}

// Cost is what the session has cost so far in US dollars. known is false while it
// has used no model with a price.
func (s Spent) Cost(prices func(llm.Target) llm.Prices) (amount float64, known bool) {
	// In one order, so that the same sum is the same number.
	for _, t := range slices.SortedFunc(maps.Keys(s), func(a, b llm.Target) int {
		return strings.Compare(a.String(), b.String())
	}) {
		if p := prices(t); !p.IsZero() {
			u := s[t]
			amount, known = amount+p.Cost(&u), true
		}
	}
	return amount, known
}

// Dollars writes an amount as far as it tells something.
func Dollars(amount float64) string {
	switch {
	case amount > 0 && amount < 0.0001:
		return "<$0.0001"
	case amount < 1:
		return fmt.Sprintf("$%.4f", amount)
	}
	return fmt.Sprintf("$%.2f", amount)
}
