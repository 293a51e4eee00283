package budget

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
)

// mixedText is a paragraph of what conversations with a coding agent hold.
const mixedText = "func (t *table) lookup(word string) bool { return len(word) > 3 } // Some natural text, with 42 numbers.\n" +
	"\tif err != nil {\n\t\treturn fmt.Errorf(\"decode %q: %w\", name, err)\n\t}\n" +
	"The drover walks behind the herd; see internal/budget/plan.go:127 and https://example.org/x?y=1.\n" +
	"Über die Brücke gehen wir. 你好 世界.\n{\"path\":\"src/main.go\",\"limit\":200}\n"

func mixed(bytes int) string {
	return strings.Repeat(mixedText, bytes/len(mixedText)+1)
}

// longConversation has n exchanges of about 10 kB.
func longConversation(n int) []llm.Message {
	result, answer := mixed(8<<10), mixed(3<<9)
	var messages []llm.Message
	for i := range n {
		messages = append(messages, llm.UserText(fmt.Sprintf("step %d: please look at the next file and fix it", i)))
		messages = append(messages, round(fmt.Sprintf("c%d", i), "read", `{"path":"a.go"}`, strings.Clone(result))...)
		messages = append(messages, llm.AssistantText(strings.Clone(answer)))
	}
	return messages
}

func BenchmarkEstimate(b *testing.B) {
	text := mixed(1 << 16)
	for _, p := range []*Policy{Policy1(), Policy2()} {
		b.Run(fmt.Sprintf("policy%d/text", p.Version), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				EstimateText(p, text)
			}
		})
		b.Run(fmt.Sprintf("policy%d/result", p.Version), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				EstimateResult(p, text)
			}
		})
	}
}

// longLoop is one prompt with n rounds of reading 4 kB.
func longLoop(n int) []llm.Message {
	messages := []llm.Message{llm.UserText("please read all the files and tell me what they say")}
	for i := range n {
		messages = append(messages, round(fmt.Sprintf("c%d", i), "read", `{"path":"a.go"}`, mixed(4<<10))...)
	}
	return messages
}

// BenchmarkPlanCold plans conversations that nothing is known of. Planning is
// linear: the rate is the same for 1, 10 and 100 MB, in exchanges, in rounds and
// in a single result.
func BenchmarkPlanCold(b *testing.B) {
	kinds := []struct {
		name string
		of   func(megabytes int) []llm.Message
	}{
		{"exchanges", func(n int) []llm.Message { return longConversation(100 * n) }},
		{"rounds", func(n int) []llm.Message { return longLoop(250 * n) }},
		{"result", func(n int) []llm.Message {
			return append([]llm.Message{llm.UserText("read it")}, round("c", "read", `{"path":"a.go"}`, mixed(n*1_000_000))...)
		}},
	}
	for _, kind := range kinds {
		for _, megabytes := range []int{1, 10, 100} {
			messages, size := kind.of(megabytes), 0
			for i := range messages {
				size += len(messages[i].Text())
			}
			for _, p := range []*Policy{Policy1(), Policy2()} {
				b.Run(fmt.Sprintf("%s/%dMB/policy%d", kind.name, megabytes, p.Version), func(b *testing.B) {
					b.SetBytes(int64(size))
					b.ReportAllocs()
					for b.Loop() {
						Make(p, window(131072, messages...)) // policy 1 may find no room for all rounds, after the same work
					}
				})
			}
		}
	}
}

// BenchmarkPlanIncremental plans a long conversation to which one turn was added.
func BenchmarkPlanIncremental(b *testing.B) {
	messages := longConversation(1000)
	longer := append(messages[:len(messages):len(messages)], llm.UserText("and now the last one"))
	for _, p := range []*Policy{Policy1(), Policy2()} {
		b.Run(fmt.Sprintf("policy%d", p.Version), func(b *testing.B) {
			in := window(131072, messages...)
			in.Costs = new(Costs)
			first := mustMake(b, p, in)
			warm := *in.Costs
			warm.seen, warm.turns = slices.Grow(warm.seen, 1), slices.Grow(warm.turns, 1)
			in.Previous = first.Next(llm.Usage{PromptTokens: first.Report.EstimatedAfter * 2 / 3})
			in.Messages = longer
			b.ReportAllocs()
			for b.Loop() {
				costs := warm // forgets the turn that the last round added
				in.Costs = &costs
				mustMake(b, p, in)
			}
		})
	}
}

// BenchmarkPlanLoop plans the next step of a tool loop that outgrew its window
// long ago, once when the last shape still fits and once when it is made anew.
func BenchmarkPlanLoop(b *testing.B) {
	messages := longLoop(400)
	for _, p := range []*Policy{Policy1(), Policy2()} {
		for _, carried := range []bool{true, false} {
			b.Run(fmt.Sprintf("policy%d/carried=%v", p.Version, carried), func(b *testing.B) {
				in := window(131072, messages...)
				in.Costs = new(Costs)
				first := mustMake(b, p, in)
				if carried {
					in.Previous = first.Next(llm.Usage{PromptTokens: first.Report.EstimatedAfter * 2 / 3})
				}
				b.ReportAllocs()
				for b.Loop() {
					mustMake(b, p, in)
				}
			})
		}
	}
}
