package openai

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// An engine can make an answer long, but not the work on it longer than that: a
// decoder that is busy hears of no cancel.
func TestWorkGrowsWithTheAnswer(t *testing.T) {
	const (
		size  = 1 << 18
		large = 1 << 20 // where only time tells: its square takes minutes
	)
	message := func(content string) string {
		return `{"choices":[{"message":{"content":` + content + `},"finish_reason":"stop"}]}`
	}
	text := func(s string) string { return message(quote(strings.Repeat(s, size/len(s)))) }
	bodies := map[string]string{
		"values in one event":             "data: " + strings.Repeat("1 ", large/2) + strings.Repeat(" ", large) + "\n\n" + done,
		"lines of one event":              strings.Repeat("data: 1\n", large/8) + strings.Repeat("data: \n", large/8) + "\n" + done,
		"parts of a whole message":        message(`[` + quote(strings.Repeat("x", large)) + strings.Repeat(`,"x"`, large/2) + `]`),
		"blocks of reasoning":             text("<think></think>"),
		"blocks inside the answer":        text("a <think>a</think>"),
		"opening tags":                    text(" <think>"),
		"closing tags":                    text("</think>"),
		"markers of calls":                text("<tool_call> "),
		"markers of calls, undecided":     text("<tool_call>{"),
		"markers of calls, in an event":   content(strings.Repeat("<tool_call> ", size/12)) + finish("stop") + done,
		"backticks":                       text("` `` "),
		"pieces of the details, no index": ended(strings.Repeat(delta(`{"reasoning_details":[{"type":"reasoning.text","text":"x"}]}`), size/256)),
	}
	opts := offer("run_line")
	opts.ReasoningSupported = true
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				record(DecodeStream(strings.NewReader(body), opts))
			}()
			select {
			case <-ended:
			case <-time.After(4 * time.Minute): // where it is in order, some milliseconds
				t.Fatal("still at work")
			}
			runtime.ReadMemStats(&after)
			// What is copied for each byte at most: a piece of text for every tag.
			const most = 2 << 10
			if copied := (after.TotalAlloc - before.TotalAlloc) / uint64(len(body)); copied > most {
				t.Errorf("%d bytes were copied for each byte of the answer", copied)
			}
		})
	}
}
