package tui

import (
	"context"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/drover-dev/drover/internal/agent"
	"github.com/drover-dev/drover/internal/llm"
)

// longTranscript fills a screen with a conversation of so many lines.
func longTranscript(s *screen, lines int) {
	for n := 0; n < lines; n += 24 {
		s.transcript.add(&prompt{text: "what about that?"})
		a := &answer{}
		a.append(markdownSample)
		s.transcript.add(a)
	}
}

// deltas are the pieces of a long answer: prose, a list and code.
func deltas(n int) []string {
	var list []string
	words := strings.Fields("The herd walks over the green hill and drinks from the river before it sleeps")
	for i := range n {
		switch {
		case i%400 == 300:
			list = append(list, "\n\n```go\n")
		case i%400 == 399:
			list = append(list, "\n```\n\n")
		case i%400 > 300 && i%8 == 0:
			list = append(list, "\n\tx := 1 // ")
		case i%40 == 39:
			list = append(list, "\n\n- ")
		default:
			list = append(list, words[i%len(words)]+" ")
		}
	}
	return list
}

// BenchmarkStream is 2,000 pieces of an answer at 100 a second below a transcript
// of 10,000 lines, at 200x50, as the pump hands them on: three or four a frame.
// ms/frame is what one frame costs of the 33 there are.
func BenchmarkStream(b *testing.B) {
	frames := 0
	for b.Loop() {
		s := benchScreen(200, 50)
		longTranscript(s, 10_000)
		s.turn = &turn{cancel: func() {}, cards: map[string]*entry{}, started: time.Now()}
		var list batch
		for i, d := range deltas(2000) {
			list = append(list, event{agent.Text(d), time.Now()})
			if i%10 == 3 || i%10 == 6 || i%10 == 9 {
				s.Update(list)
				_ = s.View()
				frames++
				list = nil
			}
		}
	}
	b.ReportMetric(1000*b.Elapsed().Seconds()/float64(frames), "ms/frame")
}

func benchScreen(width, height int) *screen {
	s := newScreen(context.Background(), newDesk(&Options{Explain: func(err error) string { return err.Error() }}))
	s.Update(tea.WindowSizeMsg{Width: width, Height: height})
	s.snapshot.Target = llm.Target{Provider: "lab", Model: "brook-7b"}
	return s
}

// BenchmarkScroll goes through a transcript of 10,000 lines, page by page.
func BenchmarkScroll(b *testing.B) {
	s := benchScreen(200, 50)
	longTranscript(s, 10_000)
	key := tea.KeyPressMsg{Code: tea.KeyPgUp}
	n := 0
	for b.Loop() {
		if n++; n%200 == 0 {
			s.transcript.following = true
		}
		s.Update(key)
		_ = s.View()
	}
}

// BenchmarkResize is what another width costs with 10,000 lines, at the end and
// at the beginning of the transcript.
func BenchmarkResize(b *testing.B) {
	for _, where := range []string{"end", "top"} {
		b.Run(where, func(b *testing.B) {
			s := benchScreen(200, 50)
			longTranscript(s, 10_000)
			width := 200
			for b.Loop() {
				width = 300 - width
				if where == "top" {
					s.transcript.toTop()
				}
				s.Update(tea.WindowSizeMsg{Width: width, Height: 50})
				_ = s.View()
			}
		})
	}
}
