package acp_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/llm/llmtest"
)

// The cost of a session goes on over switches and processes; a model without a
// price adds nothing, and a session that has used no other shows none.
func TestCostOfASession(t *testing.T) {
	counted := func(words string) llmtest.Answer {
		a := llmtest.Say(words)
		a.Events = append(a.Events[:len(a.Events)-1:len(a.Events)-1],
			llm.Usage{PromptTokens: 1_000, CompletionTokens: 100}, a.Events[len(a.Events)-1])
		return a
	}
	paid := &llmtest.Provider{Route: "paid", List: models("m"), Answer: func(int, *llm.Request) llmtest.Answer { return counted("Dear.") }}
	paid.Facts.Prices = llm.Prices{Input: 1, Output: 10}
	free := &llmtest.Provider{Route: "free", List: models("m"), Answer: func(int, *llm.Request) llmtest.Answer { return counted("Cheap.") }}
	f := newFixture(t, free, paid)
	e := f.open(plain)
	s := f.session(e).SessionID
	const turn = 0.002 // 1,000 tokens at 1 and 100 at 10 for a million
	want := func(amount float64) {
		t.Helper()
		updates := e.Updates(s, "usage_update")
		var u struct {
			Cost *struct {
				Amount   float64
				Currency string
			}
		}
		if err := json.Unmarshal(updates[len(updates)-1].Body, &u); err != nil {
			t.Fatal(err)
		}
		if amount == 0 && u.Cost != nil || amount > 0 && (u.Cost == nil || u.Cost.Currency != "USD" || math.Abs(u.Cost.Amount-amount) > 1e-9) {
			t.Errorf("cost %+v, want %v", u.Cost, amount)
		}
	}
	choose := func(value string) {
		e.Call("session/set_config_option", object{"sessionId": s, "configId": "model", "value": value}, nil)
	}
	ask(t, e, s, "one")
	want(0)
	choose(`["paid","m"]`)
	ask(t, e, s, "two")
	want(turn)
	ask(t, e, s, "three")
	want(2 * turn)
	choose(`["free","m"]`)
	ask(t, e, s, "four")
	want(2 * turn)
	e.Close()

	e = f.open(plain)
	e.Call("session/load", object{"sessionId": s, "cwd": f.dir, "mcpServers": []any{}}, nil)
	choose(`["paid","m"]`)
	ask(t, e, s, "five")
	want(3 * turn)
}
