package budget

import "github.com/drover-dev/drover/internal/llm"

// ProvableMinimum is a number of prompt tokens: an engine that counts fewer has
// left out a part of the request. It is half the runs of ASCII letters in the
// texts, since a token may join two words, or what the engine counted for a
// request that this one begins with, byte for byte.
func (p *Plan) ProvableMinimum() int {
	runs := letterRuns(p.Request.System)
	for i := range p.Request.Messages {
		for _, part := range p.Request.Messages[i].Parts {
			if text, ok := part.(llm.Text); ok {
				runs += letterRuns(string(text))
			}
		}
	}
	return max(runs/2, p.counted)
}

func letterRuns(s string) (runs int) {
	inside := false
	for i := range len(s) {
		letter := (s[i]|0x20)-'a' < 26
		if letter && !inside {
			runs++
		}
		inside = letter
	}
	return runs
}
